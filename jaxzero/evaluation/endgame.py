"""The exact solver: margin and best edges of any position, on boards up to 7x7.

The margin of a position is what the side to move will still win minus what it will lose, both
playing perfectly. It depends on the drawn edges only, not on the score.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

from jaxzero.errors import InputError
from jaxzero.evaluation import _solver_kernels as kernels
from jaxzero.evaluation.values import ILLEGAL
from jaxzero.game.rules import DotsAndBoxes
from jaxzero.game.symmetry import edge_permutations

_NO_LIMIT = 2**62
_INLINE_NODES = 2**14  # searched in the calling thread, about 10 ms: a thread costs 0.1 ms
_NEAR_SYMMETRIC = 6  # a symmetry is used if it adds at most so many edges to those drawn

Result = TypeVar("Result")


@dataclass(frozen=True)
class Solution:
    """What is proven about one position, as margins of the side to move in boxes."""

    value: int | None  # None if the budget ran out
    lower: int
    upper: int
    best: tuple[int, ...]  # every edge worth `value`; empty if the budget ran out before
    nodes: int
    seconds: float


@dataclass(frozen=True)
class Table:
    """Proven bounds of positions met, of all sizes of board; for one thread at a time."""

    words: np.ndarray  # [4 * entries] uint64


def new_table(entries: int = 2**22) -> Table:
    """Return an empty table of `entries` positions, 32 bytes each.

    Raises: InputError unless `entries` is a power of two, at least 2.
    """
    if entries < 2 or entries & (entries - 1):
        raise InputError(f"entries: {entries} must be a power of two, at least 2")
    return Table(np.zeros(4 * entries, np.uint64))


def solve(
    game: DotsAndBoxes,
    drawn: Sequence[int] | np.ndarray,
    node_limit: int | None = None,
    seconds: float | None = None,
    table: Table | None = None,
) -> Solution:
    """Return the margin of one position and every edge that keeps it.

    `drawn` is [A] bool or a list of edge numbers. Without limits the search runs to the end.
    Raises: InputError for boards beyond 7x7 and bad edges.
    """
    start = time.perf_counter()
    bits, board, (across, down) = _prepare(game, drawn)
    table = table or _table_for(across, down, board)
    best = np.zeros(game.num_edges, bool)
    control = _control()
    work = board, _scratch(game), table.words, control

    def search() -> tuple[int, int]:
        return kernels.solve_position(across, down, 0, bits, best, *work)

    lower, upper = _run(search, control, node_limit, seconds)
    return Solution(
        value=int(lower) if lower == upper else None,
        lower=int(lower),
        upper=int(upper),
        best=tuple(np.flatnonzero(best).tolist()),
        nodes=int(control[kernels.NODES]),
        seconds=time.perf_counter() - start,
    )


def move_bounds(
    game: DotsAndBoxes,
    drawn: Sequence[int] | np.ndarray,
    node_limit: int | None = None,
    seconds: float | None = None,
    table: Table | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return proven bounds on the margin after drawing each edge: lower [A], upper [A] int64.

    Margins are of the side that draws the edge and count the boxes the edge closes. Drawn edges
    hold ILLEGAL. Raises: as `solve`.
    """
    bits, board, (across, down) = _prepare(game, drawn)
    table = table or _table_for(across, down, board)
    lowers = np.full(game.num_edges, ILLEGAL)
    uppers = np.full(game.num_edges, ILLEGAL)
    control = _control()
    work = board, _scratch(game), table.words, control

    def search() -> None:
        kernels.bound_moves(across, down, bits, lowers, uppers, *work)

    _run(search, control, node_limit, seconds)
    return lowers, uppers


def move_values(
    game: DotsAndBoxes, drawn: Sequence[int] | np.ndarray, table: Table | None = None
) -> np.ndarray:
    """Return the margin after drawing each edge, for the side that draws it: [A] int64.

    Drawn edges hold ILLEGAL. Runs to the end; `move_bounds` takes limits. Raises: as `solve`.
    """
    return move_bounds(game, drawn, table=table)[0]


