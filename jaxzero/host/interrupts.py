"""Ctrl-C and SIGTERM end a script at once: one line, exit code 130 or 143, nothing half-written.

SIGHUP (the terminal closes), SIGUSR1 and SIGUSR2 (from schedulers) do the same. Signals within half
a second count as one, because `timeout` sends two: to the process and to its group.

Scripts install this before their other imports. Importing the package changes nothing: in a
notebook Ctrl-C stays an exception.

Python raises the exception of Ctrl-C in the main thread, between two of its own instructions. A
compiler may delay it for a minute, and libraries print or swallow the exception. So a separate
thread waits for the signal, holds the main thread, cleans up and ends the process.
A training run takes the first signal as a request to stop after its iteration (`Stop`).

The end of the main thread also ends a script at once. Otherwise a compiler in another thread may
run for a minute, and it aborts the process while Python shuts down.
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
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace, TracebackType
from typing import NoReturn

from jaxzero.errors import InputError
from jaxzero.host.background import is_compiling
from jaxzero.host.environment import check_environment, refused_by_jax
from jaxzero.host.streams import OutputLost, guard_streams

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
TOGETHER_SECONDS = 0.5  # signals within this time count as one
FLUSH_SECONDS = 0.5  # limit for flushing each output; its reader may be stuck

_state = SimpleNamespace(installed=False, ending=False, message="Stopped.", code=None)
_requests: list[Callable[[int], None]] = []  # the next signal calls the last one
_cleanups: list[Callable[[], None]] = []


def end_with(message: str) -> None:
    """Set the message to print when a signal ends this process."""
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
    """Return the signals that are not ignored; jobs that a script starts with & ignore Ctrl-C."""
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def cleaned_up(cleanup: Callable[[], None]) -> Iterator[None]:
    """Call `cleanup` at the end of a block, also if a signal ends the process in the block."""
    _cleanups.append(cleanup)
    try:
        yield
    finally:
        cleanup()
        _cleanups.remove(cleanup)


def at_stop(cleanup: Callable[[], None]) -> None:
    """Call `cleanup` when a signal ends the process."""
    _cleanups.append(cleanup)


def _hold(number: int, _frame: object) -> None:
    """Hold the main thread while the watching thread ends the process."""
    while _state.ending:
        time.sleep(1)
    taken_by = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(taken_by, warn_on_full_buffer=False)
    if taken_by != _state.writer:  # a running event loop took it: `_watch` saw nothing
        os.write(_state.writer, bytes([number]))


def _watch(reader: int) -> None:
    """Wait for signals; call the last request, or end the process if there is none."""
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
    """End the process with the exit code that shells expect after a signal."""
    _state.ending = True
    # Make the main thread run `_hold`, so that it creates no file while files are removed.
    _thread.interrupt_main(number)
    # On a terminal this line already shows ^C or a status.
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
        except RuntimeError:  # Python 3.12 starts no thread after the main thread has ended
            _try(write)
    os._exit(code)


def _try(action: Callable[[], object]) -> None:
    with suppress(Exception):
        action()


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Make this process end right after a block, whatever its other threads are doing."""
    _state.code = 1
    try:
        yield
        _state.code = 0
        _leave_compiling()
    except SystemExit as end:
        _state.code = end.code if isinstance(end.code, int) else int(end.code is not None)
        _leave_compiling()
        raise


def _leave_compiling() -> None:
    """End a script now if a thread compiles; Python itself would wait for the thread."""
    if _state.installed and is_compiling():
        _leave()


def _leave() -> None:
    """Flush the output, then end the process with the exit code from `ends_at_once`."""
    message = ""
    try:
        sys.stdout.flush()
    except OutputLost as error:
        _state.code, message = _state.code or 1, str(error)
    if _state.code is not None:
        end_now(_state.code, message)


def _explain(kind: type, error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of an error, or one line if the program is not at fault."""
    if isinstance(error, OutputLost):
        end_now(1, str(error))
    if line := refused_by_jax(error, trace):
        end_now(2, f"error: {line}\n")
    sys.__excepthook__(kind, error, trace)


class Stop:
    """Decides when to stop: on a signal, after the time limit, or after some iterations."""

    def __init__(self, max_minutes: float = 0.0, max_iterations: int = 0):
        self._deadline = time.monotonic() + 60 * max_minutes if max_minutes else None
        self._iterations_left = max_iterations or None
        self.signal: int | None = None  # the signal that asked to stop

    @property
    def exit_code(self) -> int:
        """The exit code that a shell expects after a signal; 0 without a signal."""
        return 128 + self.signal if self.signal else 0

    def request(self, signal: int) -> None:
        """Ask to stop after the current iteration, and print this at once."""
        self.signal = signal
        words = "Finishing this iteration. Ctrl-C again stops at once."
        # On a terminal this line already shows ^C. One write keeps other output out of the line.
        print("\n" * sys.stdout.isatty() + words + "\n", end="", flush=True)

    def take_over(self, signal: int) -> None:
        """Stop because of a signal that another process received; 0 means none.

        A signal that this process has received itself stays.
        """
        if signal and self.signal is None:
            self.signal = signal

    def iteration_done(self) -> bool:
        """Count one iteration; return whether to stop now."""
        if self._iterations_left is not None:
            self._iterations_left -= 1
        late = self._deadline is not None and time.monotonic() > self._deadline
        return self.signal is not None or late or self._iterations_left == 0

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Take the first signal in a block as a request to stop; the second ends as usual.

        In a script `request` runs at once, in a separate thread. Elsewhere it runs in the main
        thread, the only one that receives signals there; after the block, a signal other than
        Ctrl-C ends the program as usual.
        """
        before, taken = {}, []

        def handle(number: int, _frame: object) -> None:
            restore()
            taken.append(number)
            self.request(number)

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        if _state.installed:
            _requests.append(self.request)
        elif threading.current_thread() is threading.main_thread():
            before = {number: signal.signal(number, handle) for number in _heeded()}
        try:
            yield
        finally:
            restore()
            with suppress(ValueError):  # a signal has already removed it
                _requests.remove(self.request)
            if taken and taken[0] != signal.SIGINT:
                signal.raise_signal(taken[0])
