"""Test the benchmark: its numbers add up, and its bottlenecks are named."""

import io
import json
import math
import runpy
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from script_runner import ITERATION, ROOT

from jaxzero.cli import load_config
from jaxzero.config import plan
from jaxzero.network.network import Network, inference_copy
from jaxzero.performance import benchmark, timing
from jaxzero.performance.benchmark import (
    find_bottleneck,
    fitting_fraction,
    iteration_parts,
    report,
    whole_done,
)
from jaxzero.performance.report import count_flops
from jaxzero.performance.timing import (
    STAGES,
    Done,
    Part,
    Workload,
    learning_part,
    make_workload,
    network_part,
    random_states,
    selfplay_part,
)
from jaxzero.training.learner import init_learner

NUMBERS = (
    "games_per_second games_per_second_with_learning network_evaluations_per_second "
    "selfplay_evaluations_per_second learner_samples_per_second compile_seconds "
    "matmul_ceiling_flops copy_ceiling_bytes peak_memory_bytes predicted_memory_bytes "
    "network_mfu selfplay_mfu learning_mfu iteration_mfu copy_share replay_ratio"
).split()

PARTS = ("network", "selfplay", "learning", "iteration")

main = runpy.run_path(str(ROOT / "scripts" / "benchmark.py"))["main"]


def work_of(*options: str) -> Workload:
    config = load_config(str(ROOT / "configs/tiny.yaml"), *ITERATION, *options)
    return make_workload(config, init_learner(Network(config.game.board, config.network), config))


def traced(function: Callable[[Workload], Any], *options: str) -> Any:
    """Return the shapes of what `function` returns for a workload; nothing is compiled or run."""
    config = load_config(str(ROOT / "configs/tiny.yaml"), *ITERATION, *options)
    network, games = Network(config.game.board, config.network), plan(config).lanes

    def run() -> Any:
        learner = init_learner(network, config)
        prepared = inference_copy(network, learner.params, games)
        sizes = games, config.learner.batch_size, 1
        return function(Workload(config, network, learner, prepared, *sizes))

    return jax.eval_shape(run)


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> tuple[dict, str, Path]:
    """Return result, output and trace of one small benchmark on the two devices of the tests."""
    folder = tmp_path_factory.mktemp("benchmark")
    path, trace = folder / "result.json", folder / "trace"
    options = f"--config tiny --seconds 200 --rounds 1 --json {path} --trace {trace}".split()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(timing, "MATMUL_SIZES", (64, 64))
        patch.setattr(timing, "COPY_MEBIBYTES", (1, 1))
        main([*options, *ITERATION])
    return json.loads(path.read_text()), printed.getvalue(), trace


def test_the_numbers_are_there_and_add_up(measured):
    result, output, trace = measured
    for name in NUMBERS:
        assert isinstance(result[name], int | float) and 0 < result[name] < math.inf, name
    edges, games, devices = 12, 16, 2
    assert (result["devices"], result["decisions_per_game"]) == (devices, edges)
    # A search of 4 simulations evaluates the root too, but no finished game.
    speed, searches = result["selfplay_evaluations_per_second"], result["decisions_per_second"]
    assert searches < speed < 5 * searches
    whole = games / result["seconds"]["iteration"]
    assert whole == pytest.approx(result["games_per_second_with_learning"])
    for name in ("network", "selfplay"):
        flops = result["flops_per_evaluation"] * result[f"{name}_evaluations_per_second"]
        used = flops / (devices * result["matmul_ceiling_flops"])
        assert used == pytest.approx(result[f"{name}_mfu"])
    assert all(len(line) <= 100 for line in output.splitlines())
    assert result["bottleneck"]["name"] in output
    for kind in ("perfetto_trace*", "*.xplane.pb"):
        assert list(trace.rglob(kind))


# How much is measured


def test_a_slow_device_measures_less_and_says_so(monkeypatch):
    def check(work: Workload) -> None:
        monkeypatch.setattr(benchmark, "seconds_per_call", lambda *_, rounds: [1.0, 1.0])
        assert fitting_fraction(work, 1e9) == 1 and fitting_fraction(work, 0.1) < 0.1
        for devices, fraction, notes in ((1, 1.0, 0), (1, 1e-9, 1), (2, 1.0, 1)):
            assert len(iteration_parts(work._replace(devices=devices), fraction)[1]) == notes

    monkeypatch.setattr(timing, "MATMUL_SIZES", (64, 64))
    traced(check)


