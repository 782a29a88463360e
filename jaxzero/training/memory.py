"""What a run needs of a device's memory, known before anything is allocated, and what it took."""

from __future__ import annotations

import resource
import sys
from dataclasses import replace
from typing import NamedTuple

import chex
import jax

from jaxzero.agent.network import Network
from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.host_memory import available_host_bytes
from jaxzero.training.iteration import Actor, init_actor, make_iteration
from jaxzero.training.learner import Learner, init_learner
from jaxzero.training.parallel import parallelize

# Numbers of a node of the search tree for each edge: child, logit, visits, reward, discount, value.
_NODE_NUMBERS = 6


class DoesNotFit(InputError):
    """The run needs more memory than its device has."""

    def __init__(
        self, config: Config, needed: int, limit: int, parts: dict[str, int], at_least: bool = False
    ):
        self.needed, self.limit = needed, limit
        setting = max(parts, key=parts.get)
        section, name = setting.split(".")
        super().__init__(
            f"{setting}: {getattr(getattr(config, section), name)} takes "
            f"{mebibytes(parts[setting])} of {'at least ' * at_least}{mebibytes(needed)} that the "
            f"run needs per device, which has {mebibytes(limit)}: lower it"
        )


class Inputs(NamedTuple):
    """Shapes of what an iteration takes; nothing is allocated."""

    learner: Learner
    actor: Actor  # fields [D, ...]
    run_key: jax.ShapeDtypeStruct


class Plan(NamedTuple):
    """The compiled program of an iteration and what it will hold on one device, in bytes."""

    compiled: jax.stages.Compiled
    predicted: int | None  # None: XLA does not say
    replay: int


def plan_iteration(config: Config, network: Network, devices: list[jax.Device]) -> Plan:
    """Compile an iteration from shapes alone. Raises: DoesNotFit before anything is allocated."""
    inputs, limit = abstract_inputs(config, network, len(devices)), memory_limit_bytes(devices)
    # First what can be said without the compiler, which itself works through large constants.
    parts = least_bytes(config, inputs, len(devices))
    playing = parts["selfplay.games"] + parts["search.simulations"]
    # Playing and learning follow each other and share their memory.
    least = sum(parts.values()) - min(playing, parts["learner.batch_size"])
    if limit is not None and least > limit:
        raise DoesNotFit(config, least, limit, parts, at_least=True)
    _check_positions(inputs)
    compiled = compile_iteration(config, network, devices, inputs)
    predicted = predicted_memory_bytes(compiled)
    if limit is not None and predicted is not None and predicted > limit:
        temporary = compiled.memory_analysis().temp_size_in_bytes
        if temporary > max(parts.values()):
            setting = _hungry_phase(config, network, devices, inputs, temporary)
            if setting == "selfplay.games" and parts["search.simulations"] > temporary / 2:
                setting = "search.simulations"
            parts[setting] = temporary
        raise DoesNotFit(config, predicted, limit, parts)
    return Plan(compiled, predicted, parts["replay.capacity"])


def abstract_inputs(config: Config, network: Network, devices: int) -> Inputs:
    """Return the shapes of learner, actors and key of a run on `devices` devices."""
    learner, actor, run_key = jax.eval_shape(
        lambda: (init_learner(network, config), init_actor(config, devices), jax.random.key(0))
    )
    return Inputs(
        learner,
        jax.tree.map(lambda x: jax.ShapeDtypeStruct((devices, *x.shape), x.dtype), actor),
        run_key,
    )


def least_bytes(config: Config, inputs: Inputs, devices: int) -> dict[str, int]:
    """Return what an iteration holds at once on one device at the very least, by setting.

    Counts the weights, the replay ring, the positions of one iteration, the search trees and the
    samples of an update; neither activations nor copies. Both the games and the simulations
    multiply the trees: the one that is farther beyond its default is named for them.
    """
    edges = config.game.board.num_edges
    games = config.selfplay.games // devices
    nodes = games * (config.search.simulations + 1)
    trees = nodes * edges * 4 * _NODE_NUMBERS
    # Edges and policy; player, boxes, random or not.
    positions = games * config.steps_per_game * (edges * 5 + 9)
    drawn = config.learner.batch_size // devices * edges * 10  # edges and policy, before and after
    replay = _tree_bytes(inputs.actor) // devices
    parts = {"replay.capacity": replay, "selfplay.games": positions, "search.simulations": 0}
    if config.iterations_kept == 1:  # the ring is one iteration: a lower capacity changes nothing
        parts |= {"replay.capacity": 0, "selfplay.games": replay + positions}
    parts[_tree_setting(config)] += trees
    return parts | {"learner.batch_size": drawn, "network.channels": _tree_bytes(inputs.learner)}


def _tree_setting(config: Config) -> str:
    """Return the setting to lower for smaller trees."""
    usual = Config()
    games = config.selfplay.games / usual.selfplay.games
    simulations = config.search.simulations / usual.search.simulations
    return "search.simulations" if simulations > games else "selfplay.games"


def _check_positions(inputs: Inputs) -> None:
    """Raise an InputError for more positions than 32-bit indices can tell apart."""
    capacity = inputs.actor.replay.margin.shape[1]
    if capacity > 2**31 - 1:
        raise InputError(
            f"replay.capacity: {capacity:,} positions per device, whole iterations, "
            f"must be at most {2**31 - 1:,}"
        )


def _hungry_phase(
    config: Config, network: Network, devices: list[jax.Device], inputs: Inputs, temporary: int
) -> str:
    """Return the setting of the phase that asks for the `temporary` bytes of an iteration."""
    playing = replace(config, learner=replace(config.learner, updates_per_iteration=0))
    analysis = compile_iteration(playing, network, devices, inputs).memory_analysis()
    # The phases share this memory, so the larger one decides.
    learning = temporary > 1.25 * analysis.temp_size_in_bytes
    return "learner.batch_size" if learning else "selfplay.games"


def compile_iteration(
    config: Config, network: Network, devices: list[jax.Device], inputs: Inputs
) -> jax.stages.Compiled:
    """Compile the iteration that runs on `devices`, from the shapes of what it takes."""
    iteration = parallelize(make_iteration(config, network, len(devices)), devices)
    return iteration.lower(*inputs).compile()


def predicted_memory_bytes(compiled: jax.stages.Compiled) -> int | None:
    """Return what XLA plans to hold on one device at once, or None where it does not say."""
    plan = compiled.memory_analysis()
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
    """Return what one of `devices` can hold, in bytes; None where nobody says.

    On a CPU the devices share what the machine, or the container, has left.
    """
    stats = devices[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"]
    available = available_host_bytes() if devices[0].platform == "cpu" else None
    return None if available is None else available // len(devices)


def peak_memory_bytes(device: jax.Device) -> int:
    """Return the peak memory in use: of the device, or of the process where that is the host."""
    stats = device.memory_stats() or {}
    return stats.get("peak_bytes_in_use") or process_peak_bytes()


def process_peak_bytes() -> int:
    """Return the most memory this process ever held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def mebibytes(count: float | None) -> str:
    """Write a number of bytes in MiB."""
    return "unknown" if count is None else f"{count / 2**20:,.0f} MiB"


def _tree_bytes(tree: chex.ArrayTree) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
