"""Test players on the host: alpha-beta equals plain minimax, perfect play is perfect."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from referee import exact_values

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, box_sides_table, initial_states, parse_edges
from jaxzero.measure.arena import play_match
from jaxzero.players.players import make_player
from jaxzero.players.preparation import simple_edges
from jaxzero.solver.alphabeta import choose_edges, move_values

GAME = DotsAndBoxes(2, 2)


def boards(count: int, fewest_left: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    drawn = rng.random((count, GAME.num_edges)) < rng.random((count, 1))
    return drawn[(~drawn).sum(axis=1) >= fewest_left]


def minimax(drawn: frozenset[int], depth: int) -> dict[int, int]:
    """Return the value of every edge as alpha-beta defines it, in plain Python."""
    boxes = [set(sides.tolist()) for sides in box_sides_table(GAME)]
    worth = {}
    for edge in set(range(GAME.num_edges)) - drawn:
        after = drawn | {edge}
        closed = sum(edge in box and box <= after for box in boxes)
        rest = minimax(after, depth - 1) if depth > 1 else {}
        value = max(rest.values(), default=0)
        if depth == 1:
            while free := [e for box in boxes if len(rest := box - after) == 1 for e in rest]:
                value += sum(free[0] in box and box <= after | {free[0]} for box in boxes)
                after |= {free[0]}
        worth[edge] = closed + value if closed else -value
    return worth


@pytest.mark.parametrize("depth", [1, 2, 3, GAME.num_edges])
def test_alphabeta_sees_what_plain_minimax_sees(depth):
    exact = exact_values(GAME)
    for board in boards(30, 2):
        drawn = frozenset(np.flatnonzero(board).tolist())
        worth = minimax(drawn, depth) if depth < 4 else exact(drawn)[1]
        found, value = move_values(GAME, depth, board), max(worth.values())
        assert found.max() == value
        assert set(np.flatnonzero(found == value)) == {e for e in worth if worth[e] == value}


def test_choices_depend_on_the_seed_alone():
    empty = np.zeros((40, GAME.num_edges), bool)
    seeds = np.arange(40, dtype=np.uint32)
    edges = choose_edges(GAME, 2, seeds, empty)
    assert len(set(edges.tolist())) > 3
    np.testing.assert_array_equal(edges[5:9], choose_edges(GAME, 2, seeds[5:9], empty[5:9]))


@pytest.mark.parametrize("opponent", ["greedy", "alphabeta:2", "perfect", "perfect:0.5"])
def test_perfect_never_does_worse_than_the_value(opponent):
    game = DotsAndBoxes(2, 3)
    result = play_match(game, make_player("perfect", game), make_player(opponent, game), 64, 0, 1)
    assert min(result.first) >= -2  # the first player loses 2x3 by two
    assert min(result.second) >= 2
    assert result.margin > 0.5 or opponent == "perfect"


@pytest.mark.parametrize("name", ["alphabeta:2", "perfect"])
def test_a_batch_may_have_finished_games(name):
    drawn = np.ones((2, GAME.num_edges), bool)
    drawn[1, 5] = False
    states = initial_states(GAME, 2)._replace(drawn=drawn)
    keys = jax.random.split(jax.random.key(0), 2)
    assert make_player(name, GAME).choose(keys, states)[1] == 5


def test_where_the_solver_gives_up_perfect_is_careful():
    """Above 38 undrawn edges the solver is not tried: the player takes a box or gives none away."""
    game = DotsAndBoxes(5, 5)
    free, open_ = np.zeros((2, 1000, game.num_edges), bool)
    free[:, [0, 5, 30]] = True  # three sides of the first box
    open_[:, [0, 5]] = True  # two sides of the first box
    edges = make_player("perfect", game).act(
        np.arange(2000, dtype=np.uint32), np.append(free, open_, axis=0)
    )
    assert set(edges[:1000].tolist()) == {31}
    # All edges but the drawn ones and the two that add a third side to the box.
    assert set(edges[1000:].tolist()) == set(range(game.num_edges)) - {0, 5, 30, 31}


def test_mixed_strength_lies_between():
    game = DotsAndBoxes(3, 3)
    perfect, mixed, random = (make_player(n, game) for n in ("perfect", "perfect:0.3", "random"))
    assert play_match(game, perfect, mixed, 64, 2, 0).points > 0.6
    assert play_match(game, mixed, random, 64, 2, 0).points > 0.8


@pytest.mark.parametrize("name", ["alphabeta", "alphabeta:0", "perfect:2", "perfect:x"])
def test_bad_arguments_are_refused(name):
    with pytest.raises(InputError, match=name):
        make_player(name, GAME)


def test_simple_rules_give_three_boxes_rather_than_four_of_as_many_edges():
    game = DotsAndBoxes(2, 4)
    loop, chain = "h1,0 h1,1 v0,1 v1,1", "h0,2 v0,3 h1,3 h2,3"
    drawn = np.ones(game.num_edges, bool)
    drawn[list(parse_edges(game, f"{loop} {chain}"))] = False
    assert set(simple_edges(game, drawn)) == set(parse_edges(game, chain))
