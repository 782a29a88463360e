"""Test that suites take positions from the requested games and lose none silently."""

import numpy as np
import pytest

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, automorphisms
from jaxzero.host.memory import cores
from jaxzero.measure import make_suite, suite
from jaxzero.measure.make_suite import (
    Candidates,
    Solved,
    collect,
    is_quiet,
    make_suites,
    read_store,
    solve_all,
)
from jaxzero.measure.suite import Suite, read_suite, write_suite
from jaxzero.players.players import make_player
from jaxzero.solver.endgame import ILLEGAL

BOARD = DotsAndBoxes(3, 3)
SMALL = DotsAndBoxes(2, 2)


def test_suites_are_collected_solved_and_stored(tmp_path):
    players = {name: make_player(name, BOARD) for name in ("random", "greedy")}
    candidates = collect(BOARD, players, 256, [16], undrawn=(9, 16), seed=0)
    left = (~candidates.drawn).sum(axis=1)
    assert left.min() >= 9 and left.max() <= 16
    assert len(left) == 64
    solved = solve_all(BOARD, candidates.drawn, 10**6, tmp_path / "solved.npz")
    suite = make_suites(BOARD, candidates, solved, split=False)[""]
    assert 40 < len(suite) < 64 and suite.decisive.all()
    write_suite(suite, tmp_path / "new.npz")
    again = read_suite(tmp_path / "new.npz", "new", BOARD)
    for name in ("drawn", "moves"):
        np.testing.assert_array_equal(getattr(again, name), getattr(suite, name))


def test_every_band_has_its_number_and_a_lower_one_takes_the_first():
    settings = BOARD, {"greedy": make_player("greedy", BOARD)}, 256
    many, few = (collect(*settings, numbers, (9, 16), seed=0) for numbers in ([40, 21], [10]))
    band = (~many.drawn).sum(axis=1) >= 13
    assert (~band).sum() == 40 and band.sum() == 21
    np.testing.assert_array_equal(many.drawn[~band][:10], few.drawn[:10])
    np.testing.assert_array_equal(many.drawn[band][:10], few.drawn[10:])
    with pytest.raises(InputError, match="fewest: 25 to most: 30: no game"):
        collect(*settings, [10], (25, 30), seed=0)


def test_positions_may_be_quiet_alone():
    found = collect(BOARD, {"greedy": make_player("greedy", BOARD)}, 64, [30], (4, 16), seed=0)
    assert len(found.drawn) > 60 and is_quiet(BOARD, found.drawn).all()


def test_no_position_is_an_image_of_one_in_a_stored_suite(tmp_path, monkeypatch):
    players = {"greedy": make_player("greedy", BOARD)}
    settings = BOARD, players, 64, [12], (9, 16)
    drawn = collect(*settings, seed=0).drawn
    swapped = drawn[:, automorphisms(BOARD)[-1]]
    moves = np.where(swapped, ILLEGAL, 0).astype(np.int8)
    monkeypatch.setattr(suite, "DATA", tmp_path)
    for name, rows in {"one": slice(10), "other": slice(10, None)}.items():
        half = Suite(name, BOARD, swapped[rows], moves[rows])
        write_suite(half, tmp_path / f"suite_{BOARD}_{name}.npz")
    again = collect(*settings, seed=0).drawn
    images = {image.tobytes() for board in drawn for image in board[automorphisms(BOARD)]}
    assert len(again) > 10 and not any(board.tobytes() in images for board in again)


def test_the_halves_hold_different_games():
    """On a large board, a position contains another only if both are of one game."""
    board = DotsAndBoxes(5, 5)
    found = collect(board, {"greedy": make_player("greedy", board)}, 20, [1000], (25, 40), 0)
    before = (found.drawn[:, None] <= found.drawn[None]).all(axis=-1)
    same_game = before | before.T
    left = (~found.drawn).sum(axis=1)
    for low in range(25, 41, 4):
        band = (left >= low) & (left < low + 4)
        assert (same_game[np.ix_(band, band)].sum(axis=1) == 1).all()
    first = found.half == 0
    assert min(first.sum(), (~first).sum()) > 30 and not same_game[np.ix_(first, ~first)].any()


def test_a_stopped_solver_goes_on_where_it_was(tmp_path, monkeypatch):
    players = {"random": make_player("random", BOARD)}
    drawn = collect(BOARD, players, 64, [12], (9, 16), seed=0).drawn
    whole = solve_all(BOARD, drawn, 10**6, tmp_path / "whole.npz")
    store, calls, solver = tmp_path / "solved.npz", [], make_suite.move_bounds

    def stops(*arguments, **options):
        calls.append(1)
        if len(calls) == 11:
            raise KeyboardInterrupt
        return solver(*arguments, **options)

    monkeypatch.setattr(make_suite, "move_bounds", stops)
    with pytest.raises(KeyboardInterrupt):  # an error of the solver is not hidden either
        solve_all(BOARD, drawn, 10**6, store)
    stored = len(read_store(store, BOARD, 10**6))
    before = len(calls)
    again = solve_all(BOARD, drawn, 10**6, store)
    # Each other thread may have been at work on one position.
    assert stored >= 11 - cores() and len(calls) - before == len(drawn) - stored
    np.testing.assert_array_equal(again.moves, whole.moves)


def test_a_higher_limit_tries_again_and_a_store_of_something_else_is_named(tmp_path):
    store, drawn = tmp_path / "solved.npz", np.zeros((1, SMALL.num_edges), bool)
    assert [solve_all(SMALL, drawn, n, store).solved.all() for n in (1, 1, 10**6)] == [0, 0, 1]
    with pytest.raises(InputError, match=r"^out: .* is of a 2x2 board, not 3x3"):
        solve_all(BOARD, np.zeros((1, BOARD.num_edges), bool), 10**6, store)
    store.write_text("no results")
    with pytest.raises(InputError, match=r"^out: .* cannot be read"):
        solve_all(SMALL, drawn, 1, store)


def test_positions_that_are_unsolved_or_have_no_wrong_move_are_left_out():
    """One of four positions is not solved; in another one all moves have the same value."""
    drawn = np.zeros((4, SMALL.num_edges), bool)
    drawn[:, 0] = True
    drawn[:2, 1:5] = True  # 7 undrawn edges; the others have 11
    moves = np.where(drawn, ILLEGAL, 0).astype(np.int8)
    moves[[0, 2, 3], 11] = -1
    candidates = Candidates(drawn, np.array([0, 0, 0, 1]))
    solved = Solved(moves, np.array([True, True, False, True]))
    suites = make_suites(SMALL, candidates, solved, split=True)
    assert [len(suites[half]) for half in ("tuning", "test")] == [1, 1]
    assert len(make_suites(SMALL, candidates, solved, split=False)[""]) == 2
