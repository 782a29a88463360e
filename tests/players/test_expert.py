"""Test the expert: exact where the solver ends in time, the network's choice elsewhere."""

from functools import cache

import numpy as np
import pytest
from compiled import random_positions, tiny_agent

from jaxzero.game import DotsAndBoxes
from jaxzero.measure.arena import play_match
from jaxzero.play.modes import choose_player
from jaxzero.players import expert
from jaxzero.players.network_player import Answer
from jaxzero.players.players import make_player
from jaxzero.solver import endgame

BOARD = DotsAndBoxes(2, 2)
AGENT = tiny_agent(BOARD, 4, nodes="quiet")


@cache
def hurried() -> expert.Expert:
    """Return a compiled expert whose time allows only the shortest search."""
    hurried = expert.new_expert(AGENT, 1e-3)
    expert.prepare(hurried)
    assert expert.longest(hurried, 1.0) == expert.SIMULATIONS[0]
    return hurried


def unhurried(monkeypatch, seconds: float = 60.0) -> expert.Expert:
    """Return the hurried expert with enough time for proofs, but only the shortest search."""
    monkeypatch.setattr(expert, "SIMULATIONS", expert.SIMULATIONS[:1])
    made = hurried()
    return expert.Expert(made.agent, seconds, made.durations)


def test_a_proven_position_is_played_perfectly_as_the_network_prefers(monkeypatch):
    made, boards = unhurried(monkeypatch), random_positions(BOARD, 80, 1, BOARD.num_edges)
    edges = expert.choose_edges(made, np.zeros(len(boards), np.uint32), boards)
    chosen = 0
    for drawn, edge in zip(boards, edges, strict=True):
        worth = endgame.move_values(BOARD, drawn)
        best = np.flatnonzero(worth == worth.max())
        order = expert.preference(made.think(16, drawn), drawn)
        assert edge == next(one for one in order if one in best)
        chosen += edge != best[0]
    assert chosen > 10  # the preference of the network matters


@pytest.mark.parametrize("board", [True, False])
def test_where_nothing_can_be_proven_the_network_chooses(board, monkeypatch):
    """Test too many undrawn edges, and boards beyond the solver."""
    made = unhurried(monkeypatch)
    if board:
        monkeypatch.setattr(expert.endgame, "can_solve", lambda _board: False)
    else:
        monkeypatch.setattr(expert, "PROVEN_UNDRAWN", 0)
    for drawn in random_positions(BOARD, 20, 1, BOARD.num_edges):
        assert expert.decide(made, drawn) == made.think(16, drawn).edge


def test_a_stopped_proof_leaves_out_what_is_refuted(monkeypatch):
    """A bound that was proven in time counts, even without the exact value."""
    made = unhurried(monkeypatch)

    def prove_half(problem, *_given):
        problem.bounds[0] = endgame.solve(BOARD, drawn).value  # the upper bound stays open

    monkeypatch.setattr(expert.proof, "prove_value", prove_half)
    for drawn in random_positions(BOARD, 20, 1, BOARD.num_edges):
        worth = endgame.move_values(BOARD, drawn)
        assert worth[expert.decide(made, drawn)] == worth.max()


def test_preference_begins_with_the_choice_and_has_every_edge():
    drawn = np.isin(np.arange(BOARD.num_edges), [0, 4, 5])
    policy = np.linspace(0, 1, BOARD.num_edges)
    opinion = Answer(2, 0.0, 2, 0.0, policy, visits=None, qvalues=None)
    order = expert.preference(opinion, drawn)
    assert order == [2, 11, 10, 9, 8, 7, 6, 3, 1]


def test_the_longest_search_is_one_that_fits():
    made = expert.Expert(None, 10.0, {16: 0.1})
    assert expert.longest(made, 0.2) == 256  # 1.6 seconds, scaled from the shortest search
    assert expert.longest(made, 0.7) == 1024
    made.durations[256] = 5.0
    assert expert.longest(made, 0.2) == 64


def test_it_plays_matches_and_in_the_terminal(monkeypatch):
    monkeypatch.setattr(expert, "SIMULATIONS", expert.SIMULATIONS[:1])
    player = choose_player("player", "expert:0.5", BOARD, AGENT)
    result = play_match(BOARD, player, make_player("perfect:0.5", BOARD), 8, 2, 0)
    assert result.points > 0.5
