"""Compile the programs of boards in the background, and end work that nobody waits for any more.

A program is made at its first use, or before that by a thread. The boards used most recently keep
their programs.

The code that works for somebody who may leave sets a check: a function that raises once the result
is not wanted. Work that takes seconds calls the check from time to time: while it waits for a
program, for its turn or for the solver, and before each program. Without a check nothing ends.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jaxzero.host.progress import working

MAX_BOARDS = 8
MAX_PROGRAMS = 32  # of one board, more than the page needs
THREADS = 2  # that compile at the same time
LOOK_SECONDS = 0.05  # between two calls of the check

Result = TypeVar("Result")


@dataclass(eq=False)
class _Kept:
    lock: threading.Lock = field(default_factory=threading.Lock)
    made: bool = False
    value: Any = None


@dataclass(eq=False)
class Job:
    """The compiling of programs in a thread, as long as a request for them stands."""

    wanted: int = 0  # requests that stand
    future: Future | None = None

    def withdraw(self) -> None:
        """Take back a request. Programs without one leave the queue, or end after the present."""
        with _guard:
            self.wanted -= 1
            if not self.wanted:
                self.future.cancel()


_boards: OrderedDict[Hashable, OrderedDict[Hashable, _Kept]] = OrderedDict()  # latest use last
_jobs: dict[Programs, Job] = {}
_guard = threading.Lock()  # for both
_threads = ThreadPoolExecutor(THREADS, "compiler")
_check: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@dataclass(frozen=True)
class Programs:
    """One or several programs of a board, which `make()` compiles; the key stands for them."""

    board: Hashable
    key: Hashable
    make: Callable[[], Any] = field(compare=False, repr=False)

    @property
    def ready(self) -> bool:
        """Whether the programs are compiled and still kept."""
        with _guard:
            kept = _boards.get(self.board, {}).get(self.key)
        return kept is not None and kept.made

    def get(self) -> Any:
        """Return the result of `make()`, called at the first use; concurrent callers wait."""
        check_cancelled()
        with _guard:
            programs = _boards.setdefault(self.board, OrderedDict())
            kept = programs.setdefault(self.key, _Kept())
            _use(_boards, self.board, MAX_BOARDS)
            _use(programs, self.key, MAX_PROGRAMS)
        if not kept.made:
            with working(f"compiling for {self.board}"), holding(kept.lock):
                if not kept.made:
                    kept.value = self.make()
                    kept.made = True
        return kept.value

    def begin(self) -> Future[None]:
        """Compile the programs in a thread, whether or not anybody waits for them."""
        return self.request().future

    def waits(self) -> Iterator[float]:
        """Yield the seconds so far until a thread has compiled the programs.

        Closing the iterator withdraws the request. Programs that nobody requests any more leave the
        queue; the thread ends between two programs. If compiling fails, the iterator just ends, and
        the use of the programs meets the same error.
        """
        begun, ended = time.monotonic(), False
        while not ended and not self.ready:
            job = self.request()
            try:
                while not job.future.done():
                    yield time.monotonic() - begun
                # A request just before the end of a job that nobody wanted came too late.
                ended = not isinstance(job.future.exception(), CancelledError)
            finally:
                job.withdraw()

    def request(self) -> Job:
        """Return the job that compiles the programs in a thread, until the caller withdraws."""
        with _guard:
            job = _jobs.setdefault(self, Job())
            job.wanted += 1
            if job.future is None:
                job.future = _threads.submit(self._run, job)
                job.future.add_done_callback(lambda _: _jobs.pop(self))
        return job

    def _run(self, job: Job) -> None:
        def check() -> None:
            if not job.wanted:
                raise CancelledError

        with cancelled_by(check):
            self.get()


def _use(cache: OrderedDict, key: Hashable, most: int) -> None:
    """Mark a use of `key`; drop the key whose last use is the oldest if there are too many."""
    cache.move_to_end(key)
    if len(cache) > most:
        cache.popitem(last=False)


@contextmanager
def cancelled_by(check: Callable[[], None]) -> Iterator[None]:
    """Let `check` end the work of this thread in a block, by raising."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def check_cancelled() -> None:
    """Call the check of this thread, which raises if the result is not wanted any more."""
    if check := _check.get():
        check()


@contextmanager
def holding(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock in a block; the check of this thread can end the wait for the lock."""
    while not lock.acquire(timeout=LOOK_SECONDS):
        check_cancelled()
    try:
        yield
    finally:
        lock.release()


def result_of(running: Future[Result], seconds: float | None = None) -> Result:
    """Return the result of another thread; the check of this thread can end the wait.

    Raises: TimeoutError after `seconds`.
    """
    end = math.inf if seconds is None else time.monotonic() + seconds
    while _check.get() and not running.done() and (left := end - time.monotonic()) > 0:
        check_cancelled()
        wait([running], min(LOOK_SECONDS, left))
    return running.result(None if seconds is None else max(0.0, end - time.monotonic()))
