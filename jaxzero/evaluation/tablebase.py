"""The value of every position of a small board, by dynamic programming on the device.

A position is its set of drawn edges, numbered by its bits. Values are margins in boxes that the
side to move still wins under perfect play; they depend on neither score nor mover. Layers of
equally many drawn edges are solved from the full board down, in chunks of one fixed size, so that
one small compiled program does it all and needs little beyond the table itself.
"""

from __future__ import annotations

import math
import zipfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.errors import InputError
from jaxzero.evaluation.values import ILLEGAL
from jaxzero.files import atomic_write, make_folder
from jaxzero.game import DotsAndBoxes, box_sides, box_sides_table
from jaxzero.host_memory import available_host_bytes

MAX_EDGES = 31  # a position is the index of a table of 2^31 bytes
CHUNK = 1 << 18


class Table(NamedTuple):
    """Exact values of one board. Use inside jit; `move_values` takes single positions."""

    values: jax.Array  # [2^A] int8, remaining margin of the side to move, in boxes


def build_table(game: DotsAndBoxes) -> Table:
    """Solve every position of a board. Raises: InputError when it cannot fit, with the bytes."""
    check_fits(game)
    values = jnp.zeros(1 << game.num_edges, jnp.int8)
    for drawn in range(game.num_edges - 1, -1, -1):
        count = math.comb(game.num_edges, drawn)
        for first in range(0, count, CHUNK):
            values = _solve_chunk(game, values, drawn, first, count)
    return Table(values)


def check_fits(game: DotsAndBoxes) -> None:
    """Raise an InputError when the table of a board is too large for the device."""
    if game.num_edges > MAX_EDGES:
        raise InputError(
            f"board: {game} has {game.num_edges} edges, a table holds at most {MAX_EDGES}"
        )
    # The table, and a second one while XLA hands it from call to call on devices that copy.
    needed, free = 2 << game.num_edges, free_memory_bytes()
    if free is not None and needed > free:
        raise InputError(f"board: the table of {game} needs {needed:,} bytes, {free:,} are free")


def free_memory_bytes() -> int | None:
    """Return the memory that is free on the default device; None where nobody says."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    return available_host_bytes()


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _solve_chunk(
    game: DotsAndBoxes, values: jax.Array, drawn: jax.Array, first: jax.Array, count: jax.Array
) -> jax.Array:
    """Solve CHUNK positions of `count` with `drawn` edges, from the `first` on."""
    # Past the last position of the layer the last one is solved again, which does no harm.
    ranks = jnp.minimum(first + jnp.arange(CHUNK, dtype=jnp.int32), count - 1)
    codes = _combinations(game.num_edges, ranks, drawn)
    best = jnp.full(CHUNK, ILLEGAL, jnp.int8)
    for edge in range(game.num_edges):
        best = jnp.maximum(best, _move_value(game, values, codes, edge))
    return values.at[codes].set(best)


def _combinations(num_edges: int, ranks: jax.Array, drawn: jax.Array) -> jax.Array:
    """Return the sets of `drawn` edges with these ranks, in the combinatorial number system."""
    choose = np.array(
        [[math.comb(n, k) for k in range(num_edges + 1)] for n in range(num_edges)], np.int32
    )
    codes, left = jnp.zeros_like(ranks), jnp.full_like(ranks, drawn)
    for edge in range(num_edges - 1, -1, -1):
        without = jnp.asarray(choose[edge])[left]
        chosen = ranks >= without
        ranks = jnp.where(chosen, ranks - without, ranks)
        codes = jnp.where(chosen, codes | (1 << edge), codes)
        left = jnp.where(chosen, left - 1, left)
    return codes


def _move_value(game: DotsAndBoxes, values: jax.Array, codes: jax.Array, edge: int) -> jax.Array:
    """Return the value of drawing `edge` in each position; ILLEGAL where it is drawn."""
    after = codes | (1 << edge)
    closed = sum(((after & sides) == sides).astype(jnp.int8) for sides in _boxes_beside(game, edge))
    value = values[after]
    value = jnp.where(closed > 0, closed + value, -value)
    return jnp.where(after == codes, jnp.int8(ILLEGAL), value)


def _boxes_beside(game: DotsAndBoxes, edge: int) -> list[int]:
    """Return the boxes that an edge touches, each as the bits of its four sides."""
    boxes = box_sides_table(game).tolist()
    return [sum(1 << side for side in box) for box in boxes if edge in box]


def position_code(drawn: jax.Array) -> jax.Array:
    """Return the number of one position [A] bool in the table: [] int32."""
    return jnp.sum(drawn.astype(jnp.int32) << jnp.arange(drawn.shape[-1], dtype=jnp.int32))


def table_value(table: Table, drawn: jax.Array) -> jax.Array:
    """Return the remaining margin of one position [A] bool: [] int32."""
    return table.values[position_code(drawn)].astype(jnp.int32)


def move_values(game: DotsAndBoxes, table: Table, drawn: jax.Array) -> jax.Array:
    """Return the value of every move in one position for its mover: [A] int32, ILLEGAL if drawn."""
    chex.assert_shape(drawn, (game.num_edges,), custom_message="drawn")
    after = drawn[None, :] | jnp.eye(game.num_edges, dtype=bool)
    closed = jnp.sum(jax.vmap(partial(box_sides, game))(after) == 4, axis=(1, 2), dtype=jnp.int32)
    closed -= jnp.sum(box_sides(game, drawn) == 4, dtype=jnp.int32)
    value = jax.vmap(partial(table_value, table))(after)
    value = jnp.where(closed > 0, closed + value, -value)
    return jnp.where(drawn, ILLEGAL, value)


def save_table(table: Table, game: DotsAndBoxes, path: Path) -> None:
    """Write a table to a compressed file."""
    make_folder("table", path.parent)
    board = np.array([game.rows, game.cols])
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, board=board, values=np.asarray(table.values))


def load_table(game: DotsAndBoxes, path: Path) -> Table:
    """Read a table. Raises: InputError for an unreadable file or one of another board."""
    check_fits(game)
    try:
        with np.load(path) as file:
            rows, cols = file["board"].tolist()
            values = file["values"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"table: {path} cannot be read ({error})") from error
    if (rows, cols) != (game.rows, game.cols) or values.shape != (1 << game.num_edges,):
        raise InputError(f"table: {path} is of a {rows}x{cols} board, not {game}")
    return Table(jnp.asarray(values))
