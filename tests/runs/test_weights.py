"""Test loading networks of runs: they equal the saved ones, and a failure names its cause."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import chex
import jax
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from script_runner import parser_of
from short_run import saved, short_config, train

import jaxzero
from jaxzero.cli import source_of
from jaxzero.config import config_of_file
from jaxzero.errors import InputError
from jaxzero.network.network import Network
from jaxzero.runs.run_dir import run_folder, shipped_file, shipped_names
from jaxzero.runs.weights import (
    CHECKSUM,
    load_agent,
    load_weights,
    note_initial_weights,
    noted_initial_weights,
    read_exported,
    write_weights,
)


@pytest.mark.parametrize(("checkpoint", "iteration"), [(None, 6), (4, 4)])
def test_the_weights_that_play_come_back(whole, checkpoint, iteration):
    loaded = load_agent(whole, checkpoint)
    config = short_config()
    params = saved(config, whole, iteration).learner.params
    assert loaded.iteration == iteration
    assert loaded.config == config
    assert loaded.agent.settings == config.search
    jax.tree.map(np.testing.assert_array_equal, loaded.agent.params, params)
    if checkpoint is None:  # a run's folder is accepted wherever a network is named
        assert load_weights(str(whole)).record == loaded.record
        assert jaxzero.load(str(whole)).board == config.game.board


def test_a_run_of_a_device_that_is_not_here_is_loaded(run):
    """For example a run that was trained on a GPU."""
    for file in run.glob("checkpoints/*/learner/_sharding"):
        text = file.read_text()
        assert "cpu:0" in text
        file.write_text(text.replace("cpu:0", "cuda:0"))
    assert load_agent(run).iteration == 6


def test_loading_computes_nothing_but_shapes(whole, monkeypatch):
    traced, init = [], Network.init

    def watched(self, key, *arguments):
        traced.append(isinstance(key, jax.core.Tracer))
        return init(self, key, *arguments)

    monkeypatch.setattr(Network, "init", watched)
    load_agent(whole)
    load_weights("2x2")
    assert traced and all(traced)


def test_a_run_that_begins_with_another_counts_what_went_into_that(whole, tmp_path):
    after = tmp_path / "after"
    assert train(short_config("--iterations=2"), after, initial=load_weights(str(whole)))
    first, both = (load_agent(run).record["training"] for run in (whole, after))
    assert (first["games"], both["games"]) == (6 * 16, 6 * 16 + 2 * 16)
    assert both["minutes"] > first["minutes"] > 0


def test_what_a_run_begins_with_is_found_from_any_folder(whole, tmp_path, monkeypatch):
    for name in ("run", "shipped"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(whole.parent)
    note_initial_weights(tmp_path / "run", load_weights(whole.name))
    note_initial_weights(tmp_path / "shipped", load_weights("2x2"))
    monkeypatch.chdir(tmp_path)
    assert noted_initial_weights(tmp_path / "run").record == load_agent(whole).record
    assert noted_initial_weights(tmp_path / "shipped").name == "2x2"


def test_a_run_does_not_hide_a_shipped_network_of_its_name(whole, tmp_path, monkeypatch):
    shutil.copytree(whole, tmp_path / "2x3")
    monkeypatch.chdir(tmp_path)
    assert run_folder("2x3") is None and run_folder("./2x3") == Path("2x3")
    assert load_agent(Path("2x3")).iteration == 6


def test_what_is_not_there_is_named(whole, run, tmp_path):
    with pytest.raises(InputError, match=r"^run_dir2: .*nowhere holds no run"):
        load_agent(tmp_path / "nowhere", field="run_dir2")
    with pytest.raises(InputError, match=r"no checkpoint 3 \(there are: 2, 4, 6\)"):
        load_agent(whole, 3)
    shutil.rmtree(run / "checkpoints")
    options = parser_of("evaluate.py").parse_args(["--weights2", str(run)])
    for load in (lambda: load_agent(run), source_of(options, "2").load):
        with pytest.raises(InputError, match=rf"{run} has no checkpoint yet"):
            load()
    assert not (run / "checkpoints").exists()


def test_exported_weights_come_back(whole, tmp_path):
    loaded, file = load_agent(whole), tmp_path / "out" / "run.1.safetensors"
    write_weights(loaded, file)
    os.umask(mask := os.umask(0))
    assert file.stat().st_mode & 0o777 == 0o666 & ~mask
    for suffix in (".yaml", ".json"):
        file.with_suffix(suffix).unlink()  # copies
    back = load_weights(str(file))
    assert (back.config, back.iteration) == (loaded.config, loaded.iteration)
    assert back.record["training"] == loaded.record["training"]
    chex.assert_trees_all_close(back.agent.params, loaded.agent.params, rtol=1e-3, atol=1e-6)
    other = file.with_name("other.safetensors")
    write_weights(loaded._replace(config=short_config("--network.channels=8")), other)
    with pytest.raises(InputError, match="of another shape"):
        load_weights(str(other))
    save_file(load_file(file), other)  # as another program writes it
    with pytest.raises(InputError, match=r"^weights2: .*other\.safetensors "):
        load_weights(str(other), "weights2")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(value, whole, tmp_path):
    loaded = load_agent(whole)
    params = jax.tree.map(lambda leaf: np.full_like(leaf, value), loaded.agent.params)
    broken = loaded._replace(agent=replace(loaded.agent, params=params))
    write_weights(broken, tmp_path / "net.safetensors")
    with pytest.raises(InputError, match=r"^weights: params/.* is not finite"):
        load_weights(str(tmp_path / "net.safetensors"))


def test_no_bit_of_an_exported_file_flips_unnoticed(whole, tmp_path):
    file = tmp_path / "net.safetensors"
    write_weights(load_agent(whole), file)
    content, rng = file.read_bytes(), np.random.default_rng(0)
    header = 8 + int.from_bytes(content[:8], "little")
    of_config = content.index(b"simulations") + len(b'simulations\\": ')
    for place in (of_config, *rng.integers(header, len(content), 20)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"^weights: .*net\.safetensors"):
            load_weights(str(file))
    for name in shipped_names():  # all carry a checksum, and the copies are those inside
        shipped = shipped_file(name)
        _, config, record = read_exported(shipped)
        with safe_open(shipped, "np") as opened:
            assert CHECKSUM in opened.metadata()
        assert record == json.loads(shipped.with_suffix(".json").read_text())
        assert config == config_of_file(shipped.with_suffix(".yaml"))
