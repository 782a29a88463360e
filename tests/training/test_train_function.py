"""Test training as a function, with and without a run folder."""

import copy
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
import yaml
from short_run import SHORT, saved, short_config

import jaxzero
from jaxzero.errors import InputError
from jaxzero.runs.metrics import read_metrics
from jaxzero.runs.weights import from_half, load_weights, to_half

SETTINGS = yaml.safe_load("\n".join(option[2:].replace("=", ": ") for option in SHORT))


def losses(metrics):
    return [line["learn/loss"] for line in metrics]


def test_without_a_folder_it_learns_the_same(whole, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trained = jaxzero.train("tiny", SETTINGS)
    assert not list(tmp_path.iterdir())
    assert losses(trained.metrics) == losses(read_metrics(whole))
    learner = saved(short_config(), whole, 6).learner
    jax.tree.map(np.testing.assert_array_equal, trained.params, learner.params)
    assert trained.engine.best_move([], simulations=0) in range(12)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[-6:]] == [*"123456"]
    assert len(repr(trained)) < 100
    for again in (copy.deepcopy(trained), pickle.loads(pickle.dumps(trained))):
        assert again.metrics == trained.metrics
    check_save(trained, tmp_path, minutes=trained.metrics[-1]["speed/minutes"])


def check_save(trained, folder, minutes):
    """Check that a saved network is the trained one, and that nothing is overwritten."""
    path = folder / "net.1.safetensors"
    trained.save(path)
    files = sorted(folder.glob("net.1.*"))
    assert [file.suffix for file in files] == [".json", ".safetensors", ".yaml"]
    rounded = from_half(to_half(trained.params))
    for name in (path, str(path)):
        jax.tree.map(np.testing.assert_array_equal, jaxzero.load(name).agent.params, rounded)
    loaded = load_weights(str(path))
    assert loaded.config.iterations == 6
    assert loaded.record["training"] == {"games": 6 * 16, "minutes": minutes}
    before = [file.read_bytes() for file in files]
    (folder / "mine.yaml").write_text("mine")
    (folder / "folder.safetensors").mkdir()
    wrong = (
        *(path, folder / "mine.safetensors", folder / "folder.safetensors", folder / "net.npz"),
        *(folder, folder / "net", folder / "missing" / "net.safetensors", folder / ".safetensors"),
        *("/dev/null", "", 5, None, path / "net.safetensors", [path], b"net.safetensors"),
    )
    for name in wrong:
        with pytest.raises(InputError, match=r"^path: "):
            trained.save(name)
    assert [file.read_bytes() for file in files] == before
    assert (folder / "mine.yaml").read_text() == "mine" and len([*folder.iterdir()]) == 5


def test_a_folder_is_kept_and_gone_on_with(tmp_path):
    seen, run_dir = [], tmp_path / "run"
    first = jaxzero.train(short_config("--iterations=4"), on_iteration=seen.append, run_dir=run_dir)
    assert [line["iteration"] for line in seen] == [1, 2, 3, 4] and len(first.metrics) == 4
    with pytest.raises(InputError, match=r"^run_dir: "):
        jaxzero.train(short_config(), run_dir=run_dir)
    again = jaxzero.train(short_config(), run_dir=run_dir, resume=True)
    assert losses(again.metrics)[:4] == losses(first.metrics) and len(again.metrics) == 6
    again.save(tmp_path / "net.safetensors")
    again_loaded = load_weights(str(tmp_path / "net.safetensors"))
    assert again_loaded.record["training"] == load_weights(str(run_dir)).record["training"]
    for name in ("net", "checkpoints/net"):  # no file may go into a run
        with pytest.raises(InputError, match=r"^path: "):
            again.save(run_dir / f"{name}.safetensors")


def test_a_callback_ends_a_run_that_is_kept(tmp_path, capsys):
    run_dir, third = tmp_path / "run", lambda metrics: metrics["iteration"] == 3
    told = jaxzero.train(short_config(), on_iteration=third, run_dir=run_dir)
    assert len(told.metrics) == 3 and capsys.readouterr().out.count("on_iteration") == 1
    again = jaxzero.train(short_config(), run_dir=run_dir, resume=True)
    assert losses(again.metrics)[:3] == losses(told.metrics) and len(again.metrics) == 6


def test_only_the_result_true_ends_a_training(capsys):
    results = iter([1, "text", [0], np.ones(3), object(), True])

    def spoil(metrics):
        metrics.clear()
        return next(results)

    trained = jaxzero.train(short_config("--iterations=7"), on_iteration=spoil)
    assert [line["iteration"] for line in trained.metrics] == [1, 2, 3, 4, 5, 6]
    assert capsys.readouterr().out.count("on_iteration") == 1


def test_an_error_of_a_callback_is_no_divergence():
    def divide(_metrics):
        with np.errstate(all="raise"):
            np.log(0.0)

    with pytest.raises(FloatingPointError):
        jaxzero.train(short_config(), on_iteration=divide)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_a_callback_or_ctrl_c_ends_it_after_its_iteration():
    def ask(metrics):
        if metrics["iteration"] == 2:
            signal.raise_signal(signal.SIGINT)

    asked = jaxzero.train(short_config(), on_iteration=ask)
    assert len(asked.metrics) == 3  # the signal came after iteration 2 had checked for a stop
    told = jaxzero.train(short_config(), on_iteration=lambda metrics: metrics["iteration"] == 3)
    jax.tree.map(np.testing.assert_array_equal, asked.params, told.params)


def test_any_thread_may_train(monkeypatch):
    failed = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(jaxzero.train, short_config(), on_iteration=lambda _: True)
    assert len(done.result().metrics) == 1 and not failed
