"""Test whole runs: they learn, leave their files, and resume with other settings."""

import json
import shutil
import signal
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from short_run import saved, short_config, train

import jaxzero.training.trainer as trainer_module
from jaxzero.cli import load_config
from jaxzero.config import plan
from jaxzero.errors import InputError
from jaxzero.host.interrupts import Stop
from jaxzero.measure.evaluator import Evaluator
from jaxzero.network.network import Network
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.metrics import MetricsWriter, read_metrics
from jaxzero.training.devices import shard_actor
from jaxzero.training.iteration import init_actor
from jaxzero.training.learner import init_learner
from jaxzero.training.run_state import RunState, resume_run

TINY = load_config(
    "configs/tiny.yaml",
    *(
        "--devices=1",
        "--network.features=raw",
        "--network.channels=64",
        "--selfplay.games_per_iteration=32",
    ),
    *("--learner.updates_per_iteration=48", "--learner.learning_rate=1e-2"),
    *("--iterations=32", "--evaluation.evaluate_every=0"),
    *("--evaluation.simulations=0", "--evaluation.games=64", "--evaluation.final_games=64"),
)


def test_a_run_leaves_its_files(whole):
    summary = json.loads((whole / "summary.json").read_text())
    for key in "device minutes iterations games games_per_second evaluations_per_second".split():
        assert summary[key], key
    assert summary["games"] == 96
    assert {"points", "low", "high", "games", "margin"} <= set(summary["versus"]["random"])
    assert (whole / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert list((whole / "tensorboard").iterdir())
    assert [line["iteration"] for line in read_metrics(whole)] == [1, 2, 3, 4, 5, 6]
    assert Checkpoints(whole).iterations() == [2, 4, 6]
    assert len(list((whole / "checkpoints").glob("*/replay"))) == 2


def test_a_signal_that_comes_while_processes_agree_is_not_lost(monkeypatch):
    stop = Stop()

    class Agreed(np.ndarray):
        def max(self):  # a signal can come between any two instructions
            stop.signal = signal.SIGTERM
            return 0

    monkeypatch.setattr(trainer_module, "gather", lambda row: np.array([row]).view(Agreed))
    trainer_module.agree(short_config(), RunState(None, None), stop)
    assert stop.signal == signal.SIGTERM


def test_what_is_open_is_closed_after_an_error(tmp_path, monkeypatch):
    closed = []
    for kind in (Checkpoints, MetricsWriter):
        close = kind.close
        monkeypatch.setattr(
            kind, "close", lambda self, close=close: (closed.append(type(self)), close(self))
        )
    monkeypatch.setattr(trainer_module, "headline", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(short_config(), tmp_path / "run")
    assert closed == [MetricsWriter, Checkpoints]


def test_the_ring_is_copied_once_before_it_is_written(tmp_path, monkeypatch):
    """Orbax copies NumPy arrays once more. It writes a JAX array without another copy."""
    config, given = short_config(), []
    actor = shard_actor(lambda: init_actor(config, 2), jax.devices()[:2])
    learner = init_learner(Network(config.game.board, config.network), config)
    save = ocp.args.StandardSave
    monkeypatch.setattr(ocp.args, "StandardSave", lambda tree: (given.append(tree), save(tree))[1])
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, learner, actor.replay, {"config": asdict(config)})
    _, replay = given
    for ours, theirs in zip(jax.tree.leaves(actor.replay), jax.tree.leaves(replay), strict=True):
        assert isinstance(theirs, jax.Array)
        pointers = [
            {shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards}
            for array in (ours, theirs)
        ]
        assert not pointers[0] & pointers[1]


def test_the_replay_goes_along_to_another_number_of_devices(tmp_path, capsys):
    run_dir, two = tmp_path / "run", short_config("--devices=2")
    assert not train(two, run_dir, stop=Stop(max_iterations=3))
    before = saved(two, run_dir, 3).replay
    one = short_config("--iterations=3")
    assert train(one, run_dir, resume=True)
    assert "saved positions kept" in capsys.readouterr().out
    network = Network(one.game.board, one.network)
    with Checkpoints(run_dir) as checkpoints:
        after = resume_run(one, network, jax.devices()[:1], checkpoints).actor.replay
        less = short_config("--devices=2", "--replay.capacity=200")
        resume_run(less, network, jax.devices()[:2], checkpoints)
    assert int(after.size[0]) == int(before.size.sum()) == 3 * plan(one).positions
    rows = [
        sorted(row.tobytes() for row in np.asarray(ring.policy).reshape(-1, 12) if row.any())
        for ring in (before, after)
    ]
    assert rows[0] == rows[1] and len(rows[0]) > 100


@pytest.fixture(scope="module")
def changed(whole, tmp_path_factory) -> Path:
    """Continue the short run with one iteration of other settings, then one of its own."""
    run_dir = Path(shutil.copytree(whole, tmp_path_factory.mktemp("changed") / "run"))
    more = ("--selfplay.games_per_iteration=32", "--iterations=7")
    for options in (more, ["--iterations=8"]):
        assert train(short_config(*options), run_dir, resume=True)
    return run_dir


def test_games_count_as_they_were_played_whatever_the_settings_are_now(changed):
    summary = json.loads((changed / "summary.json").read_text())
    assert summary["games"] == 7 * 16 + 32
    # Each of 12 decisions has a root and 4 simulations, which may end in finished games.
    lines = read_metrics(changed)
    assert summary["evaluations"] == sum(line["selfplay/evaluations"] for line in lines)
    assert summary["evaluations"] < (7 * 16 + 32) * 12 * (1 + 4)


def test_a_summary_tells_the_whole_run_from_its_last_call(whole, changed, tmp_path):
    """A call that only measures a complete run keeps the record of the call that trained."""
    summary = json.loads((changed / "summary.json").read_text())
    assert (summary["iterations"], summary["last_call"]["iterations"]) == (8, 1)
    run_dir = shutil.copytree(whole, tmp_path / "run")
    file = run_dir / "summary.json"
    summary = json.loads(file.read_text())
    assert summary["last_call"]["iterations"] == 6 and summary["last_call"]["peak_memory_bytes"]
    on_gpu = summary["last_call"] | {"useful_tflops": 300.0, "utilisation": 0.4}
    file.write_text(json.dumps(summary | {"last_call": on_gpu, "games": 1}))
    assert train(short_config(), run_dir, resume=True)
    after = json.loads(file.read_text())
    assert after["last_call"] == on_gpu and after["games"] == summary["games"]


def test_another_optimizer_is_refused_by_name(whole):
    with pytest.raises(InputError, match=r"^learner\.optimizer: muon contradicts adamw "):
        train(short_config("--learner.optimizer=muon"), whole, resume=True)


def test_tiny_learns(tmp_path):
    """The network beats random play, and it is better than before training."""
    network = Network(TINY.game.board, TINY.network)
    first, evaluator = init_learner(network, TINY).params, Evaluator(TINY)
    evaluator.prepare()
    before = evaluator.play("policy", first, 64)["random"]
    untrained = evaluator.score(["policy"], first)
    assert trainer_module.train(TINY, tmp_path / "tiny", evaluator).complete
    summary = json.loads((tmp_path / "tiny" / "summary.json").read_text())
    after = summary["versus"]["random"]
    assert after["low"] > 0.75
    assert after["points"] > before.points
    key = "optimal_share"
    assert summary["suite"]["policy"]["all"][key] > 0.1 + untrained["policy"]["all"][key]
    errors = [line["learn/margin_error"] for line in read_metrics(tmp_path / "tiny")]
    assert errors[-1] < 0.8 * errors[0]


@pytest.mark.slow
def test_the_preset_tiny_learns_perfect_play(tmp_path):
    measured = ("--evaluation.evaluate_every=0", "--evaluation.simulations=0")
    assert train(load_config("configs/tiny.yaml", "--devices=1", *measured), tmp_path / "tiny")
    summary = json.loads((tmp_path / "tiny" / "summary.json").read_text())
    assert summary["suite"]["policy"]["all"]["optimal_share"] > 0.98
