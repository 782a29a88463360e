"""Cancel work when nobody waits for its result any more.

The code that starts the work sets a check: a function that raises once the result is not wanted.
Work that takes seconds calls the check from time to time. Without a check nothing is cancelled.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TypeVar

LOOK_SECONDS = 0.05  # between two calls of the check

Result = TypeVar("Result")

_check: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def cancelled_by(check: Callable[[], None]) -> Iterator[None]:
    """Let `check` cancel the work of this thread in a block, by raising."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def check_cancelled() -> None:
    """Call the check of this thread, which raises if the work is cancelled."""
    if check := _check.get():
        check()


@contextmanager
def holding(lock: Lock) -> Iterator[None]:
    """Hold a lock in a block; the check of this thread can cancel the wait for the lock."""
    while not lock.acquire(timeout=LOOK_SECONDS):
        check_cancelled()
    try:
        yield
    finally:
        lock.release()


def result_of(running: Future[Result], seconds: float | None = None) -> Result:
    """Return the result of another thread; the check of this thread can cancel the wait.

    Raises: TimeoutError after `seconds`.
    """
    end = math.inf if seconds is None else time.monotonic() + seconds
    while _check.get() and not running.done() and (left := end - time.monotonic()) > 0:
        check_cancelled()
        wait([running], min(LOOK_SECONDS, left))
    return running.result(None if seconds is None else max(0.0, end - time.monotonic()))
