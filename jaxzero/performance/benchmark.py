"""The benchmark: the speed of a config on one device and its shares of the limits."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax

from jaxzero.cli import dotted
from jaxzero.config import Config
from jaxzero.errors import InputError, shortened
from jaxzero.host.readers import read_mapping
from jaxzero.network.layers import compute_dtype
from jaxzero.performance.baseline import Baseline
from jaxzero.performance.monitor import training
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
    table,
    time_table,
)
from jaxzero.performance.timing import (
    Part,
    Workload,
    ceiling_parts,
    learning_part,
    make_workload,
    network_part,
    search_part,
    seconds_per_call,
    selfplay_part,
    time_parts,
    write_part,
)
from jaxzero.runs.memory import mebibytes, peak_memory_bytes
from jaxzero.training.parallel import local_copy

# Longest call of each kind, as a share of the seconds of one round.
SELFPLAY_SHARE, ITERATION_SHARE, CALL_SHARE = 0.3, 0.3, 0.1
PHASES = ("selfplay", "replay_write", "learning", "host_gap")
COMPARED = ("_per_second", "with_learning", "_bytes", "_flops")  # ends of keys


class Sizes(NamedTuple):
    """How much of a config is run in one call of each kind."""

    moves: int  # of self-play
    searches: int
    updates: int
    iteration: bool  # whether the whole iteration runs


def benchmark(
    config: Config, seconds: float = 120.0, rounds: int = 3, baseline: Baseline | None = None
) -> Result:
    """Measure a config on the first device in about `seconds`, compilation not counted.

    The device gets all games and samples of the config. A `baseline` takes turns with the rest, in
    time of its own.
    """
    devices = jax.local_devices()[:1]
    print("Compiling an iteration and its parts ...", flush=True)
    with training(config, devices) as run:
        work = make_workload(config, local_copy(run.progress.learner))
        sizes = fit_sizes(config, *probe(work), seconds / (rounds + 1))
        if sizes.iteration:
            # Read before the parts are measured, which hold more than a run does.
            jax.block_until_ready(run.step())
            peak, games = peak_memory_bytes(devices[0]), run.games()
        # The long calls first: on a busy machine the call after one of them waits for its turn.
        parts = {"baseline": Part(baseline)} if baseline else {}
        parts |= ceiling_parts(compute_dtype(config.network))
        parts |= {"iteration": Part(run.iterate)} if sizes.iteration else {}
        times = time_parts(parts | work_parts(work, sizes), rounds)
        if sizes.iteration:
            times["host_gap"] = run.host_gap()
        else:
            times["iteration"] = sum(times.get(name, 0.0) for name in PHASES)
            peak, games = peak_memory_bytes(devices[0]), games_begun(work)
        predicted = run.program.predicted
    times.pop("baseline", None)
    batches = (config, work.learner, work.games, work.samples)
    limits = count_flops(*batches) | count_bytes(*batches) | ceilings(times)
    result = describe(config, devices) | measures(config, 1, times, limits, games)
    result |= {
        "peak_memory_bytes": peak,
        "predicted_memory_bytes": predicted,
        "notes": [*notes(config, sizes), *notes_on(config)],
    }
    if baseline:
        result["baseline"] = baseline.summary(result["games_per_second"])
    return result


def work_parts(work: Workload, sizes: Sizes) -> dict[str, Part]:
    """Return the timed parts of an iteration."""
    # Whole games go to their end, which in the quiet game is not the same for all.
    moves = sizes.moves % work.config.decisions_per_lane
    parts = {
        "network": network_part(work, sizes.searches * (work.config.search.simulations + 1)),
        "search": search_part(work, sizes.searches),
        "selfplay": selfplay_part(work, moves),
        "replay_write": write_part(work),
    }
    return parts | ({"learning": learning_part(work, sizes.updates)} if work.learned else {})


# How much to run, so that a benchmark ends in time on any machine


def probe(work: Workload) -> tuple[float, float]:
    """Return roughly the evaluations and the samples of learning that the device does a second."""
    if jax.default_backend() == "cpu":
        work = work._replace(games=min(work.games, 64), samples=min(work.samples, 32))
    forward, learning = network_part(work, 8), learning_part(work, 2)
    seconds = seconds_per_call(forward.call, learning.call, rounds=1)
    return forward.items / seconds[0], learning.items / seconds[1]


def fit_sizes(config: Config, evaluations: float, samples: float, seconds: float) -> Sizes:
    """Fit one round of calls into about `seconds`; each runs at least one batch of the config.

    `evaluations` and `samples` are what the device does in a second.
    """
    moves, learner = config.decisions_per_lane, config.learner
    lanes = config.lanes(config.selfplay.games)
    per_move = lanes * (config.search.simulations + 1) / evaluations
    per_update = learner.batch_size / samples
    whole = moves * per_move + learner.updates_per_iteration * per_update

    def clamp(count: float, most: int) -> int:
        return min(most, max(1, int(count)))

    timed = clamp(SELFPLAY_SHARE * seconds / per_move, moves)
    return Sizes(
        # Games that begin late are over after a few moves: only the whole queue keeps lanes busy.
        moves=moves if config.selfplay.start_ply else timed,
        searches=clamp(CALL_SHARE * seconds / per_move, moves),
        updates=clamp(CALL_SHARE * seconds / per_update, max(1, learner.updates_per_iteration)),
        iteration=whole <= ITERATION_SHARE * seconds,
    )


def notes(config: Config, sizes: Sizes) -> Iterator[str]:
    """Say what is measured on less than the config asks for."""
    moves, updates = config.decisions_per_lane, config.learner.updates_per_iteration
    if sizes.moves < moves:
        yield f"self-play measured over its first {sizes.moves} of {moves} moves"
    if sizes.updates < updates:
        yield f"learning measured over {sizes.updates} of {updates} updates"
    if not sizes.iteration:
        yield "no whole iteration is run: its time is the sum of its phases, without the host gap"


def games_begun(work: Workload) -> int:
    """Return how many games an iteration begins; of a queue of late starts the last may not."""
    if not work.config.selfplay.start_ply:
        return work.config.selfplay.games
    return round(float(selfplay_part(work).call()[1]["selfplay/games"]))


# For people


def report(result: Result) -> str:
    """Lay a result out, at most `WIDTH` characters wide."""
    of = "process" if result["platform"] == "cpu" else "device"
    memory = (
        f"memory      {mebibytes(result['peak_memory_bytes'])} peak of the {of}, "
        f"{mebibytes(result['predicted_memory_bytes'])} predicted for the iteration"
    )
    parts = [setting_lines(result), rate_table(result), phase_table(result), memory]
    if "baseline" in result:
        parts.append(baseline_text(result["baseline"]))
    parts += [textwrap.fill(f"note: {note}", WIDTH) for note in result["notes"]]
    return "\n\n".join(parts)


def rate_table(result: Result) -> str:
    """Lay out the rates and their shares of the network alone and of the ceilings."""
    alone, rows = result["network_evaluations_per_second"], []
    for label, unit, name, mfu in (
        ("network alone", "evaluations", "network_evaluations_per_second", "network_mfu"),
        ("search", "evaluations", "search_evaluations_per_second", None),
        ("self-play", "evaluations", "selfplay_evaluations_per_second", "selfplay_mfu"),
        ("learner", "samples", "learner_samples_per_second", "learning_mfu"),
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
    rate = f"{result['evaluations_per_second_with_learning']:,.0f}"
    rows.insert(-2, ["with learning", rate, "evaluations", "", "", ""])
    if result["bytes_per_evaluation"]:
        moved, share = f"{result['bytes_per_evaluation']:,.0f}", result["copy_share"]
        rows.append(["bytes moved", moved, "an evaluation", "", "", Share(share, "copies")])
    headings = ("", "a second", "", "of network", "TFLOP/s", "of ceiling")
    return table(headings, rows, "lrlrrr")


def phase_table(result: Result) -> str:
    """Lay out the seconds of the phases of an iteration."""
    seconds, whole = result["seconds"], result["seconds"]["iteration"]
    phases = {name: seconds[name] for name in PHASES if name in seconds}
    about = {"host_gap": "from the end of the device's work to the next call"}
    if "host_gap" in phases:
        phases["sum"] = sum(phases.values())
    return time_table(phases | {"whole": whole}, whole, about)


def baseline_text(baseline: Result) -> str:
    """Say how fast the baseline plays, and how many times faster this package does."""
    form = f", convolution {baseline['convolution']}" if baseline["convolution"] else ""
    return (
        f"baseline    a tree in Python on the host, batches of one, network compiled{form}\n"
        f"            {baseline['processes']} processes, {baseline['games']} games: "
        f"{baseline['games_per_second']:.3g} games/s, "
        f"{baseline['evaluations_per_second']:,.0f} evaluations/s\n"
        f"            self-play is {baseline['ratio']:.1f} x as fast"
    )


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
    for section in ("device", "platform", "versions", "config", "notes"):
        new, old = (dict(dotted({section: result.get(section)})) for result in (now, before))
        for name in sorted(new.keys() | old.keys()):
            if new.get(name) != old.get(name):
                shown = name.removeprefix("config.")
                lines.append(f"differs: {shown} {new.get(name)}, before {old.get(name)}")
    return "\n".join(lines if lines[1:] else [*lines, "same device, versions and config"])
