"""A fit learns, keeps its budget, and its report adds up."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import jax.numpy as jnp
import pytest

from jaxzero.cli import load_config
from jaxzero.config import Config
from jaxzero.errors import InputError, RunError
from jaxzero.study import fit as fit_module
from jaxzero.study import results
from jaxzero.study.fit import Budget, Fit, fit, next_count
from jaxzero.study.labels import Labels, make_labels
from jaxzero.study.results import (
    draw_results,
    format_results,
    read_results,
    result_of,
    write_comparison,
    write_result,
)

CONFIG = Path(__file__).parents[2] / "configs" / "tiny.yaml"
POSITIONS = 20_000


@pytest.fixture(scope="module")
def fitted() -> tuple[Config, Labels, Fit, list]:
    config = load_config(CONFIG, "--network.channels=32", "--search.nodes=all")
    labels, said = make_labels(config, None), []
    return config, labels, fit(config, labels, Budget(1e6, POSITIONS), said.append), said


def test_a_fitted_network_is_better_than_at_the_start(fitted):
    _, _, done, _ = fitted
    first, last = (done.curve[place].scores["all"] for place in (0, -1))
    assert last["wrong_share"] < first["wrong_share"] - 0.1
    assert last["value_error"] < first["value_error"] / 2
    assert done.curve[-1].loss < done.curve[1].loss


def test_the_budget_is_kept_and_looked_at_on_the_way(fitted):
    config, _, done, said = fitted
    assert said == done.curve
    seen = [point.positions for point in done.curve]
    assert seen == sorted(seen) and len(set(seen)) == len(seen) == 8
    assert POSITIONS <= seen[-1] < POSITIONS + config.learner.batch_size
    assert POSITIONS / 64 <= seen[1] < POSITIONS / 64 + 2 * config.learner.batch_size
    assert int(done.learner.step) == done.curve[-1].updates


def test_time_is_a_budget_too(fitted):
    config, labels, _, _ = fitted
    done = fit(config, labels, Budget(0.005), lambda point: None)
    assert done.curve[-1].seconds >= 0.3
    assert done.curve[-2].seconds < 0.3


def test_a_fit_that_diverges_says_so(fitted, monkeypatch):
    config, labels, _, _ = fitted
    skipped = {"loss": jnp.float32(0), "skipped": jnp.float32(1)}
    monkeypatch.setattr(
        fit_module, "update", lambda n, c, learner, batch, fraction: (learner, skipped)
    )
    with pytest.raises(RunError, match=r"learner\.learning_rate: 0\.004 made it diverge: 2\d up"):
        fit(config, labels, Budget(1e6, POSITIONS), lambda point: None)


def test_a_call_takes_a_small_share_of_the_budget():
    assert next_count(Budget(1.0), 10, updates=5, count=4, elapsed=0.39) == 3  # 0.3 s of 60
    assert next_count(Budget(1.0), 10, updates=5, count=4, elapsed=1e-6) == 16
    assert next_count(Budget(1.0), 10, updates=5, count=1, elapsed=9.0) == 1
    assert next_count(Budget(9.0, 4000), 10, updates=5, count=4, elapsed=1e-6) == 2
    assert next_count(Budget(9.0, 4000), 10, updates=399, count=2, elapsed=1e-6) == 1


def test_the_report_adds_up(fitted, tmp_path, monkeypatch):
    config, labels, done, _ = fitted
    monkeypatch.setattr(results, "INFERENCE_SECONDS", 0.01)
    result = result_of(config, labels, done)
    assert result["wrong"] == pytest.approx(1 - done.curve[-1].scores["all"]["optimal_share"])
    bands = result["by_undrawn"].values()
    assert sum(band["positions"] for band in bands) == result["test_positions"] == len(labels.test)
    mean = sum(band["positions"] * band["wrong"] for band in bands) / len(labels.test)
    assert mean == pytest.approx(result["wrong"], abs=1e-4)
    assert result["positions"] == result["updates"] * config.learner.batch_size
    assert result["ms_per_update"] * result["updates"] == pytest.approx(1000 * result["seconds"])
    assert result["evaluations_per_second"] > 0 and result["parameters"] > 0

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_result(tmp_path / name, result)
    with (tmp_path / "one" / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["positions"]) for row in rows] == [p.positions for p in done.curve]

    (tmp_path / "file").write_text("passed over")
    found = read_results(sorted(tmp_path.iterdir()))
    assert set(found) == {"one", "two"}
    assert found["one"] == json.loads(json.dumps(result))
    lines = format_results(found).splitlines()
    assert lines[1].startswith("one") and "dense 32x1" in lines[1]
    assert any(line.startswith("value error, boxes, by undrawn") for line in lines)
    write_comparison(tmp_path, found)
    assert len((tmp_path / "comparison.csv").read_text().splitlines()) == 3
    draw_results(tmp_path / "comparison.png", found)
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_folders_without_results_are_named(tmp_path):
    with pytest.raises(InputError, match=f"compare: {tmp_path}/result.json cannot be read"):
        read_results([tmp_path])
    with pytest.raises(InputError, match="holds no folder of a study"):
        read_results([])


def test_results_of_folders_with_one_name_are_all_there(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "read_result", lambda path: {"path": path})
    folders = [tmp_path / "a" / "conv", tmp_path / "b" / "conv", tmp_path / "dense"]
    assert list(read_results(folders)) == [str(folders[0]), str(folders[1]), "dense"]
