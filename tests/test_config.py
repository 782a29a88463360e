"""Test that configs load, take overrides, and refuse settings that contradict each other."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest
from script_runner import ROOT

from jaxzero import cli
from jaxzero.cli import config_of, config_parser, load_config
from jaxzero.config import (
    Config,
    GameConfig,
    NetworkConfig,
    config_of_file,
    plan,
)
from jaxzero.config import config_of as config_of_mapping
from jaxzero.errors import InputError
from jaxzero.runs.run_dir import save_config

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
TINY = str(ROOT / "configs/tiny.yaml")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_loads_survives_saving_and_has_the_replay_ratio_it_states(path, tmp_path):
    config = load_config(path)
    save_config(config, tmp_path / "copy.yaml")
    assert load_config(tmp_path / "copy.yaml") == config
    assert config_of_file(tmp_path / "copy.yaml") == config_of_file(path) == config
    for stated in re.findall(r"[Rr]eplay ratio:? (\d+(?:\.\d+)?)", path.read_text()):
        assert f"{config.replay_ratio:.{len(stated.partition('.')[2])}f}" == stated


@pytest.mark.parametrize(
    "words",
    [
        ["--config", TINY, "--game.rows=4", "--seed", "3"],
        ["--config", TINY, "--game", "{rows: 4}", "--seed=3"],
        ["--seed", "3", "--config", TINY, "--game.rows=4"],
        ["--seed=3", "--game", "{rows: 4}", f"--config={TINY}"],
    ],
)
def test_options_override_the_file(words):
    config = config_of(config_parser("").parse_args(words))
    assert (config.game.rows, config.game.cols, config.seed) == (4, 2, 3)
    assert config.search.value_scale_per_box == Config().search.value_scale_per_box


def test_a_number_in_scientific_notation_is_a_number(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("learner: {learning_rate: 1e-3}")
    assert load_config(path) == config_of_file(path) == Config()
    assert load_config(path, "--learner.learning_rate=2e-3").learner.learning_rate == 2e-3


def test_stored_settings_of_another_version_are_dropped_where_they_are_off():
    content = {"evaluation": {"games": 32, "gate_threshold": 0.0}}
    assert config_of_mapping(content, "x").evaluation.games == 32
    with pytest.raises(InputError, match=r"^evaluation\.gate_threshold: .*in x$"):
        config_of_mapping({"evaluation": {"gate_threshold": 0.5}}, "x")


def test_derived_numbers():
    config = load_config(TINY, "--learner.updates_per_iteration=12")
    assert plan(config).positions == 64 * 12
    assert plan(config).iterations_kept == 27  # 20,000 positions, rounded up
    assert config.replay_ratio == 256 * 12 / (64 * 12)
    assert plan(config).decisions == 64 * 12


# Settings that contradict each other; test_wrong_input.py has values that the parser refuses.
WRONG = {
    "evaluation.games": "--evaluation.games=7",
    "evaluation.random_opening_moves": "--evaluation.random_opening_moves=13",
    "iterations": "--iterations=0",
    "selfplay.late_start_moves": "--selfplay.late_start_moves=5",
    "selfplay.late_start_until": "--selfplay.late_start_until=0.5",
}


@pytest.mark.parametrize("name", WRONG)
def test_settings_that_contradict_are_named(name):
    with pytest.raises(InputError, match=f"^{re.escape(name)}: "):
        load_config(TINY, WRONG[name])


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"cols": 2.5}, {"rows": True}, {"cols": None}])
def test_numbers_are_checked_and_plain_in_python_too(wrong):
    with pytest.raises(InputError, match=f"^game.{next(iter(wrong))}: "):
        GameConfig(**wrong)
    with pytest.raises(InputError, match=r"^network\.trunk: 'graph'"):
        NetworkConfig(trunk="graph")
    assert {type(value) for value in asdict(GameConfig(4.0, "5")).values()} == {int}


def test_games_must_begin_before_they_end():
    # A quiet game of 2x2 has at least 8 moves.
    exact = "--search.nodes=quiet"
    one = load_config(
        TINY, exact, "--selfplay.late_start_moves=7", "--selfplay.games_per_iteration=1"
    )
    assert plan(one).positions == 1
    with pytest.raises(InputError, match=r"^selfplay\.late_start_moves: 8 "):
        load_config(TINY, exact, "--selfplay.late_start_moves=8")


@pytest.mark.parametrize("option", ["--network.chan", "--conf", "--more"])
def test_options_have_no_short_forms_and_belong_to_one_script(option):
    config_parser("other").add_argument("--more", type=int)
    name = option.removeprefix("--")
    with pytest.raises(InputError, match=f"^{re.escape(name)}: "):
        load_config(TINY, f"{option}=1")


def test_the_presets_are_listed_with_their_boards():
    assert "tiny (2x2)" in cli.presets()
