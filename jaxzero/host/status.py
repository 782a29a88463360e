"""Status lines: a script that is silent for some seconds prints what it is doing and for how long.

On a terminal one line of standard error is rewritten. Elsewhere a line is added, less often the
longer the script runs. Standard output gets no line, because it may belong to a protocol.
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
OF_AGE = 1 / 100  # silence in a log, as a part of the time so far: ten hours add 550 lines
TICK = 0.5  # seconds
MARK = "... "  # prefix of each line
CLEAR = "\r\x1b[K"
COMPILER = os.path.join("jax", "_src", "compiler.py")

_tasks: list[tuple[str, float]] = []  # words and start time, the innermost last
_state = SimpleNamespace(heard=0.0, shown=False, muted=False)
_lock = threading.Lock()  # for the line on the terminal


@contextmanager
def doing(words: str) -> Iterator[None]:
    """Name what the main thread does in a block; in other threads this does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _tasks.append((words, time.monotonic()))
    try:
        yield
    finally:
        _tasks.pop()
        if not words:
            _state.heard = time.monotonic()  # this process was not busy


waiting = partial(doing, "")  # print nothing in a block that waits for a person or a program


def mute() -> None:
    """Print no more status in this process, because another process prints it."""
    _state.muted = True


@contextmanager
def status_lines(words: str) -> Iterator[None]:
    """Print status lines during a block of the main thread; `words` are the default."""
    if _tasks or threading.current_thread() is not threading.main_thread():
        yield  # in such a block already, or nothing names what is done
        return
    _state.muted = False
    # The imports before this count as silence.
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
    """A text stream that clears the status line before each write and notes the time."""

    def __init__(self, stream: Any):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        _clear()
        return self._stream.write(text)


def _speak(ended: threading.Event) -> None:
    """Write status lines until the block has ended."""
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
            if _state.heard > now:  # another thread has just written a line
                continue
            _state.shown = True
            columns = os.get_terminal_size(2).columns or 80
            _write(CLEAR + line[: columns - 1])


def _compiling() -> str:
    """Return ", compiling" if the main thread is in the compiler of jax, else ""."""
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
    # Use no stream: Python aborts at exit if a thread holds the lock of a stream. Never write to a
    # stopped terminal (Ctrl-S, a hanging connection): the script would wait for it.
    with suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, text.encode(errors="replace"))


def spell(seconds: float) -> str:
    """Write a time, in seconds or as h:mm:ss."""
    return f"{seconds:.0f} s" if seconds < 100 else str(timedelta(seconds=round(seconds)))
