"""Solve a board or a position and describe the result in words."""

import textwrap
import time
from collections.abc import Iterable
from os.path import isfile  # also for a text that is too long for a path
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, drawn_of, edge_name, render
from jaxzero.host.files import read_text
from jaxzero.host.memory import cores
from jaxzero.solver import endgame
from jaxzero.solver.endgame import ILLEGAL


class SolvedPosition(NamedTuple):
    """Proven bounds on every move of a position, in boxes for its mover."""

    drawn: np.ndarray  # [A] bool, edges on the board
    lower: np.ndarray  # [A] int, ILLEGAL for drawn edges
    upper: np.ndarray  # [A] int, ILLEGAL for drawn edges
    least: int = ILLEGAL  # a lower bound on the value; proven, perhaps for no single move
    seconds: float = 0.0  # of solving, without compiling

    @property
    def bounds(self) -> tuple[int, int]:
        """Proven bounds on the value of the best move; 0 when the game is over."""
        lower, upper = self.lower[~self.drawn], self.upper[~self.drawn]
        return (max(self.least, int(lower.max())), int(upper.max())) if len(lower) else (0, 0)

    @property
    def value(self) -> int | None:
        """The value of the position, None if time ran out before it was proven."""
        lower, upper = self.bounds
        return lower if lower == upper else None

    @property
    def is_complete(self) -> bool:
        """Whether the value of every move is proven."""
        return bool((self.lower == self.upper).all())

    @property
    def best(self) -> list[int]:
        """The moves that are proven to be best."""
        return np.flatnonzero(~self.drawn & (self.lower == self.bounds[1])).tolist()


def solve_position(
    board: DotsAndBoxes, drawn: np.ndarray, seconds: float | None = None
) -> SolvedPosition:
    """Solve a position [A] bool within `seconds`: value and best moves, then the other moves.

    Raises: InputError for a board that is too large.
    """
    endgame.move_values(DotsAndBoxes(1, 1), [])  # compile before the time starts to count
    endgame.solve(DotsAndBoxes(1, 1), [])
    begin, table = time.monotonic(), endgame.new_table()
    shared = {"table": table, "threads": cores()}
    solution = endgame.solve(board, drawn, seconds, **shared)
    if seconds is not None:
        seconds = max(0.0, seconds - (time.monotonic() - begin))
    lower, upper = endgame.move_bounds(board, drawn, seconds=seconds, **shared)
    free = ~drawn
    upper[free] = np.minimum(upper[free], solution.upper)
    if solution.best:
        best = np.isin(np.arange(board.num_edges), solution.best)
        lower[best] = solution.value
        # The boxes left are all won or lost, so values of moves lie an even number apart.
        upper[free & ~best] = np.minimum(upper[free & ~best], solution.value - 2)
    return SolvedPosition(drawn, lower, upper, int(solution.lower), time.monotonic() - begin)


def read_position(board: DotsAndBoxes, position: str) -> np.ndarray:
    """Return the drawn edges [A] bool of a list such as `h0,1 v2,3 17`, or of a file with a list.

    Raises: InputError for a word that is not an edge and for an edge that is listed twice.
    """
    if isfile(position):
        position = read_text("position", Path(position))
    elif "/" in position or position.endswith((".txt", ".json")):
        raise InputError(f"position: {position} is not a file")
    return drawn_of(board, position)


def describe(board: DotsAndBoxes, solved: SolvedPosition) -> str:
    """Return board, value and best moves as text; undrawn edges show their values."""

    def names(edges: Iterable[int]) -> str:
        return " ".join(edge_name(board, edge) for edge in edges)

    free = np.flatnonzero(~solved.drawn)
    proven = free[solved.lower[free] == solved.upper[free]]
    labels = {edge: f"{solved.lower[edge]:+d}" for edge in proven.tolist()}
    lines = [render(board, solved.drawn, labels=labels), ""]
    lower, upper = solved.bounds
    about = f"{board}, {len(free)} edges free:"
    if solved.value is None:
        lines.append(
            f"{about} not solved in time; proven: the value for the side to move is between "
            f"{lower:+d} and {upper:+d} boxes"
        )
    else:
        outcome = "the rest is shared equally"
        if lower:
            wins = "wins" if lower > 0 else "loses"
            outcome = f"the side to move {wins} the rest by {abs(lower)}"
        lines.append(f"{about} value {lower:+d} ({outcome})")
        best = names(solved.best) or "not proven"
        if not len(free):
            best = "none, the game is over"
        elif len(free) > 1 and len(solved.best) == len(free):
            best = "every edge"
        lines.append(f"best: {best}")
    # The moves that are not proven, grouped by their bounds.
    unproven: dict[tuple[int, int], list[int]] = {}
    for edge in np.flatnonzero(solved.lower < solved.upper).tolist():
        bounds = int(solved.lower[edge]), int(solved.upper[edge])
        unproven.setdefault(bounds, []).append(edge)
    for (low, high), edges in sorted(unproven.items(), reverse=True):
        text = f"between {low:+d} and {high:+d}: {names(edges)}"
        lines += textwrap.wrap(text, 100, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines)
