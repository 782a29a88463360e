"""Test the warnings about a run: each is provoked, and a healthy run gives none."""

from __future__ import annotations

import json
import os
import re
import time
import types
from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.console import Console
from script_runner import ROOT, run_here

from jaxzero.cli import load_config
from jaxzero.config import Config
from jaxzero.config.files import save_config
from jaxzero.runs import watch
from jaxzero.runs.metrics import read_metrics
from jaxzero.runs.watch import not_judged, sparkline, warnings_of, watch_run

QUICK = load_config("configs/quick.yaml")


def healthy(iterations: int = 60) -> list[dict]:
    """Return metrics like those of `configs/quick.yaml`: errors fall, entropy hardly changes."""
    return [
        {
            "iteration": i + 1,
            "learn/margin_loss": 1.4 * 0.98**i,
            "learn/policy_divergence": 1.0 * 0.97**i,
            "learn/gradient_norm": 0.6,
            "learn/logit_size": 12.0,
            "selfplay/policy_entropy": 1.4 - 0.002 * i,
            "selfplay/first_wins": 0.1,
            "selfplay/draws": 0.0,
            "selfplay/used": 0.94,
            "selfplay/unsolved": 0.05,
            "speed/solver_wait_seconds": 0.4,
            "speed/evaluations_per_second": 3e4,
            "speed/minutes": 0.1 * (i + 1),
            "speed/seconds": 6.0,
            "suite/policy/optimal_share": 0.98 - 0.2 * 0.9**i,
        }
        for i in range(iterations)
    ]


def changed(key: str, *last: float) -> list[dict]:
    """Return healthy metrics, with the values `last` of `key` in the last iterations."""
    metrics = healthy()
    for line, value in zip(metrics[-len(last) :], last, strict=True):
        line[key] = value
    return metrics


