"""What a run tells people: a header, one line per iteration, a summary with a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax

from jaxzero.agent.forms import compute_dtype
from jaxzero.agent.network import count_params
from jaxzero.config import Config
from jaxzero.evaluation.arena import MatchResult
from jaxzero.files import write_json
from jaxzero.training.curves import draw_curves
from jaxzero.training.learner import Learner
from jaxzero.training.memory import Plan, mebibytes, peak_memory_bytes
from jaxzero.training.metrics import read_metrics
from jaxzero.training.progress import Progress

SUMMARY_FILE = "summary.json"
CURVES_FILE = "curves.png"


def describe_devices(devices: list[jax.Device]) -> str:
    return f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform})"


def print_header(
    config: Config,
    devices: list[jax.Device],
    learner: Learner,
    plan: Plan,
) -> None:
    """State what is about to run: device, network, memory, replay ratio."""
    network, replay = config.network, config.iterations_kept * config.positions_per_iteration
    print(f"device        {describe_devices(devices)}, jax {jax.__version__}")
    print(
        f"network       {network.trunk} {network.channels} x {network.blocks} on "
        f"{config.game.board}, {count_params(learner.params):,} parameters, "
        f"{compute_dtype(network).name}"
    )
    print(
        f"memory        {mebibytes(plan.predicted)} predicted per device, "
        f"{mebibytes(plan.replay)} of it replay"
    )
    print(
        f"replay        {replay:,} positions, {config.iterations_kept} iterations; "
        f"replay ratio {config.replay_ratio:.2f} "
        f"({config.learner.updates_per_iteration} updates of {config.learner.batch_size} for "
        f"{config.positions_per_iteration:,} new positions)"
    )
    print(
        f"run           {config.iterations} iterations of {config.selfplay.games} games, "
        f"{config.search.simulations} simulations a move",
        flush=True,
    )


def headline(metrics: dict[str, Any]) -> str:
    """Return the metrics of an iteration that people watch, in one line."""
    line = (
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


def summarize(
    config: Config,
    run_dir: Path,
    devices: list[jax.Device],
    progress: Progress,
    results: dict[str, MatchResult],
    scores: dict[str, dict],
) -> dict[str, Any]:
    """Write `summary.json` and `curves.png`, and return the summary."""
    metrics = read_metrics(run_dir)
    iterations = int(progress.learner.iteration)
    seconds = max(60 * progress.minutes, 1e-9)
    summary = {
        "device": describe_devices(devices),
        "minutes": round(progress.minutes, 4),
        "iterations": iterations,
        "games": progress.games,
        "evaluations": progress.evaluations,
        "games_per_second": round(progress.games / seconds, 2),
        "evaluations_per_second": round(progress.evaluations / seconds),
        "peak_memory_bytes": max(map(peak_memory_bytes, devices)),
        "versus": {name: result.to_dict() for name, result in results.items()},
        "suite": scores,
    }
    write_json(run_dir / SUMMARY_FILE, summary)
    title = f"{config.game.board}, {config.network.trunk} {config.network.channels} x "
    draw_curves(run_dir / CURVES_FILE, title + str(config.network.blocks), metrics)
    return summary


def print_summary(
    run_dir: Path,
    player: str,
    summary: dict[str, Any],
    results: dict[str, MatchResult],
    scores: dict[str, dict],
) -> None:
    """Print the summary for people."""
    print(
        f"\n{summary['games']:,} games in {summary['minutes']:.1f} minutes of self-play and "
        f"learning: {summary['games_per_second']:.0f} games/s, "
        f"{summary['evaluations_per_second']:,} evaluations/s"
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
