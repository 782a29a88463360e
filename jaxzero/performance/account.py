"""Where the time of one iteration goes: its parts timed, multiplied up, set against the whole."""

from __future__ import annotations

import statistics
from typing import NamedTuple

import jax

from jaxzero.agent.forms import compute_dtype
from jaxzero.agent.network import Network
from jaxzero.config import Config
from jaxzero.performance.ceilings import copy_bytes_per_second, matmul_flops_per_second
from jaxzero.performance.costs import network_cost, update_cost
from jaxzero.performance.loop import Loop
from jaxzero.performance.phases import Part, iteration_parts, selfplay_parts
from jaxzero.performance.verdict import Numbers
from jaxzero.training.learner import Learner
from jaxzero.training.parallel import local_copy
from jaxzero.training.throughput import seconds_per_call

TIMED_SECONDS = 15.0  # of whole iterations, where one is not longer
MOST_ROUNDS = 11
DOUBLED = ("evaluation", "free_selfplay")


class Timed(NamedTuple):
    """What the clock said, in seconds an iteration unless said otherwise."""

    parts: dict[str, float]  # as `iteration_parts` names them
    doubled: dict[str, float]  # the parts in `DOUBLED` with twice the games
    whole: float  # the iteration with all the trainer does
    host: float  # from the end of the device's work to its next start


class Ceilings(NamedTuple):
    """What one device can do at best, measured."""

    flops: float  # per second, matrix products in the network's number format
    bytes: float  # per second, copies


class Work(NamedTuple):
    """What the network does in one iteration on one device."""

    forward_flops: float
    learning_flops: float
    bytes_moved: float | None  # None: the compiler does not say


def time_iteration(
    config: Config, loop: Loop, network: Network, learner: Learner, rounds: int
) -> Timed:
    """Time the parts on the first device, and the whole iteration, all by turns."""
    devices = len(loop.devices)
    games = config.selfplay.games // devices
    parts = iteration_parts(config, network, learner, devices)
    larger = selfplay_parts(config, network, learner.params, 2 * games)
    larger = {name: larger[name] for name in DOUBLED}
    programs = [*parts.values(), *larger.values()]
    loop.host_seconds.clear()
    whole, launch, *times = seconds_per_call(
        loop.iterate, loop.launch, *(program.call for program in programs), rounds=rounds
    )
    seconds = [scaled(program, time) for program, time in zip(programs, times, strict=True)]
    return Timed(
        parts=dict(zip(parts, seconds, strict=False)),
        doubled=dict(zip(larger, seconds[len(parts) :], strict=True)),
        whole=whole,
        host=statistics.median(loop.host_seconds[1:]) + launch,
    )


def rounds_for(seconds: float) -> int:
    """Return how often to time an iteration of about so many seconds."""
    return max(1, min(MOST_ROUNDS, int(TIMED_SECONDS / seconds)))


def scaled(part: Part, seconds: float) -> float:
    """Turn the seconds of one call into those of an iteration."""
    return seconds / part.repeats * part.count


def table_of(timed: Timed) -> dict[str, float]:
    """Return the seconds of each row of the table; none is counted twice.

    `evaluation` holds the features and `free_selfplay` the rules and moves, so these come off.
    """
    parts = timed.parts
    rows = {
        "features": parts["features"],
        "network": max(0.0, parts["evaluation"] - parts["features"]),
        "tree": max(0.0, parts["free_selfplay"] - parts["rules"] - parts["moves"]),
        "rules": parts["rules"],
        "moves": parts["moves"],
        "replay write": parts["replay_write"],
    }
    if "gradient" in parts:
        rows |= {
            "replay draw": parts["replay_draw"],
            "gradient": parts["gradient"],
            "optimiser": parts["optimiser"],
        }
    return rows | {"host gap": timed.host}


def doubling_gain(timed: Timed) -> float:
    """Return by which share the time per evaluation falls when the games double."""
    once = sum(timed.parts[name] for name in DOUBLED)
    twice = sum(timed.doubled[name] for name in DOUBLED)
    return 1 - twice / (2 * once)


def measure_ceilings(network: Network) -> Ceilings:
    """Measure the ceilings of one device in the network's number format."""
    dtype = compute_dtype(network.config)
    return Ceilings(matmul_flops_per_second(dtype), copy_bytes_per_second())


def highest(*ceilings: Ceilings) -> Ceilings:
    """Return the best of several measurements: other work on the machine only lowers them."""
    return Ceilings(max(c.flops for c in ceilings), max(c.bytes for c in ceilings))


def count_work(config: Config, network: Network, learner: Learner, devices: int) -> Work:
    """Count operations and bytes of the network in one iteration, per device."""
    evaluations = config.evaluations_per_iteration // devices
    samples = config.learner.batch_size // devices
    learnt = samples * config.learner.updates_per_iteration
    forward = network_cost(network, learner.params, config.selfplay.games // devices)
    backward = update_cost(network, config, learner, samples)
    moved = None
    if forward.bytes_moved is not None and backward.bytes_moved is not None:
        moved = evaluations * forward.bytes_moved + learnt * backward.bytes_moved
    return Work(evaluations * forward.flops, learnt * backward.flops, moved)


def model_flops_use(work: Work, ceilings: Ceilings, seconds: float) -> float:
    """Return the share of the matmul ceiling that the network's operations use in `seconds`."""
    return (work.forward_flops + work.learning_flops) / (seconds * ceilings.flops)


def numbers_of(config: Config, timed: Timed, work: Work, ceilings: Ceilings) -> Numbers:
    """Gather what the verdict needs."""
    learning = timed.parts.get("gradient", 0.0) + timed.parts.get("optimiser", 0.0)
    busy = timed.parts["evaluation"] + learning
    moved = work.bytes_moved
    return Numbers(
        seconds=table_of(timed),
        whole=timed.whole,
        flops_share=model_flops_use(work, ceilings, busy),
        memory_share=None if moved is None else moved / ceilings.bytes / busy,
        doubling_gain=doubling_gain(timed),
        on_cpu=jax.default_backend() == "cpu",
        dtype=compute_dtype(config.network).name,
        convolutional=config.network.convolutional,
    )


def first_learner(loop: Loop) -> Learner:
    """Copy the learner to the first device alone, safe from the iteration's donation."""
    return local_copy(loop.progress.learner)
