"""Keep programs on disk: those that jax and numba compile, and those that jax has traced.

jax itself keeps only what XLA compiled, and traces in every process. On two busy cores the first
reply of the 5x5 network took 2.7 processor seconds in a new process, 6.7 without the traced file.
"""

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import chex
import jax
from jax import export

from jaxzero.errors import InputError
from jaxzero.host.background import Programs
from jaxzero.host.files import atomic_write

MAX_TRACED = 64  # files of traced programs that are kept
# Settings of jax under which all programs run: types and copies to the device as written.
USUAL = {"numpy_dtype_promotion": "standard", "transfer_guard": "allow"}
ROOM = 2**25  # bytes that a folder of caches must have left


def use_compilation_cache(in_script: bool = True) -> None:
    """Find the devices, and keep what jax and matplotlib can use again in `cache_home`.

    A script also has the settings of `usual_types`, in all of its threads.
    Raises: InputError if the environment asks for missing devices.
    """
    check_devices()
    for name, value in USUAL.items() if in_script else ():
        jax.config.update(f"jax_{name}", value)
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_home() or ""))
    elif (folder := cache_folder()) and (refusal := _refusal(folder)):
        words = f"compiled programs are not kept: {folder}: {refusal}"
        print(f"warning: {words}", file=sys.stderr)
        jax.config.update("jax_compilation_cache_dir", "")  # else jax warns about every program
    # matplotlib has one folder for its cache and for the user's settings: leave these in use.
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    named = "MPLCONFIGDIR" in os.environ or os.path.isdir(f"{settings}/matplotlib")
    if not named and (home := cache_home()):
        os.environ["MPLCONFIGDIR"] = str(home / "matplotlib")


def check_devices() -> None:
    """Let jax find its devices. Raises: InputError if JAX_PLATFORMS names missing ones."""
    try:
        jax.devices()
    except RuntimeError as error:
        if named := os.environ.get("JAX_PLATFORMS"):
            reason = str(error).partition("\n")[0]
            raise InputError(f"JAX_PLATFORMS: {named!r}: {reason}") from error
        raise


@cache
def cache_home() -> Path | None:
    """Return the user's folder of caches, else a temporary folder, else None, with a warning."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    user = Path(named if os.path.isabs(named) else os.path.expanduser("~/.cache"), "jaxzero")
    if not (refusal := _refusal(user, private=True)):
        return user
    temporary = Path(tempfile.gettempdir(), f"jaxzero-{os.geteuid()}").absolute()
    kept = not _refusal(temporary, private=True)
    words = f"caches go to {temporary}" if kept else "every process compiles its programs again"
    print(f"warning: {words}, because of {user}: {refusal}", file=sys.stderr)
    return temporary if kept else None


@cache
def _refusal(folder: Path, private: bool = False) -> str:
    """Make a folder of caches; return why it cannot be used, or an empty text.

    A private folder must belong to this user: reading a cache can run code of its writer.
    """
    if not folder.is_absolute():
        return "not an absolute path"
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        owners, mode = {folder.lstat().st_uid, folder.stat().st_uid}, folder.stat().st_mode
        if private and (owners != {os.geteuid()} or mode & stat.S_IWOTH):
            return "others can write it"
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, ROOM)
    except OSError as error:
        return error.strerror or str(error)
    return ""


@contextmanager
def usual_types() -> Iterator[None]:
    """Run a block with the settings of jax in `USUAL`; the user's own programs keep theirs."""
    with ExitStack() as settings:
        for name, value in USUAL.items():
            settings.enter_context(getattr(jax, name)(value))
        yield


def compiled_ahead(jitted: Callable, *shapes: chex.ArrayTree) -> Callable:
    """Compile a jitted function for inputs of these shapes; under JAX_DISABLE_JIT return it."""
    return jitted if jax.config.jax_disable_jit else jitted.lower(*shapes).compile()


def call(board: Hashable, function: partial, *inputs: chex.ArrayTree) -> Any:
    """Return the NumPy arrays of `function(*inputs)`, a tuple, by a program of a board.

    The program is compiled once for inputs of these shapes on these devices.
    """
    shapes = jax.tree.map(_shape, inputs)

    def make() -> Callable:
        return compiled_ahead(kept_program(function, *shapes), *shapes)

    key = (function.func, *function.args, *jax.tree.leaves(shapes))
    return jax.device_get(Programs(board, key, make).get()(*inputs))


def _shape(leaf: chex.Array) -> jax.ShapeDtypeStruct:
    """Return the shape of an array, with its sharding if the array is committed to a device."""
    placed = isinstance(leaf, jax.Array) and leaf.committed
    shape = jax.api_util.shaped_abstractify(leaf)
    sharding = leaf.sharding if placed else None
    return jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=sharding)


def cache_folder() -> Path | None:
    """Return the local folder where jax keeps compiled programs, or None."""
    named = jax.config.jax_compilation_cache_dir
    if not named or "://" in named or not jax.config.jax_enable_compilation_cache:
        return None
    return Path(named).absolute()


def kept_njit(*signature: str, **options: Any) -> Callable[[Callable], Callable]:
    """Return `numba.njit` that releases the GIL and keeps what it compiles in `cache_home`.

    A folder that the user has named for numba stays. If no folder can be written, nothing is kept.
    NUMBA_DISABLE_JIT has no effect: the functions cannot run as plain Python.
    """
    from numba import config, njit  # slow to import
    from numba.core import dispatcher

    def compiled(function: Callable) -> Callable:
        before = config.CACHE_DIR, config.DISABLE_JIT, dispatcher.FunctionCache
        if not config.CACHE_DIR or _refusal(Path(config.CACHE_DIR).absolute()):
            config.CACHE_DIR = str(cache_home() / "numba") if cache_home() else ""
        config.DISABLE_JIT, dispatcher.FunctionCache = 0, _healing_cache()
        try:  # numba chooses the folder here, and raises without one
            return njit(*signature, cache=bool(config.CACHE_DIR), nogil=True, **options)(function)
        finally:
            config.CACHE_DIR, config.DISABLE_JIT, dispatcher.FunctionCache = before

    return compiled


@cache
def _healing_cache() -> type:
    """Return numba's cache, but a file that is cut off or unreadable only costs time."""
    from numba.core.caching import FunctionCache

    class HealingCache(FunctionCache):
        def load_overload(self, *key: Any) -> Any:
            try:
                return super().load_overload(*key)
            except Exception:  # pickle raises many kinds
                with suppress(OSError):
                    self.flush()
                return None

        def save_overload(self, *entry: Any) -> None:
            with suppress(OSError):
                super().save_overload(*entry)

    return HealingCache


def kept_program(function: partial, *arguments: chex.ArrayTree) -> Callable:
    """Return `function` jitted for arguments of these shapes; trace it only if no file holds it.

    `function` returns a tuple of arrays, which becomes a plain tuple. The `repr` of each bound
    argument must identify it. Files are beside those of jax; if jax keeps none, none is written.
    """
    shapes = jax.tree.map(jax.api_util.shaped_abstractify, arguments)
    folder = cache_folder()

    def plain(*given: chex.ArrayTree) -> tuple[jax.Array, ...]:
        return tuple(function(*given))

    if folder is None or jax.config.jax_disable_jit:
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
        for old in sorted(path.parent.glob("*.jax"), key=os.path.getmtime)[:-MAX_TRACED]:
            old.unlink()
    return jax.jit(traced.call)


@cache
def _sources() -> str:
    """Return a digest of the code of the package, from which programs are traced."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
