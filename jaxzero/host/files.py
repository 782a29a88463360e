"""Files: any content can be read or is refused; output is checked early and never half-written."""

import errno
import fcntl
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from jaxzero.errors import InputError

LOCK_FILE = ".lock"
# The machine is to blame, not the input: no room, no quota, a broken disk, a reader that is gone.
SYSTEM_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EROFS, errno.EPIPE)


def shipped_folder(name: str) -> Path:
    """Return a folder that is beside the package in a checkout and inside it in a wheel."""
    package = Path(__file__).parents[1]
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def check_file(option: str, path: Path | None) -> None:
    """Raise an InputError unless a file can be written at `path`, if given. Touches nothing."""
    if path is None:
        return
    where = path if path.exists() else path.parent
    if path.is_dir() or not path.parent.is_dir() or not os.access(where, os.W_OK):
        raise InputError(f"{option}: {path} is not a file that can be written")


def check_folder(option: str, path: Path | None) -> None:
    """Raise an InputError unless `path`, if given, is or can become a folder of files to write."""
    if path is None:
        return
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        raise InputError(f"{option}: {path} is not a folder that can be written")


@contextmanager
def locked_folder(option: str, folder: Path) -> Iterator[None]:
    """Lock a folder during a block, against other processes that also call this.

    The system releases the lock when a process dies. Raises: InputError naming the other process.
    """
    path = folder / LOCK_FILE
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            owner = lock.read().strip()
            raise InputError(f"{option}: {folder} is in use by process {owner}") from error
        except OSError:  # a file system without locks
            pass
        lock.truncate(0)
        print(os.getpid(), file=lock, flush=True)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary file of the same suffix; it becomes `path` if the block succeeds.

    Raises: OSError that names `path`.
    """
    if path.exists() and not path.is_file():  # a device such as /dev/null must not be replaced
        yield path
        return
    target = path.resolve()
    temporary = target.with_name(f".{secrets.token_hex(4)}{target.suffix}")
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def read_text(field: str, path: Path) -> str:
    """Return the text of a UTF-8 file. Raises: InputError, also for a file of another kind."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{field}: {path} cannot be read ({reason})") from error


def read_json(field: str, path: Path) -> Any:
    """Return the content of a JSON file. Raises: InputError."""
    try:
        return json.loads(read_text(field, path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{field}: {path} is not JSON ({error})") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all. Raises: OSError."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def append_text(path: Path, text: str) -> None:
    """Write whole lines at the end of a text file. Raises: OSError that names `path`.

    If a full disk cut off the last line, the text begins on a new line.
    """
    try:
        with path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                text = text if file.read() == b"\n" else "\n" + text
            file.write(text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, whole or not at all. Raises: OSError."""
    write_text(path, json.dumps(content, indent=2) + "\n")


@contextmanager
def only_warn(path: Path) -> Iterator[None]:
    """Turn an OSError of a block that writes `path` into a warning, printed once.

    For logs and pictures: they are not worth a run.
    """
    try:
        yield
    except OSError as error:
        _warn_once(f"{path}: {error.strerror}")


@cache
def _warn_once(words: str) -> None:
    print(f"warning: {words}", file=sys.stderr)


def new_figure(**options: Any) -> Any:
    """Return an empty figure of matplotlib, even if MPLBACKEND names a backend that is missing.

    Drawing to a file needs no backend, but importing matplotlib fails without the named one.
    """
    if "matplotlib" not in sys.modules:
        named = os.environ.pop("MPLBACKEND", "")
        import matplotlib  # slow to import

        if named:  # plots of the user need it
            os.environ["MPLBACKEND"] = named
            with suppress(ValueError):
                matplotlib.rcParams["backend"] = named
    from matplotlib.figure import Figure

    return Figure(**options)


def save_figure(path: Path, figure: Any) -> None:
    """Write a matplotlib figure as a PNG, whole or not at all. Raises: OSError."""
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=110)
