"""Variables of the environment that jax reads: what is wrong with them, in one line."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import PurePath
from types import TracebackType

from jaxzero.errors import OUT_OF_MEMORY, InputError, one_line, shortened

MOST_CPU_DEVICES = 1024  # beyond them jax starts for minutes
CPU_DEVICES = "JAX_NUM_CPU_DEVICES"
FRACTIONS = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")  # its old name last
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
SWITCHES = ("true", "True", "1", "false", "False", "0")  # jax takes any other word for true
PLATFORMS = ("JAX_PLATFORM_NAME", "JAX_PLATFORMS")  # its old name first, which counts for more
GPU_PLATFORMS = {"cuda", "gpu"}
NEEDS_CUDA_BUILD = 'needs the CUDA build of jax: pip install -e ".[cuda13]" (or cuda12)'


def check_environment() -> None:
    """Raise an InputError for a value that jax would misread, before it does.

    What other libraries read for programs of another kind goes.
    """
    os.environ["MPLBACKEND"] = "agg"  # figures are files; a notebook's backend may not be here
    for name in [name for name in os.environ if name.startswith("JSONARGPARSE_")]:
        del os.environ[name]
    given = {name: os.environ.get(name, "") for name in (*FRACTIONS, PREALLOCATE)}
    devices = os.environ.get(CPU_DEVICES, "1")
    if not (devices.isdecimal() and 1 <= float(devices) <= MOST_CPU_DEVICES):
        words = f"a whole number from 1 to {MOST_CPU_DEVICES}"
        raise InputError(f"{CPU_DEVICES}: {shortened(devices)!r} must be {words}")
    for name in FRACTIONS:
        if given[name] and not _is_fraction(given[name]):
            raise InputError(f"{name}: {shortened(given[name])!r} must be a number > 0 and <= 1")
    new, old = FRACTIONS
    if given[new] and given[old]:
        raise InputError(f"{old}: {given[old]} is the old name of {new}, which is set too")
    if given[PREALLOCATE] not in ("", *SWITCHES):
        value = shortened(given[PREALLOCATE])
        raise InputError(f"{PREALLOCATE}: {value!r} must be true or false")


def _is_fraction(text: str) -> bool:
    try:
        return 0 < float(text) <= 1
    except ValueError:
        return False


def check_devices() -> None:
    """Let jax find its devices. Raises: InputError where the environment asks for others."""
    import jax

    variable = next((name for name in PLATFORMS if os.environ.get(name)), "")
    try:
        jax.devices()
    except Exception as error:
        if not variable or OUT_OF_MEMORY.search(str(error)):
            raise
        named, reason = os.environ[variable], one_line(str(error).partition("\n")[0])
        if GPU_PLATFORMS & set(named.split(",")) and not has_cuda_build():
            reason = NEEDS_CUDA_BUILD
        raise InputError(f"{variable}: {shortened(named)!r}: {reason}") from error


def has_cuda_build() -> bool:
    """Return whether the jax that is installed can compile for a GPU."""
    names = ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12")
    try:
        return any(find_spec(name) for name in names)
    except ModuleNotFoundError:
        return False


def memory_advice() -> str:
    """Return what helps where the memory of a device has run out."""
    import jax

    advice = "fewer games at once, simulations or samples a batch need less"
    with suppress(RuntimeError):  # a device with too little memory to begin
        if jax.default_backend() == "cpu":
            return advice
    return (
        f"{advice}. Another process may hold the memory (nvidia-smi lists them): end it, or let "
        f"jax reserve less with {FRACTIONS[0]}=0.4 or {PREALLOCATE}=false in the environment"
    )


def refused_by_jax(error: BaseException, trace: TracebackType | None) -> str:
    """Return a line about the variable that jax refuses while it is imported, else ""."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    source = PurePath(trace.tb_frame.f_code.co_filename if trace else "")
    if not isinstance(error, ValueError) or source.parts[-3:] != ("jax", "_src", "config.py"):
        return ""
    for name, value in sorted(os.environ.items()):
        if name.startswith("JAX_") and value and f"{value!r}"[1:-1] in str(error):
            return f"{name}: {shortened(value)!r}: {one_line(str(error))}"
    return f"environment: {one_line(str(error))}"
