"""Exact values of positions with few edges left, in plain Python, without compilation."""

from functools import cache

import numpy as np

from jaxzero.game.board import box_sides_table
from jaxzero.game.rules import DotsAndBoxes
from jaxzero.solver.endgame import ILLEGAL

MAX_UNDRAWN = 12  # edges, as many as a 2x2 board has; takes a tenth of a second


def small_values(board: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray | None:
    """Return the margin after drawing each edge of a position [A] bool, as `endgame.move_values`.

    [A] int64; None if more than `MAX_UNDRAWN` edges are left.
    """
    undrawn = np.flatnonzero(~drawn)
    if len(undrawn) > MAX_UNDRAWN:
        return None
    bits = np.zeros(board.num_edges, int)
    bits[undrawn] = 1 << np.arange(len(undrawn))
    boxes = bits[box_sides_table(board)].sum(axis=1).tolist()  # their undrawn edges
    beside = {bit: [box for box in boxes if box & bit] for bit in bits[undrawn].tolist()}

    def worth(left: int, bit: int) -> int:
        """Return the margin of drawing the edge `bit` where the edges `left` are undrawn."""
        closed = sum(box & left == bit for box in beside[bit])
        return closed + value(left ^ bit) if closed else -value(left ^ bit)

    @cache
    def value(left: int) -> int:
        return max((worth(left, bit) for bit in beside if left & bit), default=0)

    values = np.full(board.num_edges, ILLEGAL)
    everything = int(bits.sum())
    values[undrawn] = [worth(everything, bit) for bit in beside]
    return values


def exact_answer(board: DotsAndBoxes, drawn: np.ndarray) -> int | None:
    """Return a best edge of a position [A] bool; None as `small_values`."""
    values = small_values(board, drawn)
    return None if values is None else int(values.argmax())
