"""Test players on the host: perfect play is perfect."""

import jax
import numpy as np
import pytest
from compiled import random_positions, tiny_agent

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_name, initial_states, parse_edge, parse_edges
from jaxzero.game.records import RecordedGame
from jaxzero.measure.arena import play_match
from jaxzero.play.game import choose, draw_turn
from jaxzero.players.players import (
    choose_by_rules,
    make_player,
    play_perfectly,
    simple_edges,
)
from jaxzero.solver.endgame import move_values
from jaxzero.solver.small import MAX_UNDRAWN

BOARD = DotsAndBoxes(2, 2)


@pytest.mark.parametrize("opponent", ["greedy", "perfect", "perfect:0.5"])
def test_perfect_never_does_worse_than_the_value(opponent):
    board = DotsAndBoxes(2, 3)
    result = play_match(
        board, make_player("perfect", board), make_player(opponent, board), 64, 0, 1
    )
    assert min(result.first) >= -2  # the first player loses 2x3 by two
    assert min(result.second) >= 2
    assert result.margin > 0.5 or opponent == "perfect"


def test_a_batch_may_have_finished_games():
    drawn = np.ones((2, BOARD.num_edges), bool)
    drawn[1, 5] = False
    states = initial_states(BOARD, 2)._replace(drawn=drawn)
    keys = jax.random.split(jax.random.key(0), 2)
    assert make_player("perfect", BOARD).decide(keys, states).edge[1] == 5


def test_where_the_solver_gives_up_perfect_is_careful():
    """Above 38 undrawn edges the solver is not tried: the player takes a box or gives none away."""
    board = DotsAndBoxes(5, 5)
    free, open_ = np.zeros((2, 1000, board.num_edges), bool)
    free[:, [0, 5, 30]] = True  # three sides of the first box
    open_[:, [0, 5]] = True  # two sides of the first box
    seeds = np.arange(2000, dtype=np.uint32)
    edges = play_perfectly(board, 0.0, seeds, np.append(free, open_, axis=0))
    assert set(edges[:1000].tolist()) == {31}
    # All edges but the drawn ones and the two that add a third side to the box.
    assert set(edges[1000:].tolist()) == set(range(board.num_edges)) - {0, 5, 30, 31}


def test_mixed_strength_lies_between():
    board = DotsAndBoxes(3, 3)
    perfect, mixed, random = (make_player(n, board) for n in ("perfect", "perfect:0.3", "random"))
    assert play_match(board, perfect, mixed, 64, 2, 0).points > 0.6
    assert play_match(board, mixed, random, 64, 2, 0).points > 0.8


WRONG = (
    *("greedy:1", "search", "search:0", "search:100000", "perfect:2", "perfect:x", "level:"),
    *("nobody", "level:9", "expert", "expert:", "expert:0", "expert:-1", "expert:abc"),
    *("expert:nan", "expert:inf", "expert:10000"),
)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_name_of_a_player_is_refused(name):
    with pytest.raises(InputError, match=f"^players: '{name}'"):
        make_player(name, BOARD, tiny_agent(BOARD), "players")


@pytest.mark.parametrize("name", ["policy", "search:4", "expert:1", "level:3"])
def test_a_player_without_its_network_is_refused(name):
    with pytest.raises(InputError, match=f"^player: '{name}'"):
        make_player(name, BOARD)


def test_simple_rules_give_three_boxes_rather_than_four_of_as_many_edges():
    board = DotsAndBoxes(2, 4)
    loop, chain = "h1,0 h1,1 v0,1 v1,1", "h0,2 v0,3 h1,3 h2,3"
    drawn = np.ones(board.num_edges, bool)
    drawn[list(parse_edges(board, f"{loop} {chain}"))] = False
    assert set(simple_edges(board, drawn)) == set(parse_edges(board, chain))


def test_rules_play_whole_games_and_give_little():
    board = DotsAndBoxes(4, 3)
    game, player = RecordedGame(board.rows, board.cols), make_player("rules", board)
    while not game.is_over:
        game = draw_turn(game, lambda here: choose(player, here, 0))
    # Every box has two drawn sides. Row 0 has chains of one box and of two, other rows of three.
    drawn = np.arange(board.num_edges) < board.num_horizontal
    drawn[[parse_edge(board, name) for name in ("h0,0", "h0,1")]] = False
    drawn[parse_edge(board, "v0,1")] = True
    (edge,) = choose_by_rules(board, np.zeros(1, np.uint32), drawn[None])
    assert edge_name(board, edge) in ("h0,0", "v0,0")


def test_rules_are_exact_where_few_edges_are_left():
    board = DotsAndBoxes(3, 3)
    positions = random_positions(board, 20, 1, MAX_UNDRAWN)
    edges = choose_by_rules(board, np.zeros(len(positions), np.uint32), positions)
    for drawn, edge in zip(positions, edges, strict=True):
        worth = move_values(board, drawn)
        assert worth[edge] == worth.max()
