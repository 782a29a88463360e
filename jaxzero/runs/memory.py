"""Device memory of a run: the prediction before anything is allocated, and the measured peak."""

import re
from dataclasses import asdict

import chex
import jax

from jaxzero.config import Config, dotted
from jaxzero.errors import InputError
from jaxzero.host.memory import available_host_bytes, process_peak_bytes

# Messages of XLA and of the libraries of a GPU that cannot allocate memory.
OUT_OF_MEMORY = re.compile(
    "RESOURCE_EXHAUSTED|OUT_OF_MEMORY|[Oo]ut of memory|STATUS_(NOT_INITIALIZED|ALLOC_FAILED)"
)
# Settings that the memory of an iteration grows with.
GROWS_WITH = ("selfplay.games_per_iteration", "replay.capacity", "learner.batch_size")


class DoesNotFit(InputError):
    """The run needs more memory than its device has."""

    def __init__(self, config: Config, needed: int, limit: int):
        self.needed, self.limit = needed, limit
        values = dict(dotted(asdict(config)))
        settings = ", ".join(f"{name}: {values[name]}" for name in GROWS_WITH)
        super().__init__(
            f"{settings} need {mebibytes(needed)} per device, which has {mebibytes(limit)}: lower "
            "one of them"
        )


def predicted_bytes(compiled: jax.stages.Compiled) -> int | None:
    """Return the bytes that XLA plans to hold on one device at once; None if unknown."""
    plan = compiled.memory_analysis() if isinstance(compiled, jax.stages.Compiled) else None
    if plan is None:
        return None
    return (
        plan.argument_size_in_bytes
        + plan.output_size_in_bytes
        - plan.alias_size_in_bytes
        + plan.temp_size_in_bytes
        + plan.generated_code_size_in_bytes
    )


def memory_limit_bytes(devices: list[jax.Device]) -> int | None:
    """Return the memory limit of one of `devices`, in bytes; None if unknown.

    CPU devices share the memory that is left on the machine or in the container.
    """
    stats = devices[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"]
    available = available_host_bytes() if devices[0].platform == "cpu" else None
    return None if available is None else available // len(devices)


def peak_memory_bytes(devices: list[jax.Device]) -> int:
    """Return the largest peak memory of the devices, or of the process if they report none."""
    peaks = [(device.memory_stats() or {}).get("peak_bytes_in_use", 0) for device in devices]
    return max(peaks) or process_peak_bytes()


def mebibytes(count: float | None) -> str:
    """Write a number of bytes in MiB."""
    return "unknown" if count is None else f"{count / 2**20:,.0f} MiB"


def tree_bytes(tree: chex.ArrayTree) -> int:
    """Return the bytes of all arrays or shapes of a tree."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
