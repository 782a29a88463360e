"""Test time-limited runs: their learning rate decays fully, and resuming keeps used minutes."""

import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from short_run import short_config, train

from jaxzero.config import Config, LearnerConfig
from jaxzero.host.interrupts import Stop
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.metrics import read_metrics
from jaxzero.training import trainer as trainer_module
from jaxzero.training.learner import learning_rate
from jaxzero.training.optimizer import FINAL_RATE
from jaxzero.training.run_state import RunState

SETTINGS = LearnerConfig(warmup_updates=0)


def progress_of(config: Config, seconds: np.ndarray) -> np.ndarray:
    """Return the progress [N, 2] before and after each iteration; they take `seconds` [...]."""
    state, spans = RunState(None, None), []
    while state.progress(config) < 1:
        spans.append(state.next_schedule(config).progress)
        minutes = state.minutes + seconds[state.iteration] / 60
        state = state._replace(iteration=state.iteration + 1, minutes=minutes)
    return np.array(spans)


def test_without_a_limit_of_time_the_clock_changes_nothing():
    slow, fast = (
        progress_of(Config(iterations=40), np.full(40, seconds)) for seconds in (100, 0.1)
    )
    np.testing.assert_array_equal(slow, fast)
    edges = np.arange(41, dtype=np.float32) / 40
    np.testing.assert_allclose(slow, np.stack([edges[:-1], edges[1:]], axis=1), rtol=1e-6)


@pytest.mark.parametrize("mean", [3, 17, 40])
def test_the_learning_rate_at_the_end_of_the_time_is_the_final_rate(mean):
    seconds = mean * np.random.default_rng(mean).uniform(0.8, 1.2, 1000)
    progress = progress_of(Config(iterations=0, minutes=10), seconds)
    both = progress_of(Config(iterations=1000, minutes=10), seconds)
    np.testing.assert_array_equal(
        progress[1:], both[1:]
    )  # the first one depends on iterations only
    assert len(progress) == pytest.approx(600 / mean, rel=0.1, abs=1)
    np.testing.assert_allclose(progress[2:, 0], progress[1:-1, 1], atol=0.5 / len(progress))
    rate = learning_rate(SETTINGS, 1.0, 0, progress[-1, 1])
    assert float(rate) == pytest.approx(FINAL_RATE, abs=0.005)


def test_iterations_end_a_run_whose_time_is_not_up():
    progress = progress_of(Config(iterations=10, minutes=10), np.full(10, 6.0))
    np.testing.assert_allclose(progress, progress_of(Config(iterations=10), np.full(10, 6.0)))


def test_a_slow_run_begins_to_follow_the_clock():
    progress = progress_of(Config(iterations=100, minutes=1), np.full(100, 15.0))
    np.testing.assert_allclose(progress[:, 0], [0, 0.25, 0.5, 0.75])
    assert progress[0, 1] == np.float32(0.01)  # no iteration has been timed yet
    np.testing.assert_allclose(progress[1:, 1], [0.5, 0.75, 1])


def test_a_run_of_a_minute_ends_decayed_and_resumes_with_its_minutes(tmp_path, monkeypatch, capsys):
    """A fake clock gives every iteration seven seconds."""
    seconds = iter(range(0, 10**6, 7))
    clock = SimpleNamespace(perf_counter=lambda: float(next(seconds)))
    monkeypatch.setattr(trainer_module, "time", clock)
    config = short_config("--minutes=1", "--iterations=80")
    assert train(config, tmp_path / "whole")
    records = read_metrics(tmp_path / "whole")
    assert [line["iteration"] for line in records] == list(range(1, 10))
    peak = config.learner.learning_rate
    assert records[-1]["learn/learning_rate"] == pytest.approx(FINAL_RATE * peak, abs=0.01 * peak)
    summary = json.loads((tmp_path / "whole" / "summary.json").read_text())
    assert summary["minutes"] == pytest.approx(1.05)

    capsys.readouterr()
    assert not train(config, tmp_path / "parts", stop=Stop(max_iterations=4))
    said = capsys.readouterr().out
    assert "0.5/1 min" in said and "4 of 80 iterations, 0.5 of 1 minutes" in said
    assert train(config, tmp_path / "parts", resume=True)
    rates, params = [], []
    for name in ("whole", "parts"):
        rates.append([line["learn/learning_rate"] for line in read_metrics(tmp_path / name)])
        with Checkpoints(tmp_path / name) as checkpoints:
            params.append(checkpoints.restore_newest().learner["params"])
    assert rates[0] == rates[1]
    jax.tree.map(np.testing.assert_array_equal, *params)
