"""Programs kept on disk as they were traced, so that the next process need not trace them again.

jax itself keeps what XLA compiled. For a search of the 5x5 network, tracing takes three times as
long as reading that, in every process anew.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

import chex
import jax
from jax import export

from jaxzero.files import atomic_write
from jaxzero.interrupts import at_stop


def use_compilation_cache() -> None:
    """Keep compiled programs between runs in the user's cache folder."""
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(_cache_home() / "jaxzero"))
    at_stop(lambda: drop_open_entries(Path(jax.config.jax_compilation_cache_dir)))


def _cache_home() -> Path:
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named)
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # a user without a home, as in some containers
        return Path(tempfile.gettempdir())


def drop_open_entries(cache: Path) -> None:
    """Remove what this process is about to write to a cache of compiled programs.

    jax does not write an entry whole, and would warn about a torn one in every later run.
    """
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            path = link.readlink()
            if path.parent == cache.resolve():
                path.unlink()


def kept_program(function: partial, *arguments: chex.ArrayTree) -> Callable:
    """Return `function`, jitted for arguments of these shapes, traced only where no file holds it.

    `function` returns a tuple of arrays, which comes as a plain one, and what it binds has a `repr`
    that says all of it. Files lie beside those of jax; where jax keeps none, neither does this.
    """
    shapes = jax.tree.map(jax.api_util.shaped_abstractify, arguments)
    folder = jax.config.jax_compilation_cache_dir

    def plain(*given: chex.ArrayTree) -> tuple[jax.Array, ...]:
        return tuple(function(*given))

    if folder is None:
        return jax.jit(plain)
    path = Path(folder) / "traced" / f"{program_key(function, shapes)}.jax"
    # A file that cannot be read or written, whatever the reason, costs time and nothing else.
    with suppress(Exception):
        return jax.jit(export.deserialize(bytearray(path.read_bytes())).call)
    traced = export.export(jax.jit(plain))(*shapes)
    with suppress(Exception):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as temporary:
            temporary.write_bytes(traced.serialize())
    return jax.jit(traced.call)


def program_key(function: partial, shapes: chex.ArrayTree) -> str:
    """Return a name for all that a traced program depends on."""
    bound = function.func.__module__, function.func.__qualname__, function.args, function.keywords
    machine = jax.__version__, jax.default_backend(), jax.config.jax_enable_x64
    return sha256(repr((bound, shapes, machine, _sources())).encode()).hexdigest()


@cache
def _sources() -> str:
    """Return a digest of the code of the package, from which programs are traced."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