def record(run_dir: Path, lines: list[dict]) -> None:
    save_config(QUICK, run_dir / "config.yaml")
    (run_dir / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def shown(run_dir: Path) -> str:
    """Return the view of a run in a terminal of 80 columns."""
    console = Console(width=80, force_terminal=False)
    with console.capture() as seen:
        console.print(watch_run(run_dir))
    return seen.get()


def names(config: Config, metrics: list[dict]) -> list[str]:
    return [warning.name for warning in warnings_of(config, metrics)]


def test_a_healthy_run_gives_no_warning_at_any_time(tmp_path):
    metrics = healthy()
    assert [names(QUICK, metrics[:n]) for n in range(len(metrics) + 1)] == [[]] * 61
    record(tmp_path, metrics)
    assert not_judged(metrics) == "" and "Nothing looks wrong." in shown(tmp_path)


def test_warnings_depend_on_the_settings():
    """Noise is reported before a run begins; while late starts move earlier, losses may rise."""
    often = load_config("configs/cpu.yaml", "--learner.updates_per_iteration=500")
    assert names(often, []) == ["replay ratio too high"]
    metrics = changed("learn/policy_divergence", *[0.5] * 5)  # a run of 6 minutes
    for minutes, found in ((5, ["policy error rises"]), (100, [])):
        assert names(load_config("configs/cpu.yaml", f"--minutes={minutes}"), metrics) == found


@pytest.mark.parametrize(
    ("name", "metrics", "setting"),
    [
        ("entropy collapse", changed("selfplay/policy_entropy", *[0.02] * 5), "opening_moves"),
        ("logits grow together", changed("learn/logit_size", *[2000.0] * 5), "learning_rate"),
        ("gradient explodes", changed("learn/gradient_norm", *[9.0] * 5), "learning_rate"),
        ("updates skipped", changed("learn/skipped_updates", 3.0), "learning_rate"),
        ("all games end alike", changed("selfplay/draws", *[1.0] * 5), "sampled_moves"),
        ("all games end alike", changed("selfplay/first_wins", *[1.0] * 5), "random_move_fraction"),
        ("all games end alike", changed("selfplay/first_wins", *[0.0] * 5), "random_move_fraction"),
        ("lanes idle", changed("selfplay/used", *[0.5] * 5), "selfplay.games_per_iteration"),
        ("slower than before", changed("speed/evaluations_per_second", *[5e3] * 5), "device"),
        ("solver too slow", changed("selfplay/unsolved", *[0.4] * 5), "solver_below_edges"),
        ("solver too slow", changed("speed/solver_wait_seconds", *[4.0] * 5), "solver_below_edges"),
        ("value error rises", changed("learn/margin_loss", *[0.9] * 5), "updates_per_iteration"),
        ("policy error rises", changed("learn/policy_divergence", *[0.5] * 5), "learning_rate"),
        (
            "value error flat",
            changed("learn/margin_loss", *[1.4] * 60),
            "selfplay.late_start_moves",
        ),
        ("more wrong moves", changed("suite/policy/optimal_share", 0.9), "checkpoint"),
    ],
)
def test_each_warning_is_provoked_alone_and_names_a_setting(name, metrics, setting):
    found = warnings_of(QUICK, metrics)
    assert [warning.name for warning in found] == [name]
    assert setting in found[0].change


def test_a_run_that_fell_apart_on_a_gpu_is_recognised():
    path = ROOT / "docs/results/NVIDIA_H100_80GB_HBM3/train_second.json"
    metrics = json.loads(path.read_text())["iterations"]
    assert "gradient explodes" in names(load_config("configs/gpu_80gb.yaml"), metrics)


@pytest.mark.parametrize(
    "lines",
    [
        healthy(4),
        [{"iteration": number} for number in range(1, 9)],
        [{**line, "learn/margin_loss": None} for line in healthy()],
    ],
)
def test_what_was_not_judged_is_not_called_good(lines, tmp_path):
    record(tmp_path, lines)
    others = ["[", "7", "[1]", '{"iteration": "2"}', "[" * 100_000, "{}", "\0"]  # no metrics
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write("\n".join(others).encode() + b"\n\xff\xfe")
    assert len(read_metrics(tmp_path)) == len(lines)
    assert warnings_of(QUICK, read_metrics(tmp_path)) == []
    assert not_judged(read_metrics(tmp_path))
    text = shown(tmp_path)
    assert "Not judged" in text and "Nothing looks wrong" not in text
    noisy = load_config("configs/quick.yaml", "--learner.batch_size=4096")
    save_config(noisy, tmp_path / "config.yaml")
    text = shown(tmp_path)
    assert "Not judged" in text and "replay ratio too high" in text  # also beside a warning


def test_the_view_fits_a_terminal_and_tells_speed_end_and_devices(tmp_path, monkeypatch):
    lines = changed("selfplay/policy_entropy", *[0.02] * 5)
    for line in lines:  # wide numbers leave little room for a curve
        line["speed/evaluations_per_second"] = 3e8
    lines[-1]["speed/evaluations_per_second"] *= 5
    record(tmp_path, lines)
    utilisation = types.SimpleNamespace(gpu=97)
    gpus = types.SimpleNamespace(
        NVMLError=OSError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUtilizationRates=lambda _gpu: utilisation,
        nvmlDeviceGetMemoryInfo=lambda _gpu: types.SimpleNamespace(used=2**31),
        nvmlDeviceGetPowerUsage=lambda _gpu: 690_000,
    )
    monkeypatch.setattr(watch, "pynvml", gpus)
    text = shown(tmp_path)
    assert max(map(len, text.splitlines())) <= 80
    (row,) = (line for line in text.splitlines() if "evaluations/s" in line)
    assert row.rstrip().endswith("█")
    assert sparkline([0.0, 1.0]) == "▁█" and sparkline([3.0] * 5) == "▁" * 5
    for words in ("running", "97 %", "2,048 MiB", "690 W", "entropy collapse", "opening_moves"):
        assert words in text
    (tmp_path / "summary.json").touch()
    assert "complete" in shown(tmp_path)
    os.utime(tmp_path / "metrics.jsonl", (time.time() + 9,) * 2)  # the run goes on
    assert "complete" not in shown(tmp_path)
    record(tmp_path, [{"iteration": 1}])  # a missing value is not shown as zero
    assert not re.search(r"\b0(\.0)? (s|games|minutes|MiB)\b|\b0%", shown(tmp_path))


@pytest.mark.parametrize(("options", "looks"), [((), 1), (("--every", "7"), 3), (("--once",), 1)])
def test_without_a_terminal_it_looks_again_only_where_it_is_asked_to(
    options, looks, tmp_path, monkeypatch
):
    record(tmp_path, healthy())
    waits = iter([0, 0])  # the third wait raises StopIteration
    monkeypatch.setattr(time, "sleep", lambda seconds: next(waits) if seconds == 7 else 1 / 0)
    with pytest.raises(StopIteration) if looks > 1 else nullcontext():
        assert run_here("watch.py", "--run_dir", tmp_path, *options).returncode == 0
    assert list(waits) == [0, 0][looks - 1 :]
