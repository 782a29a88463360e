"""Test the analysis of positions: kinds of edges, slices of the solver, lines."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from compiled import tiny_agent

from jaxzero.game import DotsAndBoxes, parse_edge, play_moves
from jaxzero.game.records import RecordedGame
from jaxzero.play import analysis
from jaxzero.play.analysis import by_structure
from jaxzero.play.analysis_report import format_analysis, to_json
from jaxzero.solver.endgame import Solution, move_values


@pytest.mark.parametrize(
    ("cols", "drawn", "kinds"),
    [
        (1, (), "hard-hearted hard-hearted"),
        (2, (), "half-hearted hard-hearted half-hearted"),
        (3, (), "loony loony loony loony"),
        (2, ("v0,1",), "takes takes"),
        # The first box can be taken, and then the boxes behind it.
        (2, ("v0,0",), "takes hard-hearted"),
        (3, ("v0,0",), "takes loony loony"),
        (6, ("v0,0",), "takes loony loony loony loony loony"),
    ],
)
def test_kinds_of_edges_in_a_row(cols, drawn, kinds):
    """One row of boxes between two drawn lines; on an empty board every edge is safe."""
    board = DotsAndBoxes(1, cols)
    edges = np.zeros(board.num_edges, bool)
    assert cols < 2 or {one.kind for one in by_structure(board, edges).edges} == {"safe"}
    edges[: 2 * cols] = True
    edges[[parse_edge(board, name) for name in drawn]] = True
    assert [one.kind for one in by_structure(board, edges).edges] == kinds.split()


def test_a_single_box_is_no_chain_but_can_be_opened():
    """Four boxes in a row: one with two open sides, a wall, and a chain of three."""
    game = RecordedGame(1, 4, (2, 3, 4, 5, 6, 7, 9))
    found = by_structure(game.board, game.drawn)
    shown = to_json(found)["structure"]
    assert [chain["length"] for chain in shown["chains"]] == [3]
    assert (shown["long"], shown["control"]) == (1, None)
    assert "safe edges 0; chains: 3" in format_analysis(game, found)


def test_free_boxes_chains_and_loops_have_their_own_names():
    """Two loops of four beside each other, or one of them opened: only chains count as long."""
    board = DotsAndBoxes(2, 5)
    inside = ("h1,0", "h1,1", "v0,1", "v1,1", "h1,3", "h1,4", "v0,4", "v1,4")
    start = set(range(board.num_edges)) - {parse_edge(board, name) for name in inside}
    for drawn, words in (
        (start, "safe edges 0; loops: 4 + 4"),
        (start | {parse_edge(board, "h1,0")}, "safe edges 0; boxes to take now: 4; loops: 4"),
    ):
        game = RecordedGame(2, 5, tuple(sorted(drawn)))
        found = by_structure(board, game.drawn)
        assert to_json(found)["structure"]["long"] == 0
        assert words in format_analysis(game, found)


def test_the_solver_yields_after_each_slice(monkeypatch):
    """It also yields when a slice proves nothing: the reader decides whether to go on."""
    slices = []

    def solve(*_, **limits):
        slices.append(limits["seconds"])
        return Solution(None, -4, 4, ())

    for name in ("by_network", "by_search"):
        monkeypatch.setattr(analysis, name, lambda _agent, known, *_: known)
    monkeypatch.setattr(analysis, "solve", solve)
    monkeypatch.setattr(analysis, "is_compiled", lambda: True)
    board = DotsAndBoxes(2, 3)
    agent = SimpleNamespace(network=SimpleNamespace(board=board))
    found = analysis.stages(agent, np.zeros(board.num_edges, bool), 0, 0, 60.0)
    assert [next(found).stage for _ in range(3)] == ["structure"] * 3
    before = len(slices)
    for count in range(1, 9):
        assert next(found).stage == "exact" and len(slices) == before + count
    assert max(slices) <= 1.0, "others wait for no more than a second"


@pytest.mark.parametrize("seed", range(3))
def test_a_loss_is_proven_or_a_proven_bound_once_the_value_is_proven(monkeypatch, seed):
    """The estimates, here that no edge loses anything, do not hide what is proven."""

    def estimated(_agent, known, *_):
        return replace(known, edges=tuple(replace(one, value=9.0, lost=0.0) for one in known.edges))

    for name in ("by_network", "by_search"):
        monkeypatch.setattr(analysis, name, estimated)
    monkeypatch.setattr(analysis, "is_compiled", lambda: True)
    monkeypatch.setattr(analysis, "line_of_play", lambda _agent, _drawn, edge: (edge,))
    board, kinds = DotsAndBoxes(3, 3), set()
    drawn = np.zeros(board.num_edges, bool)
    drawn[np.random.default_rng(seed).permutation(board.num_edges)[:8]] = True
    values = move_values(board, drawn)
    agent = SimpleNamespace(network=SimpleNamespace(board=board))
    for found in analysis.stages(agent, drawn, 0, 1, 5.0):
        for one in found.edges:
            loss = values.max() - values[one.edge]
            assert (loss == one.lost) if one.exact else (one.bound and loss >= one.lost > 0)
            kinds.add((one.exact, one.bound))
        lines = to_json(found)["lines"]
        worth = [line["value"] for line in lines if line["value"] is not None]
        assert worth == [values[line["edge"]] for line in lines if line["value"] is not None]
    assert found.is_exact and len(kinds) == 2


def test_a_value_without_best_edges_is_no_solution(monkeypatch):
    """Else every edge would get the value, and so would lose nothing."""
    monkeypatch.setattr(analysis, "solve", lambda *_, **_limits: Solution(2, 2, 2, ()))
    assert analysis.prove(DotsAndBoxes(2, 3), np.zeros(17, bool), 1.0) is None


@pytest.mark.parametrize("seed", range(8))
def test_lines_of_few_edges_are_worth_what_they_say(seed):
    board, rng = DotsAndBoxes(2, 3), np.random.default_rng(seed)
    drawn = np.zeros(board.num_edges, bool)
    drawn[rng.permutation(board.num_edges)[: 6 + seed]] = True
    agent = SimpleNamespace(network=SimpleNamespace(board=board))  # few edges need no network
    found = next(analysis.stages(agent, drawn, 0, 0, 1.0))
    facts, values = {one.edge: one for one in found.edges}, []
    for line in found.lines:
        closed = list(play_moves(board, np.flatnonzero(drawn).tolist(), line)[1].values())
        assert len(line) == len(facts) and closed.count(0) - closed.count(1) == facts[line[0]].value
        values.append(facts[line[0]].value)
    assert values == sorted(values, reverse=True) and values[0] == found.value
    assert found.lines[0] == found.line and found.line[0] == found.best
    edges = {line[0] for line in found.lines}
    for chain in found.chains:  # edges of one chain and kind have the same value: one line each
        kinds = [facts[edge].kind for edge in edges & {*chain.edges} if chain.kind != "free"]
        assert len(kinds) == len({*kinds})


def test_the_last_stage_has_lines_and_a_proof():
    board, rng = DotsAndBoxes(2, 3), np.random.default_rng(0)
    agent = tiny_agent(board)
    for left in (2, 11, 13, 16):
        drawn = np.ones(board.num_edges, bool)
        drawn[rng.permutation(board.num_edges)[:left]] = False
        *_, found = analysis.stages(agent, drawn, 0, 2 * (left % 2), 5.0)
        assert found.lines[0] == found.line and found.line and found.proven is not None
