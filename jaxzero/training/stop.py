"""When to pause a run."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager

from jaxzero.interrupts import first_calls


class Stop:
    """Whether to end after the present iteration: on a signal, or when the time is up."""

    def __init__(self, max_minutes: float = 0.0, max_iterations: int = 0):
        self._deadline = time.monotonic() + 60 * max_minutes if max_minutes else None
        self._iterations_left = max_iterations or None
        self.signal: int | None = None  # that asked to stop

    @property
    def requested(self) -> bool:
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process that a signal ended; 0 where none did."""
        return 128 + self.signal if self.signal else 0

    def request(self, signal: int) -> None:
        """Ask to stop after the present iteration, and say so at once."""
        self.signal = signal
        words = "Finishing this iteration and saving. Ctrl-C again stops at once."
        # On a terminal the line has a progress bar or ^C on it.
        print("\n" * sys.stdout.isatty() + words, flush=True)

    def iteration_done(self) -> bool:
        """Count one iteration; return whether to stop now."""
        if self._iterations_left is not None:
            self._iterations_left -= 1
        late = self._deadline is not None and time.monotonic() > self._deadline
        return self.requested or late or self._iterations_left == 0

    def on_signals(self) -> AbstractContextManager[None]:
        """Take the first Ctrl-C or SIGTERM in a block as a request to stop."""
        return first_calls(self.request)
