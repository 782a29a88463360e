"""The diagnosis as a whole: its numbers add up, its claims are tested against planted faults."""

from __future__ import annotations

import io
import json
import runpy
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.cli import load_config
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.network.network import IMPOSSIBLE, Network
from jaxzero.performance import diagnose, monitor, timing
from jaxzero.performance.diagnose import GROUPS, iteration_parts, transfer_lines
from jaxzero.performance.report import SPEED
from jaxzero.performance.timing import (
    free_evaluator,
    learning_part,
    make_workload,
    network_part,
    random_states,
    write_part,
)
from jaxzero.training.adjudicator import Adjudicator
from jaxzero.training.learner import init_learner

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "tiny.yaml"
SMALL = (
    "--game.rows=1 --network.features=raw --network.channels=8 --search.simulations=1 "
    "--selfplay.games=8 --devices=2 --learner.batch_size=16 --learner.updates_per_iteration=2 "
    "--replay.capacity=100 --selfplay.opening_plies=2"
).split()


main = runpy.run_path(str(ROOT / "scripts" / "diagnose.py"))["main"]


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory):
    """What the script prints and writes for a tiny configuration on two devices."""
    folder = tmp_path_factory.mktemp("diagnosis")
    places = ["--json", str(folder / "out.json"), "--trace", str(folder / "trace")]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(diagnose, "TIMED_SECONDS", 0.0)  # one round
        patch.setattr(monitor, "WATCH_SECONDS", 0.0)
        patch.setattr(timing, "MATMUL_SIZES", (64, 64))
        patch.setattr(timing, "COPY_MEBIBYTES", (1, 1))
        main(["--config", str(CONFIG), *SMALL, *places])
    return printed.getvalue(), json.loads((folder / "out.json").read_text())


def test_parts_and_remainder_add_up_to_the_iteration(diagnosed):
    _, found = diagnosed
    assert set(found["profile"]) == {part for parts in GROUPS.values() for part in parts}
    assert all(seconds >= 0 for seconds in found["profile"].values())
    total = sum(found["profile"].values()) + found["unexplained_seconds"]
    assert total == pytest.approx(found["seconds"]["iteration"])


def test_the_rates_are_those_of_both_devices(diagnosed):
    _, found = diagnosed
    assert found["devices"] == 2
    assert found[SPEED] == pytest.approx(8 / found["seconds"]["iteration"])
    flops = 7 * 8 * 2 * found["flops_per_evaluation"] + 2 * 16 * found["flops_per_sample"]
    used = flops / found["seconds"]["iteration"] / (2 * found["matmul_ceiling_flops"])
    assert found["iteration_mfu"] == pytest.approx(used)


def test_only_the_scalars_cross_and_the_guard_was_seen_to_work(diagnosed):
    _, found = diagnosed
    crossing = found["transfers"]
    assert not crossing["refused"]
    assert crossing["guards_to_device"]
    assert not crossing["host_calls"]
    assert crossing["to_host_bytes"] == 4 * crossing["to_host_scalars"] < 200
    assert crossing["sent"] == {"span": 2 * 2 * 4}  # two float32 to each of two devices
    assert crossing["stops_bytes"] == 0 and found["solver_wait_share"] is None


def test_the_trace_lies_where_it_says(diagnosed):
    text, found = diagnosed
    for name in ("perfetto", "tensorboard"):
        assert Path(found["trace"][name]).stat().st_size > 0
        assert found["trace"][name] in text


def test_the_report_is_readable(diagnosed):
    text, found = diagnosed
    lines = [line for line in text.splitlines() if "/trace/" not in line]
    assert max(map(len, lines)) <= 100
    assert f"Bottleneck: {found['bottleneck']['name']}" in text
    for part in ("unexplained", "MFU", *found["profile"]):
        assert part.replace("_", " ") in text


def work_of(*options: str):
    config = load_config(CONFIG, *SMALL, *options)
    network = Network(config.game.board, config.network)
    return make_workload(config, init_learner(network, config), 2)


def test_each_part_runs_as_often_as_the_iteration_runs_it():
    work = work_of()
    parts, config = iteration_parts(work), work.config
    evaluations = config.evaluations_per_iteration // 2
    for name in ("network", "rules", "tree"):
        assert parts[name].total == evaluations
    for name in ("network", "rules"):
        assert parts[name].items == evaluations  # few enough for one call
    assert parts["tree"].items == evaluations
    for name in ("replay_sample", "gradient", "optimiser"):
        assert parts[name].total == 2 * 8
    # The guard against leaving work out never fires: the carry comes back as it went in.
    assert jnp.all(parts["network"].call() == random_states(work.network.game, 4).drawn)
    assert parts["replay_write"].call().cursor == work.positions % 100


def test_parts_without_learning_leave_it_out():
    parts = iteration_parts(work_of("--learner.updates_per_iteration=0"))
    assert "gradient" not in parts
    assert "replay_write" in parts


