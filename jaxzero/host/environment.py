"""Environment variables that jax reads: checks, with errors in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import PurePath
from types import TracebackType

from jaxzero.errors import OUT_OF_MEMORY, InputError, one_line, shortened

FRACTION, OLD_FRACTION = "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
NEEDS_CUDA_BUILD = 'needs the CUDA build of jax: pip install -e ".[cuda13]" (or cuda12)'


def check_environment() -> None:
    """Raise an InputError for an environment variable that jax would misread.

    Also replace the backend of matplotlib and remove the settings of jsonargparse.
    """
    os.environ["MPLBACKEND"] = "agg"  # figures are files; a notebook's backend may be missing
    for name in [name for name in os.environ if name.startswith("JSONARGPARSE_")]:
        del os.environ[name]
    # With more than 1024 devices jax takes minutes to start.
    _check("JAX_NUM_CPU_DEVICES", "a whole number from 1 to 1024", lambda v: 1 <= int(v) <= 1024)
    for name in (FRACTION, OLD_FRACTION):
        _check(name, "a number > 0 and <= 1", lambda value: not value or 0 < float(value) <= 1)
    # jax reads any other word as true.
    switches = ("", "true", "True", "1", "false", "False", "0")
    _check(PREALLOCATE, "true or false", lambda value: value in switches)
    if os.environ.get(FRACTION) and (old := os.environ.get(OLD_FRACTION)):
        raise InputError(f"{OLD_FRACTION}: {old} is the old name of {FRACTION}, which is set too")


def _check(name: str, words: str, is_right: Callable[[str], bool]) -> None:
    """Raise an InputError if a variable is set to a wrong value."""
    value = os.environ.get(name)
    try:
        right = value is None or is_right(value)
    except ValueError:
        right = False
    if not right:
        raise InputError(f"{name}: {shortened(value)!r} must be {words}")


def check_devices() -> None:
    """Let jax find its devices. Raises: InputError if JAX_PLATFORMS asks for missing ones."""
    import jax

    named = os.environ.get("JAX_PLATFORMS", "")
    try:
        jax.devices()
    except Exception as error:
        if not named or OUT_OF_MEMORY.search(str(error)):
            raise
        reason = one_line(str(error).partition("\n")[0])
        if {"cuda", "gpu"} & set(named.split(",")) and not has_cuda_build():
            reason = NEEDS_CUDA_BUILD
        raise InputError(f"JAX_PLATFORMS: {shortened(named)!r}: {reason}") from error


def has_cuda_build() -> bool:
    """Return whether the installed jax can compile for a GPU."""
    names = ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12")
    try:
        return any(find_spec(name) for name in names)
    except ModuleNotFoundError:
        return False


def memory_advice() -> str:
    """Return advice for a device that has run out of memory."""
    import jax

    advice = "fewer games at once, simulations or samples a batch need less"
    with suppress(RuntimeError):  # too little memory even to start jax on the device
        if jax.default_backend() == "cpu":
            return advice
    return (
        f"{advice}. Another process may hold the memory (nvidia-smi lists them): end it, or let "
        f"jax reserve less with {FRACTION}=0.4 or {PREALLOCATE}=false in the environment"
    )


def refused_by_jax(error: BaseException, trace: TracebackType | None) -> str:
    """Return a line about a variable that jax refuses during its import, else ""."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    source = PurePath(trace.tb_frame.f_code.co_filename if trace else "")
    if not isinstance(error, ValueError) or source.parts[-3:] != ("jax", "_src", "config.py"):
        return ""
    for name, value in sorted(os.environ.items()):
        if name.startswith("JAX_") and value and f"{value!r}"[1:-1] in str(error):
            return f"{name}: {shortened(value)!r}: {one_line(str(error))}"
    return f"environment: {one_line(str(error))}"
