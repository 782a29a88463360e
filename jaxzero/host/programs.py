"""Keep traced programs on disk, so that the next process need not trace them again.

jax itself keeps only what XLA compiled. For a search of the 5x5 network, tracing takes three times
as long as reading the compiled program, in every process.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import chex
import jax
from jax import export

from jaxzero.errors import shortened
from jaxzero.host.environment import check_devices
from jaxzero.host.files import atomic_write
from jaxzero.host.interrupts import at_stop

MOST_TRACED = 64  # files of traced programs that are kept


def use_compilation_cache() -> None:
    """Find the devices, and keep compiled programs between runs in the user's cache folder.

    Raises: InputError if the environment asks for missing devices.
    """
    check_devices()
    if jax.config.jax_compilation_cache_dir is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        jax.config.update("jax_compilation_cache_dir", f"{home}/jaxzero")
    if folder := cache_folder():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:  # otherwise jax would warn about every program
            words = f"compiled programs are not kept: {shortened(str(folder))} cannot be made"
            print(f"warning: {words} ({error.strerror})", file=sys.stderr)
            jax.config.update("jax_compilation_cache_dir", "")
    at_stop(drop_open_entries)


def cache_folder() -> Path | None:
    """Return the local folder where jax keeps compiled programs, or None."""
    named = jax.config.jax_compilation_cache_dir
    if not named or "://" in named or not jax.config.jax_enable_compilation_cache:
        return None
    return Path(named).absolute()


def drop_open_entries() -> None:
    """Remove the entries that jax is writing to its cache of compiled programs.

    jax does not write entries atomically and would warn about a partial one in every later run.
    """
    folder = cache_folder()
    for link in Path("/proc/self/fd").iterdir() if folder else ():
        with suppress(OSError):
            path, mode = link.readlink(), fcntl.fcntl(int(link.name), fcntl.F_GETFL)
            is_entry = path.parent == folder.resolve() and path.name.endswith(("-cache", "-atime"))
            if is_entry and mode & os.O_ACCMODE != os.O_RDONLY:
                path.unlink()


def kept_program(function: partial, *arguments: chex.ArrayTree) -> Callable:
    """Return `function` jitted for arguments of these shapes; trace it only if no file holds it.

    `function` returns a tuple of arrays, which becomes a plain tuple. The `repr` of each bound
    argument must identify it. Files are beside those of jax; if jax keeps none, none is written.
    """
    shapes = jax.tree.map(jax.api_util.shaped_abstractify, arguments)
    folder = cache_folder()

    def plain(*given: chex.ArrayTree) -> tuple[jax.Array, ...]:
        return tuple(function(*given))

    if folder is None:
        return jax.jit(plain)
    # The key has all that a program may depend on. Unrelated settings of jax only cost a trace.
    bound = function.func.__module__, function.func.__qualname__, function.args, function.keywords
    settings = sorted((name, repr(value)) for name, value in jax.config.values.items())
    machine = jax.__version__, version("jaxlib"), jax.default_backend(), settings
    key = sha256(repr((bound, shapes, machine, _sources())).encode()).hexdigest()
    path = folder / "traced" / f"{key}.jax"
    # A file that cannot be read or written, for any reason, only costs time.
    with suppress(Exception):
        kept = jax.jit(export.deserialize(bytearray(path.read_bytes())).call)
        path.touch()
        return kept
    traced = export.export(jax.jit(plain))(*shapes)
    with suppress(Exception):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as temporary:
            temporary.write_bytes(traced.serialize())
        # Other versions of the code or of jax leave files: delete the least recently used ones.
        for old in sorted(path.parent.glob("*.jax"), key=os.path.getmtime)[:-MOST_TRACED]:
            old.unlink()
    return jax.jit(traced.call)


@cache
def _sources() -> str:
    """Return a digest of the code of the package, from which programs are traced."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
