"""When to pause a run."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stop:
    """Whether to end after the present iteration: on a signal, or when the time is up."""

    def __init__(self, max_minutes: float = 0.0, max_iterations: int = 0):
        self._deadline = time.monotonic() + 60 * max_minutes if max_minutes else None
        self._iterations_left = max_iterations or None
        self.requested = False

    def request(self, *_signal_arguments) -> None:
        if self.requested:  # asked twice: at once
            raise KeyboardInterrupt
        self.requested = True

    def iteration_done(self) -> bool:
        """Count one iteration; return whether to stop now."""
        if self._iterations_left is not None:
            self._iterations_left -= 1
        late = self._deadline is not None and time.monotonic() > self._deadline
        return self.requested or late or self._iterations_left == 0

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Take Ctrl-C and SIGTERM as a request to stop."""
        kinds = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(kind, self.request) for kind in kinds]
        try:
            yield
        finally:
            for kind, handler in zip(kinds, before, strict=True):
                signal.signal(kind, handler)
