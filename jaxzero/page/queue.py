"""Queue the questions that need computation, so that the page itself always loads at once.

Separate threads compile programs, and a question polls until its programs are ready. A question
that no client waits for any more leaves the queue. If it is already being computed, it ends soon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio import from_thread
from starlette.exceptions import HTTPException

from jaxzero.api import ended_by

AT_ONCE = 2  # questions answered at the same time; others wait
MAX_WAITING = 200  # questions and streams; more are refused


class Queue:
    """Answer a few questions at a time while a limited number of others wait."""

    def __init__(self) -> None:
        self._waiting = 0
        self._turns: anyio.CapacityLimiter | None = None

    async def ask(self, work: Callable, *question: Any) -> Any:
        """Return the result of `work`, run in a thread when it is this question's turn.

        Other threads stay free for the page. Raises: HTTPException if too many questions wait.
        """
        with self.place():
            return await self.turn(work, *question)

    async def turn(self, work: Callable, *question: Any) -> Any:
        """Return the result of `work`, run in a thread in turn, for a caller that holds a place.

        Cancelling the task that awaits the result also cancels the work.
        """

        def answer() -> Any:
            with ended_by(from_thread.check_cancelled):
                return work(*question)

        self._turns = self._turns or anyio.CapacityLimiter(AT_ONCE)  # needs the running event loop
        return await anyio.to_thread.run_sync(answer, limiter=self._turns)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place in the queue. Raises: HTTPException if the queue is full."""
        if self._waiting >= MAX_WAITING:
            raise HTTPException(503, f"{MAX_WAITING} questions wait already; try again later")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
