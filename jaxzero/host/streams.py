"""Standard streams that are closed, full or broken never break a script.

A closed stream becomes /dev/null. An input that cannot be read counts as ended. An output that
cannot be written ends the script with one line, unless the script also writes files: a training run
outlives its viewer and its terminal (`outlive_reader`). Standard error drops unwritable text.
"""

from __future__ import annotations

import io
import os
import select
import sys
from types import SimpleNamespace

INPUT, OUTPUT, ERROR = range(3)  # the descriptors of a process

_state = SimpleNamespace(outlives=False)


class OutputLost(Exception):
    """Standard output cannot be written. The message is the script's last line, or empty."""


def guard_streams() -> None:
    """Make the standard streams of this process safe. Call it before anything opens a file."""
    for number in (INPUT, OUTPUT, ERROR):
        try:
            os.fstat(number)
        except OSError:  # closed; the next file would take its number
            os.open(os.devnull, os.O_RDWR)
    given = io.BufferedReader(_Input(INPUT, closefd=False))
    before = (sys.stdin.encoding, sys.stdin.errors) if sys.stdin else ()  # None if closed
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(given, *before)
    sys.stdout = sys.__stdout__ = _writer(OUTPUT, sys.stdout)
    sys.stderr = sys.__stderr__ = _writer(ERROR, sys.stderr)


def outlive_reader() -> None:
    """Let this script continue if its standard output is lost, because it also writes files."""
    _state.outlives = True


def _writer(number: int, before: io.TextIOWrapper | None) -> io.TextIOWrapper:
    """Return a text stream like `before`, which is None if the stream is closed."""
    raw = _Output(number, "w", closefd=False)
    unbuffered = before is not None and before.write_through and number == OUTPUT  # python -u
    return io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw),
        encoding=before and before.encoding,
        errors="backslashreplace",  # file names need not be valid text
        line_buffering=number == ERROR or (before is not None and before.line_buffering),
        write_through=unbuffered,
    )


class _Input(io.FileIO):
    """A descriptor that ends at the first error."""

    def readinto(self, buffer) -> int:
        try:
            while (count := super().readinto(buffer)) is None:  # non-blocking
                select.select([self], [], [])
        except OSError:
            return 0
        return count


class _Output(io.FileIO):
    """A descriptor that becomes /dev/null after the first error.

    Raises: OutputLost if standard output is lost and the script must end.
    """

    def write(self, data) -> int:
        left = memoryview(data)
        try:
            while left:  # another program may have made the descriptor non-blocking
                count = super().write(left)
                if count is None:
                    select.select([], [self], [])
                left = left[count or 0 :]
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            words = f"standard output cannot be written ({error.strerror})"
            if self.fileno() == OUTPUT and not _state.outlives:
                # A reader that closes a pipe has seen enough.
                seen = isinstance(error, BrokenPipeError)
                raise OutputLost("" if seen else f"error: {words}\n") from error
            if self.fileno() == OUTPUT:
                print(f"warning: {words}: this goes on without it", file=sys.stderr)
        return len(data)
