"""Test the evaluator of a run: what it measures, and that it compiles before it is needed."""

from collections import OrderedDict

import jax
import pytest

from jaxzero.cli import load_config
from jaxzero.host.background import Programs
from jaxzero.measure.evaluator import Evaluator
from jaxzero.network.network import Network, init_params

CONFIG = load_config(
    "configs/tiny.yaml",
    *(
        "--game.cols=1",
        "--selfplay.random_opening_moves=2",
        "--network.features=raw",
        "--network.channels=8",
        "--evaluation.games=4",
    ),
    *("--evaluation.final_games=4", "--evaluation.simulations=2"),
)
PARAMS = init_params(Network(CONFIG.game.board, CONFIG.network), jax.random.key(0))


@pytest.fixture
def evaluator():
    made = Evaluator(CONFIG)
    made.prepare()
    return made


def test_a_run_is_measured_with_search_at_its_end_only(evaluator, monkeypatch):
    played, make = [], evaluator._player
    monkeypatch.setattr(evaluator, "_player", lambda name, p: played.append(name) or make(name, p))
    during = evaluator.evaluate(PARAMS)
    assert set(played) == {"policy"}
    end = evaluator.final(PARAMS)
    assert set(played) == set(end["suite"]) == {"policy", "search:2"}
    assert during["suite/policy/wrong_share"] == end["suite"]["policy"]["all"]["wrong_share"]


def test_a_run_is_measured_without_compiling_after_compile(evaluator, monkeypatch):
    made, get = [], Programs.get
    monkeypatch.setattr("jaxzero.host.background._boards", OrderedDict())  # nothing is compiled
    monkeypatch.setattr(Programs, "get", lambda one: made.append(one.ready) or get(one))
    evaluator.compile(PARAMS)
    del made[:]
    evaluator.evaluate(PARAMS)
    evaluator.final(PARAMS)
    assert made and all(made)
