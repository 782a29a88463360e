"""Test initial weights: the same board takes all arrays, another board those that fit."""

from dataclasses import replace

import chex
import jax
import pytest
from compiled import any_params

from jaxzero.cli import load_config
from jaxzero.config import NetworkConfig
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.network.network import Agent, Network, param_shapes
from jaxzero.runs.resize import resize_params
from jaxzero.runs.weights import LoadedAgent, transfer
from jaxzero.training.run_state import fitted, refuse_misfit, start_run

TINY = load_config("configs/tiny.yaml", "--network.channels=16")
CONV = NetworkConfig(channels=8, blocks=2)


def initial(network: Network, params) -> LoadedAgent:
    return LoadedAgent(Agent(network, params, TINY.search), TINY, 0, {})


def test_a_run_starts_from_initial_weights():
    network, devices = Network(TINY.game.board, TINY.network), jax.devices()[:1]
    source = any_params(network)
    state = start_run(TINY, network, devices, initial(network, source))
    chex.assert_trees_all_equal(state.learner.params, source)
    assert int(state.learner.step) == 0


def test_a_conv_of_another_board_begins_as_it_plays_there():
    config = load_config(
        "configs/tiny.yaml", "--network.trunk=conv", "--network.channels=8", "--network.blocks=2"
    )
    network, small = Network(config.game.board, config.network), DotsAndBoxes(1, 2)
    source = Network(small, config.network)
    params = any_params(source)
    taken = transfer(fitted(network, initial(source, params)), param_shapes(network))
    assert taken.taken == taken.arrays
    chex.assert_trees_all_equal(taken.params, resize_params(source, network, params))


def test_a_deeper_network_of_another_board_takes_the_blocks_that_are_there():
    source = Network(DotsAndBoxes(1, 2), CONV)
    network = Network(TINY.game.board, replace(CONV, blocks=3))
    params = any_params(source)
    taken = transfer(fitted(network, initial(source, params)), param_shapes(network))
    assert 0 < taken.taken < taken.arrays


def test_weights_of_which_nothing_fits_are_refused():
    dense = [Network(DotsAndBoxes(*sides), TINY.network) for sides in ((1, 2), (2, 1))]
    assert param_shapes(dense[0]) == param_shapes(dense[1])  # but not their meaning
    for network, other in (
        (Network(TINY.game.board, TINY.network), Network(TINY.game.board, CONV)),
        (Network(TINY.game.board, TINY.network), Network(DotsAndBoxes(3, 3), CONV)),
        dense,
    ):
        with pytest.raises(InputError, match="weights: no array"):
            refuse_misfit(network, initial(other, any_params(other)))
