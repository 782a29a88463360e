"""Files: refused early where they cannot be read or written, and never half-written."""

from __future__ import annotations

import csv
import errno
import fcntl
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from jaxzero.errors import SYSTEM_ERRORS, InputError, RunError
from jaxzero.host.interrupts import cleaned_up
from jaxzero.host.streams import outlive_reader

FIGURES = ("", ".png", ".svg", ".pdf")
LOCK_FILE = ".lock"
STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/stderr")


def shipped_folder(name: str) -> Path:
    """Return a folder that lies beside the package in a checkout and inside it in a wheel."""
    package = Path(__file__).parents[1]
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def check_file(option: str, path: Path | None, suffixes: tuple[str, ...] = ()) -> None:
    """Raise an InputError unless a file can be written at `path`, if given. Touches nothing.

    With `suffixes` its name must end with one of them. The script outlives who reads its output.
    """
    if path is None:
        return
    try:
        if path.is_dir():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists():
            _need(path, os.W_OK)
        if not _is_special(path):
            _need(path.resolve().parent, os.W_OK | os.X_OK)
    except (OSError, RuntimeError) as error:  # links may go round in a circle
        raise _unwritable(option, path, error) from error
    if suffixes and path.suffix not in suffixes and not _is_special(path):
        raise InputError(f"{option}: {path} must end with {' or '.join(filter(None, suffixes))}")
    outlive_reader()


def check_folder(option: str, path: Path | None) -> None:
    """Raise an InputError unless `path`, if given, is or can be a folder of files to write.

    Touches nothing. The script outlives who reads its output.
    """
    if path is None:
        return
    try:
        # A link that leads nowhere is there, too.
        folders = (path, *path.absolute().parents)
        there = next(folder for folder in folders if folder.exists() or folder.is_symlink())
        if not there.is_dir():
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        _need(there, os.W_OK | os.X_OK)
        if len(os.fsencode(path.name)) > os.pathconf(there, "PC_NAME_MAX"):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    except (OSError, RuntimeError) as error:
        raise _unwritable(option, path, error) from error
    outlive_reader()


def _unwritable(
    option: str, path: Path, error: Exception, what: str = "written"
) -> InputError | RunError:
    """Return the error of a path that was named wrongly, or that the machine fails to write."""
    words = getattr(error, "strerror", None) or error
    number = getattr(error, "errno", None)
    fails = number in SYSTEM_ERRORS and number != errno.EROFS
    return (RunError if fails else InputError)(f"{option}: {path} cannot be {what} ({words})")


def make_folder(option: str, path: Path) -> None:
    """Create a folder and those it is in. Raises: InputError, RunError where that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(option, path, error, "made") from error


@contextmanager
def locked_folder(option: str, folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder during a block, as far as they ask the same.

    The system gives the lock back when a process dies. Raises: InputError naming the other process.
    """
    path = folder / LOCK_FILE
    try:
        lock = _locked(path)
    except BlockingIOError as error:
        raise InputError(f"{option}: {folder} is in use by process {error}") from error
    except OSError as error:
        raise _unwritable(option, folder, error) from error
    with cleaned_up(partial(_unlock, lock, path)):
        yield


def _locked(path: Path) -> int:
    """Return the locked file at `path`, which holds the number of this process."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            with os.fdopen(lock, "rb") as file:
                raise BlockingIOError(file.read(20).decode(errors="replace").strip()) from error
        except OSError:  # a file system without locks
            pass
        if _is_file(lock, path):
            try:
                os.ftruncate(lock, 0)
                os.write(lock, f"{os.getpid()}\n".encode())
            except OSError:  # a full disk
                _unlock(lock, path)
                raise
            return lock
        os.close(lock)  # its last owner has removed it since


def _is_file(descriptor: int, path: Path) -> bool:
    """Return whether an open file is the one at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _unlock(lock: int, path: Path) -> None:
    """Remove the file of a lock, then give the lock back."""
    path.unlink(missing_ok=True)
    with suppress(OSError):  # a signal may have come in between
        os.close(lock)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write, of the same suffix; without an error it becomes `path`.

    Raises: InputError where it cannot be written; OSError where the machine is to blame.
    """
    with _about(path):
        target = path.resolve()
        temporary = target.with_name(f".{secrets.token_hex(4)}{target.suffix}")
        if (number := _descriptor(path)) is not None:
            with temporary_folder() as folder:
                yield folder / "whole"
                # In the order of writing, at the end of what is there.
                print(end="", flush=True)
                with open(os.dup(number), "wb") as file:
                    file.write((folder / "whole").read_bytes())
            return
        if _is_special(path):  # a pipe or a device, which is not to be replaced
            yield path
            return
        with cleaned_up(partial(temporary.unlink, missing_ok=True)):
            yield temporary
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Let an error of a block name `path`, not what it has met: a temporary file, or no name.

    Raises: InputError where it cannot be written; OSError where the machine is to blame.
    """
    try:
        yield
    except OSError as error:
        if error.errno in SYSTEM_ERRORS:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise InputError(f"{path} cannot be written ({error.strerror or error})") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all. Raises: as `atomic_write`."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def append_text(path: Path, text: str) -> None:
    """Write whole lines at the end of a text file. Raises: as `atomic_write`.

    A line that a full disk cut off before ends where it is, so that it spoils no other.
    """
    with _about(path), path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            text = text if file.read() == b"\n" else "\n" + text
        file.write(text.encode())


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, whole or not at all. Raises: as `atomic_write`."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_csv(path: Path, columns: list[str], rows: list[dict[str, Any]]) -> None:
    """Write a CSV file, whole or not at all. Raises: as `atomic_write`."""
    with atomic_write(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def save_figure(path: Path, figure: Any, dpi: int = 110) -> None:
    """Write a matplotlib figure, whole or not at all; PNG unless the suffix says other.

    Raises: as `atomic_write`.
    """
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=dpi, format=path.suffix[1:] or "png")


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder, in `parent` or where temporary files go; it is gone at the end.

    Raises: as `atomic_write`, also for errors of a block that name no file or one of the folder.
    """
    parent = Path(parent or tempfile.gettempdir())
    folder = parent / f".jaxzero-{secrets.token_hex(4)}"
    with cleaned_up(partial(shutil.rmtree, folder, ignore_errors=True)):
        with _about(parent):
            folder.mkdir(mode=0o700)
        try:
            yield folder
        except OSError as error:
            name = error.filename and Path(str(error.filename))
            ours = name.is_relative_to(folder) if name else error.errno in SYSTEM_ERRORS
            with _about(parent) if ours else nullcontext():
                raise


def _need(path: Path, access: int) -> None:
    """Raise an OSError unless `path` exists and gives this access."""
    path.stat()
    if not path.is_dir() and access & os.X_OK:
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(path, access):
        number = errno.EROFS if os.statvfs(path).f_flag & os.ST_RDONLY else errno.EACCES
        raise OSError(number, os.strerror(number))


def _is_special(path: Path) -> bool:
    """Return whether `path` is there and no regular file by a name of its own."""
    return path.exists() and (not path.is_file() or _descriptor(path) is not None)


def _descriptor(path: Path) -> int | None:
    """Return the number of the open file that a path stands for, such as /dev/stdout."""
    if str(path) in STREAMS:
        return STREAMS.index(str(path))
    named = str(path.parent) in ("/dev/fd", "/proc/self/fd") and path.name.isdecimal()
    return int(path.name) if named else None
