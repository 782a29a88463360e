"""Test that jax's switch for 64 bits, which a user's program may need, changes no type here.

Tracing shows the types of most arrays, so that nearly nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import chex
import jax
import numpy as np
import pytest
from compiled import any_params
from script_runner import ITERATION

from jaxzero import game as rules
from jaxzero.cli import load_config
from jaxzero.config import NetworkConfig, SearchConfig
from jaxzero.game.structure import find_structure
from jaxzero.network.network import Agent, Network, expected_margin, inference_copy
from jaxzero.performance import timing
from jaxzero.play.looking import look_at, moves_of
from jaxzero.players.network_player import answer
from jaxzero.search.rounds import padded_rounds
from jaxzero.search.search import network_evaluator, search
from jaxzero.training.iteration import DEVICE_AXIS, input_shapes, make_iteration

BOARD = rules.DotsAndBoxes(1, 2)
KEYS = jax.random.split(jax.random.key(0), 3)
NONE = np.zeros(3, np.int32)
STATES = rules.State(np.zeros((3, BOARD.num_edges), bool), NONE, NONE)
NOISE = np.zeros((3, BOARD.num_edges), np.float32)
RAW = Network(BOARD, NetworkConfig("dense", "raw", 8, 1))
AGENT = Agent(RAW, any_params(RAW), SearchConfig(simulations=4))


def of_rules(keys: jax.Array, states: rules.State, edges: jax.Array) -> Iterator:
    yield rules.initial_states(BOARD, 3), jax.vmap(partial(rules.step, BOARD))(states, edges)
    yield jax.vmap(rules.random_edge)(keys, states)
    yield jax.vmap(partial(rules.most_sides_beside, BOARD))(states.drawn)
    yield rules.discount(states, states.drawn[:, 0])


def of_network(network: Network, params: chex.ArrayTree, drawn: jax.Array) -> Iterator:
    structure = jax.vmap(partial(find_structure, BOARD))(drawn)
    copy = inference_copy(network, params, 3)
    for weights in (params, copy):
        prediction = network.apply(weights, drawn, structure)
        yield prediction, copy, expected_margin(BOARD, prediction)
    yield network.init(jax.random.key(0), drawn)


def of_search(
    settings: SearchConfig,
    platform: str,
    params: chex.ArrayTree,
    key: jax.Array,
    state: rules.State,
) -> Iterator:
    evaluator = network_evaluator(replace(RAW, platform=platform), params)
    given = BOARD, settings, evaluator, key, state
    yield search(*given), search(*given, rounds=padded_rounds(settings, 3))


def of_programs(params: chex.ArrayTree, states: rules.State, noise: jax.Array) -> Iterator:
    """Yield what the compiled programs of players and benchmarks return."""
    settings, evaluator = SearchConfig(simulations=4), network_evaluator(RAW, params)
    for rounds in ((), padded_rounds(settings, 3)):
        yield answer(BOARD, settings, evaluator, states.drawn, noise, rounds)
    yield timing.random_positions(RAW, 3)
    yield timing.searched_states(BOARD, settings, 3)


def types(function: Callable[..., Iterator], *inputs: chex.ArrayTree) -> list:
    return jax.eval_shape(lambda *given: list(function(*given)), *inputs)


def network_case(platform: str, **settings: Any) -> Callable:
    network = Network(BOARD, NetworkConfig(channels=8, blocks=1, **settings), platform)
    return partial(types, partial(of_network, network), any_params(network), STATES.drawn)


def search_case(nodes: str, platform: str) -> Callable:
    look = partial(of_search, SearchConfig(simulations=4, nodes=nodes), platform)
    return partial(types, look, any_params(RAW), KEYS[0], STATES)


CASES = {
    "rules": partial(types, of_rules, KEYS, STATES, NONE),
    "dense": network_case("cpu", trunk="dense", compute_dtype="bfloat16"),
    "conv": network_case("gpu", safe_end=True, attention_heads=2),
    "conv of a CPU": network_case("cpu"),
    "all nodes": search_case("all", "cpu"),
    "quiet nodes": search_case("quiet", "cpu"),
    "quiet nodes on a GPU": search_case("quiet", "gpu"),
    "programs": partial(types, of_programs, any_params(RAW), STATES, NOISE),
    "analysis": lambda: (look_at(AGENT, STATES.drawn[0]), moves_of(BOARD, STATES.drawn[0])),
}


def check(shapes: Any) -> None:
    leaves = jax.tree.leaves(shapes)
    assert len(leaves) > 3
    assert [leaf for leaf in leaves if "64" in str(leaf.dtype)] == []


@pytest.mark.parametrize("name", CASES)
def test_the_switch_for_64_bits_changes_no_type(name):
    with jax.enable_x64(True):
        check(CASES[name]())


def test_an_iteration_with_all_that_can_be_on_has_outputs_like_its_inputs():
    """Without 64 bits. Nothing is compiled, so one trace fits all kinds of positions together."""
    config = load_config(
        *("configs/tiny.yaml", *ITERATION, "--game.rows=3", "--game.cols=3"),
        *("--search.nodes=quiet", "--selfplay.late_start_moves=5", "--replay.capacity=3000"),
        *("--selfplay.td_lambda=0.5", "--selfplay.td_above_edges=4"),
        *("--selfplay.late_start_until=0.5", "--selfplay.surprise_weight=0.5"),
        *("--network.trunk=conv", "--network.features=structure", "--network.safe_end=true"),
        "--learner.optimizer=muon",
    )
    network = Network(config.game.board, config.network)
    with jax.enable_x64(True):
        shapes = input_shapes(config, network, 1)
        # As `parallelize`, but without the shares of several devices.
        iteration = jax.vmap(
            make_iteration(config, network, 1),
            in_axes=(None, 0, None, None),
            out_axes=(None, 0, None),
            axis_name=DEVICE_AXIS,
            axis_size=1,
        )
        learner, actor, metrics = jax.eval_shape(iteration, *shapes)
    check((learner, actor, metrics))
    assert "learn/safe_end_loss" in metrics
    assert set(actor.replay.labels) == {"margin", "safe_end"}
    for before, after in ((shapes.learner, learner), (shapes.actor, actor)):
        chex.assert_trees_all_equal_shapes_and_dtypes(before, after)
