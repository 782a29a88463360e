"""Ctrl-C and SIGTERM end a script at once: one line, exit code 130 or 143, nothing half-written.

So do the signals of a terminal that closes (SIGHUP) and of schedulers (SIGUSR1, SIGUSR2). Signals
within half a second are one: `timeout` sends two, to the process and to its group.

Scripts install this before their other imports. Importing the package changes nothing: in a
notebook Ctrl-C stays an exception.

Python makes an exception of Ctrl-C in the main thread, between two of its own instructions. A
compiler may keep it waiting there for a minute, and libraries print or swallow the exception. So a
thread of its own waits for the signal, holds the main thread, cleans up and ends the process.
A training run takes the first signal as a request to stop after its iteration (`Stop`).

The end of the main thread ends a script at once, too: a compiler in a thread may go on for a
minute, and it aborts a process that Python is taking down.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from types import SimpleNamespace, TracebackType
from typing import NoReturn

from jaxzero.errors import InputError
from jaxzero.host.environment import check_environment, refused_by_jax
from jaxzero.host.streams import OutputLost, guard_streams

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
TOGETHER_SECONDS = 0.5  # signals within it are one
FLUSH_SECONDS = 0.5  # that the rest of each output may take; its reader may be stuck

Request = Callable[[int], None]

_state = SimpleNamespace(installed=False, ending=False, message="Stopped.", code=None)
_requests: list[Request] = []  # the next signal calls the last of them
_cleanups: list[Callable[[], None]] = []


def end_with(message: str) -> None:
    """Let a signal that ends this process say `message`."""
    _state.message = message


def install() -> None:
    """Guard the streams, the environment and the end of this process; let signals end it.

    Only the main thread of a script calls this, before it imports anything else.
    """
    if _state.installed:
        return
    _state.installed = True
    guard_streams()
    sys.excepthook = _explain
    atexit.register(_leave)  # first, so called last
    try:
        check_environment()
    except InputError as error:
        end_now(2, f"error: {error}\n")
    reader, _state.writer = os.pipe()
    os.set_blocking(_state.writer, False)
    threading.Thread(target=_watch, args=(reader,), name="interrupts", daemon=True).start()
    signal.set_wakeup_fd(_state.writer, warn_on_full_buffer=False)
    for number in _heeded():
        signal.signal(number, _hold)


def _heeded() -> list[signal.Signals]:
    """Return the signals that are not ignored, as Ctrl-C is in jobs that a script starts with &."""
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def first_calls(request: Request) -> Iterator[None]:
    """Let the first signal in a block call `request` with its number; the second ends as usual.

    In a script `request` runs at once, in a thread of its own; elsewhere in the main thread, which
    alone takes signals there.
    """
    before = {}

    def handle(number: int, _frame: object) -> None:
        restore()
        request(number)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    if _state.installed:
        _requests.append(request)
    elif threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, handle) for number in _heeded()}
    try:
        yield
    finally:
        restore()
        with suppress(ValueError):  # the signal came and took it
            _requests.remove(request)


@contextmanager
def cleaned_up(cleanup: Callable[[], None]) -> Iterator[None]:
    """Call `cleanup` at the end of a block, and also where a signal ends the process in it."""
    _cleanups.append(cleanup)
    try:
        yield
    finally:
        cleanup()
        _cleanups.remove(cleanup)


def at_stop(cleanup: Callable[[], None]) -> None:
    """Call `cleanup` where a signal ends the process."""
    _cleanups.append(cleanup)


def end_with_parent(parent: int) -> None:
    """End this process when the pipe `parent` is closed at its other end: the parent is gone."""

    def wait() -> None:
        with suppress(OSError):
            while os.read(parent, 64):
                pass
        os._exit(1)

    threading.Thread(target=wait, name="end with parent", daemon=True).start()


def _hold(number: int, _frame: object) -> None:
    """Hold the main thread while the watching thread ends the process."""
    while _state.ending:
        time.sleep(1)
    taken_by = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(taken_by, warn_on_full_buffer=False)
    if taken_by != _state.writer:  # an event loop that is running: the watching thread saw nothing
        os.write(_state.writer, bytes([number]))


def _watch(reader: int) -> None:
    """Wait for signals; call what was requested, else end the process."""
    last = -TOGETHER_SECONDS
    while True:
        for number in os.read(reader, 64):
            if number not in SIGNALS or time.monotonic() - last < TOGETHER_SECONDS:
                continue
            last = time.monotonic()
            if not _requests:
                _end(number)
            with suppress(Exception):  # this thread has to go on
                _requests.pop()(number)


def _end(number: int) -> None:
    """End the process, as shells expect of one that a signal ended."""
    _state.ending = True
    # The main thread shall make no file while they are removed: this makes it run `_hold`.
    _thread.interrupt_main(number)
    # A terminal has shown ^C, or a line of status, on this line.
    end_now(128 + number, "\n" * os.isatty(2) + _state.message + "\n")


def end_now(code: int, message: str = "") -> NoReturn:
    """Clean up and end this process, whatever its threads are doing; `message` goes to stderr."""
    for cleanup in reversed(_cleanups):
        with suppress(Exception):
            cleanup()
    for write in (
        sys.__stdout__.flush,
        sys.__stderr__.flush,
        partial(os.write, 2, message.encode()),
    ):
        last = threading.Thread(target=_try, args=(write,), daemon=True)
        try:
            last.start()
            last.join(FLUSH_SECONDS)
        except RuntimeError:  # Python 3.12 starts no thread any more once the main one has ended
            _try(write)
    os._exit(code)


def _try(action: Callable[[], object]) -> None:
    with suppress(Exception):
        action()


def ends_threads() -> bool:
    """Return whether the end of this process ends all threads, as the end of a script does."""
    return _state.installed


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Let this process end right after a block, whatever its other threads are doing."""
    _state.code = 1
    try:
        yield
        _state.code = 0
    except SystemExit as end:
        _state.code = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise


