"""Test that configs load, take overrides, and refuse wrong settings by field and value."""

from __future__ import annotations

import json
import re

import pytest
from script_runner import ROOT

from jaxzero.cli import config_of, config_parser, load_config, parse
from jaxzero.config import Config
from jaxzero.config.files import (
    GONE,
    NEW_NAMES,
    RENAMED,
    dotted,
    read_config,
    save_config,
    typed_fields,
)
from jaxzero.errors import InputError

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
TINY = str(ROOT / "configs/tiny.yaml")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_loads_survives_saving_and_has_the_replay_ratio_it_states(path, tmp_path):
    config = load_config(path)
    save_config(config, tmp_path / "copy.yaml")
    assert load_config(tmp_path / "copy.yaml") == config
    for stated in re.findall(r"[Rr]eplay ratio:? (\d+(?:\.\d+)?)", path.read_text()):
        assert f"{config.replay_ratio:.{len(stated.partition('.')[2])}f}" == stated


@pytest.mark.parametrize("name", [["--config", TINY], [f"--config={TINY}"]])
def test_options_override_the_file_wherever_they_stand(name):
    parser = config_parser("")
    options = ["--game.rows=4", "--seed", "3"]
    for line in ([*options, *name], [*name, *options], [options[0], *name, *options[1:]]):
        config = config_of(parser, parse(parser, line))
        assert (config.game.rows, config.game.cols, config.seed) == (4, 2, 3)
        assert config.search.value_scale_per_box == Config().search.value_scale_per_box


def test_derived_numbers():
    config = load_config(TINY, "--learner.updates_per_iteration=1.2e1")
    assert config.positions_per_iteration == 64 * 12
    assert config.iterations_kept == 27  # 20,000 positions, rounded up
    assert config.replay_ratio == 256 * 12 / (64 * 12)
    assert config.evaluations_per_iteration == 64 * 12 * 9


# Settings that contradict each other; test_bad_input.py has values that the parser refuses.
WRONG = {
    "evaluation.games: 7": "--evaluation.games=7",
    "evaluation.random_opening_moves: 13": "--evaluation.random_opening_moves=13",
    "iterations: 0": "--iterations=0",
    "network.attention_heads: 2": "--network.attention_heads=2",
    "network.safe_end: True": "--network.safe_end=true",
    "selfplay.late_start_moves: 5": "--selfplay.late_start_moves=5",
    "selfplay.late_start_until: 0.5": "--selfplay.late_start_until=0.5",
}


@pytest.mark.parametrize("begin", WRONG)
def test_settings_that_contradict_are_named_with_their_value(begin):
    with pytest.raises(InputError, match=f"^{re.escape(begin)} ") as caught:
        load_config(TINY, WRONG[begin])
    assert "\n" not in str(caught.value)


def test_games_must_begin_before_they_end():
    # A quiet game of 2x2 has at least 8 moves.
    exact = "--search.nodes=quiet"
    assert load_config(TINY, exact, "--selfplay.late_start_moves=7").positions_per_game == 1
    with pytest.raises(InputError, match=r"^selfplay\.late_start_moves: 8 leaves nothing .* 2x2"):
        load_config(TINY, exact, "--selfplay.late_start_moves=8")


@pytest.mark.parametrize("name", RENAMED)
def test_a_setting_that_was_renamed_is_named_with_its_new_name(name, tmp_path):
    known = list(dict(typed_fields(Config)))
    assert name not in known and RENAMED[name].split()[0].rstrip(":") in known
    section, _, leaf = name.rpartition(".")
    old = tmp_path / "config.yaml"
    old.write_text(f"{section}: {{{leaf}: 1}}" if section else f"{leaf}: 1")
    if new := NEW_NAMES.get(name):  # a file of an older version still loads
        assert dict(dotted(read_config(str(old)))) == {new: 1}
        old.write_text(f"{section}: {{{leaf}: 1, {new.rpartition('.')[2]}: 1}}")
    with pytest.raises(InputError, match=rf"^{re.escape(name)}: 1 in .*is now"):
        load_config(old)
    with pytest.raises(InputError, match=rf"^{re.escape(name)}: .*is now"):
        load_config(TINY, f"--{name}=1")


@pytest.mark.parametrize("name", GONE)
def test_a_setting_that_is_gone_may_stand_in_a_file_where_it_did_nothing(name, tmp_path):
    assert name not in dict(typed_fields(Config))
    section, _, leaf = name.partition(".")
    old = tmp_path / "config.yaml"
    old.write_text(f"seed: 5\n{section}: {{{leaf}: {json.dumps(GONE[name])}}}")
    assert load_config(old).seed == 5
    old.write_text(f"{section}: {{{leaf}: 0.25}}")
    with pytest.raises(InputError, match=rf"^{re.escape(name)}: 0\.25 in .*CHANGELOG"):
        load_config(old)
    with pytest.raises(InputError, match=rf"^{re.escape(name)}: '0\.25': .*CHANGELOG"):
        load_config(TINY, f"--{name}=0.25")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("lr", "learner.learning_rate"),
        ("learner.lr", "learner.learning_rate"),
        ("batch-size", "learner.batch_size"),
        ("networks.channels", "network.channels"),
        ("Game.Rows", "game.rows"),
        ("iteration", "iterations"),
    ],
)
def test_a_wrong_name_leads_to_the_field_that_was_meant(name, meant, tmp_path):
    with pytest.raises(InputError, match=rf"^{name}: '1': .*did you mean {meant}\?") as option:
        load_config(TINY, f"--{name}", "1", "--also", "wrong")
    assert "also" not in str(option.value)
    section, _, leaf = name.rpartition(".")
    (tmp_path / "wrong.yaml").write_text(f"{section}: {{{leaf}: 1}}" if section else f"{leaf}: 1")
    with pytest.raises(InputError, match=rf"^{name}: 1 in .*did you mean {meant}\?"):
        load_config(tmp_path / "wrong.yaml")


@pytest.mark.parametrize("option", ["--network.chan", "--conf", "--learner.final_rate_frac"])
def test_options_have_no_short_forms(option):
    with pytest.raises(InputError, match=rf"^{option[2:]}: '1': no such field"):
        load_config(TINY, f"{option}=1")


def test_an_option_of_one_script_is_none_of_another():
    one, other = config_parser("one"), config_parser("other")
    one.add_argument("--more", type=int)
    assert parse(one, ["--more", "3"]).more == 3 and one.description != other.description
    with pytest.raises(InputError, match=r"^more: "):
        parse(other, ["--more", "3"])
