"""Errors that a user can cause and repair."""

from __future__ import annotations

import errno
import logging
import re
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

LONGEST_VALUE = 80  # characters of a value in a message
LONGEST_LINE = 1000
UNFINISHED = "orbax-checkpoint-tmp"  # in the name of a checkpoint that is being written
# Orbax raises this in a second thread after a first one has failed. Only the first is printed.
LOOP_IS_CLOSED = "Event loop is closed"
# The machine is to blame, not the program: no room, no quota, a broken disk, too large a file.
SYSTEM_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EROFS)
# Messages of XLA and of the libraries of a GPU that cannot allocate memory.
OUT_OF_MEMORY = re.compile(
    "RESOURCE_EXHAUSTED|OUT_OF_MEMORY|[Oo]ut of memory|STATUS_(NOT_INITIALIZED|ALLOC_FAILED)"
)


class InputError(ValueError):
    """Bad input: one line that names the field and the value. Scripts print it and exit with 2."""


class RunError(RuntimeError):
    """A run that cannot continue: one line with the remedy. Scripts print it and exit with 1."""


@contextmanager
def as_field(field: str, inner: str, value: str) -> Iterator[None]:
    """Make an InputError of a block name `field`, which has `value`.

    The block calls the field `inner`; `field` replaces this name. An error that names another field
    is quoted in brackets.
    """
    try:
        yield
    except InputError as error:
        name, _, rest = str(error).partition(": ")
        said = rest if name == inner else f"{shortened(repr(value))} cannot be used here ({error})"
        raise InputError(f"{field}: {said}") from error


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ", did you mean X?" for the known word nearest to `word`, or an empty string."""
    close = get_close_matches(word[:LONGEST_VALUE], list(known), n=1)
    return f", did you mean {close[0]}?" if close else ""


def shortened(value: str, most: int = LONGEST_VALUE) -> str:
    """Return a value for a message; cut a long one to both ends and add its length."""
    if len(value) <= most:
        return value
    part = most // 2 - 10
    return f"{value[:part]}...{value[-part:]} ({len(value)} characters)"


def missing(extra: str, error: ModuleNotFoundError) -> InputError:
    """Return the InputError of the option `extra`, which needs the optional packages `extra`."""
    how = f'pip install -e ".[{extra}]" in the folder of jaxzero'
    return InputError(f"{extra}: needs {error.name}, which is not installed: {how}")


def one_line(message: str) -> str:
    """Return a message as one line of printable characters, not too long for a terminal."""
    words = " ".join(message.split())
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in words)
    return shortened(shown, LONGEST_LINE)


def print_less() -> None:
    """Print one line for a thread that a full disk ends, and none for the errors that follow.

    Only scripts call it: importing the package changes nothing in other libraries.
    """
    sys.unraisablehook, threading.excepthook = _print_unraisable, _print_of_thread
    logging.getLogger("absl").setLevel(logging.CRITICAL)  # orbax also logs what it raises
    # Orbax raises the error of the first write. On a full disk other writes fail too: ignore them.
    logging.getLogger("asyncio").addFilter(_tells_more)
    warnings.filterwarnings("ignore", "coroutine 'async_serialize", RuntimeWarning)


def _tells_more(record: logging.LogRecord) -> bool:
    """Return whether a record of asyncio's log is not just another failed write."""
    error = record.exc_info[1] if record.exc_info else None
    full = isinstance(error, OSError) and error.errno in SYSTEM_ERRORS
    return not full and UNFINISHED not in str(error)


def _print_unraisable(ignored: Any) -> None:
    if str(ignored.exc_value) != LOOP_IS_CLOSED:
        sys.__unraisablehook__(ignored)


def _print_of_thread(ended: threading.ExceptHookArgs) -> None:
    error = ended.exc_value
    if isinstance(error, OSError) and error.errno in SYSTEM_ERRORS:
        name = ended.thread.name if ended.thread else "a thread"
        print(f"warning: {one_line(f'{name}: {error}')}", file=sys.stderr)
    else:
        threading.__excepthook__(ended)
