"""A report names every player, compares them in pairs and says how positions were sampled."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jaxzero.errors import InputError
from jaxzero.evaluation.suite import BANDS, table_suite
from jaxzero.evaluation.suite_report import sampled, score_suite, scored_players
from jaxzero.runs.weights import load_weights


@pytest.fixture(scope="module")
def small():
    return load_weights("2x2").agent


@pytest.fixture(scope="module")
def few(small):
    return table_suite(small.network.game, positions=200)


def test_players_are_compared_with_the_first(small, few, tmp_path, capsys):
    names = scored_players("policy, greedy,random", few.game, small, 1)
    found = score_suite({"2x2": small}, few, names, tmp_path)
    assert list(found["suite"]) == ["policy", "greedy", "random"]
    assert list(found["differences"]) == ["greedy - policy", "random - policy"]
    wrong = {player: parts["all"]["wrong_share"] for player, parts in found["suite"].items()}
    difference = found["differences"]["random - policy"]["all"]["difference"]
    assert difference == pytest.approx(wrong["random"] - wrong["policy"], abs=1e-4)
    assert list(found["calibration"]) == ["policy"]
    assert (tmp_path / "suite_table.png").exists()
    json.dumps(found)
    said = capsys.readouterr().out
    low, high = found["suite"]["random"]["all"]["wrong_interval"]
    assert f"{wrong['random']:.1%} [{100 * low:.1f}, {100 * high:.1f}]" in said
    assert f"{100 * difference:+.1f} [" in said


def test_two_networks_are_compared_player_by_player(small, few, tmp_path):
    networks = {"2x2": small, "other": small}
    names = scored_players("policy,search:4,greedy", few.game, small, 2)
    found = score_suite(networks, few, names, tmp_path)
    assert list(found["differences"]) == [
        "policy - policy of other",
        "search:4 - search:4 of other",
    ]
    assert all(parts["all"]["first_only"] == 0 for parts in found["differences"].values())
    assert "policy of other" in found["suite"]


def test_unknown_players_are_refused(small):
    with pytest.raises(InputError, match="players: 'nobody' is unknown"):
        scored_players("policy,nobody", small.network.game, small, 1)


def test_two_networks_are_not_compared_without_a_player_that_has_one(small):
    with pytest.raises(InputError, match="players: greedy have no network"):
        scored_players("greedy", small.network.game, small, 2)


def test_the_seed_is_of_players_that_choose_at_random(small, few, tmp_path):
    runs = [score_suite({"2x2": small}, few, ["random"], tmp_path, seed) for seed in (0, 0, 1)]
    lost = [run["suite"]["random"]["all"]["boxes_lost"] for run in runs]
    assert lost[0] == lost[1] != lost[2]


def test_what_was_sampled_is_reported(small):
    suite = table_suite(small.network.game, positions=10)
    assert sampled(suite) == {}
    counts = np.zeros((len(BANDS), 3), np.int32)
    counts[1] = 7, 2, 4
    object.__setattr__(suite, "counts", counts)
    assert sampled(suite) == {"9-12": {"sampled": 7, "not_solved": 2, "kept": 4}}
