"""Tables equal minimax and the exact solver, which knows the published values."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from compiled import worths
from referee import exact_values
from tablebase import build_table

from jaxzero.game import DotsAndBoxes
from jaxzero.solver.endgame import ILLEGAL, new_table, solve_many
from jaxzero.solver.solve import solve_position

SIZES = [(2, 3), *(pytest.param(*size, marks=pytest.mark.slow) for size in ((2, 4), (3, 3)))]


@pytest.mark.parametrize(
    ("size", "value", "openings"),
    [((2, 2), 2, 8), ((3, 3), -3, 24), ((2, 5), -2, 27)],
)
def test_boards_are_solved_with_all_their_best_openings(size, value, openings):
    game = DotsAndBoxes(*size)
    solved = solve_position(game, np.zeros(game.num_edges, bool))
    assert (solved.value, len(solved.best)) == (value, openings)


@pytest.mark.parametrize("board", [(1, 3), (2, 2)])
def test_every_position_and_move_equals_plain_minimax(board):
    game = DotsAndBoxes(*board)
    solve, codes = exact_values(game), np.arange(2**game.num_edges)
    drawn = (codes[:, None] >> np.arange(game.num_edges)) & 1 > 0
    moves, table = jax.device_get(worths(game)(drawn)), build_table(game)
    for code in codes:
        value, worth = solve(np.flatnonzero(drawn[code]))
        assert int(table[code]) == value
        assert {e: int(moves[code, e]) for e in worth} == worth
        assert (moves[code, drawn[code]] == ILLEGAL).all()


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_table_and_solver_agree_on_random_positions(rows, cols):
    game = DotsAndBoxes(rows, cols)
    rng = np.random.default_rng(rows + cols)
    drawn = rng.random((10_000, game.num_edges)) < rng.random((10_000, 1))
    values, best, solved = solve_many(game, drawn, table=new_table(2**20))
    assert solved.all()
    moves = np.where(drawn, -100, worths(game)(drawn))
    over = drawn.all(axis=1)
    np.testing.assert_array_equal(np.where(over, 0, moves.max(axis=1)), values)
    expected = (moves == moves.max(axis=1, keepdims=True)) & ~drawn
    np.testing.assert_array_equal(expected, best)
