"""Stop a training after its iteration, on Ctrl-C, SIGTERM or a limit; end a process at once."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
        """Take the first Ctrl-C or SIGTERM in a block as a request to stop; the second ends it.

        Only the main thread can do this. After the block, SIGTERM ends a program that has not set
        a handler of its own, as it would without this.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, _frame: object) -> None:
            restore()
            self.signal = number
            print("Stopping after this iteration. Ctrl-C again stops at once.", flush=True)

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        before = {number: signal.signal(number, handle) for number in SIGNALS}
        try:
            yield
        finally:
            restore()
            if self.signal == signal.SIGTERM and before[signal.SIGTERM] is signal.SIG_DFL:
                signal.raise_signal(signal.SIGTERM)