def test_the_free_evaluator_is_flat_and_tells_positions_apart():
    game = DotsAndBoxes(1, 2)
    state = random_states(game, 32)
    there = free_evaluator(game)({}, state, None)
    assert jnp.all((there.prior_logits == IMPOSSIBLE) == state.drawn)
    assert len(np.unique(there.value.round(5))) > 4
    over = state._replace(drawn=jnp.ones_like(state.drawn))
    assert jnp.all(free_evaluator(game)({}, over, None).value == 0)


def test_a_transfer_during_the_iteration_is_caught():
    def step():
        return jnp.ones(3), {"total": held + np.ones(3, np.float32)}

    def quiet():
        return held, {"total": held}

    held = jnp.ones(3)
    program = SimpleNamespace(compiled=SimpleNamespace(as_text=lambda: ""))
    for of_program, of_trainer in ((step, quiet), (quiet, step), (quiet, quiet)):
        run = SimpleNamespace(
            step=of_program, iterate=of_trainer, program=program, solver=None, sent={}
        )
        found = monitor.count_transfers(run)
        caught = step in (of_program, of_trainer)
        assert ("host-to-device" in found.refused) == caught
        assert any("NOT all" in line for line in transfer_lines(found._asdict())) == caught


def test_what_the_solver_reads_and_answers_is_counted():
    options = ["--search.nodes=quiet", "--selfplay.adjudicate_below=2", "--devices=1"]
    options += ["--replay.capacity=500", "--learner.updates_per_iteration=0"]
    config = load_config(CONFIG, *SMALL, *options)
    devices = jax.local_devices()[:1]
    with monitor.training(config, devices) as run, Adjudicator(config, devices) as run.solver:
        found = monitor.count_transfers(run)
    games, edges, stored = 8, config.game.board.num_edges, config.solved_per_game
    assert not found.refused and found.stops_bytes == games * edges
    answers = {name.rpartition(".")[2]: count for name, count in found.sent.items()}
    rows = games * stored
    boards = {"drawn": rows * edges, "best": rows * edges}
    assert answers == {"span": 8, **boards, "value": 4 * rows, "solved": rows}
    assert len(run.solver_seconds) == 1


def test_the_network_alone_is_given_the_structure_as_in_a_search(monkeypatch):
    def find(*_):
        raise AssertionError("the network looks for the structure itself")

    work = work_of("--search.nodes=quiet", "--network.features=structure")
    monkeypatch.setattr(timing, "inference_copy", lambda network, params, batch: params)
    monkeypatch.setattr("jaxzero.network.network.structure", find)
    assert network_part(work, 1).call().shape == (4, work.network.game.num_edges)


def test_learning_is_measured_with_all_its_targets():
    work = work_of("--network.trunk=conv", "--network.safe_end=true", "--devices=1")
    assert "learn/safe_end_loss" in learning_part(work, 1).call()[1]
    assert not isinstance(write_part(work).call().safe_end, tuple)


def test_a_program_that_calls_the_host_is_caught():
    def shout(x):
        return jax.pure_callback(lambda y: y, x, x)

    text = jax.jit(shout).lower(jnp.ones(2)).compile().as_text()
    assert monitor.host_calls(text)
    assert monitor.host_calls("  %in = (f32[2]{0}, token[]) infeed(token[] %t)") == ("infeed",)
    assert not monitor.host_calls(jax.jit(jnp.sin).lower(jnp.ones(2)).compile().as_text())


def test_loops_without_a_known_end_are_counted():
    def program(x):
        x = jax.lax.fori_loop(0, 9, lambda _, y: jnp.sin(y), x)
        return jax.lax.while_loop(lambda y: jnp.any(y > 0.1), lambda y: y * 0.5, x)

    assert monitor.open_loops(jax.jit(program).lower(jnp.ones(2)).compile().as_text()) == 1


def test_the_utilisation_is_read_from_the_driver_where_there_is_one(monkeypatch):
    class NVMLError(Exception):
        pass

    asked = []
    nvml = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetHandleByUUID=lambda name: name,
        nvmlDeviceGetUtilizationRates=lambda gpu: asked.append(gpu) or SimpleNamespace(gpu=97),
    )
    gpus = [SimpleNamespace(platform="gpu", local_hardware_id=number) for number in (0, 1)]
    monkeypatch.setattr(monitor, "SAMPLE_SECONDS", 0.001)
    monkeypatch.setattr(monitor, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(monitor, "pynvml", nvml)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-abc")
    found = monitor.watch_utilisation(lambda: time.sleep(0.001), gpus)
    assert found.share == pytest.approx(0.97) and set(asked) == {3, "GPU-abc"}

    def fail():
        raise NVMLError

    for driver in (None, SimpleNamespace(NVMLError=NVMLError, nvmlInit=fail)):
        monkeypatch.setattr(monitor, "pynvml", driver)
        assert monitor.watch_utilisation(lambda: None, gpus).share is None


def test_unwritable_places_are_refused_at_once(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("kept")
    with pytest.raises(InputError, match=r"json: .* cannot be written"):
        main(["--config", str(CONFIG), "--json", str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "scripts/diagnose.py", "--config", str(CONFIG), "--trace", str(blocked)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: trace: ")
