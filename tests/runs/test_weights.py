"""Test loading networks of runs: they equal the saved ones, and a failure names its cause."""

from __future__ import annotations

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
from short_run import saved, short_config, train

import jaxzero
from jaxzero.config import config_of_file
from jaxzero.errors import InputError
from jaxzero.measure.arena import play_match
from jaxzero.network.network import Network
from jaxzero.play.modes import choose_player, fitted
from jaxzero.players.players import make_player
from jaxzero.runs.resize import asked_board
from jaxzero.runs.source import FOLDER, Source, shipped_names
from jaxzero.runs.weights import (
    CHECKSUM,
    load_agent,
    load_weights,
    note_initial_weights,
    noted_initial_weights,
    read_exported,
    read_initial_weights,
    read_record,
    training_record,
    write_weights,
)
from jaxzero.training.progress import first_learner


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
        source = Source(None, str(whole))
        assert source.folder == whole and source.load().iteration == 6
        assert training_record(source, loaded) == training_record(Source(whole, None), loaded)
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
    config = short_config()
    first_learner(config, Network(config.game.board, config.network), None)
    assert traced and all(traced)


def test_a_run_that_begins_with_another_counts_what_went_into_that(whole, tmp_path):
    after = tmp_path / "after"
    assert train(short_config("--iterations=2"), after, initial=read_initial_weights(str(whole)))
    first, both = (training_record(Source(run, None), load_agent(run)) for run in (whole, after))
    assert (first["games"], both["games"]) == (6 * 16, 6 * 16 + 2 * 16)
    assert both["minutes"] > first["minutes"] > 0
    shipped = read_initial_weights("2x2").effort
    assert shipped.games == read_record("2x2")["training"]["games"] > 0


def test_what_a_run_begins_with_is_found_from_any_folder(whole, tmp_path, monkeypatch):
    for name in ("run", "shipped"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(whole.parent)
    note_initial_weights(tmp_path / "run", read_initial_weights(whole.name))
    note_initial_weights(tmp_path / "shipped", read_initial_weights("2x2"))
    monkeypatch.chdir(tmp_path)
    assert noted_initial_weights(tmp_path / "run").effort == read_initial_weights(str(whole)).effort
    assert noted_initial_weights(tmp_path / "shipped").name == "2x2"


def test_a_run_with_checkpoints_needs_no_note_of_its_beginning(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / "begun_with.json").write_text("damaged")
    assert noted_initial_weights(tmp_path / "run") is None


def test_a_run_does_not_hide_a_shipped_network_of_its_name(whole, tmp_path, monkeypatch):
    shutil.copytree(whole, tmp_path / "2x3")
    monkeypatch.chdir(tmp_path)
    assert Source(None, "2x3").folder is None
    assert Source(None, "./2x3").folder == Source(Path("2x3"), None).folder == Path("2x3")


def test_a_damaged_newest_checkpoint_is_skipped_and_named(run):
    shutil.rmtree(run / "checkpoints" / "6" / "learner")
    said = []
    assert load_agent(run, say=said.append).iteration == 4
    assert len(said) == 1 and str(run / "checkpoints" / "6") in said[0]
    with pytest.raises(InputError, match=r"checkpoint .*6 cannot be read"):
        load_agent(run, 6)


def test_what_is_not_there_is_named(whole, run, tmp_path):
    with pytest.raises(InputError, match=r"run_dir: .*nowhere holds no run"):
        load_agent(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"checkpoint: 3 is not in .* \(there are: 2, 4, 6\)"):
        load_agent(whole, 3)
    shutil.rmtree(run / "checkpoints")
    source = Source(None, str(run), number="2")
    for load in (lambda: load_agent(run), lambda: load_weights(str(run)), source.load):
        with pytest.raises(InputError, match=rf"{run} has no checkpoint yet"):
            load()
    assert not (run / "checkpoints").exists()
    with pytest.raises(InputError, match=r"^checkpoint2: 9 is not in "):
        Source(whole, None, 9, "2").load()


def test_exported_weights_come_back_by_their_file_or_folder(whole, tmp_path):
    loaded, file = load_agent(whole), tmp_path / "out" / "run.1.safetensors"
    write_weights(loaded, {"training": {"games": 64, "minutes": 1.0}}, "run.1", file.parent)
    os.umask(mask := os.umask(0))
    assert file.stat().st_mode & 0o777 == 0o666 & ~mask
    for name in map(str, (file, file.with_name("run.1"), file.parent)):
        back = load_weights(name)
        assert (back.config, back.iteration) == (loaded.config, loaded.iteration)
        chex.assert_trees_all_close(back.agent.params, loaded.agent.params, rtol=1e-3, atol=1e-6)
        assert Source(None, name).load().iteration == 6
        assert read_initial_weights(name).effort.games == 64
    write_weights(loaded, {}, "other", file.parent)
    with pytest.raises(InputError, match=r"weights: .*out holds several weights.*other\.safet"):
        load_weights(str(file.parent))
    smaller = loaded._replace(config=short_config("--network.channels=8"))
    write_weights(smaller, {}, "other", file.parent)
    with pytest.raises(InputError, match="of another shape"):
        load_weights(str(file.with_name("other")))
    arrays = load_file(file)
    save_file(arrays, file.with_name("other.safetensors"))  # as another program writes it
    with pytest.raises(InputError, match=r"^weights: .*other\.safetensors "):
        load_weights(str(file.with_name("other")))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(value, whole, tmp_path):
    loaded = load_agent(whole)
    params = jax.tree.map(lambda leaf: np.full_like(leaf, value), loaded.agent.params)
    broken = loaded._replace(agent=replace(loaded.agent, params=params))
    write_weights(broken, {}, "net", tmp_path)
    with pytest.raises(InputError, match=r"^weights: params/.* is not finite"):
        load_weights(str(tmp_path / "net.safetensors"))


def test_an_exported_file_alone_is_a_network_and_no_bit_of_it_flips_unnoticed(whole, tmp_path):
    loaded, file = load_agent(whole), tmp_path / "net.safetensors"
    write_weights(loaded, {"training": {"games": 64, "minutes": 1.0}}, "net", tmp_path)
    for suffix in (".yaml", ".json"):
        file.with_suffix(suffix).unlink()
    back = load_weights(str(file))
    assert (back.config, back.iteration) == (loaded.config, loaded.iteration)
    assert read_initial_weights(str(file)).effort.games == 64
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
        _, config, record = read_exported(FOLDER / name)
        with safe_open(FOLDER / f"{name}.safetensors", "np") as opened:
            assert CHECKSUM in opened.metadata()
        assert record == json.loads((FOLDER / f"{name}.json").read_text())
        assert config == config_of_file(FOLDER / f"{name}.yaml")


def test_the_board_is_that_of_the_run_unless_another_is_asked_for(whole):
    source = Source(whole, None)
    loaded = source.load()
    board = asked_board(None, 2, loaded.agent.network.board)
    assert str(board) == "2x2"
    player = choose_player("player", None, board, fitted(source, loaded, board))
    assert player.name == "search:64"
    assert play_match(board, player, make_player("random", board), 4, 0, 0).games == 4
    with pytest.raises(InputError, match=r"^run_dir: .* cannot play 2x4: its trunk is dense"):
        fitted(source, loaded, asked_board(2, 4, board))
