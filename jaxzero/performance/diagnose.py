"""The diagnosis: a profile of one iteration, its bottleneck, and what to change.

A profile splits an iteration into parts that do not overlap. Each is timed alone, at the batch it
has, times how often it runs; what they leave open of the whole is unexplained.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import jax

from jaxzero.config import Config
from jaxzero.network.layers import compute_dtype
from jaxzero.performance.monitor import count_transfers, take_trace, training, watch_utilisation
from jaxzero.performance.report import (
    WIDTH,
    Result,
    Share,
    ceilings,
    count_bytes,
    count_flops,
    describe,
    measures,
    notes_on,
    setting_lines,
    time_table,
)
from jaxzero.performance.timing import (
    Part,
    Workload,
    ceiling_parts,
    gradient_part,
    make_workload,
    network_part,
    optimiser_part,
    rules_part,
    sample_part,
    selfplay_part,
    time_parts,
    write_part,
)
from jaxzero.training.adjudicator import Adjudicator
from jaxzero.training.parallel import choose_devices, local_copy

TIMED_SECONDS, MOST_ROUNDS = 15.0, 11  # of whole iterations
REPEATS = 64  # of a part in one call, at most
LEARNING = ("replay_sample", "gradient", "optimiser")
GROUPS = {
    "network": ("network", "gradient", "optimiser"),
    "tree": ("tree", "rules"),
    "replay": ("replay_write", "replay_sample"),
    "host": ("host_gap",),
}
ABOUT = {
    "network": "evaluations of self-play",
    "tree": "descent, expansion, backup, choice of moves",
    "rules": "moves on the board, in the tree and out",
    "replay_write": "new positions into the replay",
    "replay_sample": "batches from the replay, symmetries",
    "gradient": "loss and gradient",
    "optimiser": "clip, step, average",
    "host_gap": "read and write metrics",
    "sum": "of the parts, each measured alone",
    "unexplained": "fusion, caches, noise; parts not measured",
    "whole": "the iteration, measured as one",
}


def diagnose(config: Config, trace: Path | None = None) -> Result:
    """Measure an iteration and its parts. Raises: InputError for devices that do not fit."""
    devices = choose_devices(config.devices)
    count = len(devices)
    config.check_devices(count)
    solves = config.selfplay.adjudicate_below > 0
    with training(config, devices) as run:
        with Adjudicator(config, devices) if solves else nullcontext() as run.solver:
            transfers = count_transfers(run)  # first: it also warms the iteration up
            utilisation = watch_utilisation(run.iterate, devices)
        run.solver = None  # it would take cores from the parts
        files = take_trace(run.iterate, trace) if trace else {}
        work = make_workload(config, local_copy(run.progress.learner), count)
        rounds = max(1, min(MOST_ROUNDS, int(TIMED_SECONDS / utilisation.seconds)))
        # The long calls first: on a busy machine the call after one of them waits for its turn.
        parts = ceiling_parts(compute_dtype(config.network)) | {"iteration": Part(run.iterate)}
        times = time_parts(parts | iteration_parts(work), rounds)
        times["host_gap"] = run.host_gap()
    batches = (config, work.learner, work.games, work.samples)
    limits = count_flops(*batches) | count_bytes(*batches) | ceilings(times)
    if work.learned:
        times["learning"] = sum(times[name] for name in LEARNING)
    waits = median(run.solver_seconds) / utilisation.seconds if solves else None
    profile = profile_of(work, times, limits)._replace(solver_share=waits or 0.0)
    found = measures(config, count, times, limits, run.games())
    return describe(config, devices) | found | {
        "profile": profile.seconds,
        "unexplained_seconds": profile.whole - sum(profile.seconds.values()),
        "doubling_gain": profile.doubling_gain,
        "network_flops_share": profile.flops_share,
        "network_memory_share": profile.memory_share,
        "utilisation": utilisation._asdict(),
        "transfers": transfers._asdict(),
        "trace": files,
        "solver_wait_share": waits,
        "bottleneck": find_bottleneck(profile)._asdict(),
        "notes": list(notes_on(config)),
    }  # fmt: skip


def iteration_parts(work: Workload) -> dict[str, Part]:
    """Return the parts of an iteration on one device.

    `rules` is a part of `tree`, which is self-play with a free evaluator.
    """
    evaluations = min(REPEATS, work.evaluations // work.games)
    updates = min(REPEATS, work.config.learner.updates_per_iteration)
    double = work._replace(games=2 * work.games)
    parts = {
        "network": network_part(work, evaluations),
        "rules": rules_part(work, evaluations),
        "tree": selfplay_part(work, free=True),
        "network_doubled": network_part(double, evaluations),
        "tree_doubled": selfplay_part(double, free=True),
        "replay_write": write_part(work),
    }
    if not updates:
        return parts
    return parts | {
        "replay_sample": sample_part(work, updates),
        "gradient": gradient_part(work, min(updates, REPEATS // 4)),
        "optimiser": optimiser_part(work, updates),
    }


class Profile(NamedTuple):
    """What was measured of one iteration."""

    seconds: dict[str, float]  # of each part, named as in `GROUPS`; none is counted twice
    whole: float  # seconds of the iteration, measured as one
    flops_share: float  # of the matmul ceiling, while the network runs forward or backward
    memory_share: float | None  # bytes of the network at the copy ceiling, over its time
    doubling_gain: float  # fall of self-play's time per evaluation when the games double
    on_cpu: bool
    dtype: str  # of the network's activations
    convolutional: bool  # the network's trunk
    solver_share: float = 0.0  # of an iteration with the solver: the device waits for its answers


def profile_of(work: Workload, times: dict[str, float], limits: dict[str, float | None]) -> Profile:
    """Split the seconds of timed parts so that none is counted twice, and add the shares."""
    seconds = {name: times[name] for name in ABOUT if name in times}
    seconds["tree"] = max(0.0, times["tree"] - times["rules"])
    busy = sum(times.get(name, 0.0) for name in GROUPS["network"])
    flops, moved = (
        work.evaluations * (limits[f"{unit}_per_evaluation"] or 0.0)
        + work.learned * (limits[f"{unit}_per_sample"] or 0.0)
        for unit in ("flops", "bytes")
    )
    once, twice = (times[f"network{kind}"] + times[f"tree{kind}"] for kind in ("", "_doubled"))
    network = work.config.network
    return Profile(
        seconds=seconds,
        whole=times["iteration"],
        flops_share=flops / limits["matmul_ceiling_flops"] / busy,
        memory_share=moved / limits["copy_ceiling_bytes"] / busy if moved else None,
        doubling_gain=1 - twice / once,
        on_cpu=jax.default_backend() == "cpu",
        dtype=compute_dtype(network).name,
        convolutional=network.trunk == "conv",
    )


# The bottleneck

HOST_SHARE = 0.2  # of the iteration: the device waits too long
DOUBLING_GAIN = 0.25  # fall of the time per evaluation when the games double
LOW_FLOPS = 0.3  # of the matmul ceiling: the arithmetic is not what takes the time
HIGH_FLOPS = 0.5  # of the matmul ceiling: little is left to win
MEMORY_SHARE = 0.6  # of the time would go to moving the bytes at the copy ceiling
CACHED_SHARE = 1.2  # more bytes than could be moved: caches serve them, the count tells nothing
LEARNER_SHARE = 0.5  # of the network's time goes to learning
OPTIMISER_SHARE = 0.2  # of the network's time goes to the optimiser
UNEXPLAINED_SHARE = 0.25  # of the iteration is in no part: the parts do not tell the story


ADVICE = {
    "solver": (
        "lower selfplay.adjudicate_below or selfplay.solved_per_game: less is to be solved",
        "raise search.simulations or network.channels: the device leaves the solver more time",
    ),
    "host": (
        "raise selfplay.games or learner.updates_per_iteration: longer iterations wait less often",
        "keep the run directory on a fast disk: metrics are written between iterations",
    ),
    "unknown": ("take a --trace and look for what runs between the parts",),
    "launches": ("raise selfplay.games until the time per evaluation no longer falls",),
    "tree": (
        "lower search.simulations: each round costs as much for few games as for many",
        "raise selfplay.games: a round costs nearly the same for more games",
        "a larger network costs little here: raise network.channels",
    ),
    "replay": (
        "lower learner.updates_per_iteration, or learner.batch_size",
        "lower replay.capacity: sampling is faster where the replay fits a cache",
    ),
}


class Bottleneck(NamedTuple):
    """What bounds an iteration, and what to change."""

    name: str  # a key of `ADVICE`, "network" or "memory bandwidth"
    reason: str
    advice: tuple[str, ...]


def find_bottleneck(profile: Profile) -> Bottleneck:
    """Name what bounds the iteration, by the first rule that holds."""
    shares = {
        group: sum(profile.seconds.get(part, 0.0) for part in parts) / profile.whole
        for group, parts in GROUPS.items()
    }
    largest, remainder = max(shares, key=shares.get), 1 - sum(shares.values())
    flops, memory, gain = profile.flops_share, profile.memory_share or 0.0, profile.doubling_gain
    name = largest
    if profile.solver_share > HOST_SHARE:
        name = "solver"
    elif shares["host"] > HOST_SHARE:
        name = "host"
    elif remainder > max(UNEXPLAINED_SHARE, shares[largest]):
        name = "unknown"
    elif gain > DOUBLING_GAIN and flops < LOW_FLOPS:
        name = "launches"
    elif largest in ("network", "host"):
        waits = MEMORY_SHARE < memory <= CACHED_SHARE and flops < HIGH_FLOPS
        name = "memory bandwidth" if waits else "network"

    said = {group: Share(share, "whole", 0).sentence() for group, share in shares.items()}
    used = Share(flops, "products", 0).sentence()
    moved = Share(memory, "copies", 0).sentence()
    near = "; little is left to win in its kernels" * (flops >= HIGH_FLOPS)
    reasons = {
        "solver": f"the device waits for the solver during {profile.solver_share:.0%} of the "
        "iteration",
        "host": f"the device waits for the host during {said['host']} of the iteration",
        "unknown": f"{remainder:.0%} of the iteration is in none of the parts measured",
        "launches": f"with twice the games an evaluation takes {gain:.0%} less time, and the "
        f"network uses {used} of the matmul ceiling",
        "tree": f"descent, expansion, backup and rules take {said['tree']} of the iteration",
        "replay": f"writing and sampling positions take {said['replay']} of the iteration",
        "memory bandwidth": "moving the network's bytes at the copy ceiling would take "
        f"{moved} of its time",
        "network": f"the network takes {said['network']} of the iteration; use of the matmul "
        f"ceiling meanwhile: {used}{near}",
    }
    advice = ADVICE.get(name) or network_advice(profile, name == "memory bandwidth")
    return Bottleneck(name, reasons[name], tuple(advice))


def network_advice(profile: Profile, waits: bool) -> Iterator[str]:
    """Advise on a network that takes most of the time; `waits` says whether for memory."""
    seconds = profile.seconds
    total = max(sum(seconds.get(part, 0.0) for part in GROUPS["network"]), 1e-12)
    optimiser = seconds.get("optimiser", 0.0)
    if (seconds.get("gradient", 0.0) + optimiser) / total > LEARNER_SHARE:
        yield "learning takes more than self-play: lower learner.updates_per_iteration"
    if optimiser / total > OPTIMISER_SHARE:
        yield "the optimiser is expensive: fewer updates of a larger learner.batch_size"
    if profile.flops_share >= HIGH_FLOPS:
        yield "less work: lower search.simulations, network.channels or network.blocks"
        return
    if profile.dtype == "float32" and not profile.on_cpu:  # a CPU has no fast bfloat16
        yield "set network.compute_dtype bfloat16: half the bytes, faster products"
    if profile.convolutional:
        yield "try the other network.convolution: shifted writes nine copies of its input"
    if waits and profile.convolutional:
        yield "raise network.pooling_every: it breaks fusion"
    if not profile.on_cpu:
        yield "network.channels in multiples of 64 fill the matrix units"
    yield "raise network.channels rather than network.blocks: wider products run nearer the ceiling"


# For people


def report(result: Result) -> str:
    """Lay a diagnosis out, at most `WIDTH` characters wide; paths stay whole."""
    profile, whole = result["profile"], result["seconds"]["iteration"]
    ends = {"sum": sum(profile.values()), "unexplained": result["unexplained_seconds"]}
    table = time_table(profile | ends | {"whole": whole}, whole, ABOUT)
    if result["devices"] > 1:
        table += "\nParts on one device, the iteration on all: their exchange is unexplained."
    bottleneck = result["bottleneck"]
    advice = [f"- {line}" for line in bottleneck["advice"]]
    sections = {
        "Use of the device": use_lines(result),
        "Transfers between host and device": transfer_lines(result["transfers"]),
        "Trace of one iteration": [f"{name}: {file}" for name, file in result["trace"].items()],
        f"Bottleneck: {bottleneck['name']}": [bottleneck["reason"], *advice],
        "Notes": result["notes"],
    }
    parts = [setting_lines(result), table]
    parts += [section(title, lines) for title, lines in sections.items()]
    return "\n\n".join(filter(None, parts))


def section(title: str, lines: Iterable[str]) -> str:
    """Write a title and its lines, indented and folded; nothing without lines."""
    form = {"break_long_words": False, "break_on_hyphens": False}
    indents = {"initial_indent": "  ", "subsequent_indent": "    "}
    folded = [textwrap.fill(line, WIDTH - 2, **indents, **form) for line in lines]
    return "\n".join([title, *folded]) if folded else ""


def use_lines(result: Result) -> Iterator[str]:
    """Compare what the device seems to do with what it achieves."""
    used, moved = result["utilisation"], result["network_memory_share"]
    share = "unknown" if used["share"] is None else Share(used["share"], "cores", 0).sentence()
    whole = Share(result["iteration_mfu"], "products").sentence()
    busy = Share(result["network_flops_share"], "products").sentence()
    yield f"utilisation ({used['source']}): {share}"
    yield f"use of the matmul ceiling (MFU): {whole}"
    yield f"  while the network runs: {busy}"
    if moved is not None:
        share = Share(moved, "copies", 0).sentence()
        yield f"of the network's time its bytes at the copy ceiling would take: {share}"
    gain = result["doubling_gain"]
    change = f"{abs(gain):.0%} {'less' if gain > 0 else 'more'} time"
    yield f"with twice the games an evaluation takes {change}"
    if result["solver_wait_share"] is not None:
        yield f"of an iteration the device waits for the solver: {result['solver_wait_share']:.0%}"


def transfer_lines(found: dict[str, Any]) -> Iterator[str]:
    """Say what crosses between host and device, what is proven, and how."""
    yield (
        f"device to host: {found['to_host_bytes']} bytes an iteration, "
        f"the {found['to_host_scalars']} scalars of the metrics"
    )
    if found["stops_bytes"]:
        yield f"and {found['stops_bytes']} bytes of positions for the solver"
    sent = ", ".join(f"{name} {count}" for name, count in found["sent"].items())
    yield f"host to device: {sum(found['sent'].values())} bytes an iteration ({sent})"
    if found["refused"]:
        yield f"NOT all: the transfer guard refused more: {found['refused'][:160]}"
    elif found["guards_to_device"]:
        yield (
            "nothing else, proven: the program ran under a guard that refuses every transfer, the "
            "trainer under one that refuses all but these, and a deliberate one was refused"
        )
    else:
        yield "nothing else seen, not proven: the guard refuses nothing here"
    if not found["guards_to_host"]:
        yield "more to the host: the guard cannot tell here (device memory is the host's)"
    if found["host_calls"]:
        yield f"inside the program: NOT nothing, it calls {', '.join(found['host_calls'])}"
    else:
        yield "inside the program: no callback, infeed, outfeed, send or receive, by its own text"
    if found["open_loops"]:
        yield (
            f"{found['open_loops']} of its loops end when the data say so (games, descent, backup, "
            "chains): on a GPU the host reads one byte a round"
        )
