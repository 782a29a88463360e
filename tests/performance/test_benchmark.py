"""Laws of the benchmark: what is reported, that it adds up, that bad paths fail before the work."""

from __future__ import annotations

import io
import json
import math
import runpy
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxzero.config import (
    Config,
    GameConfig,
    LearnerConfig,
    NetworkConfig,
    SearchConfig,
    SelfplayConfig,
)
from jaxzero.errors import InputError
from jaxzero.network.network import Network
from jaxzero.performance import timing
from jaxzero.performance.benchmark import comparison, fit_sizes, games_begun, notes, read_result
from jaxzero.performance.report import count_flops, measures, notes_on
from jaxzero.performance.timing import STAGES, make_workload, random_states
from jaxzero.training.learner import CPU_CHUNK, init_learner

ROOT = Path(__file__).parent.parent.parent
TINY = (
    "--config configs/tiny.yaml --game.rows 1 --network.features raw --network.channels 8 "
    "--search.simulations 1 --selfplay.opening_plies 2 "
    "--selfplay.games 4 --learner.updates_per_iteration 2 --learner.batch_size 8 "
    "--replay.capacity 100 --seconds 200 --rounds 1"
).split()
NUMBERS = (
    "games_per_second games_per_second_with_learning network_evaluations_per_second "
    "search_evaluations_per_second selfplay_evaluations_per_second learner_samples_per_second "
    "matmul_ceiling_flops copy_ceiling_bytes peak_memory_bytes predicted_memory_bytes "
    "network_mfu selfplay_mfu learning_mfu iteration_mfu copy_share"
).split()

