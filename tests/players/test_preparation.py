"""Test first answers: legal, immediate and marked; nothing compiles where a rule answers."""

from __future__ import annotations

from contextlib import closing

import jax
import numpy as np
import pytest
from compiled import random_positions

import jaxzero
from jaxzero.game import DotsAndBoxes, edge_name, parse_edge
from jaxzero.play.game import Record, draw_turn
from jaxzero.players import recent, single
from jaxzero.players.preparation import (
    PREPARATION,
    Preparation,
    exact_answer,
    first_answer,
    stand_in,
)
from jaxzero.solver.endgame import move_values
from jaxzero.solver.small import MOST_UNDRAWN, small_values

PATIENCE = 60  # seconds until a test fails instead of hanging
LARGE = DotsAndBoxes(4, 3)


@pytest.mark.parametrize("sides", [(1, 1), (1, 2), (2, 2), (4, 3)], ids=str)
def test_values_of_few_edges_are_those_of_the_solver(sides):
    game = DotsAndBoxes(*sides)
    for drawn in random_positions(game, 10, 1, min(MOST_UNDRAWN, game.num_edges)):
        np.testing.assert_array_equal(small_values(game, drawn), move_values(game, drawn))
        assert exact_answer(game, drawn).by == "exact"


def test_a_stand_in_plays_whole_games_by_the_rules_and_gives_little():
    record = Record(LARGE)
    while not record.is_over:
        record = draw_turn(record, lambda here: stand_in(LARGE, here.drawn).edge)
    # Every box has two drawn sides. Row 0 has chains of one box and of two, other rows of three.
    drawn = np.arange(LARGE.num_edges) < LARGE.num_horizontal
    drawn[[parse_edge(LARGE, name) for name in ("h0,0", "h0,1")]] = False
    drawn[parse_edge(LARGE, "v0,1")] = True
    answer = stand_in(LARGE, drawn)
    assert answer.by == "rules" and edge_name(LARGE, answer.edge) in ("h0,0", "v0,0")


def test_nothing_compiles_where_the_solver_answers():
    for drawn in random_positions(LARGE, 5, 1, MOST_UNDRAWN):
        assert first_answer(LARGE, drawn, "never", pytest.fail).by == "exact"
    assert not PREPARATION.is_done(LARGE, "never")


def test_who_is_asked_for_does_not_play_what_is_exact_once_it_is_ready():
    (drawn,) = random_positions(LARGE, 1, 3, 3)
    PREPARATION.begin(LARGE, "ready", lambda: None)
    assert PREPARATION.wait(LARGE, "ready", PATIENCE)
    assert first_answer(LARGE, drawn, "ready", pytest.fail) is None


def test_what_fails_is_done_so_that_the_answer_itself_meets_it():
    PREPARATION.begin(LARGE, "fails", lambda: 1 / 0)
    assert PREPARATION.wait(LARGE, "fails", PATIENCE)


def test_what_nobody_wants_is_not_compiled_and_what_is_compiled_is_not_asked_for(gate, monkeypatch):
    monkeypatch.setattr("jaxzero.players.preparation.AT_ONCE", 1)
    queue, compiled = Preparation(), []
    queue.begin(LARGE, "first", lambda: gate.wait(PATIENCE))
    with closing(queue.polled(LARGE, "given up", lambda: compiled.append("given up"))) as polls:
        next(polls)
    queue.begin(LARGE, "second", lambda: compiled.append("second"))
    gate.set()
    assert queue.wait(LARGE, "second", PATIENCE) and compiled == ["second"]
    monkeypatch.setattr(queue, "begin", pytest.fail)
    assert not list(queue.polled(LARGE, "second", pytest.fail)), "it is compiled: no request"


def test_who_gives_up_late_leaves_what_others_have_asked_for_since(gate, monkeypatch):
    monkeypatch.setattr("jaxzero.players.preparation.AT_ONCE", 1)
    queue = Preparation()
    with queue.wanted(LARGE, "asked twice", lambda: None):
        assert queue.wait(LARGE, "asked twice", PATIENCE)
        monkeypatch.setattr(recent, "_boards", recent.Recent(recent.MOST_BOARDS))  # evicts it
        queue.begin(LARGE, "first", lambda: gate.wait(PATIENCE))
        queue.begin(LARGE, "asked twice", lambda: None)
    gate.set()
    assert queue.wait(LARGE, "asked twice", PATIENCE)


def test_the_policy_stands_in_where_it_is_compiled():
    agent = jaxzero.load("2x3").agent
    game, drawn = agent.network.game, np.zeros(agent.network.game.num_edges, bool)
    assert single.edge_if_compiled(agent, drawn) is None
    assert stand_in(game, drawn, agent).by == "rules"
    edge = int(single.choose_many(agent, drawn[None], 0).edge[0])
    assert stand_in(game, drawn, agent) == (edge, "policy")


def test_the_api_compiles_nothing_where_the_solver_answers(monkeypatch):
    engine = jaxzero.load("2x2")
    monkeypatch.setattr(jax, "jit", pytest.fail)
    assert engine.best_move([]) == engine.best_moves([[]])[0]
