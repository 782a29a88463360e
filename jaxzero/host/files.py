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
    """Return a folder that lies beside the package in a checkout and inside it in a wheel."""
    package = Path(__file__).parents[1]
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def check_file(option: str, path: Path | None, suffixes: tuple[str, ...] = ()) -> None:
    """Raise an InputError unless a file can be written at `path`, if given. Touches nothing.

    With `suffixes` its name must end with one of them. From here on a closed output does not end
    the script, so that the file is written.
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
    except (OSError, RuntimeError) as error:  # links may go round in a circle
        raise _unwritable(option, path, error) from error
    if suffixes and path.suffix not in suffixes and not special:
        raise InputError(f"{option}: {path} must end with {' or '.join(filter(None, suffixes))}")
    outlive_reader()


def check_folder(option: str, path: Path | None) -> None:
    """Raise an InputError unless `path`, if given, is or can be a folder of files to write.

    Touches nothing. From here on a closed output does not end the script.
    """
    if path is None:
        return
    try:
        # A link that leads nowhere is there, too.
        folders = (path, *path.absolute().parents)
        there = next(folder for folder in folders if folder.exists() or folder.is_symlink())
        with tempfile.TemporaryFile(dir=there):
            pass
    except (OSError, RuntimeError) as error:
        raise _unwritable(option, path, error) from error
    outlive_reader()


def make_folder(option: str, path: Path) -> None:
    """Create a folder and those it is in. Raises: InputError, RunError where that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(option, path, error, "made") from error


def _unwritable(
    option: str, path: Path, error: Exception, what: str = "written"
) -> InputError | RunError:
    """Return the error of a path that was named wrongly, or that the machine fails to write."""
    words = getattr(error, "strerror", None) or error
    number = getattr(error, "errno", None)
    fails = number in SYSTEM_ERRORS and number != errno.EROFS
    return (RunError if fails else InputError)(f"{option}: {path} cannot be {what} ({words})")


@contextmanager
def locked_folder(option: str, folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder during a block, as far as they ask the same.

    The system gives the lock back when a process dies. Raises: InputError naming the other process.
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
        with cleaned_up(partial(path.unlink, missing_ok=True)):
            lock.truncate(0)
            print(os.getpid(), file=lock, flush=True)
            yield


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write, of the same suffix; without an error it becomes `path`.

    Raises: InputError where it cannot be written; OSError where the machine is to blame.
    """
    with _about(path):
        if (number := STREAMS.get(str(path))) is not None:
            with temporary_folder() as folder:
                yield folder / "whole"
                # In the order of writing, at the end of what is there.
                print(end="", flush=True)
                with open(os.dup(number), "wb") as file:
                    file.write((folder / "whole").read_bytes())
        elif _is_special(path):  # a pipe or a device, which is not to be replaced
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
    """Return whether `path` is there and no regular file by a name of its own."""
    return path.exists() and (not path.is_file() or str(path) in STREAMS)


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

    Where a full disk cut the last line off, the text begins on a line of its own.
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

    Raises: as `atomic_write`.
    """
    parent = Path(parent or tempfile.gettempdir())
    with _about(parent):
        folder = Path(tempfile.mkdtemp(prefix=".jaxzero-", dir=parent))
    with cleaned_up(partial(shutil.rmtree, folder, ignore_errors=True)):
        yield folder
