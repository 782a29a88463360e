"""What bounds an iteration, and what to change: a function of the measured numbers alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from jaxzero.training.throughput import share_of

GROUPS = {
    "network": ("features", "network", "gradient", "optimiser"),
    "tree": ("tree", "rules", "moves"),
    "replay": ("replay write", "replay draw"),
    "host": ("host gap",),
}

HOST_SHARE = 0.2  # of the iteration: the device waits too long
DOUBLING_GAIN = 0.25  # fall of the time per evaluation when the batch doubles
LOW_FLOPS = 0.3  # of the matmul ceiling: the arithmetic is not what takes the time
HIGH_FLOPS = 0.5  # of the matmul ceiling: little is left to win
MEMORY_SHARE = 0.6  # of the time would go to moving the bytes at the copy ceiling
CACHED_SHARE = 1.2  # more bytes than could be moved: caches serve them, the count tells nothing
LEARNER_SHARE = 0.5  # of the network's time goes to learning
OPTIMISER_SHARE = 0.2  # of the network's time goes to the optimiser
UNEXPLAINED_SHARE = 0.25  # of the iteration is in no part: the parts do not tell the story


class Numbers(NamedTuple):
    """What was measured of one iteration."""

    seconds: dict[str, float]  # of each part, named as in `GROUPS`
    whole: float  # seconds of the iteration, measured as one
    flops_share: float  # of the matmul ceiling, while the network runs forward or backward
    memory_share: float | None  # bytes of the network at the copy ceiling, over its time
    doubling_gain: float  # fall of self-play's time per evaluation when the batch doubles
    on_cpu: bool
    dtype: str  # of the network's activations
    convolutional: bool  # the network's trunk


class Verdict(NamedTuple):
    """What bounds the iteration."""

    bound: str  # "network", "tree", "memory bandwidth", "launches", "host", "replay", "unknown"
    reason: str
    advice: tuple[str, ...]


def judge(numbers: Numbers) -> Verdict:
    """Name what bounds the iteration, by the first rule that holds."""
    groups, whole = group_seconds(numbers), numbers.whole
    shares = {name: seconds / whole for name, seconds in groups.items()}
    largest = max(shares, key=shares.get)
    remainder = 1 - sum(shares.values())
    if shares["host"] > HOST_SHARE:
        return host_bound(shares["host"])
    if remainder > max(UNEXPLAINED_SHARE, shares[largest]):
        return unknown_bound(remainder)
    if numbers.doubling_gain > DOUBLING_GAIN and numbers.flops_share < LOW_FLOPS:
        return launch_bound(numbers)
    if largest == "tree":
        return tree_bound(shares["tree"])
    if largest == "replay":
        return replay_bound(shares["replay"])
    moving = MEMORY_SHARE < (numbers.memory_share or 0.0) <= CACHED_SHARE
    if moving and numbers.flops_share < HIGH_FLOPS:
        return memory_bound(numbers)
    return network_bound(numbers, shares["network"])


def group_seconds(numbers: Numbers) -> dict[str, float]:
    """Add up the parts that stand or fall together."""
    return {
        group: sum(numbers.seconds.get(part, 0.0) for part in parts)
        for group, parts in GROUPS.items()
    }


def host_bound(share: float) -> Verdict:
    return Verdict(
        "host",
        f"the device waits for the host during {share_of('whole', share)} of the iteration",
        (
            "raise selfplay.games or learner.updates_per_iteration: longer iterations wait less "
            "often",
            "keep the run directory on a fast disk: metrics are written between iterations",
        ),
    )


def unknown_bound(remainder: float) -> Verdict:
    return Verdict(
        "unknown",
        f"{remainder:.0%} of the iteration is in none of the parts measured",
        ("take a --trace and look for what runs between the parts",),
    )


def launch_bound(numbers: Numbers) -> Verdict:
    return Verdict(
        "launches",
        f"with twice the games an evaluation takes {numbers.doubling_gain:.0%} less time, and the "
        f"network uses {share_of('products', numbers.flops_share)} of the matmul ceiling",
        ("raise selfplay.games until the time per evaluation no longer falls",),
    )


def tree_bound(share: float) -> Verdict:
    return Verdict(
        "tree",
        f"descent, expansion, backup and rules take {share_of('whole', share)} of the iteration",
        (
            "lower search.simulations, or limit search.max_depth: each level is one more round",
            "raise selfplay.games: a round costs nearly the same for more games",
            "a larger network costs little here: raise network.channels",
        ),
    )


def replay_bound(share: float) -> Verdict:
    return Verdict(
        "replay",
        f"writing and drawing positions take {share_of('whole', share)} of the iteration",
        (
            "lower learner.updates_per_iteration, or learner.batch_size",
            "lower replay.capacity: a ring that fits a cache is drawn from faster",
        ),
    )


def memory_bound(numbers: Numbers) -> Verdict:
    advice = [*bfloat16_advice(numbers)]
    if numbers.convolutional:
        advice += [
            "try the other network.convolution: shifted writes nine copies of its input",
            "less often network.pooling_every, no network.squeeze_excitation: they break fusion",
        ]
    else:
        advice.append("fewer, wider layers: lower network.blocks, raise network.channels")
    return Verdict(
        "memory bandwidth",
        "moving the network's bytes at the copy ceiling would take "
        f"{share_of('copies', numbers.memory_share)} of its time",
        tuple(advice),
    )


def network_bound(numbers: Numbers, share: float) -> Verdict:
    near = numbers.flops_share >= HIGH_FLOPS
    reason = (
        f"the network takes {share_of('whole', share)} of the iteration; use of the matmul ceiling "
        f"meanwhile: {share_of('products', numbers.flops_share)}"
        + ("; little is left to win in its kernels" if near else "")
    )
    advice = [*learner_advice(numbers)]
    if near:
        advice.append("less work: lower search.simulations, network.channels or network.blocks")
    else:
        advice += [*bfloat16_advice(numbers), *shape_advice(numbers)]
    return Verdict("network", reason, tuple(advice))


def learner_advice(numbers: Numbers) -> Iterator[str]:
    """Advise on learning where it takes much of the network's time."""
    seconds = numbers.seconds
    total = max(group_seconds(numbers)["network"], 1e-12)
    optimiser = seconds.get("optimiser", 0.0)
    if (seconds.get("gradient", 0.0) + optimiser) / total > LEARNER_SHARE:
        yield "learning takes more than self-play: lower learner.updates_per_iteration"
    if optimiser / total > OPTIMISER_SHARE:
        yield "the optimiser is dear: fewer updates of a larger learner.batch_size"


def bfloat16_advice(numbers: Numbers) -> Iterator[str]:
    if numbers.dtype == "float32" and not numbers.on_cpu:
        yield "set network.compute_dtype bfloat16: half the bytes, faster products"


def shape_advice(numbers: Numbers) -> Iterator[str]:
    if numbers.convolutional:
        yield "try the other network.convolution (direct, shifted)"
    if not numbers.on_cpu:
        yield "network.channels in multiples of 64 fill the matrix units"
    yield "raise network.channels rather than network.blocks: wider products run nearer the ceiling"
