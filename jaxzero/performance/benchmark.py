"""The benchmark: the speed of a config, its shares of the device's limits, and its bottleneck.

Network, self-play and learning are timed alone, each at the batch that it has in an iteration.
"""

import textwrap
from pathlib import Path
from typing import NamedTuple

import jax

from jaxzero.config import Config, plan
from jaxzero.host.progress import working
from jaxzero.host.table import table
from jaxzero.network.network import Network
from jaxzero.performance.report import Result, count_bytes, count_flops, describe, measures
from jaxzero.performance.timing import (
    Done,
    Part,
    Training,
    Workload,
    copy_part,
    learning_part,
    make_workload,
    matmul_part,
    network_part,
    seconds_per_call,
    selfplay_part,
    time_parts,
)
from jaxzero.runs.memory import mebibytes, peak_memory_bytes
from jaxzero.runs.summary import print_header
from jaxzero.training.devices import choose_devices


def benchmark(
    config: Config, seconds: float = 120.0, rounds: int = 3, trace: Path | None = None
) -> Result:
    """Measure a config in about `seconds`, compilation not counted.

    Parts run on one device with its share of games and samples; the iteration runs on all devices.
    Raises: InputError for devices that do not fit; DoesNotFit.
    """
    devices = choose_devices(config.devices)
    config.check_devices(len(devices))
    print_header(config, devices, Network(config.game.board, config.network))
    print("Compiling an iteration and its parts ...", flush=True)
    run = Training(config, devices)
    work = make_workload(config, run.learner, len(devices))
    fraction = fitting_fraction(work, seconds / (rounds + 1))
    if fraction == 1:
        run.step()
    # Read this before the parts are measured: they hold more memory than a run.
    peak = peak_memory_bytes(devices)
    parts, notes = iteration_parts(work, fraction)
    if fraction == 1:
        # Time it first: on a busy machine the call after a long one waits for its turn.
        parts = {"iteration": Part(run.step)} | parts
    times = time_parts(parts, rounds)
    gain = 1 - times["network"] / times.pop("network_of_half")
    done = run.done or whole_done(work, parts["selfplay"])
    times["network"] *= done.evaluations / (work.evaluations * work.devices)
    if fraction < 1:
        times["iteration"] = times["selfplay"] + times.get("learning", 0.0)
    if trace:
        with working("tracing"), jax.profiler.trace(str(trace), create_perfetto_trace=True):
            run.step()
    limits = count_flops(config, work.learner)
    limits["bytes_per_evaluation"] = count_bytes(config, work.network, work.learner, work.games)
    # Their total is one item, so their seconds are per operation and per byte.
    limits["matmul_ceiling_flops"] = 1 / times.pop("matmul")
    limits["copy_ceiling_bytes"] = 1 / times.pop("copy")
    result = describe(config, devices) | measures(config, len(devices), times, limits, done)
    result |= {
        "peak_memory_bytes": peak,
        "predicted_memory_bytes": run.program.predicted,
        "compile_seconds": run.compile_seconds,
        "doubling_gain": gain,
        "iteration_estimated": fraction < 1,
        "notes": notes,
    }
    return result | {"bottleneck": find_bottleneck(result)._asdict()}


def fitting_fraction(work: Workload, seconds: float) -> float:
    """Return the fraction of an iteration, at most 1, that fits in `seconds` with its parts."""
    small = work
    if work.network.platform == "cpu":
        small = work._replace(games=min(work.games, 64), samples=min(work.samples, 32))
    probes = network_part(small, 8), learning_part(small, 2)
    times = seconds_per_call(*(probe.call for probe in probes), rounds=1)
    whole = sum(time * part.total / part.items for time, part in zip(times, probes, strict=True))
    return min(1.0, seconds / (3 * whole))


