"""Output of a run for people: a header, one line per iteration, a summary with a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chex
import jax

from jaxzero.agent.layers import compute_dtype
from jaxzero.agent.network import count_params
from jaxzero.config import Config
from jaxzero.evaluation.arena import MatchResult
from jaxzero.files import write_json
from jaxzero.runs.memory import mebibytes
from jaxzero.runs.metrics import draw_curves, read_metrics

SUMMARY_FILE = "summary.json"
CURVES_FILE = "curves.png"


def describe_devices(devices: list[jax.Device]) -> str:
    """Return how many devices of which kind, and in how many processes if not in one."""
    words = f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform})"
    processes = len({device.process_index for device in devices})
    return words + f" in {processes} processes" * (processes > 1)


def print_header(
    config: Config,
    devices: list[jax.Device],
    params: chex.ArrayTree,
    predicted: int | None,
    replay: int,
) -> None:
    """Print what is about to run: device, network, memory in bytes per device, replay ratio."""
    network, positions = config.network, config.iterations_kept * config.positions_per_iteration
    print(f"device        {describe_devices(devices)}, jax {jax.__version__}")
    print(
        f"network       {network.trunk} {network.channels} x {network.blocks} on "
        f"{config.game.board}, {count_params(params):,} parameters, {compute_dtype(network).name}"
    )
    print(
        f"memory        {mebibytes(predicted)} predicted per device, "
        f"{mebibytes(replay)} of it replay"
    )
    print(
        f"replay        {positions:,} positions, {config.iterations_kept} iterations; "
        f"replay ratio {config.replay_ratio:.2f} "
        f"({config.learner.updates_per_iteration} updates of {config.learner.batch_size} for "
        f"{config.new_positions_per_iteration:,} new positions)"
    )
    print(
        f"run           {run_length(config)}, {config.selfplay.games} games an iteration, "
        f"{config.search.simulations} simulations a move",
        flush=True,
    )


def run_length(config: Config) -> str:
    """Return what ends a run, in words."""
    limits = {"iterations": config.iterations, "minutes": config.minutes}
    return " or ".join(f"{limit:g} {name}" for name, limit in limits.items() if limit)


def headline(config: Config, metrics: dict[str, Any]) -> str:
    """Return the metrics of an iteration that people watch, in one line."""
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
    return line + f"  entropy {metrics['selfplay/policy_entropy']:.2f}"


def write_summary(
    config: Config,
    run_dir: Path,
    devices: list[jax.Device],
    totals: tuple[int, float, int, int],
    peak: int,
    player: str,
    results: dict[str, MatchResult],
    scores: dict[str, dict],
) -> None:
    """Write `summary.json` and `curves.png` and print the summary.

    `totals` are iterations, minutes, games and evaluations, `peak` the memory in bytes. `results`
    are the matches of `player` by opponent, `scores` its suites by player.
    """
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
        "peak_memory_bytes": peak,
        "versus": {name: result.to_dict() for name, result in results.items()},
        "suite": scores,
    }
    write_json(run_dir / SUMMARY_FILE, summary)
    network = config.network
    title = f"{config.game.board}, {network.trunk} {network.channels} x {network.blocks}"
    draw_curves(run_dir / CURVES_FILE, title, read_metrics(run_dir))
    print(
        f"\n{games:,} games in {minutes:.1f} minutes of self-play and learning: "
        f"{games / seconds:.0f} games/s, {evaluations / seconds:,.0f} evaluations/s"
    )
    print(f"peak memory {mebibytes(summary['peak_memory_bytes'])}")
    for name, result in results.items():
        print(f"{player} against {name:<12} {result}")
    for name, parts in scores.items():
        score = parts["all"]
        print(
            f"{name} on {score['positions']:,} solved positions: {score['optimal_share']:.1%} "
            f"optimal moves, {score['boxes_lost']:.3f} boxes lost a move, "
            f"value off by {score['value_error']:.2f} boxes"
        )
    print(f"{run_dir / SUMMARY_FILE}, {run_dir / CURVES_FILE}")
