"""Tables hold the known values, agree with the solver, and obey the laws of the game."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import optimised
from referee import exact_values

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, boxes_closed, edge_name, edge_permutations
from jaxzero.solver import solve as solve_module
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
    table_value,
)

# First player minus second, both perfect, from the empty board.
KNOWN = {
    **{(1, n): -1 if n % 2 else 0 for n in range(1, 8)},
    (2, 2): 2,
    (2, 3): -2,
    (2, 4): 2,
    (3, 3): -3,
}


@cache
def table_of(rows: int, cols: int):
    with optimised() if (rows, cols) in LARGE else nullcontext():
        return build_table(DotsAndBoxes(rows, cols))


@cache
def worths_of(rows: int, cols: int):
    """Return the values of all moves of boards [B, A] by the table, compiled."""
    return jax.jit(jax.vmap(partial(move_values, DotsAndBoxes(rows, cols), table_of(rows, cols))))


def random_boards(game: DotsAndBoxes, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.random((count, game.num_edges)) < rng.random((count, 1))


# Boards whose table takes seconds to build. The solver's tests hold their values too.
LARGE = [(1, 6), (1, 7), (2, 4), (3, 3)]


def large_are_slow(boards) -> list:
    slow = pytest.mark.slow
    return [pytest.param(*board, marks=[slow] * (board in LARGE)) for board in boards]


@pytest.mark.parametrize(("rows", "cols"), large_are_slow(KNOWN))
def test_known_values(rows, cols):
    assert int(table_of(rows, cols).values[0]) == KNOWN[rows, cols]


@pytest.mark.slow
def test_2x5_is_lost_by_two_with_every_opening():
    solved = solve_board(DotsAndBoxes(2, 5))
    assert solved.value == -2
    assert len(solved.best) == 27


@pytest.mark.parametrize("board", [(1, 3), (2, 2)])
def test_every_position_and_move_equals_plain_minimax(board):
    game = DotsAndBoxes(*board)
    solve, codes = exact_values(game), np.arange(2**game.num_edges)
    drawn = (codes[:, None] >> np.arange(game.num_edges)) & 1 > 0
    moves = jax.device_get(worths_of(*board)(drawn))
    for code in codes:
        value, worth = solve(frozenset(np.flatnonzero(drawn[code]).tolist()))
        assert int(table_of(*board).values[code]) == value
        assert {e: int(moves[code, e]) for e in worth} == worth
        assert (moves[code, drawn[code]] == ILLEGAL).all()


@pytest.mark.parametrize(("rows", "cols"), large_are_slow([(2, 2), (2, 4)]))
def test_openings_of_2x2_and_2x4(rows, cols, monkeypatch):
    """The outer edges of 2x2 keep +2; on 2x4 all but four do."""
    outer = {f"{k}{r},{c}" for k in "h" for r in (0, 2) for c in (0, 1)}
    outer |= {f"v{r},{c}" for r in (0, 1) for c in (0, 2)}
    monkeypatch.setattr(solve_module, "build_table", lambda game: table_of(game.rows, game.cols))
    losing = {"h1,1", "h1,2", "v0,2", "v1,2"}
    game = DotsAndBoxes(rows, cols)
    best = {edge_name(game, edge) for edge in solve_board(game).best}
    every = {edge_name(game, edge) for edge in range(game.num_edges)}
    assert best == (outer if cols == 2 else every - losing)


@pytest.mark.parametrize(("rows", "cols"), large_are_slow([(2, 3), (2, 4), (3, 3)]))
def test_table_and_solver_agree_on_random_positions(rows, cols):
    game = DotsAndBoxes(rows, cols)
    drawn = random_boards(game, 10_000, seed=rows + cols)
    values, best, solved = solve_many(game, drawn, table=new_table(2**20))
    assert solved.all()
    moves = np.where(drawn, -100, worths_of(rows, cols)(drawn))
    over = drawn.all(axis=1)
    np.testing.assert_array_equal(np.where(over, 0, moves.max(axis=1)), values)
    expected = (moves == moves.max(axis=1, keepdims=True)) & ~drawn
    np.testing.assert_array_equal(expected, best)


def test_laws_of_the_game():
    """Parity of the boxes left, invariance under symmetry, and under turning the board."""
    game, turned = DotsAndBoxes(2, 3), DotsAndBoxes(3, 2)
    assert int(table_of(2, 3).values[0]) == int(table_of(3, 2).values[0])
    drawn = random_boards(game, 2000, seed=1)
    value = jax.jit(jax.vmap(table_value, in_axes=(None, 0)))
    values = np.asarray(value(table_of(2, 3), drawn))
    left = game.num_boxes - jax.jit(jax.vmap(partial(boxes_closed, game)))(drawn)
    np.testing.assert_array_equal(values % 2, left % 2)
    for permutation in edge_permutations(game):
        image = value(table_of(2, 3), drawn[:, permutation])
        np.testing.assert_array_equal(values, image)
    # Transposing swaps horizontals and verticals.
    lattice = np.concatenate(
        [
            game.num_horizontal + np.arange(8).reshape(2, 4).T.ravel(),
            np.arange(9).reshape(3, 3).T.ravel(),
        ]
    )
    image = value(table_of(3, 2), drawn[:, lattice])
    np.testing.assert_array_equal(values, image)
    assert turned.num_edges == game.num_edges


def test_tables_survive_saving_and_foreign_files_are_refused(tmp_path):
    game, path = DotsAndBoxes(2, 3), tmp_path / "2x3.npz"
    save_table(table_of(2, 3), game, path)
    np.testing.assert_array_equal(load_table(game, path).values, table_of(2, 3).values)
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
    with pytest.raises(InputError, match="3x4 has 31 edges"):
        check_fits(DotsAndBoxes(3, 4))


def test_boards_that_do_not_fit_are_refused_with_the_bytes(monkeypatch):
    with pytest.raises(InputError, match="5x5 has 60 edges, a table holds at most 30"):
        check_fits(DotsAndBoxes(5, 5))
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