def iteration_parts(work: Workload, fraction: float) -> tuple[dict[str, Part], list[str]]:
    """Return the ceilings and the timed parts of a fraction of an iteration on one device.

    Also return a note on each part that runs less than the config asks for.
    """
    config, notes = work.config, []
    sizes = plan(config)
    moves = whole = sizes.decisions // sizes.lanes
    if not config.selfplay.late_start_moves:
        # Late starts end after a few moves: only the whole queue keeps all parallel games busy.
        moves = max(1, int(fraction * whole))
    updates = max(1, int(fraction * config.learner.updates_per_iteration))
    evaluations = max(1, int(fraction * work.evaluations / work.games / 4))
    half = work._replace(games=max(1, work.games // 2))
    parts = {
        "matmul": matmul_part(work.network),
        "copy": copy_part(work.network.platform),
        "network": network_part(work, evaluations),
        "network_of_half": network_part(half, evaluations),
        # 0 moves: play whole games to their ends, which differ in the quiet game.
        "selfplay": selfplay_part(work, moves % whole),
    }
    if work.learned:
        parts["learning"] = learning_part(work, updates)
    if fraction < 1:
        notes.append(
            f"no whole iteration is run: self-play over {moves} of {whole} moves, learning over "
            f"{updates} of {config.learner.updates_per_iteration} updates"
        )
    if work.devices > 1:
        notes.append("parts are timed on one device, the iteration on all: exchange is unexplained")
    return parts, notes


def whole_done(work: Workload, selfplay: Part) -> Done:
    """Return the work of an iteration, from a run of its self-play on one device."""
    scale = work.devices * selfplay.total / selfplay.items
    return Done(*(scale * float(count) for count in selfplay.call()[1]))


# The bottleneck

DOUBLING_GAIN = 0.25  # fall of the time per evaluation when the games double
LOW_FLOPS = 0.3  # of the matmul ceiling; below it arithmetic does not take the time
HIGH_FLOPS = 0.5  # of the matmul ceiling; above it little is left to gain
MEMORY_SHARE = 0.6  # of the time is needed to move the bytes at the copy ceiling
CACHED_SHARE = 1.2  # of the time; above it caches serve the bytes, and the count means nothing
UNEXPLAINED_SHARE = 0.25  # of the iteration is in no part; the parts then explain too little


class Bottleneck(NamedTuple):
    """What bounds an iteration."""

    name: str
    reason: str


def find_bottleneck(result: Result) -> Bottleneck:
    """Name what bounds the iteration, by the first rule that holds."""
    parts, whole = split(result["seconds"]), result["seconds"]["iteration"]
    unexplained = parts.pop("unexplained") / whole
    flops, moved = result["network_mfu"], result["copy_share"] or 0.0
    name = max(parts, key=parts.get)
    reason = f"{percent(parts[name] / whole)} of the iteration"
    if unexplained > max(UNEXPLAINED_SHARE, parts[name] / whole):
        name, reason = "unexplained", f"{percent(unexplained)} of the iteration"
    elif result["doubling_gain"] > DOUBLING_GAIN and flops < LOW_FLOPS:
        name = "launches"
        reason = (
            f"with twice the games the network took {percent(result['doubling_gain'], 0)} less "
            f"time an evaluation, at {percent(flops)} of the matmul ceiling"
        )
    elif name == "network" and MEMORY_SHARE < moved <= CACHED_SHARE and flops < HIGH_FLOPS:
        name = "memory bandwidth"
        reason = (
            f"moving the network's bytes at the copy ceiling would take {percent(moved)} of its "
            "time"
        )
    return Bottleneck(name, reason)


def split(seconds: dict[str, float]) -> dict[str, float]:
    """Split the seconds of an iteration so that none is counted twice."""
    tree = max(0.0, seconds["selfplay"] - seconds["network"])
    parts = {"network": seconds["selfplay"] - tree, "tree": tree}
    parts["learning"] = seconds.get("learning", 0.0)
    return parts | {"unexplained": seconds["iteration"] - sum(parts.values())}


# For people

WIDTH = 100  # characters of a line, at most
ESTIMATED = ", estimated from parts"  # of what was not run whole


def report(result: Result) -> str:
    """Format a result, at most `WIDTH` characters wide."""
    games, of = result["config"]["selfplay"]["games_per_iteration"], "device"
    if result["platform"] == "cpu":
        of = "process"
    heads = (
        f"iteration     {games} games of {result['decisions_per_game']:.1f} decisions\n"
        f"ceilings      {result['matmul_ceiling_flops'] / 1e12:,.3g} TFLOP/s in matrix products, "
        f"{result['copy_ceiling_bytes'] / 1e9:,.3g} GB/s in copies, measured in this run\n"
        f"memory        {mebibytes(result['peak_memory_bytes'])} peak of the {of}, "
        f"{mebibytes(result['predicted_memory_bytes'])} predicted for the iteration"
    )
    bottleneck = result["bottleneck"]
    lines = [f"bottleneck    {bottleneck['name']}: {bottleneck['reason']}"]
    lines += [f"note: {note}" for note in result["notes"]]
    shares = [result[name] or 0 for name in result if name.endswith(("_mfu", "copy_share"))]
    if of == "device" and max(shares) > 1:
        lines.append("note: over 100%: work that is counted was skipped, or caches served bytes")
    words = "\n".join(textwrap.fill(line, WIDTH) for line in lines)
    return "\n\n".join([heads, rate_table(result), time_table(result), words])


def rate_table(result: Result) -> str:
    """Format the rates, with their shares of the network alone and of the ceilings."""
    alone, rows = result["network_evaluations_per_second"], []
    estimated = ESTIMATED * result["iteration_estimated"]
    whole, late = f"with learning{estimated}", result["config"]["selfplay"]["late_start_moves"]
    for label, unit, name, mfu in (
        ("network alone", "evaluations", "network_evaluations_per_second", "network_mfu"),
        ("self-play", "evaluations", "selfplay_evaluations_per_second", "selfplay_mfu"),
        ("learner", "samples", "learner_samples_per_second", "learning_mfu"),
        (whole, "evaluations", "evaluations_per_second_with_learning", "iteration_mfu"),
        ("self-play" + estimated * (not late), "games", "games_per_second", None),
        (whole, "games", "games_per_second_with_learning", None),
    ):
        rate, used = result[name], result.get(mfu)
        of_network = percent(rate / alone) if unit == "evaluations" else ""
        written = rate and f"{rate:,.{2 if unit == 'games' else 0}f}"
        rows.append([label, written, unit, of_network, percent(used) if used else ""])
    if result["bytes_per_evaluation"]:
        moved, share = f"{result['bytes_per_evaluation']:,.0f}", result["copy_share"]
        rows.append(["bytes moved", moved, "an evaluation", "", percent(share)])
    columns = 3 if result["platform"] == "cpu" else 5
    headings = ("", "a second", "", "of network", "of ceiling")[:columns]
    return table(headings, [row[:columns] for row in rows], "lrlrr")


def time_table(result: Result) -> str:
    """Format the seconds of the parts of an iteration, with their shares of the whole."""
    whole = result["seconds"]["iteration"]
    seconds = split(result["seconds"])
    seconds["iteration" + ESTIMATED * result["iteration_estimated"]] = whole
    rows = ((name, f"{time:.4g}", percent(time / whole)) for name, time in seconds.items())
    return table(("part", "seconds", "share"), rows, "lrr")


def percent(share: float | None, places: int = 1) -> str | None:
    return None if share is None else f"{share:.{places}%}"
