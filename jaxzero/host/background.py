"""Compile the programs of boards in the background, while somebody waits for them.

A program is made at its first use, or before that by a thread. The boards used most recently keep
their programs.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from jaxzero.host.progress import working

MAX_BOARDS = 8
MAX_PROGRAMS = 32  # of one board, more than the page needs
THREADS = 2  # that compile at the same time


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
        """Take back a request. Programs without one leave the queue."""
        with _guard:
            self.wanted -= 1
            if not self.wanted:
                self.future.cancel()


_boards: OrderedDict[Hashable, OrderedDict[Hashable, _Kept]] = OrderedDict()  # latest use last
_jobs: dict[Programs, Job] = {}
_guard = threading.Lock()  # for both
_threads = ThreadPoolExecutor(THREADS, "compiler")


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
        with _guard:
            programs = _boards.setdefault(self.board, OrderedDict())
            kept = programs.setdefault(self.key, _Kept())
            _use(_boards, self.board, MAX_BOARDS)
            _use(programs, self.key, MAX_PROGRAMS)
        if not kept.made:
            with working(f"compiling for {self.board}"), kept.lock:
                if not kept.made:
                    kept.value = self.make()
                    kept.made = True
        return kept.value

    def begin(self) -> Future[Any]:
        """Compile the programs in a thread, whether or not anybody waits for them."""
        return self.request().future

    def waits(self) -> Iterator[float]:
        """Yield the seconds so far until a thread has compiled the programs.

        Closing the iterator withdraws the request. If compiling fails, the iterator just ends, and
        the use of the programs meets the same error.
        """
        begun = time.monotonic()
        if self.ready:
            return
        job = self.request()
        try:
            while not job.future.done():
                yield time.monotonic() - begun
        finally:
            job.withdraw()

    def request(self) -> Job:
        """Return the job that compiles the programs in a thread, until the caller withdraws."""
        with _guard:
            job = _jobs.setdefault(self, Job())
            job.wanted += 1
            if job.future is None:
                job.future = _threads.submit(self.get)
                job.future.add_done_callback(lambda _: _jobs.pop(self))
        return job


def _use(cache: OrderedDict, key: Hashable, max_keys: int) -> None:
    """Mark a use of `key`; drop the key whose last use is the oldest if there are too many."""
    cache.move_to_end(key)
    if len(cache) > max_keys:
        cache.popitem(last=False)
