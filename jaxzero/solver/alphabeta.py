"""Alpha-beta search that counts boxes: the classic opponent. Runs on the host, compiled by numba.

It searches a fixed number of plies. At the horizon the side to move takes every free box, so the
search sees chains to their end. A transposition table keeps the bounds of searched positions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from jaxzero.game import DotsAndBoxes, box_neighbours, count_sides
from jaxzero.host.programs import kept_njit as _njit

_FAR = 1000  # more than any margin
_DEEPEST = 128  # plies with a key of their own
_ENTRIES = 2**18  # of the table, 12 bytes each
_HASH, _THREES, _COUNTERS = range(3)


class Tables(NamedTuple):
    """The geometry of a board and the transposition table. For one thread at a time."""

    beside: np.ndarray  # [A, 2] int16, boxes beside each edge; num_boxes is the outside
    keys: np.ndarray  # [A + _DEEPEST] uint64, random words of edges and depths
    stored: np.ndarray  # [_ENTRIES] uint64, the position and depth of an entry
    bounds: np.ndarray  # [_ENTRIES, 2] int16, proven lower and upper bound on its value, boxes


# Without explicit types numba cannot load a recursive function from its cache.
_BOARD = "boolean[::1], int8[::1], uint64[::1]"  # drawn, sides, counters
_TABLES = "Tuple((int16[:, ::1], uint64[::1], uint64[::1], int16[:, ::1]))"


def choose_edges(
    game: DotsAndBoxes, depth: int, seeds: np.ndarray, drawn: np.ndarray
) -> np.ndarray:
    """Choose an edge of greatest value in every position, at random among equals: [B] int32.

    `seeds` [B] uint32, `drawn` [B, A] bool.
    """
    edges = np.empty(len(drawn), np.int32)
    for number, board in enumerate(drawn):
        values = move_values(game, depth, board)
        best = np.flatnonzero(values == values.max())
        edges[number] = np.random.default_rng(seeds[number]).choice(best)
    return edges


def move_values(game: DotsAndBoxes, depth: int, drawn: np.ndarray) -> np.ndarray:
    """Return the value of every edge of a position [A] bool, in boxes for its mover: [A] int64.

    The best edges have their exact value, other edges an upper bound below it, drawn edges -1000.
    """
    sides, tables = count_sides(game, drawn), _tables(game)
    counters = np.zeros(_COUNTERS, np.uint64)
    counters[_HASH] = np.bitwise_xor.reduce(tables.keys[: len(drawn)][drawn])
    counters[_THREES] = np.count_nonzero(sides[:-1] == 3)
    return _move_values(np.array(drawn), sides, counters, tuple(tables), depth)


@lru_cache(maxsize=4)
def _tables(game: DotsAndBoxes) -> Tables:
    """Return the tables of a board; all moves share them."""
    words = np.random.default_rng(0).integers(
        2**64, size=game.num_edges + _DEEPEST, dtype=np.uint64
    )
    beside = np.ascontiguousarray(box_neighbours(game).astype(np.int16))
    return Tables(beside, words, np.zeros(_ENTRIES, np.uint64), np.zeros((_ENTRIES, 2), np.int16))


@_njit(f"int64({_BOARD}, {_TABLES}, int64, int8)")
def _draw(drawn, sides, counters, tables, edge, step):
    """Draw an edge (`step` 1) or erase it (-1); return the boxes that drawing it closes."""
    drawn[edge] = step > 0
    counters[_HASH] ^= tables[1][edge]
    closed = 0
    for box in tables[0][edge]:
        before, sides[box] = sides[box], sides[box] + step
        if box == len(sides) - 1:
            continue
        if sides[box] == 3:
            counters[_THREES] += np.uint64(1)
        elif before == 3:
            counters[_THREES] -= np.uint64(1)
            closed += 1
    return closed


@_njit("int64(int8[::1], int16[:, ::1], int64)")
def _rank(sides, beside, edge):
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


@_njit(f"int64({_BOARD}, {_TABLES})")
def _free_boxes(drawn, sides, counters, tables):
    """Count the boxes that can be taken one after the other; restore the position."""
    if counters[_THREES] == np.uint64(0):
        return 0
    count, taken = 0, np.empty(len(drawn), np.int64)
    moves = 0
    while counters[_THREES] != np.uint64(0):
        for edge in range(len(drawn)):
            if not drawn[edge] and _rank(sides, tables[0], edge) == 0:
                count += _draw(drawn, sides, counters, tables, edge, 1)
                taken[moves] = edge
                moves += 1
    for move in range(moves):
        _draw(drawn, sides, counters, tables, taken[move], -1)
    return count


@_njit("int64(boolean[::1], int8[::1], int16[:, ::1], int16[::1])")
def _sort_moves(drawn, sides, beside, moves):
    """Write the undrawn edges by rank, and by number within a rank; return how many there are."""
    count = 0
    for rank in range(3):
        for edge in range(len(drawn)):
            if not drawn[edge] and _rank(sides, beside, edge) == rank:
                moves[count] = edge
                count += 1
    return count


@_njit(f"int64({_BOARD}, {_TABLES}, int64, int64, int64)")
def _value(drawn, sides, counters, tables, depth, alpha, beta):
    """Return the margin that the side to move still wins; outside alpha to beta it is a bound."""
    if depth == 0:
        return _free_boxes(drawn, sides, counters, tables)
    beside, keys, stored, bounds = tables
    key = counters[_HASH] ^ keys[len(drawn) + min(depth, _DEEPEST - 1)]
    at = np.int64(key & np.uint64(len(stored) - 1))
    lower, upper = -_FAR, _FAR
    if stored[at] == key:
        lower, upper = np.int64(bounds[at, 0]), np.int64(bounds[at, 1])
        if lower >= beta or lower == upper:
            return lower
        if upper <= alpha:
            return upper
    least, most = max(alpha, lower), min(beta, upper)
    moves = np.empty(len(drawn), np.int16)
    count = _sort_moves(drawn, sides, beside, moves)
    # Without a free box the last ply gains nothing, so no move is better than a safe one.
    ceiling = 0 if depth == 1 and counters[_THREES] == np.uint64(0) else _FAR
    best = -_FAR if count else 0
    low = least
    for move in range(count):
        edge = moves[move]
        closed = _draw(drawn, sides, counters, tables, edge, 1)
        if closed:
            value = closed + _value(
                drawn, sides, counters, tables, depth - 1, low - closed, most - closed
            )
        else:
            value = -_value(drawn, sides, counters, tables, depth - 1, -most, -low)
        _draw(drawn, sides, counters, tables, edge, -1)
        best = max(best, value)
        low = max(low, best)
        if low >= most or best >= ceiling:
            break
    if best >= ceiling:
        lower = upper = best
    else:
        if best > least:
            lower = max(lower, best)
        if best < most:
            upper = min(upper, best)
    stored[at] = key
    bounds[at, 0], bounds[at, 1] = lower, upper
    return best


@_njit(f"int64[::1]({_BOARD}, {_TABLES}, int64)")
def _move_values(drawn, sides, counters, tables, depth):
    """Return the value of every edge: exact if best, else a bound; -FAR if drawn."""
    values = np.full(len(drawn), -_FAR)
    best = -_FAR
    moves = np.empty(len(drawn), np.int16)
    for move in range(_sort_moves(drawn, sides, tables[0], moves)):
        edge = moves[move]
        closed = _draw(drawn, sides, counters, tables, edge, 1)
        # First a test whether the edge is as good as the best, then its exact value.
        for low, high in ((best - 1, best), (best, _FAR)):
            if low < -_FAR:  # the first edge: nothing to compare it with
                continue
            if closed:
                value = closed + _value(
                    drawn, sides, counters, tables, depth - 1, low - closed, high - closed
                )
            else:
                value = -_value(drawn, sides, counters, tables, depth - 1, -high, -low)
            if value < best:
                break
        _draw(drawn, sides, counters, tables, edge, -1)
        values[edge] = value
        best = max(best, value)
    return values
