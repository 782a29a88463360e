"""Where questions to the server queue, so that the page always has an answer at once.

A question that computes waits for its turn at the desk. What has to be compiled first is compiled
in a thread of its own, in turn; whoever needs it looks again from time to time. What nobody waits
for any more leaves the queues, and ends where it is computed already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Thread
from typing import Any

import anyio
from anyio import from_thread

from jaxzero.agent.recent import is_marked, mark
from jaxzero.game import DotsAndBoxes
from jaxzero.play.levels import agent_of
from jaxzero.play.looking import prepare
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
        self._compilers: anyio.CapacityLimiter | None = None

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

    async def compile(self, work: Callable, *question: Any) -> Any:
        """Return what `work` answers, which compiles and so takes nobody's turn. Raises: TooMuch.

        As many compile at a time as turns are taken; others wait.
        """
        self._compilers = self._compilers or anyio.CapacityLimiter(AT_ONCE)
        with self.place():
            return await anyio.to_thread.run_sync(_answer, work, question, limiter=self._compilers)

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


class Preparation:
    """A thread that compiles analyses, so that nobody's turn passes with waiting for it."""

    def __init__(self) -> None:
        self._wanted: Counter[DotsAndBoxes] = Counter()  # in the order of asking
        self._changed = Condition()
        self._thread: Thread | None = None

    def is_done(self, game: DotsAndBoxes) -> bool:
        """Return whether a board is prepared."""
        return is_marked(game, prepare)

    @contextmanager
    def wanted(self, game: DotsAndBoxes) -> Iterator[None]:
        """Have a board prepared, in turn, unless the block ends before."""
        with self._changed:
            self._wanted[game] += 1
            self._changed.notify()
            if self._thread is None:
                self._thread = Thread(target=self._run, name="preparation", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._wanted[game] -= 1
                if not self._wanted[game]:
                    del self._wanted[game]

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._next)
                game = self._next()
            if self._prepare(game):
                mark(game, prepare)

    def _prepare(self, game: DotsAndBoxes) -> bool:
        """Compile for as long as somebody waits; return whether it came to its end."""
        # Whatever is wrong, the analysis itself meets it and says so.
        with suppress(Exception):
            for _ in prepare(agent_of(game)):
                if game not in self._wanted:
                    return False
        return True

    def _next(self) -> DotsAndBoxes | None:
        """Return the board that is wanted for longest and not done."""
        return next((game for game in self._wanted if not self.is_done(game)), None)
