"""Test that the pretrained weights load and reach the scores in their records."""

from __future__ import annotations

import json
from dataclasses import replace

import chex
import pytest
from flax.traverse_util import flatten_dict

from jaxzero.config import SearchConfig
from jaxzero.measure.evaluator import measure_weights
from jaxzero.measure.scoring import player_answers, score
from jaxzero.measure.suite import choose_suite
from jaxzero.players.players import make_player
from jaxzero.runs.source import Source
from jaxzero.runs.weights import (
    check_shapes,
    load_weights,
    param_shapes,
    read_record,
    shipped_names,
    write_weights,
)


@pytest.mark.parametrize("name", shipped_names())
def test_they_fit_their_network(name):
    """Loading skips this check to save time."""
    agent = load_weights(name).agent
    check_shapes("weights", flatten_dict(agent.params, sep="/"), param_shapes(agent.network))


# All positions are slow with a 5x5 network; tables of 2x3 and 3x3 are slow to build.
@pytest.mark.parametrize("part", ["most", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in ("2x3", "3x3")))
        for name in shipped_names()
        if "suite" in read_record(name)  # 7x7 has no stored positions
    ],
)
def test_they_score_what_their_record_says(name, part):
    """Score all positions, or only the largest band of undrawn edges."""
    loaded, recorded = load_weights(name), read_record(name)["suite"]["policy"]
    board = loaded.agent.network.board
    assert str(board) == name.partition("_")[0]
    suite, rows, expected = choose_suite("auto", board, half="test"), ..., recorded["all"]
    if part == "most":
        bands = recorded["by_undrawn"]
        band = max(bands, key=lambda name: bands[name]["positions"])
        rows, expected = suite.bands[band], bands[band]
    suite = replace(suite, drawn=suite.drawn[rows], moves=suite.moves[rows])
    player = make_player("policy", board, loaded.agent)
    measured = score(suite, player_answers(suite, player))["all"]
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
