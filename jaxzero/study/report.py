"""What a study found, for people and for files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax

from jaxzero.agent.network import Network, count_params
from jaxzero.config import Config
from jaxzero.files import write_csv, write_json
from jaxzero.study.fit import Fit, Point
from jaxzero.study.labels import Labels
from jaxzero.training.learner import candidate_params
from jaxzero.training.throughput import network_call, seconds_per_call

RESULT_FILE, CURVE_FILE = "result.json", "curve.csv"
INFERENCE_BATCH = 512
INFERENCE_SECONDS = 0.3  # of a measurement

Result = dict[str, Any]

# What is shown: key of the scores, heading, and how the number is written.
ERRORS: dict[str, tuple[str, Callable[[float], str]]] = {
    "wrong": ("wrong", lambda x: f"{x:.2%}"),
    "wrong_decisive": ("decisive", lambda x: f"{x:.2%}"),
    "value_error": ("value error", lambda x: f"{x:.3f}"),
    "right_sign": ("right sign", lambda x: f"{x:.2%}"),
}
COSTS: dict[str, tuple[str, Callable[[float], str]]] = {
    "parameters": ("parameters", lambda x: f"{x:,}"),
    "evaluations_per_second": ("evals/s", lambda x: f"{x:,.0f}"),
    "ms_per_update": ("ms/update", lambda x: f"{x:.3g}"),
    "positions": ("seen", lambda x: f"{x:,}"),
    "seconds": ("seconds", lambda x: f"{x:.0f}"),
}


def errors_of(scores: dict[str, Any]) -> dict[str, float | None]:
    """Return what is shown of scores: shares of wrong moves and right signs, error in boxes."""
    return {
        "wrong": _rest(scores["optimal_share"]),
        "wrong_decisive": _rest(scores["decisive_optimal_share"]),
        "value_error": scores["value_error"],
        "right_sign": scores["sign_accuracy"],
    }


def _rest(share: float | None) -> float | None:
    return None if share is None else round(1 - share, 5)


def result_of(config: Config, labels: Labels, done: Fit) -> Result:
    """Return all there is to know of one study; measures the speed of inference."""
    network, params = Network(labels.test.game, config.network), candidate_params(done.learner)
    last = done.curve[-1]
    return {
        "config": asdict(config),
        "labels": labels.source,
        "label_positions": labels.positions,
        "test_positions": len(labels.test),
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "parameters": count_params(done.learner.params),
        "batch_size": config.learner.batch_size,
        "updates": last.updates,
        "positions": last.positions,
        "seconds": last.seconds,
        "ms_per_update": 1000 * last.seconds / last.updates,
        "compile_seconds": done.compile_seconds,
        "evaluations_per_second": evaluations_per_second(network, params),
        **errors_of(last.scores["all"]),
        "by_undrawn": {
            band: {"positions": scores["positions"], **errors_of(scores)}
            for band, scores in last.scores["by_undrawn"].items()
        },
        "curve": [curve_row(point) for point in done.curve],
    }


def evaluations_per_second(network: Network, params: Any) -> float:
    """Measure evaluations in batches of INFERENCE_BATCH, one after the other on one device."""
    repeats = 4
    while True:
        call = network_call(network, params, INFERENCE_BATCH, repeats)
        (seconds,) = seconds_per_call(call)
        if seconds > INFERENCE_SECONDS / 2 or repeats > 10_000:
            return INFERENCE_BATCH * repeats / seconds
        repeats = int(1 + repeats * min(100.0, INFERENCE_SECONDS / seconds))


def curve_row(point: Point) -> dict[str, Any]:
    """Return one line of the curve."""
    return {
        "seconds": round(point.seconds, 3),
        "positions": point.positions,
        "updates": point.updates,
        "loss": point.loss,
        **errors_of(point.scores["all"]),
    }


def point_line(point: Point) -> str:
    """Say what a network knows after some learning, in one line."""
    errors = errors_of(point.scores["all"])
    parts = [
        f"{head} {write(errors[key]) if errors[key] is not None else '-'}"
        for key, (head, write) in ERRORS.items()
    ]
    return f"{point.seconds:8.1f} s {point.positions:>12,} positions   " + "  ".join(parts)


def write_result(out: Path, result: Result) -> None:
    """Write `result.json` and `curve.csv`."""
    write_json(out / RESULT_FILE, result)
    curve = result["curve"]
    write_csv(out / CURVE_FILE, list(curve[0]), curve)
