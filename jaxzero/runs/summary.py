"""Reports of a run: a header, one line per iteration, a summary with a picture.

Also a record of each start of a run: device, versions and command, to reproduce its results.
"""

import json
import shlex
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax

import jaxzero
from jaxzero.config import Config, plan
from jaxzero.host.files import append_text, only_warn, write_json
from jaxzero.network.network import Network, count_params, param_shapes
from jaxzero.runs.memory import mebibytes
from jaxzero.runs.metrics import draw_curves, read_metrics
from jaxzero.runs.run_dir import command_name

SUMMARY_FILE = "summary.json"
CURVES_FILE = "curves.png"
STARTS_FILE = "starts.jsonl"
LIBRARIES = ("jax", "jaxlib", "flax", "optax", "mctx", "numpy")


def describe_devices(devices: list[jax.Device]) -> str:
    """Return the number and kind of devices, and the number of processes if not one."""
    words = f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform})"
    processes = len({device.process_index for device in devices})
    return words + f" in {processes} processes" * (processes > 1)


def print_header(config: Config, devices: list[jax.Device], network: Network) -> None:
    """Print device, network, replay and length of a run before anything is compiled."""
    settings, sizes = config.network, plan(config)
    size, dtype = count_params(param_shapes(network)), network.dtype.name
    limits = {"iterations": config.iterations, "minutes": config.minutes}
    length = " or ".join(f"{limit:g} {name}" for name, limit in limits.items() if limit)
    print(f"device        {describe_devices(devices)}, jax {jax.__version__}")
    print(
        f"network       {settings.trunk} {settings.channels} x {settings.blocks} on "
        f"{config.game.board}, {size:,} parameters, {dtype}"
    )
    print(
        f"replay        {sizes.positions * sizes.iterations_kept:,} positions, "
        f"{sizes.iterations_kept} iterations; "
        f"replay ratio {config.replay_ratio:.2f} "
        f"({config.learner.updates_per_iteration} updates of {config.learner.batch_size} for "
        f"{sizes.positions:,} new positions)"
    )
    count = len(devices)
    lanes = plan(config, count).lanes
    if network.platform == "gpu" and count > 1 and 8 * lanes < max(network.part_sizes):
        print(
            f"warning       {lanes} games at once leave each GPU partly idle: multiply "
            f"selfplay.games_per_iteration, learner.batch_size and replay.capacity by {count}"
        )
    print(
        f"run           {length}, {config.selfplay.games_per_iteration} games an "
        f"iteration, {config.search.simulations} simulations a move",
        flush=True,
    )


class Work(NamedTuple):
    """The operations that a run needs, and how fast its devices multiply matrices.

    A GPU that `nvidia-smi` calls busy may compute at a few percent of its speed. Here only the
    evaluations that searches need and the updates count.
    """

    per_evaluation: float  # FLOP
    per_iteration: float  # FLOP, of its updates: gradients and optimiser
    peak: float  # FLOP/s of matrix products, all devices together

    def rates(self, evaluations: float, iterations: int, seconds: float) -> dict[str, float]:
        """Return the useful TFLOP/s of so much work in `seconds`, and their share of the peak."""
        work = evaluations * self.per_evaluation + iterations * self.per_iteration
        useful = work / seconds
        return {"useful_tflops": useful / 1e12, "utilisation": useful / self.peak}


def time_left(done: float, minutes: float) -> str:
    """Return how long self-play and learning will still take at the speed so far."""
    if not (done and minutes):
        return "unknown"
    seconds = 60 * minutes * (1 - done) / done
    return f"{seconds:.0f} s" if seconds < 100 else str(timedelta(seconds=round(seconds)))


