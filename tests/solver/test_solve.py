"""Test solving single positions: values, bounds under a time limit, and the report."""

import json
import time

import numpy as np
from script_runner import run_here

from jaxzero.game import DotsAndBoxes, edge_name
from jaxzero.solver import endgame
from jaxzero.solver.solve import SolvedPosition, describe, read_position, solve_position

BOARD = DotsAndBoxes(2, 2)


def solved_position(
    board: DotsAndBoxes, position: str, seconds: float | None = None
) -> SolvedPosition:
    return solve_position(board, read_position(board, position), seconds)


def test_positions_are_read_from_names_numbers_and_files(tmp_path):
    (tmp_path / "position").write_text("h0,0 h0,1\nv0,0\n")
    for text in ("h0,0 h0,1 v0,0", "0,1,6", "0 1 6", str(tmp_path / "position")):
        assert np.flatnonzero(read_position(BOARD, text)).tolist() == [0, 1, 6]
    board = DotsAndBoxes(7, 7)
    names = " ".join(edge_name(board, edge) for edge in range(board.num_edges))
    assert read_position(board, names).all(), "longer than the name of a file can be"


def test_a_position_shows_the_value_of_each_move():
    solved = solved_position(BOARD, "h0,0 h0,1 v0,0 v0,1 h2,1")
    assert (solved.value, solved.best) == (0, [2])
    text = describe(BOARD, solved)
    assert "value +0" in text and "best: h1,0" in text and "-4" in text
    over = solved_position(BOARD, " ".join(map(str, range(12))))
    assert (over.value, over.best) == (0, [])


def test_what_is_proven_in_time_is_said_in_words():
    board = DotsAndBoxes(5, 5)
    solved = solved_position(board, "h0,0", seconds=0.1)
    lower, upper = solved.bounds
    assert solved.value is None and not solved.is_complete and lower < upper
    assert (solved.lower <= solved.upper).all() and solved.best == []
    text = describe(board, solved)
    assert f"between {lower:+d} and {upper:+d} boxes" in text and "value +" not in text
    assert max(map(len, text.splitlines())) <= 110
    names = {word for line in text.splitlines() for word in line.split() if word[0] in "hv"}
    assert {"h0,1", "v4,5"} <= names


def test_a_bound_that_no_single_move_proves_is_kept():
    unknown = np.full(BOARD.num_edges, 4)
    solved = SolvedPosition(np.zeros(BOARD.num_edges, bool), -unknown, unknown, least=0)
    assert (solved.bounds, solved.value, solved.best) == ((0, 4), None, [])
    assert "between +0 and +4" in describe(BOARD, solved)


def test_a_move_that_is_not_best_is_worth_two_boxes_less_or_fewer(monkeypatch):
    """If time ends before the other moves are solved, a lower bound of as much proves them."""
    nothing = np.full(BOARD.num_edges, -4), np.full(BOARD.num_edges, 4)
    monkeypatch.setattr(endgame, "move_bounds", lambda *_, **__: nothing)
    assert set(solved_position(BOARD, "").upper.tolist()) == {2, 0}


def test_bounds_of_moves_agree_with_the_values_of_all_moves():
    board = DotsAndBoxes(3, 3)
    values = solved_position(board, "h0,0 v0,0").lower
    for seconds in (1e-6, 0.02, 0.1):
        solved = solved_position(board, "h0,0 v0,0", seconds)
        assert (solved.lower <= values).all() and (values <= solved.upper).all()


def test_a_solution_that_takes_too_long_ends_with_its_bounds_and_exit_code_1(tmp_path):
    file = tmp_path / "result.json"
    hard = ("--rows", "5", "--cols", "5", "--position", "h0,0", "--json", str(file))
    done = run_here("solve.py", *hard, "--seconds", "0.5")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("Solving a position of 5x5 ...\n")
    assert "proven: the value for the side to move is between -25 and +25 boxes" in done.stdout
    assert done.stdout.endswith("Not all is proven after 0.5 s. To go on longer: --seconds 5\n")
    result = json.loads(file.read_text())
    assert (result["value"], result["bounds"]) == (None, [-25, 25])


def test_the_seconds_are_those_of_solving_without_compiling(monkeypatch):
    compiles = endgame.move_values  # solves a board of one box, which compiles the solver
    monkeypatch.setattr(endgame, "move_values", lambda *a: (time.sleep(0.5), compiles(*a))[1])
    assert 0 < solved_position(DotsAndBoxes(1, 1), "").seconds < 0.5
