"""Where questions to the server queue, so that the page always has an answer at once.

A question that computes waits for its turn at the desk. What has to be compiled first is compiled
in a thread of its own, in turn; whoever needs it looks again from time to time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Queue
from threading import Event, Lock, Thread
from typing import Any

import anyio

from jaxzero.game import DotsAndBoxes
from jaxzero.play.levels import agent_of
from jaxzero.play.looking import prepare

AT_ONCE = 2  # questions that are answered at the same time; others wait
MOST_WAITING = 200  # questions; more are refused
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

    async def rest(self) -> None:
        """Let a question wait a little for something else. Raises: TooMuch."""
        with self._place():
            await anyio.sleep(PAUSE)

    async def ask(self, work: Callable, *question: Any) -> Any:
        """Return what `work` answers in a thread when it is this question's turn.

        Raises: TooMuch where too many wait. Others than these threads stay free for the page.
        """
        self._turns = self._turns or anyio.CapacityLimiter(AT_ONCE)  # needs the running loop
        with self._place():
            return await anyio.to_thread.run_sync(work, *question, limiter=self._turns)

    async def compile(self, work: Callable, *question: Any) -> Any:
        """Return what `work` answers, which compiles and so takes nobody's turn. Raises: TooMuch.

        As many compile at a time as turns are taken; others wait.
        """
        self._compilers = self._compilers or anyio.CapacityLimiter(AT_ONCE)
        with self._place():
            return await anyio.to_thread.run_sync(work, *question, limiter=self._compilers)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._waiting >= MOST_WAITING:
            raise TooMuch(503, f"{MOST_WAITING} questions wait already; try again later")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1


class Preparation:
    """A thread that compiles analyses, so that nobody's turn passes with waiting for it."""

    def __init__(self) -> None:
        self._done: dict[tuple[DotsAndBoxes, int], Event] = {}
        self._wanted: Queue[tuple[DotsAndBoxes, int]] = Queue()
        self._lock = Lock()

    def is_done(self, game: DotsAndBoxes, simulations: int) -> bool:
        """Return whether a board is prepared; where nobody has asked before, it will be."""
        wanted = game, simulations
        with self._lock:
            if not self._done:
                Thread(target=self._run, name="preparation", daemon=True).start()
            if wanted not in self._done:
                self._done[wanted] = Event()
                self._wanted.put(wanted)
        return self._done[wanted].is_set()

    def _run(self) -> None:
        while True:
            game, simulations = self._wanted.get()
            # Whatever is wrong, the analysis itself meets it and says so.
            with suppress(Exception):
                prepare(agent_of(game), simulations)
            self._done[game, simulations].set()
