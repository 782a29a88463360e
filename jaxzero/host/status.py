"""A script that prints nothing for some seconds says what it is doing, and for how long.

On a terminal this is one line of standard error that is written anew; elsewhere a line is added,
more seldom the longer the script runs. Standard output, which may belong to a protocol, gets none.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

SILENCE = 4.0  # seconds
OF_AGE = 1 / 100  # silence in a log, of the time since the script began: ten hours add 550 lines
TICK = 0.5  # seconds
MARK = "... "  # how each of these lines begins
CLEAR = "\r\x1b[K"
COMPILER = os.path.join("jax", "_src", "compiler.py")

_tasks: list[tuple[str, float]] = []  # words and time of begin, the innermost last
_state = SimpleNamespace(heard=0.0, shown=False, muted=False)
_lock = threading.Lock()  # of the line on the terminal


@contextmanager
def doing(words: str) -> Iterator[None]:
    """Name what the main thread does in a block; other threads may call this and say nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _tasks.append((words, time.monotonic()))
    try:
        yield
    finally:
        _tasks.pop()
        if not words:
            _state.heard = time.monotonic()  # somebody was busy, not this process


waiting = partial(doing, "")  # say nothing in a block that waits for a person or a program


def mute() -> None:
    """Say nothing any more in this process: another one says it."""
    _state.muted = True


@contextmanager
def status_lines(words: str) -> Iterator[None]:
    """Let slow work in a block of the main thread be named; `words` stand where nothing else is."""
    if _tasks:  # in such a block already
        yield
        return
    _state.muted = False
    # Imports have taken a while before this.
    _state.heard = time.monotonic() - min(time.process_time(), SILENCE / 2)
    ended = threading.Event()
    thread = threading.Thread(target=_speak, args=(ended,), name="status", daemon=True)
    with doing(words), redirect_stdout(Heard(sys.stdout)), redirect_stderr(Heard(sys.stderr)):
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(1.0)  # it may be stuck in a write
            _clear()


class Heard:
    """A stream of text that notes when it is written to, and first clears the line of status."""

    def __init__(self, stream: Any):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        _clear()
        return self._stream.write(text)


def _speak(ended: threading.Event) -> None:
    """Write lines until the block has ended."""
    begin, terminal = time.monotonic(), os.isatty(2)
    while not ended.wait(TICK):
        (words, since), now = _tasks[-1], time.monotonic()
        silence = SILENCE if terminal else max(SILENCE, OF_AGE * (now - begin))
        if not words or _state.muted or now - _state.heard < silence:
            continue
        line = f"{MARK}{words}: {spell(now - since)}{_compiling()}"
        if not terminal:
            _state.heard = now
            _write(line + "\n")
            continue
        with _lock, suppress(OSError):  # the terminal may be gone
            if _state.heard > now:  # somebody writes a line just now
                continue
            _state.shown = True
            columns = os.get_terminal_size(2).columns or 80
            _write(CLEAR + line[: columns - 1])


def _compiling() -> str:
    """Return words for a main thread that is in the compiler of jax."""
    frame = sys._current_frames().get(threading.main_thread().ident)
    while frame is not None:
        if frame.f_code.co_filename.endswith(COMPILER):
            return ", compiling"
        frame = frame.f_back
    return ""


def _clear() -> None:
    with _lock:
        _state.heard = time.monotonic()
        if _state.shown:
            _state.shown = False
            _write(CLEAR)


def _write(text: str) -> None:
    # Not by a stream: Python aborts at its end where a thread holds the lock of one. And never to
    # a terminal that is stopped (Ctrl-S, a connection that hangs): the script would wait for it.
    with suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, text.encode(errors="replace"))


def spell(seconds: float) -> str:
    """Write a time, in seconds or as h:mm:ss."""
    return f"{seconds:.0f} s" if seconds < 100 else str(timedelta(seconds=round(seconds)))
