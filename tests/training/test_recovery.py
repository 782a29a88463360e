"""Test runs that died, diverged, or have damaged checkpoints."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from script_runner import ROOT, run_here
from short_run import saved, short_config, train

import jaxzero.training.trainer as trainer_module
from jaxzero.cli import load_config
from jaxzero.errors import InputError, RunError
from jaxzero.host.interrupts import Stop
from jaxzero.network.network import Network
from jaxzero.runs.checkpoint import MAX_CHECKPOINTS, Checkpoints, checksum
from jaxzero.runs.metrics import read_metrics
from jaxzero.runs.run_dir import ORBAX_PATTERN
from jaxzero.runs.summary import STARTS_FILE
from jaxzero.runs.weights import load_agent, load_weights
from jaxzero.training import run_files
from jaxzero.training.iteration import Actor
from jaxzero.training.learner import init_learner
from jaxzero.training.run_state import RunState
from jaxzero.training.trainer import run_iteration

# Train until iteration 5, and die while checkpoint 4 is perhaps still being written.
KILLED = """
import os, signal, sys
from pathlib import Path
from short_run import short_config, train

def die(metrics):
    if metrics["iteration"] == 5:
        os.kill(os.getpid(), signal.SIGKILL)

train(short_config(), Path(sys.argv[1]), on_iteration=die)
"""


def damage(checkpoint: Path, item: str = "learner") -> None:
    for file in (checkpoint / item).rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def test_a_run_that_is_killed_and_resumed_equals_an_uninterrupted_run(whole, tmp_path):
    run_dir = tmp_path / "run"
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    command = [sys.executable, "-c", KILLED, str(run_dir)]
    died = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths})
    assert died.returncode == -signal.SIGKILL
    with Checkpoints(run_dir) as checkpoints:
        assert checkpoints.iterations() in ([2], [2, 4])
    assert train(short_config(), run_dir, resume=True)
    one, two = (saved(short_config(), folder, 6) for folder in (run_dir, whole))
    jax.tree.map(np.testing.assert_array_equal, one.learner, two.learner)
    jax.tree.map(np.testing.assert_array_equal, one.replay, two.replay)
    losses = [[line["learn/loss"] for line in read_metrics(run)] for run in (run_dir, whole)]
    assert losses[0] == losses[1] and len(losses[0]) == 6
    starts = list(map(json.loads, (run_dir / STARTS_FILE).read_text().splitlines()))
    assert [start["after_iteration"] for start in starts] in ([0, 2], [0, 4])
    assert starts[0]["versions"]["jax"] == jax.__version__
    assert jax.devices()[0].device_kind in starts[0]["device"]


@pytest.mark.parametrize("item", ["learner", "replay", "record"])
def test_a_damaged_newest_checkpoint_is_skipped_for_the_one_before(item, run, capsys):
    damage(run / "checkpoints" / "6", item)
    assert train(short_config(), run, resume=True)
    assert str(run / "checkpoints" / "6") in capsys.readouterr().err
    assert [line["iteration"] for line in read_metrics(run)] == [1, 2, 3, 4, 5, 6]
    # The run deleted the damaged checkpoint and wrote it again.
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["2", "4", "6"]
    assert saved(short_config(), run, 6).replay is not None


def test_a_flipped_bit_of_the_weights_is_noticed(run):
    expected = saved(short_config(), run, 6).learner

    def is_noticed() -> bool:
        try:
            restored = saved(short_config(), run, 6).learner
        except InputError:
            return True
        pairs = zip(jax.tree.leaves(restored), jax.tree.leaves(expected), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)  # nothing reads this file
        return False

    noticed = 0
    files = [path for path in (run / "checkpoints" / "6" / "learner").rglob("*") if path.is_file()]
    for path in files:
        content = path.read_bytes()
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        noticed += is_noticed()
        path.write_bytes(content)
    assert noticed


def test_two_arrays_that_changed_places_have_another_checksum():
    one, other = np.arange(6.0), np.arange(6.0)[::-1]
    right = checksum({"a": one, "b": other})
    assert checksum({"a": other, "b": one}) != right
    assert checksum({"a": one.reshape(2, 3), "b": other}) != right


def test_a_checkpoint_of_another_version_is_refused_with_what_differs(run):
    """It is not damaged, so the run does not go back to the one before."""
    config = short_config()
    learner = init_learner(Network(config.game.board, config.network), config)
    kernel = learner.params["params"]["policy"].pop("kernel")
    for expected, arrays in (
        ("has params/params/policy/kernel", {}),
        ("has no params/params/policy/scale", {"kernel": kernel, "scale": kernel}),
        (r"kernel as float32\[16, 12\], not float32\[12, 16\]", {"kernel": kernel.T}),
    ):
        like = jax.tree.map(lambda leaf: leaf, learner)
        like.params["params"]["policy"] |= arrays
        with (
            Checkpoints(run) as checkpoints,
            pytest.raises(InputError, match=rf"checkpoint .*6 does not fit.* learner .*{expected}"),
        ):
            checkpoints.restore_newest(like)


def test_reading_a_run_whose_newest_checkpoint_is_damaged_drops_nothing(tmp_path, capsys):
    run_dir = tmp_path / "run"
    assert not train(short_config(), run_dir, stop=Stop(max_iterations=2))
    shutil.copytree(run_dir / "checkpoints" / "2", run_dir / "checkpoints" / "4")
    damage(run_dir / "checkpoints" / "4")
    capsys.readouterr()
    assert load_agent(run_dir).iteration == 2
    printed = capsys.readouterr()
    assert str(run_dir / "checkpoints" / "4") in printed.err
    assert not printed.out  # a protocol may use it
    assert saved(short_config(), run_dir, 2).replay is not None
    assert not train(short_config(), run_dir, resume=True, stop=Stop(max_iterations=1))
    assert saved(short_config(), run_dir, 3).replay is not None


@pytest.mark.parametrize("item", ["learner", "replay"])
def test_a_run_without_a_good_checkpoint_says_so(item, run):
    for checkpoint in (run / "checkpoints").iterdir():
        damage(checkpoint, item)  # the oldest checkpoint has no replay any more
    with pytest.raises(InputError, match=r"^run_dir: "):
        train(short_config(), run, resume=True)
    if item == "replay":  # its weights may begin another run
        assert load_agent(run).iteration == 6


def test_a_run_that_saves_no_replay_resumes_with_an_empty_one(tmp_path):
    config, run_dir = short_config("--save_replay=false"), tmp_path / "run"
    assert not train(config, run_dir, stop=Stop(max_iterations=2))
    assert train(config, run_dir, resume=True)
    assert [line["iteration"] for line in read_metrics(run_dir)] == [1, 2, 3, 4, 5, 6]


def test_a_run_that_died_before_its_first_checkpoint_starts_again(run):
    for checkpoint in (run / "checkpoints").iterdir():
        shutil.rmtree(checkpoint)
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text(lines[0] + "\n")
    assert train(short_config("--iterations=1"), run, resume=True)
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 1


def test_a_run_that_died_in_its_first_save_starts_again_with_its_weights(run, tmp_path):
    after = tmp_path / "after"
    started = load_weights(str(run))
    assert not train(short_config(), after, initial=started, stop=Stop(max_iterations=2))
    (after / "checkpoints" / "2").rename(after / "checkpoints" / "2.orbax-checkpoint-tmp")
    assert not train(short_config(), after, resume=True, stop=Stop(max_iterations=2))
    again = saved(short_config(), after, 2).learner
    other = tmp_path / "other"
    assert not train(short_config(), other, initial=started, stop=Stop(max_iterations=2))
    expected = saved(short_config(), other, 2).learner
    jax.tree.map(np.testing.assert_array_equal, again, expected)


@pytest.mark.parametrize("missing", ["folder", "content"])
def test_a_run_whose_checkpoints_are_gone_is_not_begun_anew(run, missing):
    shutil.rmtree(run / "checkpoints")
    if missing == "content":
        (run / "checkpoints").mkdir()
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=r"^run_dir: .* 6 "):
        train(short_config(), run, resume=True)
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_a_run_that_diverges_stops_and_keeps_its_last_good_checkpoint(tmp_path, monkeypatch):
    run_dir, config = tmp_path / "run", short_config("--checkpoint_every=1", "--iterations=13")
    real = trainer_module.run_iteration

    def diverges(*arguments):
        state, metrics = real(*arguments)
        if state.iteration == 12:
            raise FloatingPointError("learn/loss is nan")
        return state, metrics

    with monkeypatch.context() as patch:
        patch.setattr(trainer_module, "run_iteration", diverges)
        with pytest.raises(RunError, match=r"^learner\.learning_rate: .* 11 .*resume=True"):
            train(config, run_dir)
    with Checkpoints(run_dir) as checkpoints:
        assert checkpoints.iterations() == [*range(2, 12)]
        assert len(checkpoints.iterations()) == MAX_CHECKPOINTS
    assert train(config, run_dir, resume=True)
    assert [line["iteration"] for line in read_metrics(run_dir)] == [*range(1, 14)]


def test_a_run_that_died_while_it_prepared_is_resumed(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(run_files, "start_run", lambda *_: 1 / 0)
        train(short_config(), tmp_path / "run")
    assert not train(short_config(), tmp_path / "run", resume=True, stop=Stop(max_iterations=1))


def test_nothing_that_is_not_finite_is_saved(tmp_path):
    config = short_config()
    learner = init_learner(Network(config.game.board, config.network), config)
    spoiled = jax.tree.map(lambda leaf: leaf * jnp.inf if leaf.ndim > 1 else leaf, learner.params)
    with Checkpoints(tmp_path) as checkpoints:
        with pytest.raises(FloatingPointError, match=r"^params/"):
            checkpoints.save(1, learner._replace(params=spoiled), None, {})
        assert checkpoints.iterations() == []


@pytest.mark.parametrize(
    ("skipped", "stop", "kept"),
    [
        ((2, 6), None, [3, 4, 6]),
        (range(9), None, [6]),  # the run ends anyway
        (range(9), Stop(max_iterations=1), [1]),
    ],
)
def test_a_checkpoint_waits_for_an_update_that_was_taken(
    skipped, stop, kept, tmp_path, monkeypatch
):
    real = trainer_module.run_iteration

    def last_update_skipped(*arguments):
        state, metrics = real(*arguments)
        return state, metrics | {"learn/skipped_at_end": float(state.iteration in skipped)}

    monkeypatch.setattr(trainer_module, "run_iteration", last_update_skipped)
    assert train(short_config(), tmp_path, stop=stop) == (stop is None)
    assert sorted(int(path.name) for path in (tmp_path / "checkpoints").iterdir()) == kept


@pytest.mark.parametrize(
    ("updates", "skipped", "iteration", "error"),
    [
        *((90, 19, 1, None), (90, 20, 1, FloatingPointError), (3, 2, 1, None)),
        *((3, 3, 1, FloatingPointError), (0, 0, 0, None), (90, 20, 0, FloatingPointError)),
        (90, 90, 0, RunError),  # never finite: the learning rate is not to blame
    ],
)
def test_a_run_whose_last_updates_are_all_skipped_diverges(updates, skipped, iteration, error):
    config = short_config(f"--learner.updates_per_iteration={updates}")
    metrics = {"selfplay/games": 16, "selfplay/evaluations": 500, "learn/skipped_at_end": skipped}
    state = RunState(None, Actor(None), iteration=iteration)
    with pytest.raises(error) if error else nullcontext():
        compiled = lambda learner, actor, *_: (learner, actor, metrics)  # noqa: E731
        run_iteration(config, compiled, jax.random.key(0), state)


def test_a_close_that_meets_another_failed_write_is_one_error(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)

    def close(_manager) -> None:
        raise ValueError("the cause")

    manager = type(checkpoints._manager)
    monkeypatch.setattr(manager, "close", close)
    with pytest.raises(RunError, match=r"^run_dir: .*the cause"):
        checkpoints.close()
    with pytest.raises(InputError, match="the reason"), checkpoints:
        raise InputError("the reason")
    monkeypatch.undo()
    checkpoints.close()


def test_a_folder_of_any_usual_name_holds_checkpoints_that_can_be_read(tmp_path):
    signs = re.sub(f"/|{ORBAX_PATTERN}", "", "".join(map(chr, range(1, 127))))
    for name in ("é中\u2028", signs):
        folder, learner = tmp_path / name, {"weight": np.arange(6.0)}
        folder.mkdir(parents=True)
        with Checkpoints(folder) as checkpoints:
            checkpoints.save(1, learner, None, {})
        with Checkpoints(folder) as checkpoints:
            assert checkpoints.iterations() == [1]
            np.testing.assert_array_equal(checkpoints.restore(1).learner["weight"], np.arange(6.0))


def test_a_run_in_a_relative_folder_behind_a_link_is_resumed_and_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    run_dir = Path("link", "run")
    assert not train(short_config(), run_dir, stop=Stop(max_iterations=2))
    assert train(short_config(), run_dir, resume=True)
    assert load_agent(run_dir).iteration == 6


@pytest.mark.parametrize("how", ["no folder", "full disk"])
def test_a_failed_save_ends_the_run_and_loses_nothing_already_saved(how, tmp_path):
    before = threading.enumerate()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"weight": np.zeros(9)}, None, {})
    checkpoints.wait()
    if how == "no folder":
        shutil.rmtree(checkpoints.folder)
        checkpoints.folder.write_text("")
    with pytest.raises(RunError, match=str(checkpoints.folder)):
        try:
            if how == "full disk":  # the write fails in the background
                resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
            checkpoints.save(2, {"weight": np.random.rand(10**6)}, None, {})
            for _ in range(1000):
                checkpoints.check()  # does not wait
                time.sleep(0.01)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    if how == "full disk":
        np.testing.assert_array_equal(checkpoints.restore(1).learner["weight"], np.zeros(9))
    with suppress(RunError):
        checkpoints.close()
    for thread in set(threading.enumerate()) - set(before):
        thread.join(5)
        assert thread.daemon or not thread.is_alive()


@pytest.mark.parametrize("lost", ["folder", "checkpoints", "replaced"])
def test_a_run_that_loses_its_folder_ends_at_once(lost, tmp_path):
    run_dir, seen = tmp_path / "run", []

    def lose(metrics: dict[str, float]) -> None:
        seen.append(metrics["iteration"])
        if len(seen) == 3:
            shutil.move(
                run_dir / "checkpoints" if lost == "checkpoints" else run_dir, tmp_path / "x"
            )
            if lost == "replaced":
                (run_dir / "checkpoints").mkdir(parents=True)

    with pytest.raises((RunError, OSError)):
        train(short_config("--iterations=9"), run_dir, on_iteration=lose)
    assert seen[-1] <= 4


def test_the_config_of_a_run_is_read_from_its_newest_checkpoint(run):
    (run / "config.yaml").unlink()
    with pytest.raises(InputError, match=r"^run_dir: "):
        train(short_config(), run)
    assert load_agent(run).iteration == load_weights(str(run)).iteration == 6
    done = run_here("train.py", "--run_dir", run, "--resume", "--iterations", "7")
    assert done.returncode == 0, done.stderr
    assert load_config(run / "config.yaml") == short_config("--iterations=7")


def test_a_process_lost_at_a_save_is_no_write_that_failed(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)

    def save(*_given, **_named) -> None:
        raise jax.errors.JaxRuntimeError("Gloo AllGather failed: Connection reset by peer")

    monkeypatch.setattr(type(checkpoints._manager), "save", save)
    for processes, kind in ((1, RunError), (2, jax.errors.JaxRuntimeError)):
        monkeypatch.setattr(jax, "process_count", lambda processes=processes: processes)
        with pytest.raises(kind):
            checkpoints.save(1, {}, None, {})
    monkeypatch.undo()
    checkpoints.close()
