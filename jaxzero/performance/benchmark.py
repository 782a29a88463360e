"""The benchmark: the speed of a config, its shares of the device's limits, and its bottleneck.

An iteration is split into parts that do not overlap. Each is timed alone, at the batch it has,
times how often it runs; what they leave open of the whole is unexplained.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax

from jaxzero.cli import dotted
from jaxzero.config import Config
from jaxzero.errors import InputError, shortened
from jaxzero.host.files import make_folder
from jaxzero.host.readers import read_mapping
from jaxzero.host.status import doing
from jaxzero.network.layers import compute_dtype
from jaxzero.performance.report import (
    WIDTH,
    Result,
    Share,
    count_bytes,
    count_flops,
    describe,
    measures,
    notes_on,
    setting_lines,
    table,
)
from jaxzero.performance.timing import (
    Part,
    Workload,
    copy_part,
    learning_part,
    make_workload,
    matmul_part,
    network_part,
    search_part,
    seconds_per_call,
    selfplay_part,
    time_parts,
    training,
)
from jaxzero.runs.memory import mebibytes, peak_memory_bytes
from jaxzero.training.parallel import choose_devices

# Longest call of each kind, as a share of the seconds of one round.
SELFPLAY_SHARE, ITERATION_SHARE, CALL_SHARE = 0.3, 0.3, 0.1
PHASES = ("selfplay", "learning")
PROFILE = {  # the parts of an iteration; self-play is the network and the tree
    "network": "evaluations of self-play",
    "tree": "search and moves, with an evaluator that costs nothing",
    "learning": "batches from the replay, gradient, optimiser",
    "host_gap": "from the end of the device's work to the next call",
}
COMPARED = ("_per_second", "with_learning", "_bytes", "_flops")  # ends of keys


def benchmark(
    config: Config, seconds: float = 120.0, rounds: int = 3, trace: Path | None = None
) -> Result:
    """Measure a config in about `seconds`, compilation not counted; `trace` takes a profile.

    Parts run on one device with its share of games and samples, the iteration on all.
    Raises: InputError for devices that do not fit.
    """
    devices = choose_devices(config.devices)
    count = len(devices)
    config.check_devices(count)
    print("Compiling an iteration and its parts ...", flush=True)
    with training(config, devices) as run:
        work = make_workload(config, run.progress.learner, count)
        sizes = fit_sizes(work, *probe(work), seconds / (rounds + 1))
        # The long calls first: on a busy machine the call after one of them waits for its turn.
        parts = {"matmul": matmul_part(compute_dtype(config.network)), "copy": copy_part()}
        if sizes.iteration:
            run.iterate()
            parts["iteration"] = Part(run.iterate)
        # Read before the parts are measured, which hold more than a run does.
        peak = max(map(peak_memory_bytes, devices))
        games = run.games if sizes.iteration else games_begun(work)
        times = time_parts(parts | work_parts(work, sizes), rounds)
        if sizes.iteration:
            times["host_gap"] = run.host_gap()
        else:
            times["iteration"] = sum(times.get(name, 0.0) for name in PHASES)
        if trace:
            make_folder("trace", trace)
            with doing("tracing"), jax.profiler.trace(str(trace), create_perfetto_trace=True):
                run.iterate()
        predicted = run.program.predicted
    gain = 1 - times["network"] / times.pop("network_of_half")
    batches = (config, work.learner, work.games, work.samples)
    limits = count_flops(*batches) | count_bytes(*batches)
    # Of one item, so their seconds are those of an operation and of a byte.
    limits["matmul_ceiling_flops"] = 1 / times.pop("matmul")
    limits["copy_ceiling_bytes"] = 1 / times.pop("copy")
    result = describe(config, devices) | measures(config, count, times, limits, games)
    result |= {
        "peak_memory_bytes": peak,
        "predicted_memory_bytes": predicted,
        "doubling_gain": gain,
        "unexplained_seconds": times["iteration"] - sum(profile(times).values()),
        "notes": [*notes(work, sizes), *notes_on(config)],
    }
    return result | {"bottleneck": find_bottleneck(result)._asdict()}


def work_parts(work: Workload, sizes: Sizes) -> dict[str, Part]:
    """Return the timed parts of an iteration on one device."""
    # Whole games go to their end, which in the quiet game is not the same for all.
    moves = sizes.moves % work.config.decisions_per_lane
    half = work._replace(games=max(1, work.games // 2))
    evaluations = sizes.searches * (work.config.search.simulations + 1)
    parts = {
        "network": network_part(work, evaluations),
        "network_of_half": network_part(half, evaluations),
        "search": search_part(work, sizes.searches),
        "selfplay": selfplay_part(work, moves),
        "tree": selfplay_part(work, moves, free=True),
    }
    return parts | ({"learning": learning_part(work, sizes.updates)} if work.learned else {})


def profile(seconds: dict[str, float]) -> dict[str, float]:
    """Return the seconds of the parts that do not overlap."""
    return {part: seconds[part] for part in PROFILE if part in seconds}


# How much to run, so that a benchmark ends in time on any machine


class Sizes(NamedTuple):
    """How much of a config is run in one call of each kind."""

    moves: int  # of self-play
    searches: int
    updates: int
    iteration: bool  # whether the whole iteration runs


def probe(work: Workload) -> tuple[float, float]:
    """Return roughly the evaluations and the samples of learning that the device does a second."""
    if jax.default_backend() == "cpu":
        work = work._replace(games=min(work.games, 64), samples=min(work.samples, 32))
    forward, learning = network_part(work, 8), learning_part(work, 2)
    seconds = seconds_per_call(forward.call, learning.call, rounds=1)
    return forward.items / seconds[0], learning.items / seconds[1]


def fit_sizes(work: Workload, evaluations: float, samples: float, seconds: float) -> Sizes:
    """Fit one round of calls into about `seconds`; each runs at least one batch of the config.

    `evaluations` and `samples` are what the device does in a second.
    """
    config, moves = work.config, work.config.decisions_per_lane
    updates = config.learner.updates_per_iteration
    per_move = work.games * (config.search.simulations + 1) / evaluations
    per_update = work.samples / samples

    def clamp(count: float, most: int) -> int:
        return min(most, max(1, int(count)))

    timed = clamp(SELFPLAY_SHARE * seconds / per_move, moves)
    return Sizes(
        # Games that begin late are over after a few moves: only the whole queue keeps lanes busy.
        moves=moves if config.selfplay.start_ply else timed,
        searches=clamp(CALL_SHARE * seconds / per_move, moves),
        updates=clamp(CALL_SHARE * seconds / per_update, max(1, updates)),
        iteration=moves * per_move + updates * per_update <= ITERATION_SHARE * seconds,
    )


def notes(work: Workload, sizes: Sizes) -> Iterator[str]:
    """Say what is measured on less than the config asks for."""
    moves = work.config.decisions_per_lane
    updates = work.config.learner.updates_per_iteration
    if sizes.moves < moves:
        yield f"self-play measured over its first {sizes.moves} of {moves} moves"
    if sizes.updates < updates:
        yield f"learning measured over {sizes.updates} of {updates} updates"
    if not sizes.iteration:
        yield "no whole iteration is run: its time is the sum of its phases, without the host gap"
    if work.devices > 1:
        yield "parts are timed on one device, the iteration on all: their exchange is unexplained"


def games_begun(work: Workload) -> int:
    """Return how many games an iteration begins; of a queue of late starts the last may not."""
    if not work.config.selfplay.start_ply:
        return work.config.selfplay.games
    return work.devices * round(float(selfplay_part(work).call()[1]["selfplay/games"]))


# The bottleneck

HOST_SHARE = 0.2  # of the iteration: the device waits too long
DOUBLING_GAIN = 0.25  # fall of the time per evaluation when the games double
LOW_FLOPS = 0.3  # of the matmul ceiling: arithmetic is not what takes the time
HIGH_FLOPS = 0.5  # of the matmul ceiling: little is left to win
MEMORY_SHARE = 0.6  # of the time would go to moving the bytes at the copy ceiling
CACHED_SHARE = 1.2  # more bytes than could be moved: caches serve them, the count tells nothing
UNEXPLAINED_SHARE = 0.25  # of the iteration is in no part: the parts do not tell the story

ADVICE = {
    "host_gap": (
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
    "learning": (
        "lower learner.updates_per_iteration",
        "or make fewer updates of a larger learner.batch_size: the optimiser runs less often",
    ),
}


class Bottleneck(NamedTuple):
    """What bounds an iteration, and what to change."""

    name: str  # a key of `ADVICE`, "network" or "memory bandwidth"
    reason: str
    advice: tuple[str, ...]


def find_bottleneck(result: Result) -> Bottleneck:
    """Name what bounds the iteration, by the first rule that holds."""
    whole = result["seconds"]["iteration"]
    shares = {part: time / whole for part, time in profile(result["seconds"]).items()}
    name, unexplained = max(shares, key=shares.get), 1 - sum(shares.values())
    flops, moved = result["network_mfu"], result["copy_share"] or 0.0
    gain = result["doubling_gain"]
    if shares.get("host_gap", 0.0) > HOST_SHARE:
        name = "host_gap"
    elif unexplained > max(UNEXPLAINED_SHARE, shares[name]):
        name = "unknown"
    elif gain > DOUBLING_GAIN and flops < LOW_FLOPS:
        name = "launches"
    elif name == "network" and MEMORY_SHARE < moved <= CACHED_SHARE and flops < HIGH_FLOPS:
        name = "memory bandwidth"
    used = f"the network uses {Share(flops, 'products')} of the matmul ceiling"
    reasons = {part: f"it takes {Share(share, 'whole')} of it" for part, share in shares.items()} | {
        "unknown": f"{unexplained:.0%} of the iteration is in none of the parts measured",
        "launches": f"doubling the games took {gain:.0%} of the time of an evaluation, and {used}",
        "memory bandwidth": "moving the network's bytes at the copy ceiling would take "
        f"{Share(moved, 'copies')} of its time",
        "network": f"it takes {Share(shares['network'], 'whole')} of it, and {used}",
    }
    advice = ADVICE.get(name) or network_advice(result, name == "memory bandwidth")
    return Bottleneck(name, reasons[name], tuple(advice))


def network_advice(result: Result, waits: bool) -> Iterator[str]:
    """Advise on a network that takes most of the time; `waits` says whether for memory."""
    on_cpu = result["platform"] == "cpu"
    convolutional = result["config"]["network"]["trunk"] == "conv"
    if result["network_mfu"] >= HIGH_FLOPS:
        yield "little is left to win in its kernels"
        yield "less work: lower search.simulations, network.channels or network.blocks"
        return
    if result["compute_dtype"] == "float32" and not on_cpu:  # a CPU has no fast bfloat16
        yield "set network.compute_dtype bfloat16: half the bytes, faster products"
    if convolutional:
        yield "try the other network.convolution: shifted writes nine copies of its input"
    if waits and convolutional:
        yield "raise network.pooling_every: it breaks fusion"
    if not on_cpu:
        yield "network.channels in multiples of 64 fill the matrix units"
    yield "raise network.channels rather than network.blocks: wider products run nearer the ceiling"


# For people


def report(result: Result) -> str:
    """Lay a result out, at most `WIDTH` characters wide."""
    of = "process" if result["platform"] == "cpu" else "device"
    memory = (
        f"memory      {mebibytes(result['peak_memory_bytes'])} peak of the {of}, "
        f"{mebibytes(result['predicted_memory_bytes'])} predicted for the iteration"
    )
    bottleneck = result["bottleneck"]
    why = f"bottleneck  {bottleneck['name'].replace('_', ' ')}: {bottleneck['reason']}"
    lines = [why, *(f"- {line}" for line in bottleneck["advice"])]
    lines += [f"note: {note}" for note in result["notes"]]
    parts = [setting_lines(result), rate_table(result), time_table(result), memory]
    return "\n\n".join([*parts, "\n".join(textwrap.fill(line, WIDTH) for line in lines)])


def rate_table(result: Result) -> str:
    """Lay out the rates and their shares of the network alone and of the ceilings."""
    alone, rows = result["network_evaluations_per_second"], []
    for label, unit, name, mfu in (
        ("network alone", "evaluations", "network_evaluations_per_second", "network_mfu"),
        ("search", "evaluations", "search_evaluations_per_second", None),
        ("self-play", "evaluations", "selfplay_evaluations_per_second", "selfplay_mfu"),
        ("learner", "samples", "learner_samples_per_second", "learning_mfu"),
        ("with learning", "evaluations", "evaluations_per_second_with_learning", "iteration_mfu"),
    ):
        rate, used = result[name], result.get(mfu)
        of_network = Share(rate / alone, "network") if unit == "evaluations" else ""
        teraflops = f"{used * result['matmul_ceiling_flops'] / 1e12:.3g}" if used else ""
        of_ceiling = Share(used, "products") if used else ""
        rows.append([label, rate and f"{rate:,.0f}", unit, of_network, teraflops, of_ceiling])
    for label, end in (("self-play", ""), ("with learning", "_with_learning")):
        for unit in ("decisions", "games"):
            rate = f"{result[f'{unit}_per_second{end}']:,.2f}"
            rows.append([label, rate, unit, "", "", ""])
    if result["bytes_per_evaluation"]:
        moved, share = f"{result['bytes_per_evaluation']:,.0f}", result["copy_share"]
        rows.append(["bytes moved", moved, "an evaluation", "", "", Share(share, "copies")])
    headings = ("", "a second", "", "of network", "TFLOP/s", "of ceiling")
    return table(headings, rows, "lrlrrr")


def time_table(result: Result) -> str:
    """Lay out the seconds of the parts of an iteration, with their shares of the whole."""
    parts, whole = profile(result["seconds"]), result["seconds"]["iteration"]
    parts |= {"sum": sum(parts.values()), "unexplained": result["unexplained_seconds"]}
    about = PROFILE | {"unexplained": "fusion, caches, noise; what is in no part"}
    rows = (
        (name.replace("_", " "), f"{time:.4g}", Share(time / whole, "whole"), about.get(name, ""))
        for name, time in (parts | {"whole": whole}).items()
    )
    return table(("iteration", "seconds", "share", ""), rows, "lrrl")


# Comparing results


def read_result(path: Path) -> Result:
    """Read an earlier result. Raises: InputError where there is none."""
    kinds = {"games_per_second": int | float, "config": dict, "device": str}
    result = read_mapping("compare", path, kinds)
    for name, value in result.items():
        if name.endswith(COMPARED) and not isinstance(value, int | float | None):
            shown = shortened(repr(value))
            raise InputError(f"compare: {name} in {path} is {shown}, not a number")
    return result


def comparison(now: Result, before: Result) -> str:
    """Lay out the quotients of two results, and what differs between their settings."""
    rows = [
        [name.replace("_", " "), *(f"{x:,.6g}" for x in pair), f"{pair[0] / pair[1]:.3f}"]
        for name, pair in ((name, (now[name], before.get(name))) for name in now)
        if name.endswith(COMPARED) and all(pair)
    ]
    lines = [table(("now / before", "now", "before", "ratio"), rows, "lrrr")]
    for section in ("device", "devices", "platform", "versions", "config", "notes"):
        new, old = (dict(dotted({section: result.get(section)})) for result in (now, before))
        for name in sorted(new.keys() | old.keys()):
            if new.get(name) != old.get(name):
                shown = name.removeprefix("config.")
                lines.append(f"differs: {shown} {new.get(name)}, before {old.get(name)}")
    return "\n".join(lines if lines[1:] else [*lines, "same device, versions and config"])
