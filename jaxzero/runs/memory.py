"""Device memory of a run: the prediction before anything is allocated, and the measured peak."""

from __future__ import annotations

import re

import chex
import jax

from jaxzero.config import Config, plan
from jaxzero.errors import InputError
from jaxzero.host.memory import available_host_bytes, process_peak_bytes

# Messages of XLA and of the libraries of a GPU that cannot allocate memory.
OUT_OF_MEMORY = re.compile(
    "RESOURCE_EXHAUSTED|OUT_OF_MEMORY|[Oo]ut of memory|STATUS_(NOT_INITIALIZED|ALLOC_FAILED)"
)
# Bytes per edge in a node of the search tree: child, logit, visits, value. mctx stores more.
NODE_BYTES = 4 * 4
_LARGEST_INDEX = 2**31 - 1
# The settings that the temporary arrays of an iteration grow with: self-play and learning share
# their memory.
TEMPORARY = "selfplay.games_per_iteration, search.simulations or learner.batch_size"


class DoesNotFit(InputError):
    """The run needs more memory than its device has."""

    def __init__(
        self, config: Config, needed: int, limit: int, parts: dict[str, int], at_least: bool = False
    ):
        self.needed, self.limit = needed, limit
        setting = max(parts, key=parts.get)
        value, it = "working memory", "one of them"
        if setting != TEMPORARY:
            section, name = setting.split(".")
            value, it = getattr(getattr(config, section), name), "it"
        super().__init__(
            f"{setting}: {value} takes {mebibytes(parts[setting])} of "
            f"{'at least ' * at_least}{mebibytes(needed)} that the run needs per device, which has "
            f"{mebibytes(limit)}: lower {it}"
        )


def least_bytes(
    config: Config, learner: chex.ArrayTree, actor: chex.ArrayTree, devices: int
) -> dict[str, int]:
    """Return a lower bound of the bytes that an iteration holds on one device, by setting.

    `learner` and `actor` [D, ...] are shapes. The bound counts the weights, the replay, the
    positions of one iteration, the search trees and the samples of an update, but no activations
    and no copies. Trees count for games or for simulations, whichever is farther above its default.
    """
    edges = config.game.board.num_edges
    sizes = plan(config, config.selfplay.games_per_iteration // devices)
    nodes = sizes.lanes * (config.search.simulations + 1)
    trees = nodes * edges * NODE_BYTES
    # Bytes of a position: 5 an edge (drawn, policy), 13 for player, boxes, value, random or not.
    positions = sizes.lanes * sizes.steps * (edges * 5 + 13)
    sampled = config.learner.batch_size // devices * edges * 10  # edges, policy; before and after
    replay = tree_bytes(actor) // devices
    parts = {
        "replay.capacity": replay,
        "selfplay.games_per_iteration": positions,
        "search.simulations": 0,
    }
    if sizes.iterations_kept == 1:  # the replay is one iteration: a lower capacity changes nothing
        parts |= {"replay.capacity": 0, "selfplay.games_per_iteration": replay + positions}
    default = Config()
    more_games = config.selfplay.games_per_iteration / default.selfplay.games_per_iteration
    more_simulations = config.search.simulations / default.search.simulations
    parts[
        "search.simulations" if more_simulations > more_games else "selfplay.games_per_iteration"
    ] += trees
    return parts | {"learner.batch_size": sampled, "network.channels": tree_bytes(learner)}


def refuse_least(config: Config, parts: dict[str, int], limit: int | None, devices: int) -> None:
    """Raise an InputError if the `parts` of `least_bytes` exceed `limit` bytes.

    Also raise it for more positions than 32-bit indices can number.
    """
    playing = parts["selfplay.games_per_iteration"] + parts["search.simulations"]
    # Self-play and learning run one after the other and share their memory.
    least = sum(parts.values()) - min(playing, parts["learner.batch_size"])
    if limit is not None and least > limit:
        raise DoesNotFit(config, least, limit, parts, at_least=True)
    sizes = plan(config)
    capacity = sizes.positions // devices * sizes.iterations_kept
    if capacity > _LARGEST_INDEX:
        raise InputError(
            f"replay.capacity: {capacity:,} positions per device, whole iterations, "
            f"must be at most {_LARGEST_INDEX:,}"
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