def solve_many(
    game: DotsAndBoxes,
    drawn: np.ndarray,
    node_limit: int | None = None,
    seconds: float | None = None,
    table: Table | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve a batch [B, A] bool: margins [B] int64, best edges [B, A] bool, solved [B] bool.

    `node_limit` holds for each position, `seconds` for the batch. Rows that are not solved hold
    nothing of use. Raises: as `solve`.
    """
    bits, board, drawn = _bits(game), _board_words(game), np.asarray(drawn)
    if drawn.ndim != 2 or drawn.shape[1] != game.num_edges or drawn.dtype != bool:
        raise InputError(
            f"drawn: {drawn.dtype} of shape {drawn.shape} must be bool of shape "
            f"(positions, {game.num_edges}) on a {game} board"
        )
    values = np.zeros(len(drawn), np.int64)
    best, solved = np.zeros(drawn.shape, bool), np.zeros(len(drawn), bool)
    table = table or new_table(2**18)
    control, undrawn, limit = _control(), ~drawn, _limit(node_limit)
    work = bits, values, best, solved, board, _scratch(game), table.words, control

    def search(first: int = 0) -> int:
        return kernels.solve_positions(undrawn, first, limit, *work)

    control[kernels.PAUSE] = _INLINE_NODES
    row = search()
    if row < len(drawn):
        control[kernels.PAUSE] = _NO_LIMIT
        _run_in_thread(lambda: search(row), control, seconds)
    return values, best, solved


def drawn_edges(game: DotsAndBoxes, drawn: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return a position given as [A] bool or as a list of edge numbers as [A] bool.

    Raises: InputError for a wrong length, a number that is not an edge, an edge listed twice.
    """
    given = np.asarray(drawn)
    if given.dtype == bool:
        if given.shape != (game.num_edges,):
            raise InputError(
                f"drawn: shape {given.shape} must be ({game.num_edges},) on a {game} board"
            )
        return given
    edges = np.zeros(game.num_edges, bool)
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise InputError(f"drawn: {drawn!r} must be a list of edge numbers or [A] bool")
    for edge in given.tolist():
        if not 0 <= edge < game.num_edges:
            raise InputError(
                f"drawn: edge {edge} is not on a {game} board (0 to {game.num_edges - 1})"
            )
        if edges[edge]:
            raise InputError(f"drawn: edge {edge} is listed twice")
        edges[edge] = True
    return edges


def _prepare(game, drawn):
    """Return what the kernels need: bits [A], board words and the position as two words."""
    bits = _bits(game)
    edges = drawn_edges(game, drawn)
    images = edges[edge_permutations(game)]
    near = tuple((images & ~edges).sum(axis=1) <= _NEAR_SYMMETRIC)
    # Numba returns Python integers, which would come back to it as signed ones.
    across, down = map(np.uint64, kernels.pack(~edges, bits))
    return bits, _board_words(game, near), (across, down)


@lru_cache
def _bits(game: DotsAndBoxes) -> np.ndarray:
    """Return the bit of each edge, 0 to 63 across and 64 to 127 down: [A] int64.

    Raises: InputError if the board does not fit.
    """
    stride = game.cols + 1
    if (game.rows + 1) * stride > 64 or game.num_boxes > 49:
        raise InputError(f"board: {game} must be at most 7x7 for the exact solver")
    row, col = np.divmod(np.arange(game.num_horizontal), game.cols)
    verticals = np.arange(game.rows * stride)
    return np.concatenate([row * stride + col, 64 + verticals])


def _words(bits: np.ndarray) -> np.ndarray:
    """Return the two words with these bits set: [2] uint64."""
    words = np.zeros(2, np.uint64)
    for bit in bits.tolist():
        words[bit // 64] |= np.uint64(1 << bit % 64)
    return words


@lru_cache(maxsize=64)
def _board_words(game: DotsAndBoxes, symmetries: tuple[bool, ...] = ()) -> np.ndarray:
    """Return the geometry as the kernels read it; `symmetries` tells which to look through."""
    bits, permutations = _bits(game), edge_permutations(game)
    tables = [_symmetry_words(bits, permutations[s]) for s in np.flatnonzero(symmetries) if s > 0]
    board = np.zeros(kernels.SYMMETRY_WORDS, np.uint64)
    board[kernels.STRIDE] = game.cols + 1
    rows, cols = np.divmod(np.arange(game.num_boxes), game.cols)
    board[kernels.BOXES] = _words(rows * (game.cols + 1) + cols)[0]
    board[kernels.SIZE] = game.rows * 8 + game.cols
    board[kernels.SYMMETRIES] = len(tables)
    for start, sets in ((kernels.RING_WORDS, _rings(game)), (kernels.CORNERS, _corners(game))):
        for place, edges in enumerate(sets):
            board[start + 2 * place : start + 2 * place + 2] = _words(bits[edges])
    return np.concatenate([board, *tables])


def _rings(game: DotsAndBoxes) -> list[np.ndarray]:
    """Return the edges by distance from the centre of the board, nearest first."""
    row, col = np.divmod(np.arange(game.num_horizontal), game.cols)
    across = np.maximum(abs(2 * row - game.rows), abs(2 * col + 1 - game.cols))
    row, col = np.divmod(np.arange(game.num_edges - game.num_horizontal), game.cols + 1)
    down = np.maximum(abs(2 * row + 1 - game.rows), abs(2 * col - game.cols))
    distance = np.concatenate([across, down])
    return [np.flatnonzero(distance == d) for d in np.unique(distance)]


def _corners(game: DotsAndBoxes) -> list[np.ndarray]:
    """Return the pairs of edges that meet in an outer corner: they are interchangeable."""
    last_row, last_col = game.num_horizontal - game.cols, game.cols - 1
    down_last = game.num_edges - game.cols - 1
    first = game.num_horizontal
    return [
        np.array(pair)
        for pair in (
            (0, first),
            (last_col, first + game.cols),
            (last_row, down_last),
            (last_row + last_col, down_last + game.cols),
        )
    ]


def _symmetry_words(bits: np.ndarray, permutation: np.ndarray) -> np.ndarray:
    """Return where a symmetry sends each byte of a position: [16 * 256 * 2] uint64."""
    table = np.zeros((16, 256, 2), np.uint64)
    values = np.arange(256)
    for target, source in enumerate(permutation):
        byte, bit = divmod(int(bits[source]), 8)
        word, place = divmod(int(bits[target]), 64)
        table[byte, values >> bit & 1 == 1, word] |= np.uint64(1 << place)
    return table.reshape(-1)


def _scratch(game: DotsAndBoxes) -> np.ndarray:
    return np.zeros(kernels.LEAF_WORDS + (game.num_edges + 1) * kernels.PLY_WORDS, np.uint64)


def _table_for(across: np.uint64, down: np.uint64, board: np.ndarray) -> Table:
    """Return a table that suits one position: clearing a large one takes 25 ms."""
    return new_table(2 ** min(kernels.count_safe(across, down, board) + 8, 22))


def _limit(node_limit: int | None) -> int:
    if node_limit is not None and node_limit < 1:
        raise InputError(f"node_limit: {node_limit} must be at least 1")
    return _NO_LIMIT if node_limit is None else node_limit


def _control() -> np.ndarray:
    return np.zeros(kernels.CONTROL_WORDS, np.int64)


def _run(
    search: Callable[[], Result],
    control: np.ndarray,
    node_limit: int | None,
    seconds: float | None,
) -> Result:
    """Run a search of one position until it is done, `node_limit` is reached or time is up.

    Most searches are short and run here. One that is not starts again in a thread of its own; what
    it has proven is in its table.
    """
    limit = _limit(node_limit)
    control[kernels.NODE_LIMIT] = min(limit, _INLINE_NODES)
    result = search()
    if not control[kernels.STOP] or limit <= _INLINE_NODES:
        return result
    control[kernels.STOP], control[kernels.NODE_LIMIT] = 0, limit
    return _run_in_thread(search, control, seconds)


def _run_in_thread(
    search: Callable[[], Result], control: np.ndarray, seconds: float | None
) -> Result:
    """Run a search in a thread of its own; end it when time is up or at an interrupt.

    Python handles Ctrl-C in the main thread, and only between its own instructions: a kernel there
    would not notice. The kernels release the GIL, so the main thread can wait for them instead.
    """
    with ThreadPoolExecutor(1) as pool:
        try:
            future = pool.submit(search)
            return future.result(seconds)
        except TimeoutError:
            control[kernels.TIME_UP] = 1
            return future.result()
        except BaseException:
            control[kernels.TIME_UP] = 1
            raise
