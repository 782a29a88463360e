"""The value of every position of a small board, by dynamic programming on the device.

The number of a position is its drawn edges as bits. Its value is the margin in boxes that the side
to move still wins under perfect play. Positions with equally many drawn edges form a layer. Layers
are solved from the full board down, in chunks of one fixed size: one small compiled program solves
all of them and needs little memory beyond the table.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, box_sides_table
from jaxzero.host.files import atomic_write, make_folder
from jaxzero.host.memory import available_host_bytes
from jaxzero.host.readers import read_arrays

ILLEGAL = -128  # the value of a move that cannot be made; fits in int8
MAX_EDGES = 30  # a position is an index; jax has int32 ones, which end below 2^31
CHUNK = 1 << 18  # positions at most


class Table(NamedTuple):
    """The exact values of one board. For use inside jit."""

    values: jax.Array  # [2^A] int8, remaining margin of the side to move, in boxes


def build_table(game: DotsAndBoxes) -> Table:
    """Solve every position of a board. Raises: InputError, with the bytes, if it cannot fit."""
    check_fits(game)
    values = jnp.zeros(1 << game.num_edges, jnp.int8)
    for drawn in range(game.num_edges - 1, -1, -1):
        count = math.comb(game.num_edges, drawn)
        for first in range(0, count, chunk_size(game)):
            values = _solve_chunk(game, values, drawn, first, count)
    return Table(values)


def chunk_size(game: DotsAndBoxes) -> int:
    """Return how many positions are solved at once: those of the widest layer, or `CHUNK`."""
    return min(CHUNK, math.comb(game.num_edges, game.num_edges // 2))


def check_fits(game: DotsAndBoxes) -> None:
    """Raise an InputError if the table of a board is too large for the device."""
    if game.num_edges > MAX_EDGES:
        raise InputError(
            f"board: {game} has {game.num_edges} edges, a table holds at most {MAX_EDGES}"
        )
    # Two tables: some devices copy the table from one call to the next.
    needed, free = 2 << game.num_edges, free_memory_bytes()
    if free is not None and needed > free:
        raise InputError(f"board: the table of {game} needs {needed:,} bytes, {free:,} are free")


def free_memory_bytes() -> int | None:
    """Return the free memory of the default device, None if it is unknown."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    return available_host_bytes()


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _solve_chunk(
    game: DotsAndBoxes, values: jax.Array, drawn: jax.Array, first: jax.Array, count: jax.Array
) -> jax.Array:
    """Solve a chunk of the `count` positions with `drawn` edges, starting with number `first`."""
    # A chunk past the end of the layer solves its last position again.
    ranks = jnp.minimum(first + jnp.arange(chunk_size(game), dtype=jnp.int32), count - 1)
    codes = _combinations(game.num_edges, ranks, drawn)
    best = jnp.full(len(ranks), ILLEGAL, jnp.int8)
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
    # The boxes beside the edge, each as the bits of its four sides.
    boxes = [sum(1 << s for s in box) for box in box_sides_table(game).tolist() if edge in box]
    closed = sum(((after & sides) == sides).astype(jnp.int8) for sides in boxes)
    value = values[after]
    value = jnp.where(closed > 0, closed + value, -value)
    return jnp.where(after == codes, jnp.int8(ILLEGAL), value)


def table_value(table: Table, drawn: jax.Array) -> jax.Array:
    """Return the remaining margin of one position [A] bool: [] int32."""
    return table.values[_code(drawn)].astype(jnp.int32)


def move_values(game: DotsAndBoxes, table: Table, drawn: jax.Array) -> jax.Array:
    """Return the value of every move in one position for its mover: [A] int32, ILLEGAL if drawn."""
    chex.assert_shape(drawn, (game.num_edges,), custom_message="drawn")
    worth = partial(_move_value, game, table.values, _code(drawn))
    return jnp.stack([worth(edge) for edge in range(game.num_edges)]).astype(jnp.int32)


def _code(drawn: jax.Array) -> jax.Array:
    """Return the number of a position [A] bool."""
    return jnp.sum(drawn.astype(jnp.int32) << jnp.arange(drawn.shape[-1], dtype=jnp.int32))


def save_table(table: Table, game: DotsAndBoxes, path: Path) -> None:
    """Write a table to a compressed file."""
    make_folder("table", path.parent)
    board = np.array([game.rows, game.cols])
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, board=board, values=np.asarray(table.values))


def load_table(game: DotsAndBoxes, path: Path) -> Table:
    """Read a table. Raises: InputError for an unreadable file or another board."""
    check_fits(game)
    file = read_arrays("table", path, {"board": "iu1", "values": "i1"})
    board, values = file["board"].tolist(), file["values"]
    if board != [game.rows, game.cols] or values.shape != (1 << game.num_edges,):
        raise InputError(f"table: {path} is of a {'x'.join(map(str, board))} board, not {game}")
    if values.dtype != np.int8 or abs(values.astype(np.int16)).max() > game.num_boxes:
        raise InputError(f"table: {path} has values that no position of {game} has")
    return Table(jnp.asarray(values))
