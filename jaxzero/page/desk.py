"""Where questions to the server queue, so that the page always has an answer at once.

A question that computes waits for its turn at the desk. What has to be compiled first is compiled
in threads of their own; whoever needs it looks again from time to time. What nobody waits for any
more leaves the queues, and ends where it is computed already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio import from_thread

from jaxzero.solver.cancellation import cancelled_by

AT_ONCE = 2  # questions that are answered at the same time; others wait
MOST_WAITING = 200  # questions and streams; more are refused
PAUSE = 0.1  # seconds between two looks at something that is not ready


class TooMuch(Exception):
    """More than the server takes: the status and why."""

    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status = status


class Desk:
    """Where questions queue for the engine: a few at a time, not too many in all."""

    def __init__(self) -> None:
        self._waiting = 0
        self._turns: anyio.CapacityLimiter | None = None

    async def ask(self, work: Callable, *question: Any) -> Any:
        """Return what `work` answers in a thread when it is this question's turn.

        Raises: TooMuch where too many wait. Others than these threads stay free for the page.
        """
        with self.place():
            return await self.turn(work, *question)

    async def turn(self, work: Callable, *question: Any) -> Any:
        """Return what `work` answers in a thread in turn, for one who has a place."""
        self._turns = self._turns or anyio.CapacityLimiter(AT_ONCE)  # needs the running loop
        return await anyio.to_thread.run_sync(_answer, work, question, limiter=self._turns)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place among those who wait. Raises: TooMuch."""
        if self._waiting >= MOST_WAITING:
            raise TooMuch(503, f"{MOST_WAITING} questions wait already; try again later")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1


def _answer(work: Callable, question: tuple) -> Any:
    """Return what `work` answers, cancelled as soon as the task that awaits it is."""
    with cancelled_by(from_thread.check_cancelled):
        return work(*question)