def headline(config: Config, metrics: dict[str, Any]) -> str:
    """Return the most useful metrics of an iteration in one line."""
    line = f"{metrics['speed/minutes']:6.1f}/{config.minutes:g} min  " if config.minutes else ""
    line += (
        f"{metrics['speed/games_per_second']:7.0f} games/s "
        f"{metrics['speed/evaluations_per_second']:9.0f} evaluations/s"
    )
    if "learn/loss" in metrics:
        line += (
            f"  loss {metrics['learn/loss']:.3f} (policy {metrics['learn/policy_loss']:.3f}, "
            f"margin {metrics['learn/margin_loss']:.3f})"
            f"  error {metrics['learn/margin_error']:.2f} boxes"
        )
    line += f"  entropy {metrics['selfplay/policy_entropy']:.2f}"
    if "speed/utilisation" in metrics:
        line += f"  useful {metrics['speed/useful_tflops']:.0f} TFLOP/s"
        line += f" ({metrics['speed/utilisation']:.0%})"
    for name, value in metrics.items():
        part, _, about = name.partition("/")
        if part == "versus" and about.endswith("/points"):
            line += f"  {about.removesuffix('/points')} {value:.1%}"
        elif part == "suite" and about.endswith("/wrong_share"):
            line += f"  wrong moves of {about.removesuffix('/wrong_share')} {value:.1%}"
    return line


def write_summary(
    config: Config,
    run_dir: Path,
    devices: list[jax.Device],
    totals: tuple[int, float, int, int],
    call: dict[str, float],
    results: dict[str, Any],
) -> None:
    """Write `summary.json` and `curves.png` and print the summary.

    `totals` are iterations, minutes, games and evaluations of the whole run. `call` is about this
    call; if it is empty, the record of an earlier call stays. `results` are those of the final
    evaluation.
    """
    if not call:
        with suppress(OSError, ValueError, KeyError):
            call = json.loads((run_dir / SUMMARY_FILE).read_text())["last_call"]
    iterations, minutes, games, evaluations = totals
    seconds = max(60 * minutes, 1e-9)
    summary = {
        "device": describe_devices(devices),
        "minutes": round(minutes, 4),
        "iterations": iterations,
        "games": games,
        "evaluations": evaluations,
        "games_per_second": round(games / seconds, 2),
        "evaluations_per_second": round(evaluations / seconds),
        "last_call": call,
        **results,
    }
    write_json(run_dir / SUMMARY_FILE, summary)
    network = config.network
    title = f"{config.game.board}, {network.trunk} {network.channels} x {network.blocks}"
    with only_warn(run_dir / CURVES_FILE):
        draw_curves(run_dir / CURVES_FILE, title, read_metrics(run_dir))
    print(
        f"\n{games:,} games in {minutes:.1f} minutes of self-play and learning: "
        f"{games / seconds:.0f} games/s, {evaluations / seconds:,.0f} evaluations/s"
    )
    if "utilisation" in call:
        print(
            f"useful work {call['useful_tflops']:.0f} TFLOP/s, {call['utilisation']:.0%} of the "
            "matrix products that the device can do; compiling and evaluations count as idle"
        )
    if call:
        minutes = f"{call['minutes']:.1f} minutes"
        print(f"peak memory {mebibytes(call['peak_memory_bytes'])} in the last call, of {minutes}")
    print(f"{run_dir / SUMMARY_FILE}, {run_dir / CURVES_FILE}")


def print_next(run_dir: Path, suite: str) -> None:
    """Print useful commands after a complete run; `suite` is its test suite or "none"."""
    run = f"--run_dir {shlex.quote(str(run_dir))}"
    measured = "--opponents random,greedy" if suite == "none" else f"--suite {suite}"
    commands = {
        "measure it": f"{command_name('evaluate')} {run} {measured}",
        "play against it": f"{command_name('play')} {run}",
        "keep its network": f"{command_name('export')} {run}",
    }
    for what, command in commands.items():
        print(f"To {what + ':':<17} {command}")


def note_start(run_dir: Path, devices: list[jax.Device], iteration: int) -> None:
    """Record that a run starts or resumes now, after `iteration` finished iterations."""
    checkout, commit = Path(jaxzero.__file__).parents[1], None
    if (checkout / ".git").exists():
        git = "git describe --always --exclude=* --abbrev=40 --dirty=+".split()
        with suppress(OSError, subprocess.CalledProcessError):  # no git, or one that refuses
            said = subprocess.check_output(git, cwd=checkout, stderr=subprocess.DEVNULL)
            commit = said.decode().strip()  # ends with + if files differ from it
    start = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "after_iteration": iteration,
        "command": shlex.join(sys.argv),
        "commit": commit,
        "versions": {"jaxzero": jaxzero.__version__} | {name: version(name) for name in LIBRARIES},
        "device": describe_devices(devices),
    }
    with only_warn(run_dir / STARTS_FILE):
        append_text(run_dir / STARTS_FILE, json.dumps(start) + "\n")
