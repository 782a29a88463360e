"""The weights that ship with the package load, and score what their records say."""

from __future__ import annotations

import json
from dataclasses import replace

import chex
import pytest
from flax.traverse_util import flatten_dict

import jaxzero
from jaxzero.cli import Source
from jaxzero.config import SearchConfig
from jaxzero.measure.scoring import agent_answers, score
from jaxzero.players.players import make_player
from jaxzero.runs.weights import (
    check_shapes,
    load_weights,
    param_shapes,
    read_record,
    shipped_names,
    write_weights,
)
from jaxzero.training.evaluator import choose_suite, measure_weights


def test_there_are_weights():
    assert {"2x2", "3x3"} <= set(shipped_names())


@pytest.mark.parametrize("name", shipped_names())
def test_they_fit_their_network(name):
    """Loading does not check it, to save time."""
    agent = load_weights(name).agent
    check_shapes(flatten_dict(agent.params, sep="/"), param_shapes(agent.network))


def boards() -> list:
    """Return all names; tables of so many positions take long to build."""
    slow = ("2x3", "3x3")
    return [
        pytest.param(name, marks=[pytest.mark.slow] * (name in slow)) for name in shipped_names()
    ]


# All positions take a network of 5x5 long.
@pytest.mark.parametrize("part", ["most", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", boards())
def test_they_score_what_their_record_says(name, part):
    """In all positions, or in the band of undrawn edges that has most of them."""
    loaded, recorded = load_weights(name), read_record(name)["suite"]["policy"]
    game = loaded.agent.network.game
    assert str(game) == name.partition("_")[0]
    suite = choose_suite("auto", game, half="test")
    bands = {"all": f"0-{game.num_edges}"} | {
        "most": max(recorded["by_undrawn"], key=lambda b: recorded["by_undrawn"][b]["positions"])
    }
    low, high = map(int, bands[part].split("-"))
    rows = (low <= suite.undrawn) & (suite.undrawn <= high)
    parts = {key: getattr(suite, key)[rows] for key in ("drawn", "moves", "origin")}
    suite = replace(suite, **parts)
    measured = score(suite, agent_answers(suite, loaded.agent, 0))["all"]
    expected = recorded["by_undrawn"].get(bands[part], recorded["all"])
    for key in ("positions", "optimal_share", "boxes_lost"):
        assert measured[key] == pytest.approx(expected[key], abs=5 / len(suite))


def test_what_is_shipped_is_measured_and_shipped_again(tmp_path):
    loaded = load_weights("2x2")
    agent = replace(loaded.agent, settings=SearchConfig(nodes="all"))
    loaded = loaded._replace(agent=agent)
    source = Source(None, "2x2")
    loaded, record = measure_weights(source, loaded, "random", games=8, simulations=4)
    assert record["training"] == read_record("2x2")["training"]
    assert set(record["versus"]) == {"random"} and set(record["suite"]) == {"policy", "search:4"}
    write_weights(loaded, record, "again", tmp_path)
    again = load_weights(str(tmp_path))
    chex.assert_trees_all_equal(again.agent.params, loaded.agent.params)
    assert again.config == loaded.config and again.iteration == loaded.iteration
    assert read_record(str(tmp_path / "again")) == json.loads(json.dumps(record))


def test_a_loaded_engine_plays():
    agent = jaxzero.load("2x2").agent
    assert make_player("search:8", agent.network.game, agent).name == "search:8"
