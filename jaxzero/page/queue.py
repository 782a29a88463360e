"""The queue of questions that compute, so that the page itself always has an answer at once.

What has to be compiled first is compiled in threads of its own (`players.preparation`); whoever
needs it looks again from time to time. What nobody waits for any more leaves the queue, and ends
where it is computed already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio import from_thread
from starlette.exceptions import HTTPException

from jaxzero.solver.cancellation import cancelled_by

AT_ONCE = 2  # questions that are answered at the same time; others wait
MOST_WAITING = 200  # questions and streams; more are refused


class Queue:
    """A few questions are answered at a time; a limited number of others waits."""

    def __init__(self) -> None:
        self._waiting = 0
        self._turns: anyio.CapacityLimiter | None = None

    async def ask(self, work: Callable, *question: Any) -> Any:
        """Return what `work` answers in a thread when it is this question's turn.

        Raises: HTTPException where too many wait. Other threads stay free for the page.
        """
        with self.place():
            return await self.turn(work, *question)

    async def turn(self, work: Callable, *question: Any) -> Any:
        """Return what `work` answers in a thread in turn, for one who has a place.

        The work is cancelled as soon as the task that awaits it is.
        """

        def answer() -> Any:
            with cancelled_by(from_thread.check_cancelled):
                return work(*question)

        self._turns = self._turns or anyio.CapacityLimiter(AT_ONCE)  # needs the running loop
        return await anyio.to_thread.run_sync(answer, limiter=self._turns)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place among those who wait. Raises: HTTPException."""
        if self._waiting >= MOST_WAITING:
            raise HTTPException(503, f"{MOST_WAITING} questions wait already; try again later")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
