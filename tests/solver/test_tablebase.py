"""Tables equal minimax and the exact solver, which knows the published values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import table_of, worths
from referee import exact_values

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.solver import tablebase
from jaxzero.solver.endgame import new_table, solve_many
from jaxzero.solver.solve import solve_board
from jaxzero.solver.tablebase import (
    ILLEGAL,
    MAX_EDGES,
    Table,
    build_table,
    check_fits,
    load_table,
    move_values,
    save_table,
)

SIZES = [(2, 3), *(pytest.param(*size, marks=pytest.mark.slow) for size in ((2, 4), (3, 3)))]


@pytest.mark.parametrize(
    ("size", "value", "openings"),
    [((2, 2), 2, 8), pytest.param((2, 5), -2, 27, marks=pytest.mark.slow)],
)
def test_boards_are_solved_with_all_their_best_openings(size, value, openings):
    solved = solve_board(DotsAndBoxes(*size))
    assert (solved.value, len(solved.best)) == (value, openings)


@pytest.mark.parametrize("board", [(1, 3), (2, 2)])
def test_every_position_and_move_equals_plain_minimax(board):
    game = DotsAndBoxes(*board)
    solve, codes = exact_values(game), np.arange(2**game.num_edges)
    drawn = (codes[:, None] >> np.arange(game.num_edges)) & 1 > 0
    moves, table = jax.device_get(worths(game)(drawn)), table_of(game)
    for code in codes:
        value, worth = solve(np.flatnonzero(drawn[code]))
        assert int(table.values[code]) == value
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


def test_tables_survive_saving_and_foreign_files_are_refused(tmp_path):
    game, path = DotsAndBoxes(2, 3), tmp_path / "2x3.npz"
    save_table(table_of(game), game, path)
    np.testing.assert_array_equal(load_table(game, path).values, table_of(game).values)
    with pytest.raises(InputError, match="is of a 2x3 board, not 3x2"):
        load_table(DotsAndBoxes(3, 2), path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be read"):
        load_table(game, path)
    with pytest.raises(InputError, match="cannot be read"):
        load_table(game, tmp_path / "nowhere.npz")


def test_the_largest_table_has_an_index():
    """No table is built: 2^30 bytes and an hour."""
    game = DotsAndBoxes(1, 9)
    assert game.num_edges <= MAX_EDGES < DotsAndBoxes(3, 4).num_edges
    values = jax.ShapeDtypeStruct((1 << MAX_EDGES,), jnp.int8)
    drawn = jax.ShapeDtypeStruct((game.num_edges,), bool)
    jax.eval_shape(lambda values, drawn: move_values(game, Table(values), drawn), values, drawn)


def test_boards_that_do_not_fit_are_refused_with_the_bytes(monkeypatch):
    with pytest.raises(InputError, match="3x4 has 31 edges, a table holds at most 30"):
        check_fits(DotsAndBoxes(3, 4))
    monkeypatch.setattr(tablebase, "free_memory_bytes", lambda: 1000)
    with pytest.raises(InputError, match="2x3 needs 262,144 bytes, 1,000 are free"):
        build_table(DotsAndBoxes(2, 3))


def test_the_chunks_of_a_layer_do_not_matter(monkeypatch):
    game = DotsAndBoxes(1, 3)
    whole = build_table(game).values
    monkeypatch.setattr(tablebase, "CHUNK", 50)
    tablebase._solve_chunk.clear_cache()
    np.testing.assert_array_equal(build_table(game).values, whole)
    tablebase._solve_chunk.clear_cache()
