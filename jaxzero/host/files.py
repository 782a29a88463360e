"""Files: refused early if they cannot be written, and never half-written."""

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
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from jaxzero.errors import SYSTEM_ERRORS, InputError, RunError
from jaxzero.host.interrupts import cleaned_up
from jaxzero.host.streams import outlive_reader

FIGURES = ("", ".png", ".svg", ".pdf")
LOCK_FILE = ".lock"
STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}


def shipped_folder(name: str) -> Path:
    """Return a folder that is beside the package in a checkout and inside it in a wheel."""
    package = Path(__file__).parents[1]
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def check_file(option: str, path: Path | None, suffixes: tuple[str, ...] = ()) -> None:
    """Raise an InputError unless a file can be written at `path`, if given. Touches nothing.

    With `suffixes` its name must end with one of them. Afterwards a closed standard output no
    longer ends the script, so that the file is written.
    """
    if path is None:
        return
    try:
        special = _is_special(path)
        if path.exists() and not path.is_fifo():  # opening a pipe waits for its reader
            path.open("ab").close()
        if not special:
            with tempfile.TemporaryFile(dir=path.resolve().parent):
                pass
    except (OSError, RuntimeError) as error:  # RuntimeError: links form a circle
        raise _unwritable(option, path, error) from error
    if suffixes and path.suffix not in suffixes and not special:
        raise InputError(f"{option}: {path} must end with {' or '.join(filter(None, suffixes))}")
    outlive_reader()


def check_folder(option: str, path: Path | None) -> None:
    """Raise an InputError unless `path`, if given, is or can be a folder of files to write.

    Touches nothing. Afterwards a closed standard output no longer ends the script.
    """
    if path is None:
        return
    try:
        # A broken link counts as existing.
        folders = (path, *path.absolute().parents)
        there = next(folder for folder in folders if folder.exists() or folder.is_symlink())
        with tempfile.TemporaryFile(dir=there):
            pass
    except (OSError, RuntimeError) as error:
        raise _unwritable(option, path, error) from error
    outlive_reader()


def make_folder(option: str, path: Path) -> None:
    """Create a folder and its parents. Raises: InputError, or RunError if the machine fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(option, path, error, "made") from error


def _unwritable(
    option: str, path: Path, error: Exception, what: str = "written"
) -> InputError | RunError:
    """Return an InputError for a wrong path, or a RunError if the machine fails to write it."""
    words = getattr(error, "strerror", None) or error
    number = getattr(error, "errno", None)
    fails = number in SYSTEM_ERRORS and number != errno.EROFS
    return (RunError if fails else InputError)(f"{option}: {path} cannot be {what} ({words})")


@contextmanager
def locked_folder(option: str, folder: Path) -> Iterator[None]:
    """Lock a folder during a block, against other processes that also call this.

    The system releases the lock when a process dies. Raises: InputError naming the other process.
    """
    path = folder / LOCK_FILE
    try:
        lock = path.open("a+")
    except OSError as error:
        raise _unwritable(option, folder, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            words = f"is in use by process {lock.read().strip()}"
            raise InputError(f"{option}: {folder} {words}") from error
        except OSError:  # a file system without locks
            pass
        # Another process has removed the file since it was opened here; a third may lock a new one.
        if not os.fstat(lock.fileno()).st_nlink:
            raise InputError(f"{option}: {folder} was in use until now: try again")
        with cleaned_up(partial(path.unlink, missing_ok=True)):
            lock.truncate(0)
            print(os.getpid(), file=lock, flush=True)
            yield


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary file of the same suffix; it becomes `path` if the block succeeds.

    Raises: InputError if `path` cannot be written; OSError if the machine is to blame.
    """
    with _about(path):
        if (number := STREAMS.get(str(path))) is not None:
            with temporary_folder() as folder:
                yield folder / "whole"
                # Flush earlier output first, then append to it.
                print(end="", flush=True)
                with open(os.dup(number), "wb") as file:
                    file.write((folder / "whole").read_bytes())
        elif _is_special(path):  # a pipe or a device must not be replaced
            yield path
        else:
            target = path.resolve()
            temporary = target.with_name(f".{secrets.token_hex(4)}{target.suffix}")
            with cleaned_up(partial(temporary.unlink, missing_ok=True)):
                yield temporary
                if target.exists():
                    shutil.copymode(target, temporary)
                temporary.replace(target)


def _is_special(path: Path) -> bool:
    """Return whether `path` exists and is a standard stream or no regular file."""
    return path.exists() and (not path.is_file() or str(path) in STREAMS)


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Make an error of a block name `path` instead of a temporary file or no file.

    Raises: InputError if `path` cannot be written; OSError if the machine is to blame.
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

    If a full disk cut off the last line, the text begins on a new line.
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


def save_figure(path: Path, figure: Any) -> None:
    """Write a matplotlib figure, whole or not at all; PNG unless the suffix names a format.

    Raises: as `atomic_write`.
    """
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=110, format=path.suffix[1:] or "png")


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder, in `parent` or the system's temporary folder; remove it at the end.

    Raises: as `atomic_write`.
    """
    parent = Path(parent or tempfile.gettempdir())
    with _about(parent):
        folder = Path(tempfile.mkdtemp(prefix=".jaxzero-", dir=parent))
    with cleaned_up(partial(shutil.rmtree, folder, ignore_errors=True)):
        yield folder
