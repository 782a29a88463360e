"""Whole runs: they learn, stop, resume bit for bit, and refuse what does not fit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxzero.agent.network import Network
from jaxzero.cli import load_config
from jaxzero.errors import InputError
from jaxzero.training.checkpoint import Checkpoints, Restored
from jaxzero.training.iteration import init_actor
from jaxzero.training.learner import init_learner
from jaxzero.training.metrics import read_metrics
from jaxzero.training.stop import Stop
from jaxzero.training.strength import Judge
from jaxzero.training.trainer import train

TINY = load_config("configs/tiny.yaml", "--devices=1")
SHORT = (
    "--devices=1",
    "--network.channels=16",
    "--search.simulations=4",
    "--selfplay.games=16",
    "--learner.batch_size=32",
    "--learner.updates_per_iteration=3",
    "--replay.capacity=500",
    "--evaluation.opponents=random",
    "--evaluation.suite=none",
    "--evaluation.simulations=0",
    "--evaluation.final_games=8",
    "--evaluation.evaluate_every=0",
    "--checkpoint_every=2",
    "--iterations=6",
)


def short_config(*options: str):
    return load_config("configs/tiny.yaml", *SHORT, *options)


def saved(config, run_dir: Path, iteration: int) -> Restored:
    """Read one checkpoint with its replay."""
    network = Network(config.game.board, config.network)
    actor = jax.tree.map(lambda leaf: leaf[None], init_actor(config, 1))
    checkpoints = Checkpoints(run_dir)
    return checkpoints.restore(iteration, init_learner(network, config), actor.replay)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A complete short run."""
    run_dir = tmp_path_factory.mktemp("whole") / "run"
    assert train(short_config(), run_dir)
    return run_dir


@pytest.fixture
def run(whole, tmp_path) -> Path:
    """A copy of the complete short run, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def test_stopping_and_resuming_equals_not_stopping(whole, tmp_path):
    config, run_dir = short_config(), tmp_path / "stopped"
    assert not train(config, run_dir, stop=Stop(max_iterations=3))
    assert train(config, run_dir, resume=True)
    one, two = saved(config, whole, 6), saved(config, run_dir, 6)
    assert one.replay is not None
    jax.tree.map(np.testing.assert_array_equal, one.learner, two.learner)
    jax.tree.map(np.testing.assert_array_equal, one.replay, two.replay)
    lines = [[line["learn/loss"] for line in read_metrics(path)] for path in (whole, run_dir)]
    assert len(lines[0]) == 6
    assert lines[0] == lines[1]


def test_a_run_leaves_its_files(whole):
    summary = json.loads((whole / "summary.json").read_text())
    keys = (
        "device minutes iterations games games_per_second evaluations_per_second "
        "network_evaluations_per_second selfplay_evaluations_per_second peak_memory_bytes"
    )
    for key in keys.split():
        assert summary[key], key
    assert summary["games"] == 96
    assert {"points", "low", "high", "games", "margin"} <= set(summary["versus"]["random"])
    assert (whole / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert list((whole / "tensorboard").iterdir())
    assert [line["iteration"] for line in read_metrics(whole)] == [1, 2, 3, 4, 5, 6]
    assert Checkpoints(whole).iterations() == [2, 4, 6]
    assert len(list((whole / "checkpoints").glob("*/replay"))) == 1


def test_the_gate_keeps_the_best_weights_until_they_are_beaten(tmp_path):
    """A threshold of 1 is never reached from fresh weights against themselves."""
    options = ("--evaluation.evaluate_every=1", "--evaluation.games=32", "--iterations=2")
    closed = short_config("--evaluation.gate_threshold=1.0", *options)
    assert train(closed, tmp_path / "closed")
    open_ = short_config("--evaluation.gate_threshold=0.01", *options)
    assert train(open_, tmp_path / "open")
    fresh = init_learner(Network(closed.game.board, closed.network), closed).params
    for config, name, accepted in ((closed, "closed", 0.0), (open_, "open", 1.0)):
        lines = read_metrics(tmp_path / name)
        assert [line["gate/accepted"] for line in lines] == [accepted] * 2
        learner = saved(config, tmp_path / name, 2).learner
        expected = learner.params if accepted else fresh
        jax.tree.map(np.testing.assert_array_equal, learner.best, expected)


def test_a_directory_with_a_run_is_refused(run):
    with pytest.raises(InputError, match=r"holds a run.*--resume"):
        train(short_config(), run)
    with pytest.raises(InputError, match="holds no run"):
        train(short_config(), run / "other", resume=True)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--game.cols=3", r"game\.cols: 3 contradicts 2"),
        ("--network.channels=32", r"network\.channels: 32 contradicts 16"),
    ],
)
def test_another_board_or_network_is_refused_with_both_values(run, option, message):
    with pytest.raises(InputError, match=message):
        train(short_config(option), run, resume=True)


def damage(checkpoint: Path) -> None:
    for file in (checkpoint / "learner").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def test_damaged_checkpoints_are_named_and_skipped(run, capsys):
    damage(run / "checkpoints" / "6")
    foreign = run / "checkpoints" / "4"
    shutil.rmtree(foreign)
    foreign.mkdir()
    (foreign / "weights.bin").write_text("from elsewhere")
    assert train(short_config("--iterations=3"), run, resume=True)
    said = capsys.readouterr().out
    for number in ("4", "6"):
        assert f"skipped: checkpoint {run / 'checkpoints' / number} " in said
    assert "The replay of this checkpoint is missing" in said
    assert [line["iteration"] for line in read_metrics(run)] == [1, 2, 3]


def test_a_run_without_a_good_checkpoint_says_so(run):
    for checkpoint in (run / "checkpoints").iterdir():
        damage(checkpoint)
    with pytest.raises(InputError, match="no usable checkpoint"):
        train(short_config(), run, resume=True)


def test_a_run_that_died_before_its_first_checkpoint_starts_again(run, capsys):
    shutil.rmtree(run / "checkpoints")
    assert train(short_config("--iterations=1"), run, resume=True)
    assert "no checkpoint yet" in capsys.readouterr().out


def test_tiny_learns(tmp_path):
    """It beats random and what it was itself before learning."""
    first = init_learner(Network(TINY.game.board, TINY.network), TINY)
    network = Network(TINY.game.board, TINY.network)
    before = Judge(TINY, network).play(first, 256)["random"]
    run_dir = tmp_path / "tiny"
    assert train(TINY, run_dir)
    after = json.loads((run_dir / "summary.json").read_text())["versus"]["random"]
    assert after["low"] > 0.75
    assert after["points"] > before.points
    suite = json.loads((run_dir / "summary.json").read_text())["suite"]
    key = "suite/policy/optimal_share"
    shares = [line[key] for line in read_metrics(run_dir) if key in line]
    assert suite["search:16"]["all"]["optimal_share"] > 0.95
    assert shares[-1] > shares[0]
    errors = [line["learn/margin_error"] for line in read_metrics(run_dir)]
    assert errors[-1] < 0.8 * errors[0]
