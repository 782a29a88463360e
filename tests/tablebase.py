"""Compute the exact value of every position of a small board by dynamic programming.

The number of a position has one bit for each drawn edge. The value of a position is the margin in
boxes that the side to move still wins under perfect play.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.game import DotsAndBoxes, box_sides_table
from jaxzero.solver.endgame import ILLEGAL

Table = jax.Array  # [2^A] int8, remaining margin of the side to move, in boxes


@cache
def build_table(board: DotsAndBoxes) -> Table:
    """Solve every position of a board, from the full board down."""
    codes = np.arange(1 << board.num_edges, dtype=np.int32)
    drawn, values = np.bitwise_count(codes), np.zeros(len(codes), np.int8)
    for count in range(board.num_edges - 1, -1, -1):
        layer = codes[drawn == count]
        worth = [_move_value(np, board, values, layer, edge) for edge in range(board.num_edges)]
        values[layer] = np.max(worth, axis=0)
    return jnp.asarray(values)


def table_value(table: Table, drawn: jax.Array) -> jax.Array:
    """Return the remaining margin of one position [A] bool: [] int32."""
    return table[_code(drawn)].astype(jnp.int32)


def move_values(board: DotsAndBoxes, table: Table, drawn: jax.Array) -> jax.Array:
    """Return the value of every move in one position for its mover: [A] int32, ILLEGAL if drawn."""
    worth = partial(_move_value, jnp, board, table, _code(drawn))
    return jnp.stack([worth(edge) for edge in range(board.num_edges)]).astype(jnp.int32)


def _move_value(xp: Any, board: DotsAndBoxes, values: Any, codes: Any, edge: int) -> Any:
    """Return the value of drawing `edge` in each position; ILLEGAL where it is drawn."""
    after = codes | (1 << edge)
    # The boxes beside the edge, each as the bits of its four sides.
    boxes = [sum(1 << s for s in box) for box in box_sides_table(board).tolist() if edge in box]
    closed = sum(((after & sides) == sides).astype(xp.int8) for sides in boxes)
    value = xp.where(closed > 0, closed + values[after], -values[after])
    return xp.where(after == codes, xp.int8(ILLEGAL), value)


def _code(drawn: jax.Array) -> jax.Array:
    """Return the number of a position [A] bool."""
    return jnp.sum(drawn.astype(jnp.int32) << jnp.arange(drawn.shape[-1], dtype=jnp.int32))
