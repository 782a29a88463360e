"""The diagnosis as a whole: its numbers add up, its claims are tested against planted faults."""

from __future__ import annotations

import io
import json
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.agent.network import IMPOSSIBLE, Network
from jaxzero.cli import load_config
from jaxzero.errors import InputError
from jaxzero.performance import account, busy, diagnose, transfers
from jaxzero.performance.diagnose import WHAT
from jaxzero.performance.inputs import random_state
from jaxzero.performance.phases import free_evaluator, iteration_parts
from jaxzero.performance.tracing import count_copies
from jaxzero.training.learner import init_learner

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "tiny.yaml"
SMALL = (
    "--game.rows=1 --network.channels=8 --search.simulations=2 --selfplay.games=8 --devices=2 "
    "--learner.batch_size=16 --learner.updates_per_iteration=2 --replay.capacity=100"
).split()


main = runpy.run_path(str(ROOT / "scripts" / "diagnose.py"))["main"]


@pytest.fixture(scope="module")
def config():
    return load_config(CONFIG, *SMALL)


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory):
    """What the script prints and writes for a tiny configuration on two devices."""
    folder = tmp_path_factory.mktemp("diagnosis")
    places = ["--json", str(folder / "out.json"), "--trace", str(folder / "trace")]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(account, "TIMED_SECONDS", 0.0)  # one round
        patch.setattr(diagnose, "measure_ceilings", lambda _: account.Ceilings(1e11, 1e10))
        main(["--config", str(CONFIG), *SMALL, *places])
    return printed.getvalue(), json.loads((folder / "out.json").read_text())


def test_parts_and_remainder_add_up_to_the_iteration(diagnosed):
    _, found = diagnosed
    assert set(found["seconds"]) == set(WHAT)
    assert all(seconds >= 0 for seconds in found["seconds"].values())
    total = sum(found["seconds"].values()) + found["unexplained_seconds"]
    assert total == pytest.approx(found["iteration_seconds"])


def test_only_the_scalars_cross_and_the_guard_was_seen_to_work(diagnosed):
    _, found = diagnosed
    crossing = found["transfers"]
    assert crossing["to_device_bytes"] == 0
    assert crossing["guards_to_device"]
    assert not crossing["host_calls"]
    assert crossing["to_host_bytes"] == 4 * crossing["to_host_scalars"] < 100


def test_the_trace_lies_where_it_says(diagnosed):
    text, found = diagnosed
    for name in ("perfetto", "tensorboard"):
        assert Path(found["trace"][name]).stat().st_size > 0
        assert found["trace"][name] in text


def test_the_report_is_readable(diagnosed):
    text, found = diagnosed
    lines = [line for line in text.splitlines() if "/" not in line]
    assert max(map(len, lines)) <= 100
    assert f"Verdict: bound by {found['verdict']['bound']}" in text
    for part in ("unexplained", "MFU", *WHAT):
        assert part in text


def test_each_part_runs_as_often_as_the_iteration_runs_it(config):
    network = Network(config.game.board, config.network)
    parts = iteration_parts(config, network, init_learner(network, config), 2)
    per_device = config.evaluations_per_iteration // 2
    for name in ("features", "evaluation", "rules"):
        assert parts[name].count * parts[name].batch == per_device
    assert parts["moves"].count == config.game.board.num_edges
    for name in ("replay_draw", "gradient", "optimiser"):
        assert parts[name].count == config.learner.updates_per_iteration
        assert parts[name].batch == config.learner.batch_size // 2
    # The guard against leaving work out never fires: the carry comes back as it went in.
    assert jnp.all(parts["evaluation"].call().drawn == random_state(network.game, 4).drawn)
    assert parts["replay_write"].call().cursor == parts["replay_write"].batch % 200


def test_parts_without_learning_leave_it_out(config):
    config = load_config(CONFIG, *SMALL, "--learner.updates_per_iteration=0")
    network = Network(config.game.board, config.network)
    parts = iteration_parts(config, network, init_learner(network, config), 2)
    assert "gradient" not in parts
    assert "replay_write" in parts


def test_the_free_evaluator_is_flat_and_tells_positions_apart(config):
    game = config.game.board
    state = random_state(game, 32)
    there = free_evaluator(game)({}, state)
    assert jnp.all((there.prior_logits == IMPOSSIBLE) == state.drawn)
    assert len(np.unique(there.value.round(5))) > 4
    over = state._replace(drawn=jnp.ones_like(state.drawn))
    assert jnp.all(free_evaluator(game)({}, over).value == 0)


def test_a_transfer_during_the_iteration_is_caught():
    def compiled(*arguments):
        return *arguments[:2], {"total": arguments[0] + np.ones(3, np.float32)}

    compiled.as_text = lambda: ""
    loop = SimpleNamespace(arguments=(jnp.ones(3), jnp.ones(3), jnp.ones(3)), compiled=compiled)
    found = transfers.count_transfers(loop)
    assert found.to_device_bytes is None
    assert "host-to-device" in found.refused
    assert any("NOT zero" in line for line in transfers.transfer_lines(found))


def test_a_program_that_calls_the_host_is_caught():
    def shout(x):
        return jax.pure_callback(lambda y: y, x, x)

    text = jax.jit(shout).lower(jnp.ones(2)).compile().as_text()
    assert transfers.host_calls(text)
    assert transfers.host_calls("  %in = (f32[2]{0}, token[]) infeed(token[] %t)") == ("infeed",)
    assert not transfers.host_calls(jax.jit(jnp.sin).lower(jnp.ones(2)).compile().as_text())


def test_loops_without_a_known_end_are_counted():
    def program(x):
        x = jax.lax.fori_loop(0, 9, lambda _, y: jnp.sin(y), x)
        return jax.lax.while_loop(lambda y: jnp.any(y > 0.1), lambda y: y * 0.5, x)

    assert transfers.open_loops(jax.jit(program).lower(jnp.ones(2)).compile().as_text()) == 1


def test_nvidia_smi_is_asked_and_read(tmp_path, monkeypatch):
    fake = tmp_path / "nvidia-smi"
    fake.write_text("#!/bin/sh\nprintf '97\\n[N/A]\\n99\\n9'\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    sampler = busy.start_sampler()
    assert sampler.stdout.read(1) == "9"
    assert busy.stop_sampler(sampler)[-2:] == [0.99, 0.09]
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert busy.stop_sampler(busy.start_sampler()) == []


def test_copies_are_added_up_by_direction():
    events = [
        ("MemcpyD2H", "kind_src:device kind_dst:pinned size:1 dest:0 async:1"),
        ("MemcpyD2H", "kind_src:device kind_dst:pinned size:44 dest:0 async:1"),
        ("MemcpyH2D", "no details"),
    ]
    assert count_copies(events) == {"D2H": (2, 45), "H2D": (1, 0)}


def test_unwritable_places_are_refused_at_once(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("kept")
    with pytest.raises(InputError, match=r"json: .* cannot be written"):
        main(["--config", str(CONFIG), "--json", str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "scripts/diagnose.py", "--trace", str(blocked)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: trace: ")