def _leave() -> None:
    """End the process with what `ends_at_once` has found, once its output has arrived."""
    message = ""
    try:
        sys.stdout.flush()
    except OutputLost as error:
        _state.code, message = _state.code or 1, str(error)
    if _state.code is not None:
        end_now(_state.code, message)


def _explain(kind: type, error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of an error, one line where it is no fault of the program."""
    if isinstance(error, OutputLost):
        end_now(1, str(error))
    if line := refused_by_jax(error, trace):
        end_now(2, f"error: {line}\n")
    sys.__excepthook__(kind, error, trace)


class Stop:
    """Whether to end after the present iteration: on a signal, or when the time is up."""

    def __init__(self, max_minutes: float = 0.0, max_iterations: int = 0):
        self._deadline = time.monotonic() + 60 * max_minutes if max_minutes else None
        self._iterations_left = max_iterations or None
        self.signal: int | None = None  # that asked to stop

    @property
    def requested(self) -> bool:
        """Whether a signal asked to stop."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process that a signal ended; 0 where none did."""
        return 128 + self.signal if self.signal else 0

    @property
    def over(self) -> bool:
        """Whether a signal asked to stop or the time is up."""
        late = self._deadline is not None and time.monotonic() > self._deadline
        return self.requested or late

    def request(self, signal: int) -> None:
        """Ask to stop after the present iteration, and say so at once."""
        self.signal = signal
        words = "Finishing this iteration and saving. Ctrl-C again stops at once."
        # On a terminal the line has ^C on it. One write, which no other line comes into.
        print("\n" * sys.stdout.isatty() + words + "\n", end="", flush=True)

    def take_over(self, signal: int) -> None:
        """Stop because of a signal that another process had, 0: none had one.

        A signal of this process may come at any moment, and stays.
        """
        if signal and not self.requested:
            self.signal = signal

    def iteration_done(self) -> bool:
        """Count one iteration; return whether to stop now."""
        if self._iterations_left is not None:
            self._iterations_left -= 1
        return self.over or self._iterations_left == 0

    def on_signals(self) -> AbstractContextManager[None]:
        """Take the first signal in a block as a request to stop."""
        return first_calls(self.request)
