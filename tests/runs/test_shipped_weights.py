"""Test that the pretrained weights load and reach the scores in their records."""

import json
from dataclasses import replace

import chex
import pytest
from compiled import any_params
from flax.traverse_util import flatten_dict

from jaxzero.config import SearchConfig
from jaxzero.errors import InputError
from jaxzero.heads import HEADS
from jaxzero.measure.evaluator import measure_weights
from jaxzero.measure.scoring import player_answers, score
from jaxzero.measure.suite import choose_suite
from jaxzero.network.network import param_shapes
from jaxzero.play.opponents import agent_of
from jaxzero.players.players import make_player
from jaxzero.runs.resize import resize
from jaxzero.runs.run_dir import PLAYED_BY, shipped_file, shipped_names
from jaxzero.runs.weights import (
    check_shapes,
    from_half,
    load_weights,
    read_exported,
    to_half,
    write_weights,
)


@pytest.mark.parametrize("name", shipped_names())
def test_they_fit_their_network(name):
    """Loading skips this check to save time."""
    agent = load_weights(name).agent
    check_shapes("weights", flatten_dict(agent.params, sep="/"), param_shapes(agent.network))


@pytest.mark.parametrize(("name", "other"), PLAYED_BY.items())
def test_a_board_without_a_network_has_that_of_another(name, other, tmp_path):
    loaded, source = load_weights(name), load_weights(other)
    board = loaded.agent.network.board
    assert str(board) == loaded.name == name
    assert (loaded.iteration, set(loaded.record)) == (source.iteration, {"training"})
    chex.assert_trees_all_equal(loaded.agent.params, resize(source.agent, board, "").params)
    chex.assert_trees_all_equal(loaded.agent.params, agent_of(board).params)
    write_weights(loaded, tmp_path / "net.safetensors")
    again = load_weights(str(tmp_path / "net.safetensors")).agent
    assert again.network.board == board
    chex.assert_trees_all_equal(again.params, from_half(to_half(loaded.agent.params)))


def test_a_network_has_the_heads_that_it_was_trained_with(tmp_path, monkeypatch):
    """A head that a user adds to HEADS is in new networks only, and must be there to read them."""
    shipped, file = load_weights("2x2"), tmp_path / "net.safetensors"
    write_weights(shipped, tmp_path / "old.safetensors")
    shapes = param_shapes(shipped.agent.network)
    with monkeypatch.context() as patch:
        patch.setitem(HEADS, "mine", HEADS["margin"])
        for name in ("2x2", tmp_path / "old.safetensors"):
            network = load_weights(str(name)).agent.network
            assert set(network.heads) == {"margin"}
            assert param_shapes(network) == param_shapes(shipped.agent.network) == shapes
        network = network.clone(head_names=None)
        agent = replace(shipped.agent, network=network, params=any_params(network))
        write_weights(shipped._replace(agent=agent), file)
        assert "mine" in load_weights(str(file)).agent.network.heads
    with pytest.raises(InputError, match=r"params/mine/\w+ .* HEADS"):
        load_weights(str(file))


# All positions are slow with a 5x5 network; tables of 2x3 and 3x3 are slow to build.
@pytest.mark.parametrize("part", ["most", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in ("2x3", "3x3")))
        for name in shipped_names()
        if name not in PLAYED_BY
        and "suite" in read_exported(shipped_file(name))[2]  # 7x7 has no stored positions
    ],
)
def test_they_score_what_their_record_says(name, part):
    """Score all positions, or only the largest band of undrawn edges."""
    loaded = load_weights(name)
    recorded = loaded.record["suite"]["policy"]
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
    measured = measure_weights(loaded, "random", games=8, simulations=4)
    assert measured.record["training"] == loaded.record["training"]
    assert set(measured.record["versus"]) == {"random"}
    assert set(measured.record["suite"]) == {"policy", "search:4"}
    write_weights(measured, tmp_path / "again.safetensors")
    again = load_weights(str(tmp_path / "again.safetensors"))
    chex.assert_trees_all_equal(again.agent.params, loaded.agent.params)
    assert again.config == loaded.config and again.iteration == loaded.iteration
    assert again.record == json.loads(json.dumps(measured.record))
