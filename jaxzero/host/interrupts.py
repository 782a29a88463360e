"""Signals that ask a program to stop: a training saves first, another script ends at once.

Also the other limits of a training, and the immediate end of a process.
"""

import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN_SECONDS = 0.05  # until a signal is sent again


def set_handler(handler: Callable | signal.Handlers) -> dict[int, Any]:
    """Set a handler for all SIGNALS that are not ignored; return the previous handlers.

    nohup ignores SIGHUP, and a shell ignores Ctrl-C for its background jobs.
    """
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heeded}


def interrupt(number: int, _frame: object) -> NoReturn:
    """Raise a KeyboardInterrupt with the number of the signal: a handler for scripts."""
    leave_terminal(number)
    raise KeyboardInterrupt(number)


def leave_terminal(number: int) -> None:
    """After SIGHUP discard output to the terminal: it is gone, and writing to it fails."""
    for output in (1, 2) if number == signal.SIGHUP else ():
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(output).st_mode):
                os.dup2(os.open(os.devnull, os.O_WRONLY), output)


@contextmanager
def dropped_exceptions() -> Iterator[None]:
    """Send a signal again if Python drops the KeyboardInterrupt of its handler in this block.

    Python drops exceptions in callbacks of the garbage collector and of weak references, and in
    `__del__`. jax has such a callback, which runs often while programs are traced.
    """
    if threading.current_thread() is not threading.main_thread():  # handlers run in the main thread
        yield
        return
    before, main_thread = sys.unraisablehook, threading.get_ident()

    def hook(dropped: Any) -> None:
        if not isinstance(dropped.exc_value, KeyboardInterrupt):
            # Writes of orbax that go on after one of them has failed and is reported.
            return None if str(dropped.exc_value) == "Event loop is closed" else before(dropped)
        number = (dropped.exc_value.args or (signal.SIGINT,))[0]
        # Later: here its exception would be dropped again.
        timer = threading.Timer(AGAIN_SECONDS, signal.pthread_kill, (main_thread, number))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def end_now(code: int) -> NoReturn:
    """Flush the output and end this process, whatever its other threads are doing."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader may be gone
            stream.flush()
    os._exit(code)


class Stop:
    """Decides when to stop: on a signal, after the time limit, or after some iterations."""

    def __init__(self, max_minutes: float = 0.0, max_iterations: int = 0):
        self._deadline = time.monotonic() + 60 * max_minutes if max_minutes else None
        self._iterations_left = max_iterations or None
        self.signal: int | None = None  # the signal that asked to stop

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
        """Take the first of SIGNALS in a block as a request to stop; the second ends it.

        Only the main thread can do this. After the block, SIGTERM or SIGHUP ends a program that has
        not set a handler of its own, as it would without this.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, _frame: object) -> None:
            restore()
            self.signal = number
            leave_terminal(number)
            if number == signal.SIGHUP:  # the system and the shell both send it
                signal.signal(number, signal.SIG_IGN)
            with suppress(OSError, RuntimeError):  # a reader that is gone; a print was interrupted
                print("Stopping after this iteration. Ctrl-C again stops at once.", flush=True)

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        before = set_handler(handle)
        try:
            yield
        finally:
            restore()
            if before.get(self.signal) is signal.SIG_DFL:
                signal.raise_signal(self.signal)
