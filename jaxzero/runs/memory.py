"""Device memory of a run: the prediction before anything is allocated, and the measured peak."""

import re
from dataclasses import asdict

import chex
import jax

from jaxzero.config import Config, dotted, plan
from jaxzero.errors import InputError
from jaxzero.host.memory import available_host_bytes, process_peak_bytes

# Messages of XLA and of the libraries of a GPU that cannot allocate memory.
OUT_OF_MEMORY = re.compile(
    "RESOURCE_EXHAUSTED|OUT_OF_MEMORY|[Oo]ut of memory|STATUS_(NOT_INITIALIZED|ALLOC_FAILED)"
)
# Bytes per edge in a node of the search tree: child, logit, visits, value. mctx stores more.
NODE_BYTES = 4 * 4
MAX_INDEX = 2**31 - 1

# Settings that memory grows with, alone or together. Self-play and learning share theirs.
REPLAY, NETWORK, LEARNING = ("replay.capacity",), ("network.channels",), ("learner.batch_size",)
PLAYING = ("selfplay.games_per_iteration", "search.simulations")
Parts = dict[tuple[str, ...], int]  # bytes by the settings that they grow with


class DoesNotFit(InputError):
    """The run needs more memory than its device has."""

    def __init__(self, config: Config, needed: int, limit: int, parts: Parts):
        self.needed, self.limit = needed, limit
        largest, values = max(parts, key=parts.get), dict(dotted(asdict(config)))
        takes, it = ("take", "one of them") if largest[1:] else ("takes", "it")
        super().__init__(
            f"{', '.join(f'{name}: {values[name]}' for name in largest)} {takes} "
            f"{mebibytes(parts[largest])} of at least {mebibytes(needed)} that the run needs per "
            f"device, which has {mebibytes(limit)}: lower {it}"
        )


def least_bytes(
    config: Config, learner: chex.ArrayTree, actor: chex.ArrayTree, devices: int
) -> Parts:
    """Return a lower bound of the bytes that an iteration holds on one device, by settings.

    `learner` and `actor` [D, ...] are shapes. The bound counts the weights, the replay, the
    positions of one iteration, the search trees and the samples of an update, but no activations
    and no copies.
    """
    edges = config.game.board.num_edges
    sizes = plan(config, config.selfplay.games_per_iteration // devices)
    trees = sizes.lanes * (config.search.simulations + 1) * edges * NODE_BYTES
    # Bytes of a position: 5 an edge (drawn, policy), 13 for player, boxes, value, random or not.
    positions = sizes.lanes * sizes.steps * (edges * 5 + 13)
    parts = {
        REPLAY: tree_bytes(actor) // devices,
        NETWORK: tree_bytes(learner),
        PLAYING: positions + trees,
        # Edges and policy of the samples, before and after augmentation.
        LEARNING: config.learner.batch_size // devices * edges * 10,
    }
    if sizes.iterations_kept == 1:  # the replay is one iteration: a lower capacity changes nothing
        parts[PLAYING] += parts.pop(REPLAY)
    return parts


def refuse_least(config: Config, parts: Parts, limit: int | None, devices: int) -> None:
    """Raise an InputError if the `parts` of `least_bytes` exceed `limit` bytes.

    Also raise it for more positions than 32-bit indices can number.
    """
    # Self-play and learning run one after the other and share their memory.
    least = sum(parts.values()) - min(parts[PLAYING], parts[LEARNING])
    if limit is not None and least > limit:
        raise DoesNotFit(config, least, limit, parts)
    sizes = plan(config)
    capacity = sizes.positions // devices * sizes.iterations_kept
    if capacity > MAX_INDEX:
        raise InputError(
            f"replay.capacity: {capacity:,} positions per device, whole iterations, "
            f"must be at most {MAX_INDEX:,}"
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