main = runpy.run_path(str(ROOT / "scripts" / "benchmark.py"))["main"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> tuple[dict, str]:
    """Result and output of one small benchmark with its baseline."""
    path = tmp_path_factory.mktemp("benchmark") / "result.json"
    options = ["--json", str(path), "--baseline", "--baseline_processes", "1"]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.chdir(ROOT)
        patch.setattr(timing, "MATMUL_SIZES", (64, 64))
        patch.setattr(timing, "COPY_MEBIBYTES", (1, 1))
        main([*TINY, *options])
    return json.loads(path.read_text()), printed.getvalue()


def test_the_file_has_every_measure(measured):
    result, _ = measured
    for name in NUMBERS:
        assert isinstance(result[name], int | float) and 0 < result[name] < math.inf, name
    assert 0 <= result["seconds"]["host_gap"] <= result["seconds"]["iteration"]
    assert result["notes"] == []
    assert {"jax", "jaxlib", "mctx", "python", "jaxzero"} == set(result["versions"])
    assert result["config"]["selfplay"]["games"] == 4 and result["devices"] == 1
    assert result["platform"] == "cpu" and result["device"] and result["date"]


def test_the_numbers_add_up(measured):
    result, _ = measured
    edges, simulations, games = 7, 1, 4
    assert result["games_per_second"] * edges * (simulations + 1) == pytest.approx(
        result["selfplay_evaluations_per_second"]
    )
    seconds = result["seconds"]
    assert result["decisions_per_game"] == edges
    for end in ("", "_with_learning"):
        decisions = edges * result[f"games_per_second{end}"]
        assert result[f"decisions_per_second{end}"] == pytest.approx(decisions)
    assert games / seconds["iteration"] == pytest.approx(result["games_per_second_with_learning"])
    for name in ("network", "selfplay"):
        flops = result["flops_per_evaluation"] * result[f"{name}_evaluations_per_second"]
        assert flops / result["matmul_ceiling_flops"] == pytest.approx(result[f"{name}_mfu"])
    baseline = result["baseline"]
    assert baseline["ratio"] == pytest.approx(
        result["games_per_second"] / baseline["games_per_second"]
    )
    assert baseline["processes"] == 1 and baseline["games"] >= 1


def test_the_table_fits_and_says_what_it_is_about(measured):
    _, output = measured
    assert all(len(line) <= 100 for line in output.splitlines())
    for word in (
        "network alone",
        "decisions",
        "evaluations",
        "self-play",
        "learner",
        "host gap",
        "baseline",
        "1 of ",
    ):
        assert word in output


def test_comparing_prints_quotients_and_names_what_differs(measured):
    result, _ = measured
    faster = result | {
        "games_per_second": 2 * result["games_per_second"],
        "config": result["config"] | {"seed": 7},
    }
    lines = comparison(faster, result).splitlines()
    (line,) = (line for line in lines if line.startswith("games per second  "))
    assert line.split()[-1] == "2.000"
    assert lines[-1] == "differs: seed 7, before 0"
    assert comparison(result, result).splitlines()[-1] == "same device, versions and config"


def test_bad_input_fails_before_any_work(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("[1]")
    for path, message in ((tmp_path / "none", "cannot be read"), (broken, "holds no mapping")):
        with pytest.raises(InputError, match=f"compare: .* {message}"):
            read_result(path)
    for option, value, message in (
        ("--json", "nowhere/result.json", "json: nowhere/result.json cannot be written"),
        ("--compare", "nowhere/result.json", "compare: nowhere/result.json cannot be read"),
        ("--rounds", "0", "rounds: 0 must be a whole number >= 1"),
    ):
        with pytest.raises(InputError, match=message):
            main(["--config", "tiny", option, value])


SMALL = Config(
    game=GameConfig(2, 2),
    network=NetworkConfig(trunk="dense", channels=16, blocks=1, features="raw"),
    search=SearchConfig(simulations=4),
    learner=LearnerConfig(batch_size=32, updates_per_iteration=2),
)


def test_a_fast_device_runs_all_and_a_slow_one_less_and_says_so():
    moves = SMALL.positions_per_game
    fast = fit_sizes(SMALL, 1e9, 1e9, 15)
    assert (fast.moves, fast.updates, fast.iteration) == (moves, 2, True)
    assert list(notes(SMALL, fast)) == []
    slow = fit_sizes(SMALL, 1e3, 10.0, 15)
    assert slow.moves < moves and slow.updates == 1 and not slow.iteration
    assert len(list(notes(SMALL, slow))) == 3
    slowest = fit_sizes(SMALL, 1e-3, 1e-3, 15)
    assert slowest == (1, 1, 1, False)
    learning_off = replace(SMALL, learner=replace(SMALL.learner, updates_per_iteration=0))
    assert len(list(notes(learning_off, fit_sizes(learning_off, 1e3, 10.0, 15)))) == 2


def test_games_that_never_begin_are_not_counted():
    late = SelfplayConfig(games=64, start_ply=2, opening_plies=0)
    config = replace(
        SMALL, game=GameConfig(1, 3), search=SearchConfig(simulations=1), selfplay=late
    )
    network = Network(config.game.board, config.network)
    work = make_workload(config, init_learner(network, config))
    begun = games_begun(work)
    assert 0 < begun < 64
    assert games_begun(work._replace(config=SMALL)) == SMALL.selfplay.games
    limits = dict.fromkeys(("flops_per_evaluation", "flops_per_sample"), 1.0)
    limits |= {"matmul_ceiling_flops": 1.0, "copy_ceiling_bytes": 1.0}
    found = measures(config, 1, {"network": 1.0, "selfplay": 2.0, "iteration": 4.0}, limits, begun)
    assert found["games_per_second"] == begun / 2
    assert found["decisions_per_second"] * 2 == found["selfplay_evaluations_per_second"]
    assert found["decisions_per_game"] * begun == pytest.approx(2 * found["decisions_per_second"])


def test_operations_of_a_sample_do_not_depend_on_the_steps_of_a_cpu():
    network = NetworkConfig(trunk="conv", channels=8, blocks=1, features="raw")
    config = replace(SMALL, network=network, search=SearchConfig(nodes="all"))
    learner = jax.eval_shape(partial(init_learner, Network(config.game.board, network), config))
    counts = [
        count_flops(config, learner, 8, samples)["flops_per_sample"]
        for samples in (CPU_CHUNK, 8 * CPU_CHUNK)
    ]
    assert max(counts) < 1.1 * min(counts)


def test_what_speeds_leave_out_is_said():
    assert list(notes_on(SMALL)) == []
    late = replace(SMALL, selfplay=SelfplayConfig(start_ply=2))
    falls = replace(SMALL, selfplay=SelfplayConfig(start_ply=2, start_falls=0.5))
    solved = replace(SMALL, selfplay=SelfplayConfig(adjudicate_below=4))
    assert [len(list(notes_on(config))) for config in (late, falls, solved)] == [1, 2, 1]
    assert "selfplay.adjudicate_below" in next(notes_on(solved))


def test_positions_are_of_all_stages_of_the_game():
    game = SMALL.game.board
    state = random_states(game, 2 * STAGES)
    assert np.array_equal(np.sum(state.drawn, axis=1), [0, 3, 6, 9] * 2)
    assert isinstance(state.drawn, jax.Array)
