"""Proofs with a deadline: the value of a position, and which of some preferred edges keeps it.

All proofs of a position share a transposition table. The bounds found by an interrupted proof stay
in the table, for the next proof and for the next position of the game.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

import numpy as np

from jaxzero.game.rules import DotsAndBoxes
from jaxzero.solver import endgame
from jaxzero.solver.endgame import NO_LIMIT, Result, TranspositionTable, Work

GLANCE_NODES = 2_000  # about a millisecond; enough to look up bounds in the table


@dataclass(frozen=True)
class ProofTask:
    """A position, its proven bounds and the memory for proofs. For one proof at a time."""

    across: np.uint64  # undrawn horizontal edges
    down: np.uint64  # undrawn vertical edges
    bits: np.ndarray  # [A] int64, the bit of each edge
    bounds: np.ndarray  # [2] int64, proven bounds on the margin of the side to move, boxes
    most: np.ndarray  # [A] int64, proven upper bounds on the value of drawing each edge
    works: list[Work]  # the memory of each thread that proves

    @property
    def control(self) -> np.ndarray:
        return self.works[0][-1]

    @property
    def value(self) -> int | None:
        """The proven margin of the side to move in boxes, None where it is not proven."""
        lower, upper = self.bounds.tolist()
        return lower if lower == upper else None

    def stop(self) -> None:
        """Stop the running proof, from any thread, within microseconds."""
        endgame.stop(self.works)


def new_task(
    board: DotsAndBoxes, drawn: np.ndarray, table: TranspositionTable, threads: int = 1
) -> ProofTask:
    """Return the task of a position [A] bool. Raises: InputError for a board beyond 7x7."""
    from jaxzero.solver import bitboards, null_window

    across, down, bits, work = endgame.prepare(board, drawn, table)
    geometry, control = work[0], work[-1]
    control[null_window.NODE_LIMIT] = NO_LIMIT
    stride, boxes = geometry[bitboards.STRIDE], geometry[bitboards.BOXES]
    left = int(bitboards.boxes_beside(across, down, stride, boxes)).bit_count()
    works = endgame.sharing(work, threads)
    return ProofTask(across, down, bits, np.array([-left, left]), np.full(len(bits), left), works)


def prove_value(task: ProofTask, guess: float, order: Sequence[int] = ()) -> None:
    """Narrow the bounds of a task until they meet or the proof is stopped.

    Each step tests one margin; the first margin is the nearest to `guess` boxes. If the guess is
    right, the first step finds a best edge and the second proves that no edge is better. A step
    tries the edges in `order`, which must hold all undrawn ones; without it the solver chooses.
    """
    bounds = task.bounds
    while bounds[0] < bounds[1]:
        lower, upper = bounds.tolist()
        test = min(upper, lower + 2 * max(1, round((guess - lower) / 2)))
        reached = is_reached(task, test, order)
        if reached is None:
            return
        if reached:
            bounds[0] = test
        else:
            bounds[1] = test - 2


def is_reached(task: ProofTask, test: int, order: Sequence[int]) -> bool | None:
    """Return whether the margin is at least `test`; None if stopped. `order`: see `prove_value`."""
    from jaxzero.solver import null_window

    if not order:
        search = partial(null_window.at_least, task.across, task.down, test)
        reached = endgame.first_of(search, task.works)
        return None if task.control[null_window.STOP] else bool(reached)
    for edge in order:
        if task.most[edge] >= test:
            worth = is_worth(task, edge, test)
            if worth is not False:
                return worth
            task.most[edge] = test - 2
    return False


def is_worth(task: ProofTask, edge: int, least: int, nodes: int = NO_LIMIT) -> bool | None:
    """Return whether drawing `edge` is worth at least `least`; None if stopped or out of nodes.

    `least` has the parity of the boxes left.
    """
    from jaxzero.solver import null_window

    control, bit = task.control, task.bits[edge]
    control[null_window.NODE_LIMIT] = min(NO_LIMIT, control[null_window.NODES] + nodes)
    search = partial(null_window.move_at_least, task.across, task.down, bit, least)
    found = endgame.first_of(search, task.works[: 1 if nodes < NO_LIMIT else None])
    stopped, control[null_window.STOP] = bool(control[null_window.STOP]), 0
    control[null_window.NODE_LIMIT] = NO_LIMIT
    return None if stopped else bool(found)


def first_worth(task: ProofTask, least: int, order: Sequence[int]) -> int | None:
    """Return the first edge that is worth at least `least`, None if there is none.

    Edges with higher upper bounds come first, edges with equal bounds in `order`. If stopped,
    return an edge that is known to be worth it, else the first that is not refuted.
    """
    known, open_edges = None, []
    most = np.minimum(task.most, task.bounds[1])
    for edge in sorted(order, key=lambda edge: -most[edge]):  # quick tests: the table may suffice
        worth = is_worth(task, edge, least, GLANCE_NODES)
        if worth:
            known = edge
            break
        if worth is None:
            open_edges.append(edge)
    for edge in open_edges:
        worth = is_worth(task, edge, least)
        if worth is None:
            return edge if known is None else known
        if worth:
            return edge
    return known


def finish(task: ProofTask, running: Future[Result], deadline: float) -> Result:
    """Return the result of a proof that runs in a thread; stop the proof at `deadline`.

    `deadline` is in seconds of `time.monotonic`. An interrupt stops the proof too.
    Afterwards the task is ready for another proof.
    """
    from jaxzero.solver import null_window

    try:
        seconds = max(0.0, deadline - time.monotonic())
        return endgame.finish(running, task.works, seconds)
    finally:
        for work in task.works:
            work[-1][[null_window.TIME_UP, null_window.STOP]] = 0
