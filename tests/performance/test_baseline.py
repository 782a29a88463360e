"""Laws of the baseline: the same rules, a legal tree, the right signs, exact play in the end."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest
from referee import exact_values

from jaxzero.cli import load_config
from jaxzero.game import DotsAndBoxes, box_sides, boxes_gained, initial_state, step
from jaxzero.performance.baseline import (
    Board,
    Node,
    add_noise,
    expand,
    play_game,
    search_moves,
)


def flat(drawn: list[bool]) -> tuple[list[float], float]:
    """Know nothing: equal priors, even chances."""
    return [1.0] * len(drawn), 0.0


def position(game: DotsAndBoxes, edges: list[int]) -> Board:
    board = Board(game)
    for edge in edges:
        board.play(edge)
    return board


def best_entry(root: Node) -> int:
    return max(range(len(root.edges)), key=root.visits.__getitem__)


@pytest.mark.parametrize("game", [DotsAndBoxes(1, 1), DotsAndBoxes(2, 3)], ids=str)
def test_it_plays_by_the_rules_of_the_package(game):
    take = jax.jit(partial(step, game))
    rng = np.random.default_rng(0)
    for _ in range(5):
        board, state = Board(game), initial_state(game)
        for edge in rng.permutation(game.num_edges).tolist():
            after, again = take(state, edge)
            assert board.play(edge) == boxes_gained(state, after, again)
            assert board.drawn == after.drawn.tolist()
            assert board.sides == box_sides(game, after.drawn).ravel().tolist()
            state = after
        assert board.left == 0 and board.legal() == []


def test_a_move_taken_back_leaves_no_trace():
    game = DotsAndBoxes(2, 2)
    board = position(game, [0, 6, 2])
    before = (board.drawn[:], board.sides[:], board.left)
    assert board.play(7) == 1
    board.undo(7)
    assert (board.drawn, board.sides, board.left) == before


def nodes(root: Node, board: Board):
    """Yield every node of a tree with its drawn edges."""
    yield root, board.drawn[:]
    for edge, child in zip(root.edges, root.children, strict=True):
        if child is not None:
            board.play(edge)
            yield from nodes(child, board)
            board.undo(edge)


def test_the_tree_holds_legal_moves_only_and_every_visit():
    game = DotsAndBoxes(2, 2)
    board = position(game, [0, 6])
    drawn = board.drawn[:]
    root, _ = expand(board, flat)
    add_noise(root, np.random.default_rng(0))
    assert sum(root.priors) == pytest.approx(1)
    assert sum(search_moves(board, root, flat, 300)) == 300
    assert board.drawn == drawn
    for node, there in nodes(root, board):
        assert node.edges == [edge for edge in range(game.num_edges) if not there[edge]]
        for visits, child in zip(node.visits, node.children, strict=True):
            # The first visit made the child, all others went through it.
            if child is not None:
                assert sum(child.visits) == visits - 1


def test_search_finds_the_only_opening_that_keeps_the_1x2_board_even():
    game = DotsAndBoxes(1, 2)
    board = Board(game)
    root, _ = expand(board, flat)
    search_moves(board, root, flat, 6000)
    best = best_entry(root)
    assert root.edges[best] == 5
    values = [total / visits for total, visits in zip(root.totals, root.visits, strict=True)]
    assert values[best] == pytest.approx(0, abs=0.1)
    assert np.argmax(values) == best


def test_search_agrees_with_exact_play_late_in_2x2_games():
    game = DotsAndBoxes(2, 2)
    solve, rng = exact_values(game), np.random.default_rng(1)
    for _ in range(10):
        drawn = rng.permutation(game.num_edges)[:6].tolist()
        value, moves = solve(frozenset(drawn))
        board = position(game, drawn)
        root, _ = expand(board, flat)
        search_moves(board, root, flat, 3000)
        best = best_entry(root)
        assert moves[root.edges[best]] == value
        found = root.totals[best] / root.visits[best] * game.num_boxes
        assert found == pytest.approx(value, abs=0.4)


def test_a_game_is_whole():
    config = load_config("configs/tiny.yaml", "--search.simulations=20")
    game = config.game.board
    record = play_game(config, flat, np.random.default_rng(0))
    assert sorted(edge for edge, _ in record) == list(range(game.num_edges))
    assert sum(closed for _, closed in record) == game.num_boxes