def test_only_what_self_play_does_is_counted():
    def check(work: Workload) -> Done:
        part = selfplay_part(work)
        alone = Part(lambda: (None, Done(5, 20, 60)), part.items, part.total)
        assert whole_done(work._replace(devices=2), alone) == (10, 40, 120)
        return part.call()[1]

    late = "--selfplay.late_start_moves=2", "--selfplay.random_opening_moves=0"
    assert isinstance(traced(check, "--search.nodes=quiet", *late), Done)


def test_operations_are_those_of_the_plain_convolution():
    """The padding is counted, Winograd's savings are not; a gradient takes three evaluations.

    A step of Muon takes five iterations of Newton-Schulz, whatever the size of the batch.
    """
    options = "--network.trunk=conv", "--network.channels=64"
    config = load_config(str(ROOT / "configs/tiny.yaml"), *ITERATION, *options)
    learner = jax.eval_shape(
        lambda: init_learner(Network(config.game.board, config.network), config)
    )
    squares, convolutions = 3 * 3, 2 * config.network.blocks
    plain = 2 * 9 * squares * convolutions * 64**2
    found = count_flops(config, learner)
    assert plain < found["flops_per_evaluation"] < 1.25 * plain  # with the other layers
    assert found["flops_per_sample"] == pytest.approx(3 * found["flops_per_evaluation"], rel=0.1)
    config = replace(config, learner=replace(config.learner, optimizer="muon"))
    learner = jax.eval_shape(
        lambda: init_learner(Network(config.game.board, config.network), config)
    )
    muon, rows = count_flops(config, learner), 9 * 64
    assert muon["flops_per_sample"] == found["flops_per_sample"]
    products = 5 * convolutions * (4 * rows * 64**2 + 2 * 64**3)
    more = muon["flops_per_update"] - found["flops_per_update"]
    assert products < more < 1.6 * products  # with the other layers


def test_a_report_marks_what_is_estimated_and_shows_shares_of_a_gpu_alone(measured):
    result, output, _ = measured
    assert "estimated" not in output and "of ceiling" not in output
    lines = report(result | {"iteration_estimated": True}).splitlines()
    assert sum("estimated from parts" in line for line in lines) == 4
    names = [name for name in result if name.endswith(("_mfu", "copy_share"))]
    assert "120.0%" in report(result | {"platform": "gpu"} | dict.fromkeys(names, 1.2))


# The parts


def test_positions_are_of_all_stages_and_come_back_as_they_went_in():
    work = work_of()
    state = random_states(work.network.board, 2 * STAGES)
    assert np.array_equal(np.sum(state.drawn, axis=1), [0, 3, 6, 9] * 2)
    # The guard that keeps the compiler from omitting work changes no input.
    part = network_part(work, 3)
    assert np.array_equal(part.call(), random_states(work.network.board, work.games).drawn)
    assert part.items == 3 * work.games


def test_the_network_alone_is_given_the_structure_as_in_a_search(monkeypatch):
    def find(*_):
        raise AssertionError("the network looks for the structure itself")

    def evaluate(work: Workload) -> jax.Array:
        part = network_part(work, 1)
        monkeypatch.setattr("jaxzero.network.network.find_structure", find)
        return part.call()

    assert traced(evaluate, "--search.nodes=quiet", "--network.features=structure").shape == (
        16,
        12,
    )


def test_learning_is_measured_with_all_its_targets():
    options = "--network.trunk=conv", "--network.safe_end=true"
    assert "learn/safe_end_loss" in traced(lambda work: learning_part(work, 1).call(), *options)[1]


# Bottlenecks


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "network"),
        ({"mfu": 0.7}, "network"),
        ({"selfplay": 3.0, "iteration": 3.6}, "tree"),
        ({"learning": 3.0, "iteration": 4.2}, "learning"),
        ({"copies": 0.8}, "memory bandwidth"),
        ({"copies": 0.8, "mfu": 0.6}, "network"),
        ({"copies": 3.0}, "network"),  # more than the memory moves: served by caches
        ({"gain": 0.4, "mfu": 0.1}, "launches"),
        ({"gain": 0.4, "mfu": 0.6}, "network"),
        ({"iteration": 5.0}, "unexplained"),
    ],
)
def test_every_bottleneck_is_reached(changes, name):
    given = {"network": 1.0, "selfplay": 1.1, "learning": 0.5, "iteration": 1.7}
    given |= {"mfu": 0.4, "copies": 0.3, "gain": 0.05} | changes
    found = find_bottleneck(
        {
            "seconds": {part: given[part] for part in PARTS},
            "network_mfu": given["mfu"],
            "copy_share": given["copies"],
            "doubling_gain": given["gain"],
        }
    )
    assert found.name == name
