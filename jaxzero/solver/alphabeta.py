"""Alpha-beta search that counts boxes: the classic opponent. Runs on the host, compiled by numba.

It searches a fixed number of plies. At the horizon the side to move takes every free box, so the
search sees chains to their end.
"""

from __future__ import annotations

from functools import lru_cache

import numba
import numpy as np

from jaxzero.game import DotsAndBoxes, box_neighbours, count_sides

# Without explicit types numba cannot load a recursive function from its cache.
_ARRAYS = "boolean[::1], int8[::1], int16[:, ::1], int64"
_FAR = 1000  # more than any margin


def choose_edges(
    game: DotsAndBoxes, depth: int, seeds: np.ndarray, drawn: np.ndarray
) -> np.ndarray:
    """Choose an edge of greatest value in every position, at random among equals: [B] int32.

    `seeds` [B] uint32, `drawn` [B, A] bool.
    """
    beside = _beside(game)
    edges = np.empty(len(drawn), np.int32)
    for number, board in enumerate(drawn):
        values = _move_values(np.ascontiguousarray(board), count_sides(game, board), beside, depth)
        best = np.flatnonzero(values == values.max())
        edges[number] = np.random.default_rng(seeds[number]).choice(best)
    return edges


@lru_cache
def _beside(game: DotsAndBoxes) -> np.ndarray:
    return np.ascontiguousarray(box_neighbours(game).astype(np.int16))


@numba.njit(f"int64({_ARRAYS})", cache=True)
def _draw(drawn, sides, beside, edge):
    """Draw an edge and return the boxes it closes."""
    drawn[edge] = True
    closed = 0
    for box in beside[edge]:
        sides[box] += 1
        if sides[box] == 4 and box < len(sides) - 1:
            closed += 1
    return closed


@numba.njit(f"void({_ARRAYS})", cache=True)
def _erase(drawn, sides, beside, edge):
    drawn[edge] = False
    for box in beside[edge]:
        sides[box] -= 1


@numba.njit(f"int64({_ARRAYS})", cache=True)
def _rank(drawn, sides, beside, edge):
    """Return 0 for an edge that closes a box, 1 for a safe edge, 2 for one that gives a box."""
    rank = 1
    for box in beside[edge]:
        if box == len(sides) - 1:
            continue
        if sides[box] == 3:
            return 0
        if sides[box] == 2:
            rank = 2
    return rank


@numba.njit("int64(boolean[::1], int8[::1], int16[:, ::1])", cache=True)
def _free_boxes(drawn, sides, beside):
    """Count the boxes that can be taken one after the other; restore the position."""
    count, taken = 0, np.empty(len(drawn), np.int64)
    moves = 0
    found = True
    while found:
        found = False
        for edge in range(len(drawn)):
            if not drawn[edge] and _rank(drawn, sides, beside, edge) == 0:
                count += _draw(drawn, sides, beside, edge)
                taken[moves] = edge
                moves += 1
                found = True
    for move in range(moves):
        _erase(drawn, sides, beside, taken[move])
    return count


@numba.njit("int64(boolean[::1], int8[::1], int16[:, ::1], int64, int64, int64)", cache=True)
def _value(drawn, sides, beside, depth, alpha, beta):
    """Return the margin that the side to move still wins, within alpha and beta."""
    if depth == 0:
        return _free_boxes(drawn, sides, beside)
    best, moved = -_FAR, False
    for rank in range(3):
        for edge in range(len(drawn)):
            if drawn[edge] or _rank(drawn, sides, beside, edge) != rank:
                continue
            moved = True
            closed = _draw(drawn, sides, beside, edge)
            if closed:
                value = closed + _value(
                    drawn, sides, beside, depth - 1, alpha - closed, beta - closed
                )
            else:
                value = -_value(drawn, sides, beside, depth - 1, -beta, -alpha)
            _erase(drawn, sides, beside, edge)
            best = max(best, value)
            alpha = max(alpha, best)
            if alpha >= beta:
                return best
    return best if moved else 0


@numba.njit("int64[::1](boolean[::1], int8[::1], int16[:, ::1], int64)", cache=True)
def _move_values(drawn, sides, beside, depth):
    """Return the value of every edge: exact if best, else a bound; -FAR if drawn."""
    values = np.full(len(drawn), -_FAR)
    best = -_FAR
    for rank in range(3):
        for edge in range(len(drawn)):
            if drawn[edge] or _rank(drawn, sides, beside, edge) != rank:
                continue
            closed = _draw(drawn, sides, beside, edge)
            # The window starts one below the best, so equally good edges get their exact value.
            if closed:
                value = closed + _value(drawn, sides, beside, depth - 1, best - 1 - closed, _FAR)
            else:
                value = -_value(drawn, sides, beside, depth - 1, -_FAR, 1 - best)
            _erase(drawn, sides, beside, edge)
            values[edge] = value
            best = max(best, value)
    return values
