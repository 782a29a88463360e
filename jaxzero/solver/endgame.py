"""The exact solver: margin and best edges of any position, on boards up to 7x7.

The margin of a position is the boxes that the side to move will still win minus the boxes it will
lose, under perfect play. It depends on the drawn edges only, not on the score.

Functions that need the compiled search import it, because numba is slow to import.
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

from jaxzero.errors import InputError
from jaxzero.game.board import corner_pairs, edge_centres, edge_permutations
from jaxzero.game.rules import DotsAndBoxes
from jaxzero.game.text import drawn_of

ILLEGAL = -128  # the value of a move that cannot be made; fits in int8
NO_LIMIT = 2**62  # nodes
_INLINE_NODES = 2**14  # searched in the calling thread, about 10 ms; a new thread costs 0.1 ms
_NEAR_SYMMETRIC = 6  # edges; a symmetry is used if it adds at most this many to the drawn edges

Result = TypeVar("Result")
Work = tuple[np.ndarray, ...]  # the memory of a search: geometry, scratch, table and control words
Search = Callable[..., Result]  # takes such memory
# [4 * entries + marks] uint64, proven bounds of searched positions, of any boards. For one thread
# at a time, or for threads that prove the same position together.
TranspositionTable = np.ndarray


@dataclass(frozen=True)
class Solution:
    """Proven facts about one position: margins of the side to move, in boxes."""

    value: int | None  # None if time ended the search
    lower: int
    upper: int
    best: tuple[int, ...]  # every edge worth `value`; empty if time ended the search


def new_table(entries: int = 2**22) -> TranspositionTable:
    """Return an empty table of `entries` positions, a power of two from 2 on, 32 bytes each."""
    from jaxzero.solver import null_window

    return np.zeros(null_window.ENTRY_WORDS * entries + null_window.MARKS, np.uint64)


def solve(
    board: DotsAndBoxes,
    drawn: Sequence[int] | np.ndarray,
    seconds: float | None = None,
    table: TranspositionTable | None = None,
    threads: int = 1,
) -> Solution:
    """Return the margin of one position, [A] bool or a list of edges, and every edge that keeps it.

    Without a limit the search runs to the end. A long search runs in `threads` threads.
    Raises: InputError for a board beyond 7x7 or an impossible edge.
    """
    from jaxzero.solver import null_window

    across, down, bits, work = prepare(board, drawn, table)

    def search(*work: np.ndarray) -> tuple[int, int, np.ndarray]:
        best = np.zeros(board.num_edges, bool)
        return *null_window.solve_position(across, down, bits, best, *work), best

    lower, upper, best = _run(search, work, None, seconds, threads)
    return Solution(
        value=int(lower) if lower == upper else None,
        lower=int(lower),
        upper=int(upper),
        best=tuple(np.flatnonzero(best).tolist()),
    )


def move_bounds(
    board: DotsAndBoxes,
    drawn: Sequence[int] | np.ndarray,
    node_limit: int | None = None,
    seconds: float | None = None,
    table: TranspositionTable | None = None,
    threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Return proven bounds on the margin after drawing each edge: lower [A], upper [A] int64.

    Margins are for the side that draws the edge and include the boxes that it closes. Drawn edges
    hold ILLEGAL. Raises: as `solve`.
    """
    from jaxzero.solver import null_window

    across, down, bits, work = prepare(board, drawn, table)

    def search(*work: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lowers, uppers = (np.full(board.num_edges, ILLEGAL) for _ in range(2))
        null_window.bound_moves(across, down, bits, lowers, uppers, *work)
        return lowers, uppers

    return _run(search, work, node_limit, seconds, threads)


def move_values(
    board: DotsAndBoxes, drawn: Sequence[int] | np.ndarray, table: TranspositionTable | None = None
) -> np.ndarray:
    """Return the margin after drawing each edge, for the side that draws it: [A] int64.

    Drawn edges hold ILLEGAL. Runs to the end; `move_bounds` takes limits. Raises: as `solve`.
    """
    return move_bounds(board, drawn, table=table)[0]


def solve_many(
    board: DotsAndBoxes,
    drawn: np.ndarray,
    node_limit: int | None = None,
    table: TranspositionTable | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve a batch [B, A] bool: margins [B] int64, best edges [B, A] bool, solved [B] bool.

    `node_limit` applies to each position. Ignore results of unsolved rows. Raises: as `solve`.
    """
    from jaxzero.solver import null_window

    bits, drawn = _bits(board), np.asarray(drawn)
    if drawn.ndim != 2 or drawn.shape[1] != board.num_edges or drawn.dtype != bool:
        raise InputError(
            f"drawn: {drawn.dtype} of shape {drawn.shape} must be bool of shape "
            f"(positions, {board.num_edges}) on a {board} board"
        )
    values = np.zeros(len(drawn), np.int64)
    best, solved = np.zeros(drawn.shape, bool), np.zeros(len(drawn), bool)
    undrawn, limit = ~drawn, NO_LIMIT if node_limit is None else node_limit
    work = _work(board, _geometry(board), new_table(2**18) if table is None else table)

    def search(*work: np.ndarray) -> None:
        null_window.solve_positions(undrawn, limit, bits, values, best, solved, *work)

    _run_in_thread(search, [work], None)
    return values, best, solved


def is_compiled() -> bool:
    """Return whether this process has solved a position, so that the next needs no compiler."""
    function = getattr(sys.modules.get("jaxzero.solver.null_window"), "solve_position", None)
    return bool(getattr(function, "signatures", function))


def prepare(
    board: DotsAndBoxes, drawn: Sequence[int] | np.ndarray, table: TranspositionTable | None
) -> tuple:
    """Return a position as two words, the bits of the edges [A] and the memory of a search."""
    from jaxzero.solver import bitboards

    bits, edges = _bits(board), drawn_of(board, drawn)
    images = edges[edge_permutations(board)]
    geometry = _geometry(board, tuple((images & ~edges).sum(axis=1) <= _NEAR_SYMMETRIC))
    # numba returns Python integers and would take them back as signed ones.
    across, down = map(np.uint64, bitboards.pack(~edges, bits))
    if table is None:  # sized for the position; clearing a large table takes 25 ms
        table = new_table(2 ** min(bitboards.count_safe(across, down, geometry) + 8, 22))
    return across, down, bits, _work(board, geometry, table)


def _work(board: DotsAndBoxes, geometry: np.ndarray, table: TranspositionTable) -> Work:
    """Return the memory of a search."""
    from jaxzero.solver import bitboards, null_window

    scratch = bitboards.LEAF_WORDS + (board.num_edges + 1) * bitboards.PLY_WORDS
    control = np.zeros(null_window.CONTROL_WORDS, np.int64)
    return geometry, np.zeros(scratch, np.uint64), table, control


def can_solve(board: DotsAndBoxes) -> bool:
    """Return whether the solver takes a board; keys of the table have three bits for each side."""
    return max(board.rows, board.cols) <= 7


def check_board(board: DotsAndBoxes) -> None:
    """Raise an InputError for a board that is too large for the solver."""
    if not can_solve(board):
        raise InputError(f"board: {board} must be at most 7x7 for the exact solver")


@lru_cache
def _bits(board: DotsAndBoxes) -> np.ndarray:
    """Return the bit of each edge, 0 to 63 across and 64 to 127 down: [A] int64.

    Raises: InputError if the board does not fit.
    """
    check_board(board)
    stride = board.cols + 1
    row, col = np.divmod(np.arange(board.num_horizontal), board.cols)
    verticals = np.arange(board.rows * stride)
    return np.concatenate([row * stride + col, 64 + verticals])


def _words(bits: np.ndarray) -> np.ndarray:
    """Return the two words with these bits set: [2] uint64."""
    words = np.zeros(2, np.uint64)
    for bit in bits.tolist():
        words[bit // 64] |= np.uint64(1 << bit % 64)
    return words


@lru_cache(maxsize=64)
def _geometry(board: DotsAndBoxes, symmetries: tuple[bool, ...] = ()) -> np.ndarray:
    """Return a board for the compiled search, with the tables of the chosen `symmetries`."""
    from jaxzero.solver import bitboards

    bits, permutations = _bits(board), edge_permutations(board)
    tables = [_symmetry_words(bits, permutations[s]) for s in np.flatnonzero(symmetries) if s > 0]
    geometry = np.zeros(bitboards.SYMMETRY_WORDS, np.uint64)
    geometry[bitboards.STRIDE] = board.cols + 1
    rows, cols = np.divmod(np.arange(board.num_boxes), board.cols)
    geometry[bitboards.BOXES] = _words(rows * (board.cols + 1) + cols)[0]
    geometry[bitboards.SIZE] = board.rows * 8 + board.cols
    geometry[bitboards.SYMMETRIES] = len(tables)
    distance = np.abs(2 * edge_centres(board) - [board.rows, board.cols]).max(axis=1)
    # Edges by distance from the centre of the board, nearest first.
    rings = [np.flatnonzero(distance == d) for d in np.unique(distance)]
    parts = (bitboards.RING_WORDS, rings), (bitboards.CORNERS, corner_pairs(board))
    for start, sets in parts:
        for place, edges in enumerate(sets):
            geometry[start + 2 * place : start + 2 * place + 2] = _words(bits[edges])
    return np.concatenate([geometry, *tables])


def _symmetry_words(bits: np.ndarray, permutation: np.ndarray) -> np.ndarray:
    """Return the image of each byte of a position under a symmetry: [16 * 256 * 2] uint64."""
    table = np.zeros((16, 256, 2), np.uint64)
    values = np.arange(256)
    for target, source in enumerate(permutation):
        byte, bit = divmod(int(bits[source]), 8)
        word, place = divmod(int(bits[target]), 64)
        table[byte, values >> bit & 1 == 1, word] |= np.uint64(1 << place)
    return table.reshape(-1)


def _run(
    search: Search[Result],
    work: Work,
    node_limit: int | None,
    seconds: float | None,
    threads: int,
) -> Result:
    """Run a search of one position to its end or to a limit.

    Most searches are short and run in this thread. A longer search starts again in threads of its
    own and finds its earlier bounds in the table.
    """
    from jaxzero.solver import null_window

    limit, control = NO_LIMIT if node_limit is None else node_limit, work[-1]
    control[null_window.NODE_LIMIT] = min(limit, _INLINE_NODES)
    result = search(*work)
    if not control[null_window.STOP] or limit <= _INLINE_NODES:
        return result
    control[null_window.STOP], control[null_window.NODE_LIMIT] = 0, limit
    return _run_in_thread(search, sharing(work, threads), seconds)


def _run_in_thread(search: Search[Result], works: Sequence[Work], seconds: float | None) -> Result:
    """Run a search in a thread of its own.

    Python handles Ctrl-C in the main thread only, and not within compiled code. The compiled search
    releases the GIL, so the main thread can wait for it and handle the interrupt.
    """
    with ThreadPoolExecutor(1) as pool:
        return finish(pool.submit(first_of, search, works), works, seconds)


def finish(running: Future[Result], works: Sequence[Work], seconds: float | None) -> Result:
    """Return the result of a search; stop the search when time is up or it is interrupted."""
    try:
        return running.result(seconds)
    except TimeoutError:
        stop(works)
        return running.result()
    except BaseException:
        stop(works)
        wait([running])
        raise


def stop(works: Sequence[Work]) -> None:
    """End the searches that use this memory, from any thread, within microseconds."""
    from jaxzero.solver import null_window

    for work in works:
        work[-1][null_window.TIME_UP] = 1


def sharing(work: Work, threads: int) -> list[Work]:
    """Return the memory of `threads` threads that share the table of `work`; `work` comes first."""
    geometry, scratch, table, control = work
    others = [(geometry, scratch.copy(), table, control.copy()) for _ in range(threads - 1)]
    return [work, *others]


def first_of(search: Search[Result], works: Sequence[Work]) -> Result:
    """Run one search in as many threads as `works`; return the result of the first to finish.

    It stops the other threads. If all are stopped before, return the result of `works[0]`.
    """
    from jaxzero.solver import null_window

    if len(works) == 1:
        return search(*works[0])
    results = []

    def run(work: Work) -> Result:
        control = work[-1]
        control[null_window.SHARED] = 1
        result = search(*work)
        if not control[null_window.STOP]:
            results.append(result)
            for other in works:
                other[-1][null_window.STOP] = 1
        return result

    with ThreadPoolExecutor(len(works) - 1) as pool:
        for work in works[1:]:
            pool.submit(run, work)
        own = run(works[0])
    for work in works:
        work[-1][null_window.STOP] = not results
    return results[0] if results else own
