"""Laws of the benchmark: what is reported, that it adds up, that bad paths fail before the work."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxzero.config import Config, GameConfig, LearnerConfig, NetworkConfig, SearchConfig
from jaxzero.errors import InputError
from jaxzero.performance.host_gap import PER_CALL, gap_seconds
from jaxzero.performance.plan import Speed, make_plan
from jaxzero.performance.rates import STAGES, staged_positions
from jaxzero.performance.report import comparison, read_result

ROOT = Path(__file__).parent.parent.parent
TINY = (
    "--config configs/tiny.yaml --network.channels 16 --search.simulations 4 --selfplay.games 16 "
    "--learner.updates_per_iteration 2 --learner.batch_size 32 --seconds 2 --rounds 1"
).split()
NUMBERS = (
    "games_per_second games_per_second_with_learning network_evaluations_per_second "
    "search_evaluations_per_second selfplay_evaluations_per_second learner_samples_per_second "
    "matmul_ceiling_flops copy_ceiling_bytes peak_memory_bytes predicted_memory_bytes "
    "compile_seconds"
).split()


def run(*arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "scripts/benchmark.py", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> tuple[dict, str, Path]:
    """Result, output and file of one small benchmark with its baseline."""
    path = tmp_path_factory.mktemp("benchmark") / "result.json"
    done = run(*TINY, "--json", path, "--baseline", "--baseline_processes", "1")
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text()), done.stdout, path


def test_the_file_has_every_measure(measured):
    result, _, _ = measured
    for name in NUMBERS:
        assert isinstance(result[name], int | float) and result[name] > 0, name
    assert set(result["mfu"]) == {"network", "selfplay", "learner"}
    assert all(0 < share < math.inf for share in result["mfu"].values())
    assert 0 <= result["host_gap_share"] <= 1
    assert {"jax", "jaxlib", "mctx", "python", "jaxzero"} == set(result["versions"])
    assert result["config"]["selfplay"]["games"] == 16
    assert result["platform"] == "cpu" and result["device"] and result["date"]


def test_a_wait_is_neither_negative_nor_longer_than_an_iteration():
    assert gap_seconds(trained=10.0, back_to_back=9.5) == pytest.approx(0.5 / (PER_CALL - 1))
    assert gap_seconds(trained=10.0, back_to_back=11.0) == 0.0
    assert gap_seconds(trained=10.0, back_to_back=1.0) == pytest.approx(10.0 / PER_CALL)


def test_the_numbers_add_up(measured):
    result, _, _ = measured
    edges, simulations, games = 12, 4, 16
    assert result["games_per_second"] * edges * (simulations + 1) == pytest.approx(
        result["selfplay_evaluations_per_second"]
    )
    phases = result["phases"]
    assert games / phases["iteration"] == pytest.approx(result["games_per_second_with_learning"])
    assert phases["host_gap"] / phases["iteration"] == pytest.approx(result["host_gap_share"])
    for name in ("network", "selfplay"):
        flops = result["flops_per_evaluation"] * result[f"{name}_evaluations_per_second"]
        assert flops / result["matmul_ceiling_flops"] == pytest.approx(result["mfu"][name])
    baseline = result["baseline"]
    assert baseline["ratio"] == pytest.approx(
        result["games_per_second"] / baseline["games_per_second"]
    )
    assert [one["processes"] for one in baseline["by_processes"]] == [1]


def test_the_table_fits_and_says_what_it_is_about(measured):
    _, output, _ = measured
    assert all(len(line) <= 100 for line in output.splitlines())
    for word in ("network alone", "self-play", "learner", "host gap", "baseline", "1 of "):
        assert word in output


def test_comparing_prints_quotients_and_names_what_differs(measured):
    result, _, _ = measured
    faster = result | {
        "games_per_second": 2 * result["games_per_second"],
        "config": result["config"] | {"seed": 7},
    }
    lines = comparison(faster, result).splitlines()
    (line,) = (line for line in lines if line.startswith("games/s  "))
    assert line.split()[-1] == "2.000"
    assert lines[-1] == "differs: seed 7, before 0"
    assert comparison(result, result).splitlines()[-1] == "same device, versions and config"


def test_bad_input_fails_before_any_work(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("[1]")
    for path, message in ((tmp_path / "none", "cannot be read"), (broken, "is not a result")):
        with pytest.raises(InputError, match=f"compare: .* {message}"):
            read_result(path)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--json", "json: nowhere/result.json cannot be written"),
        ("--compare", "compare: nowhere/result.json cannot be read"),
    ],
)
def test_bad_paths_end_with_one_line_and_exit_code_2(option, message):
    done = run(*TINY, option, "nowhere/result.json")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and message in done.stderr


SMALL = Config(
    game=GameConfig(2, 2),
    network=NetworkConfig(trunk="dense", channels=16, blocks=1),
    search=SearchConfig(simulations=4),
    learner=LearnerConfig(batch_size=32, updates_per_iteration=2),
)


def test_a_fast_device_runs_all_and_a_slow_one_less_and_says_so():
    fast = make_plan(SMALL, Speed(1e9, 1e9), 60)
    assert fast.notes == () and fast.whole_iteration(SMALL)
    moves = SMALL.positions_per_game
    assert (fast.games, fast.plies, fast.samples, fast.updates) == (1024, moves, 32, 2)
    slow = make_plan(SMALL, Speed(1e3, 1e3), 60)
    assert slow.plies < moves and not slow.whole_iteration(SMALL)
    assert len(slow.notes) >= 2
    slowest = make_plan(SMALL, Speed(1e-3, 1e-3), 60)
    assert min(slowest[1:7]) == 1
    learning_off = replace(SMALL, learner=replace(SMALL.learner, updates_per_iteration=0))
    assert make_plan(learning_off, Speed(1e3, 1e3), 60).iteration.learner.updates_per_iteration == 0


def test_positions_are_of_all_stages_of_the_game():
    game = SMALL.game.board
    state = staged_positions(game, 2 * STAGES)
    assert np.array_equal(np.sum(state.drawn, axis=1), [0, 3, 6, 9] * 2)
    assert isinstance(state.drawn, jax.Array)
