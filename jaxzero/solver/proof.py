"""Proofs with a deadline: the value of a position, and which of some preferred edges keeps it.

All proofs of a position share a transposition table. What an interrupted proof has found stays in
it, for the next proof and for the next position of the game.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from jaxzero.game.rules import DotsAndBoxes
from jaxzero.solver import endgame, null_window
from jaxzero.solver.bitboards import draw
from jaxzero.solver.endgame import TranspositionTable

NO_LIMIT = 2**62  # nodes
GLANCE_NODES = 2_000  # about a millisecond; enough to find again what the table knows

Result = TypeVar("Result")


@dataclass(frozen=True)
class Problem:
    """A position, its proven bounds and the memory for proofs. For one thread at a time."""

    across: np.uint64  # undrawn horizontal edges
    down: np.uint64  # undrawn vertical edges
    bits: np.ndarray  # [A] int64, the bit of each edge
    memory: tuple[np.ndarray, ...]  # board, scratch, table, control

    @property
    def control(self) -> np.ndarray:
        return self.memory[-1]

    def stop(self) -> None:
        """End the proof that runs, from any thread, within microseconds."""
        self.control[null_window.TIME_UP] = 1


def new_problem(game: DotsAndBoxes, drawn: np.ndarray, table: TranspositionTable) -> Problem:
    """Return the problem of a position [A] bool. Raises: InputError for a board beyond 7x7."""
    return Problem(*_position(*endgame._prepare(game, drawn, table)))


def _position(across, down, bits, memory):
    memory[-1][null_window.NODE_LIMIT] = NO_LIMIT
    return across, down, bits, memory


def prove_value(problem: Problem) -> int | None:
    """Return the margin of the side to move in boxes, or None once stopped."""
    lower, upper = null_window.bounds(problem.across, problem.down, *problem.memory)
    return int(lower) if lower == upper else None


def prove_move(problem: Problem, edge: int) -> int | None:
    """Return the margin after drawing `edge`, for the side that draws it, or None once stopped."""
    across, down, gained = draw(problem.across, problem.down, problem.bits[edge], problem.memory[0])
    lower, upper = null_window.bounds(np.uint64(across), np.uint64(down), *problem.memory)
    if lower != upper:
        return None
    return int(gained + lower if gained else -lower)


def is_worth(problem: Problem, edge: int, least: int, nodes: int = NO_LIMIT) -> bool | None:
    """Tell whether drawing `edge` is worth at least `least`; None if stopped or out of nodes.

    `least` has the parity of the boxes left.
    """
    control = problem.control
    control[null_window.NODE_LIMIT] = min(NO_LIMIT, control[null_window.NODES] + nodes)
    bit = problem.bits[edge]
    found = null_window.move_at_least(problem.across, problem.down, bit, least, *problem.memory)
    stopped, control[null_window.STOP] = bool(control[null_window.STOP]), 0
    control[null_window.NODE_LIMIT] = NO_LIMIT
    return None if stopped else bool(found)


def first_best(problem: Problem, value: int, order: Sequence[int]) -> int | None:
    """Return the first edge of `order` that is worth `value`, the proven value of the position.

    When stopped, the first edge found to be worth it so far; None if there is none.
    """
    known, left = None, []
    for edge in order:  # what the table knows comes at once
        worth = is_worth(problem, edge, value, GLANCE_NODES)
        if worth:
            known = edge
            break
        if worth is None:
            left.append(edge)
    for edge in left:
        worth = is_worth(problem, edge, value)
        if worth is None:
            break
        if worth:
            return edge
    return known


def better_move(problem: Problem, order: Sequence[int]) -> int | None:
    """Return the best of some edges, the first among equals; when stopped, the best so far.

    The first edge is proven, every other one is tested against the best before it. None if stopped
    before anything was proven.
    """
    best, value = None, None
    for edge in order:
        if best is None or is_worth(problem, edge, value + 2):
            worth = prove_move(problem, edge)
            if worth is None:
                return edge if best is not None else None
            best, value = edge, worth
        if problem.control[null_window.TIME_UP]:
            break
    return best


def finish(problem: Problem, running: Future[Result], deadline: float) -> Result:
    """Return the result of a proof that runs in a thread, stopped at `deadline`.

    `deadline` is in seconds of `time.monotonic`. An interrupt stops the proof too. Afterwards the
    problem is ready for another proof.
    """
    try:
        return running.result(max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        problem.stop()
        return running.result()
    except BaseException:
        problem.stop()
        wait([running])
        raise
    finally:
        problem.control[[null_window.TIME_UP, null_window.STOP]] = 0
