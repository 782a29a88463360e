"""Test the warnings about a run: each is provoked once, and a healthy run gives none."""

import json

import pytest
from script_runner import ROOT

from jaxzero.cli import load_config
from jaxzero.config import Config
from jaxzero.runs.warnings import Warnings

QUICK = load_config("configs/quick.yaml")


def healthy(iterations: int = 60) -> list[dict]:
    """Return metrics like those of `configs/quick.yaml`: errors fall, entropy hardly changes."""
    return [
        {
            "iteration": i + 1,
            "learn/margin_loss": 1.4 * 0.98**i,
            "learn/policy_divergence": 1.0 * 0.97**i,
            "learn/skipped_updates": 0.0,
            "selfplay/policy_entropy": 1.4 - 0.002 * i,
            "selfplay/first_wins": 0.1,
            "selfplay/draws": 0.0,
            "speed/minutes": 0.1 * (i + 1),
        }
        for i in range(iterations)
    ]


def changed(key: str, *last: float) -> list[dict]:
    """Return healthy metrics, with the values `last` of `key` in the last iterations."""
    metrics = healthy()
    for line, value in zip(metrics[-len(last) :], last, strict=True):
        line[key] = value
    return metrics


def warned(config: Config, metrics: list[dict]) -> list[tuple[int, str]]:
    """Return the iteration and the name of each warning of a run."""
    warnings = Warnings(config)
    return [
        (line["iteration"], words.split(":")[0]) for line in metrics for words in warnings.add(line)
    ]


def test_a_healthy_run_gives_no_warning():
    assert warned(QUICK, healthy()) == []


@pytest.mark.parametrize(
    ("name", "metrics", "iteration"),
    [
        ("policy collapsed", changed("selfplay/policy_entropy", *[0.02] * 5), 60),
        ("updates skipped", changed("learn/skipped_updates", 3.0, 3.0), 59),
        ("games all alike", changed("selfplay/draws", *[1.0] * 5), 60),
        ("games all alike", changed("selfplay/first_wins", *[1.0] * 7), 58),
        ("games all alike", changed("selfplay/first_wins", *[0.0] * 5), 60),
        ("value error rises", changed("learn/margin_loss", *[0.9] * 5), 57),
        ("policy error rises", changed("learn/policy_divergence", *[0.5] * 5), 57),
    ],
)
def test_each_warning_is_given_once_when_it_first_holds(name, metrics, iteration):
    assert warned(QUICK, metrics) == [(iteration, name)]


def test_a_loss_near_zero_may_double():
    assert warned(QUICK, changed("learn/margin_loss", *[0.001] * 10, *[0.02] * 10)) == []


def test_warnings_depend_on_the_settings():
    often = load_config("configs/cpu.yaml", "--learner.updates_per_iteration=500")
    assert warned(often, healthy(1)) == [(1, "replay ratio too high")]
    # A loss may rise while games begin ever earlier: that phase lasts longer here.
    metrics = changed("learn/policy_divergence", *[0.5] * 5)
    assert warned(load_config("configs/cpu.yaml", "--minutes=100"), metrics) == []


def test_a_real_run_on_a_gpu_gives_no_warning():
    lines = (ROOT / "docs/results/h200_2026-11-27/metrics.jsonl").read_text().splitlines()
    assert warned(load_config("configs/gpu_80gb.yaml"), [json.loads(line) for line in lines]) == []
