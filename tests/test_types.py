"""Test that jax's switch for 64 bits, which a user's program may need, changes no type here.

Tracing shows the types of arrays, so that nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import chex
import jax
import numpy as np
import pytest
from compiled import any_params
from script_runner import ITERATION
from short_run import short_config

import jaxzero
from jaxzero import game as rules
from jaxzero.cli import load_config
from jaxzero.config import NetworkConfig, SearchConfig
from jaxzero.game import quiet
from jaxzero.game.structure import structure
from jaxzero.measure import arena
from jaxzero.network.network import Network, expected_margin, inference_copy
from jaxzero.performance import timing
from jaxzero.play import looking
from jaxzero.players import single
from jaxzero.players.agent import Agent
from jaxzero.players.choosing import Choice
from jaxzero.players.players import make_player
from jaxzero.search.gumbel import padded_rounds
from jaxzero.search.search import network_evaluator, search
from jaxzero.training.games import new_games
from jaxzero.training.iteration import Actor, input_shapes, make_iteration
from jaxzero.training.learner import Learner, learn, update
from jaxzero.training.openings import open_games
from jaxzero.training.parallel import DEVICE_AXIS
from jaxzero.training.replay import sample

BOARD = rules.DotsAndBoxes(2, 3)
KEYS = jax.random.split(jax.random.key(0), 3)
NONE = np.zeros(3, np.int32)
STATES = rules.State(np.zeros((3, BOARD.num_edges), bool), NONE, NONE)
LOGITS = np.zeros(BOARD.num_edges, np.float32)


def network_of(**settings: Any) -> Network:
    return Network(BOARD, NetworkConfig(channels=8, blocks=1, **settings))


RAW = network_of(trunk="dense", features="raw")


def of_rules(keys: jax.Array, states: rules.State, edges: jax.Array) -> Iterator:
    yield rules.initial_states(BOARD, 3), jax.vmap(partial(rules.step, BOARD))(states, edges)
    yield jax.vmap(rules.random_edge)(keys, states)
    yield jax.vmap(partial(rules.most_sides_beside, BOARD))(states.drawn)
    yield rules.discount(states, states.drawn[:, 0])


def of_quiet(state: rules.State, edge: jax.Array, logits: jax.Array) -> Iterator:
    found = structure(BOARD, state.drawn)
    decline = quiet.declines(found, logits[0])
    yield found, quiet.equivalence(BOARD, found), quiet.whole_value(found, logits[0], decline)
    yield quiet.quiet_moves(BOARD, found), quiet.fold(BOARD, found, logits)
    yield quiet.spread(BOARD, found, logits), quiet.closing_edge(BOARD, state.drawn, found, decline)
    yield quiet.settle(state, found, decline), quiet.open_up(BOARD, state, edge)


def of_openings(key: jax.Array, plies: jax.Array) -> Iterator:
    yield open_games(BOARD, key, 3, 2), open_games(BOARD, key, 3, plies, above=4)


def of_network(network: Network, params: chex.ArrayTree, drawn: jax.Array) -> Iterator:
    found, copy = jax.vmap(partial(structure, BOARD))(drawn), inference_copy(network, params, 3)
    for weights in (params, copy):
        prediction = network.apply(weights, drawn, found)
        yield prediction, copy, expected_margin(BOARD, prediction)
    yield network.init(jax.random.key(0), drawn)


def of_search(
    settings: SearchConfig, params: chex.ArrayTree, key: jax.Array, state: rules.State
) -> Iterator:
    look = partial(search, BOARD, settings, network_evaluator(RAW, settings), params, key, state)
    yield look()
    if settings.engine == "rounds":
        yield look(rounds=padded_rounds(settings, 3))


def of_player(name: str, params: chex.ArrayTree, keys: jax.Array, state: rules.State) -> Iterator:
    player = make_player(name, BOARD, Agent(RAW, params, SearchConfig(simulations=4)))
    for function in (player.act, player.decide, player.whole):
        if function:
            yield function(params, keys, state)


def of_programs(params: chex.ArrayTree, states: rules.State, noise: jax.Array) -> Iterator:
    """Yield what the compiled programs of players, analysis and matches return."""
    for nodes in ("all", "quiet"):
        agent = Agent(RAW, params, SearchConfig(simulations=4, nodes=nodes))
        known = RAW, agent.settings, params
        yield looking._look(*known, states.drawn[0])
        yield single._choose_many(*known, states.drawn, (), noise)
        searching, rounds = single.with_rounds(agent, 3, 4)
        known = RAW, searching.settings, params
        yield single._think(*known, states.drawn[0], rounds)
        yield single._choose_many(*known, states.drawn, rounds)
    yield looking._moves(BOARD, states.drawn[0])
    choice, after = Choice(states.margin, noise[:3]), states.margin > 0
    yield arena._draw(BOARD, True, states, choice, after)
    yield timing.random_positions(RAW, 3)
    for nodes in ("all", "quiet"):
        yield timing.searched_states(BOARD, SearchConfig(nodes=nodes), 3)


def of_training(*options: str) -> tuple:
    """Return the types of an iteration, of its inputs, and of its parts with plain arguments."""
    config = load_config("configs/tiny.yaml", *ITERATION, *options)
    network, key = Network(config.game.board, config.network), jax.random.key(0)
    shapes = input_shapes(config, network, 1)
    actor = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), shapes.actor
    )

    def parts(learner: Learner, actor: Actor, run_key: jax.Array, span: jax.Array) -> Iterator:
        yield jax.vmap(
            make_iteration(config, network, 1), (None,) * 4, axis_name=DEVICE_AXIS, axis_size=1
        )(learner, actor, run_key, span)
        yield learn(network, config, learner, actor.replay, key, 4)
        yield update(network, config, learner, sample(actor.replay, key, 4))
        yield new_games(config, key, 4, 0.25), new_games(config, key, 4, span[0])

    return shapes, types(parts, shapes.learner, actor, *shapes[2:])


def types(function: Callable[..., Iterator], *inputs: chex.ArrayTree) -> list:
    return jax.eval_shape(lambda *given: list(function(*given)), *inputs)


PARAMS = jax.tree.map(np.asarray, any_params(RAW))
CASES = {
    "rules": partial(types, of_rules, KEYS, STATES, NONE),
    "quiet": partial(types, of_quiet, jax.tree.map(itemgetter(0), STATES), NONE[0], LOGITS),
    "openings": partial(types, of_openings, KEYS[0], NONE[0]),
    "programs": partial(types, of_programs, PARAMS, STATES, LOGITS),
}
for settings in (
    {"trunk": "dense", "features": "raw"},
    {"trunk": "dense", "compute_dtype": "bfloat16"},
    *({"convolution": form} for form in ("direct", "shifted", "winograd")),
    {"safe_end": True, "attention_heads": 2},
):
    network = network_of(**settings)
    CASES[f"network {settings}"] = partial(
        types, partial(of_network, network), any_params(network), STATES.drawn
    )
for settings in (
    *({"nodes": nodes} for nodes in ("all", "quiet")),
    {"nodes": "all", "engine": "mctx"},
    {"nodes": "quiet", "evaluation_batch": 2},
):
    look = partial(of_search, SearchConfig(simulations=4, **settings))
    CASES[f"search {settings}"] = partial(types, look, PARAMS, KEYS[0], STATES)
for name in ("random", "greedy", "policy", "search:4", "level:0", "level:3"):
    CASES[f"player {name}"] = partial(types, partial(of_player, name), PARAMS, KEYS, STATES)
for options in (
    (),
    ("--search.nodes=quiet", "--network.features=structure", "--learner.optimizer=muon"),
    ("--search.nodes=quiet", "--selfplay.late_start_moves=3", "--selfplay.late_start_until=0.5"),
    ("--selfplay.surprise_weight=0.5", "--selfplay.td_lambda=0.5", "--selfplay.td_above_edges=4"),
    ("--network.trunk=conv", "--network.safe_end=true", "--evaluation.gate_threshold=0.5"),
):
    CASES[f"training {' '.join(options)}"] = partial(of_training, *options)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("name", CASES)
def test_the_switch_for_64_bits_changes_no_type(name, backend, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    usual = CASES[name]()
    with jax.enable_x64(True):
        assert CASES[name]() == usual


def test_training_under_the_switch_for_64_bits_learns_the_same():
    usual = jaxzero.train(short_config("--iterations=1"), on_iteration=lambda _: None)
    with jax.enable_x64(True):
        wide = jaxzero.train(short_config("--iterations=1"), on_iteration=lambda _: None)
        move = wide.engine.best_move([]), wide.engine.analyse([], simulations=4)
    assert move[0] in range(12) and len(move[1].moves) == 12
    chex.assert_trees_all_equal_shapes_and_dtypes(wide.params, usual.params)
    chex.assert_trees_all_close(wide.params, usual.params, atol=1e-5)
