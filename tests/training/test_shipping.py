"""The weights that ship with the package load, and score what their records say."""

from __future__ import annotations

import pytest

import jaxzero
from jaxzero.agent.players import make_player
from jaxzero.evaluation.examine import examine_agent
from jaxzero.evaluation.suite import score
from jaxzero.training.shipping import load_shipped, read_record, shipped_names
from jaxzero.training.strength import choose_suite


def test_there_are_weights():
    assert {"2x2", "3x3"} <= set(shipped_names())


@pytest.mark.parametrize("name", shipped_names())
def test_they_score_what_their_record_says(name):
    loaded, record = load_shipped(name), read_record(name)
    game = loaded.agent.network.game
    assert str(game) == name
    suite = choose_suite("auto", game)
    measured = score(suite, examine_agent(suite, loaded.agent, 0))["all"]
    for key in ("positions", "optimal_share", "boxes_lost"):
        assert measured[key] == pytest.approx(record["suite"]["policy"]["all"][key], abs=2e-3)


def test_a_loaded_agent_plays():
    agent = jaxzero.load("2x2")
    assert make_player("search:8", agent.network.game, agent).name == "search:8"
