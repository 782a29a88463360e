"""Test reviews: what moves lost, the tallies of the sides, and the script's files."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from script_runner import run_here

from jaxzero.game import DotsAndBoxes
from jaxzero.game.records import RecordedGame
from jaxzero.play import review
from jaxzero.play.analysis import EdgeFacts
from jaxzero.play.review import PHASES, Reviewed
from jaxzero.solver.endgame import Solution, move_values

BOARD = DotsAndBoxes(2, 2)
PROOFS = {0: Solution(0, 0, 0, (3,)), 2: Solution(0, 0, 0, (3,))}  # by drawn edges


def reviewed(moves: list[int], start: tuple[int, ...] = ()) -> Reviewed:
    """Return the review of a game that the solver proves everywhere."""
    game = RecordedGame(2, 2, start, tuple(moves))
    return Reviewed(game, tuple(reversed([*review.review(None, game, 16)])))


@pytest.mark.parametrize("seed", range(3))
def test_a_move_loses_what_the_solver_says(seed):
    rng = np.random.default_rng(seed)
    start = tuple(range(0, 2 * seed, 2))
    moves = rng.permutation([edge for edge in range(12) if edge not in start]).tolist()
    found, drawn = reviewed(moves, start), np.isin(np.arange(12), start)
    for line, edge, player in zip(found.lines[:-1], moves, found.game.players, strict=False):
        values = move_values(BOARD, drawn)
        assert line.exact and line.player == player and values[line.best] == values.max()
        assert line.lost == values.max() - values[edge]
        assert line.is_mistake == (line.lost > 0)
        assert line.decision == (values[~drawn].min() < values.max())
        drawn[edge] = True
    first, second = found.game.score
    assert found.lines[-1].margin == first - second and found.lines[-1].lost is None


def test_tallies_add_up_and_perfect_play_loses_nothing():
    drawn, moves = np.zeros(12, bool), []
    while not drawn.all():
        moves.append(int(move_values(BOARD, drawn).argmax()))
        drawn[moves[-1]] = True
    perfect = reviewed(moves)
    careless = reviewed([*range(12)])
    phases = [line.phase for line in careless.lines[:-1]]
    assert [phases.count(name) for name in PHASES] == [5, 1, 6], "by hand"
    tallies = [careless.tallies(player) for player in (0, 1)]
    assert sum(tally["all"].moves for tally in tallies) == 12
    for player, tally in enumerate(tallies):
        whole, parts = tally["all"], [tally[name] for name in PHASES]
        for field in ("moves", "mistakes", "lost"):
            assert sum(getattr(part, field) for part in parts) == getattr(whole, field)
        decisions = sum(line.decision for line in careless.lines if line.player == player)
        assert whole.accuracy == round(1 - whole.mistakes / decisions, 4)
        assert decisions < whole.moves, "forced moves do not count"
    assert all(perfect.tallies(player)["all"].mistakes == 0 for player in (0, 1))
    assert sum(tally["all"].mistakes for tally in tallies) > 0


def test_a_position_without_proof_waits_for_the_search_and_is_searched(monkeypatch):
    """Values of a search are noisy: a loss of less than one box is no mistake there."""
    said = ((5, -1.5), (4, 0.25), (3, 0.5))  # from the end of the game
    thoughts = (SimpleNamespace(edge=edge, value=value) for edge, value in said)
    monkeypatch.setattr(review, "choose_edge", lambda *_: next(thoughts))
    game = RecordedGame(2, 2, moves=(0, 1))
    found = review.review(None, game, 16, wait=lambda: [0.0, 0.1], seconds=0)
    assert [next(found), next(found)] == [0.0, 0.1]
    lines = [line for line in found if isinstance(line, review.ReviewLine)]
    lines.reverse()
    # The sides alternate: a move is worth the negated value of the next position.
    assert [line.lost for line in lines] == [0.75, 0.0, None]
    assert [line.best for line in lines] == [3, 4, 5] and not any(line.exact for line in lines)
    assert not lines[0].is_mistake


@pytest.mark.parametrize("lost", [0.9, 1.1])
def test_an_expected_mistake_is_one_in_a_longer_search_too(monkeypatch, lost):
    thoughts = iter([SimpleNamespace(edge=5, value=0.0), SimpleNamespace(edge=4, value=3.0)])
    monkeypatch.setattr(review, "choose_edge", lambda *_: next(thoughts))
    edges = [EdgeFacts(0, "safe", lost=lost), EdgeFacts(7, "safe", lost=0.0)]
    monkeypatch.setattr(review, "searched", lambda *_: SimpleNamespace(edges=edges, best=7))
    *_, line = review.review(None, RecordedGame(2, 2, moves=(0,)), 16, seconds=0)
    assert (line.lost, line.best, line.is_mistake) == (lost, 7, lost > 1)


def test_a_loss_is_proven_only_if_both_positions_are(monkeypatch):
    """A proof before a position without one would make an estimate of it."""
    monkeypatch.setattr(review, "prove", lambda _board, drawn, _: PROOFS.get(int(drawn.sum())))
    monkeypatch.setattr(review, "choose_edge", lambda *_: SimpleNamespace(edge=5, value=0.0))
    found = [*review.review(None, RecordedGame(2, 2, moves=(0, 1)), 16)]
    assert [line.exact for line in found] == [True, False, False]


def test_the_games_of_a_folder_are_reviewed_where_one_cannot_be_read(tmp_path):
    games = tmp_path / "games"
    games.mkdir()
    for name, text in {
        "a.txt": "# 2x2\nh0,0 h0,1 h1,0 h1,1 h2,0 v0,0",
        "b.json": "no game",
        "c.txt": "# 2x2\n0 1 2",
        "d.txt": "# 2x2",
        "e.txt": "# 1x1\nh0,0",
    }.items():
        (games / name).write_text(text)
    line = ("analyse.py", "--weights", "2x2", "--game", games, "--simulations", 4, "--json")
    ended = run_here(*line, tmp_path / "out.json")
    assert ended.returncode == 2, ended
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    starts = [f"game: {games}/{name}" for name in ("b.json: text: ", "d.txt holds", "e.txt: ")]
    for error, start in zip(errors, [*starts, "game: 3 of 5 files"], strict=True):
        assert error.startswith(f"error: {start}")
    found = json.loads((tmp_path / "out.json").read_text())
    assert [one["file"] for one in found] == ["a.txt", "c.txt"]
    assert [line["lost"] for line in found[0]["lines"]] == [0, 0, 0, 0, 2, 4, None]
    assert [line["mistake"] for line in found[0]["lines"]] == [False] * 4 + [True] * 2 + [False]
    assert found[0]["sides"][0]["all"] == {"moves": 3, "mistakes": 1, "lost": 2, "accuracy": 0.6667}
    rows = [row.split()[:5] for row in ended.stdout.splitlines()[-2:]]
    assert rows == [["a.txt", "2x2", "0", ":", "0"], ["c.txt", "2x2", "0", ":", "0"]]
