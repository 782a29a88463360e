"""Test the benchmark: its numbers add up, and its bottlenecks are named."""

from __future__ import annotations

import io
import json
import math
import re
import runpy
from contextlib import redirect_stdout
from pathlib import Path

import jax
import numpy as np
import pytest
from script_runner import ROOT

from jaxzero.cli import load_config
from jaxzero.config import Config, typed_fields
from jaxzero.network.network import Network
from jaxzero.performance import timing
from jaxzero.performance.benchmark import (
    WHY,
    find_bottleneck,
    fitting_fraction,
    games_begun,
    iteration_parts,
    report,
)
from jaxzero.performance.report import count_flops
from jaxzero.performance.timing import (
    STAGES,
    Workload,
    learning_part,
    make_workload,
    network_part,
    random_states,
    selfplay_part,
)
from jaxzero.training.learner import init_learner

SMALL = (
    "--game.rows=1 --network.features=raw --network.channels=8 --search.simulations=1 "
    "--selfplay.random_opening_moves=2 --selfplay.games_per_iteration=8 "
    "--learner.updates_per_iteration=2 --learner.batch_size=16 --replay.capacity=100"
).split()
NUMBERS = (
    "games_per_second games_per_second_with_learning network_evaluations_per_second "
    "selfplay_evaluations_per_second learner_samples_per_second compile_seconds "
    "matmul_ceiling_flops copy_ceiling_bytes peak_memory_bytes predicted_memory_bytes "
    "network_mfu selfplay_mfu learning_mfu iteration_mfu copy_share replay_ratio"
).split()

PARTS = ("network", "selfplay", "learning", "iteration")

main = runpy.run_path(str(ROOT / "scripts" / "benchmark.py"))["main"]


def work_of(*options: str, config: str = "tiny") -> Workload:
    found = load_config(str(ROOT / "configs" / f"{config}.yaml"), *SMALL, *options)
    network = Network(found.game.board, found.network)
    return make_workload(found, init_learner(network, found))


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> tuple[dict, str, Path]:
    """Return result, output and trace of one small benchmark on the two devices of the tests."""
    folder = tmp_path_factory.mktemp("benchmark")
    path, trace = folder / "result.json", folder / "trace"
    options = f"--config tiny --seconds 200 --rounds 1 --json {path} --trace {trace}".split()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(timing, "MATMUL_SIZES", (64, 64))
        patch.setattr(timing, "COPY_MEBIBYTES", (1, 1))
        main([*options, *SMALL])
    return json.loads(path.read_text()), printed.getvalue(), trace


def test_the_numbers_are_there_and_add_up(measured):
    result, output, trace = measured
    for name in NUMBERS:
        assert isinstance(result[name], int | float) and 0 < result[name] < math.inf, name
    edges, evaluations, games, devices = 7, 2, 8, 2
    assert (result["devices"], result["decisions_per_game"]) == (devices, edges)
    speed = result["games_per_second"] * edges * evaluations
    assert speed == pytest.approx(result["selfplay_evaluations_per_second"])
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


def test_a_slow_device_measures_less_and_says_so():
    work = work_of()
    assert fitting_fraction(work, 1e9) == 1 and fitting_fraction(work, 1e-9) < 1e-3
    notes = [
        len(iteration_parts(work._replace(devices=devices), fraction)[1])
        for devices, fraction in ((1, 1.0), (1, 1e-9), (2, 1.0))
    ]
    assert notes == [0, 1, 1]


def test_games_that_never_begin_are_not_counted():
    late = (
        "--selfplay.late_start_moves=2",
        "--selfplay.random_opening_moves=0",
        "--selfplay.games_per_iteration=64",
    )
    work = work_of("--game.cols=3", "--search.nodes=quiet", *late)
    assert 0 < games_begun(work, selfplay_part(work)) < 64


def test_operations_are_those_of_the_plain_convolution():
    """The padding is counted, Winograd's savings are not; a gradient takes three evaluations."""
    work = work_of("--network.trunk=conv", "--network.channels=64")
    squares, convolutions = 2 * 3, 2 * work.config.network.blocks
    plain = 2 * 9 * squares * convolutions * 64**2
    found = count_flops(work.config, work.learner)
    assert plain < found["flops_per_evaluation"] < 1.25 * plain  # with the other layers
    assert found["flops_per_sample"] == pytest.approx(3 * found["flops_per_evaluation"], rel=0.1)


def test_a_report_says_what_is_estimated_and_why_a_share_is_above_its_limit(measured):
    result, output, _ = measured
    assert "measured as one" in output and "estimated" not in output

    def table(**changes) -> str:
        return report(result | changes)

    lines = table(iteration_estimated=True).splitlines()
    marked = [line.split()[0] for line in lines if "estimated from parts" in line]
    assert marked == ["with", "self-play,", "with", "with", "iteration"]
    # On a CPU evaluations are counted that it skips: shares of a limit would mean nothing.
    assert "of ceiling" not in output and WHY in " ".join(output.split())
    for share, said in ((0.9, False), (1.2, True)):
        names = [name for name in result if name.endswith(("_mfu", "copy_share"))]
        text = table(platform="gpu", **dict.fromkeys(names, share))
        assert f"{share:.1%}" in text and (WHY in " ".join(text.split())) == said


# The parts


def test_positions_are_of_all_stages_and_come_back_as_they_went_in():
    work = work_of()
    state = random_states(work.network.board, 2 * STAGES)
    assert np.array_equal(np.sum(state.drawn, axis=1), [0, 1, 3, 5] * 2)
    # The guard that keeps the compiler from omitting work changes no input.
    part = network_part(work, 3)
    assert np.array_equal(part.call(), random_states(work.network.board, work.games).drawn)
    assert part.items == 3 * work.games


def test_the_network_alone_is_given_the_structure_as_in_a_search(monkeypatch):
    def find(*_):
        raise AssertionError("the network looks for the structure itself")

    work = work_of("--search.nodes=quiet", "--network.features=structure")
    part = network_part(work, 1)
    monkeypatch.setattr("jaxzero.network.network.structure", find)
    assert jax.eval_shape(part.call).shape == (8, work.network.board.num_edges)


def test_learning_is_measured_with_all_its_targets():
    work = work_of("--network.trunk=conv", "--network.safe_end=true")
    assert "learn/safe_end_loss" in jax.eval_shape(learning_part(work, 1).call)[1]


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
def test_every_bottleneck_is_reached_and_advises_with_fields_that_exist(changes, name):
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
    assert found.name == name and found.advice
    named = re.findall(r"\b[a-z]+\.[a-z_]+\b", " ".join(found.advice))
    assert set(named) <= set(dict(typed_fields(Config)))
