"""Put the positions of a suite to a player."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.agent.choosing import at_sight, choose, searched, win_probability
from jaxzero.agent.network import (
    Network,
    expected_margin,
    inference_copy,
    margin_probabilities,
)
from jaxzero.agent.players import Agent, Player
from jaxzero.agent.search import network_evaluator, search
from jaxzero.config import SearchConfig
from jaxzero.evaluation.suite import Answers, Suite
from jaxzero.game import State, margin_bins

BATCH = 512

# (params, drawn [B, A]) to edges [B], values in boxes [B] and, of the raw network alone, the
# probabilities of a positive remaining margin [B]
Answering = Callable[[chex.ArrayTree, jax.Array], tuple[jax.Array, ...]]


def answering(network: Network, settings: SearchConfig, simulations: int) -> Answering:
    """Return the compiled answers of a network, raw for 0 simulations. Make it once, call often."""
    if settings.reduction == "exact":
        return quiet_answering(network, settings, simulations)
    game = network.game

    @jax.jit
    def answer(params: chex.ArrayTree, drawn: jax.Array):
        params = inference_copy(network, params, len(drawn))
        prediction = network.apply(params, drawn)
        value = expected_margin(game, prediction)
        if not simulations:
            positive = (margin_bins(game) > 0)[None, :]
            win = jnp.sum(margin_probabilities(prediction) * positive, axis=-1)
            return jnp.argmax(prediction.policy_logits, axis=-1), value, win
        zeros = jnp.zeros(len(drawn), jnp.int32)
        state, key = State(drawn, zeros, zeros), jax.random.key(0)
        thinking = replace(settings, simulations=simulations)
        evaluate = network_evaluator(network, thinking)
        found = search(game, thinking, evaluate, params, key, state, gumbel_scale=0.0)
        # With another utility than the margin the value of the tree is not in boxes.
        value = value if settings.win_weight else found.value * game.num_boxes
        return found.edge, value

    return answer


def quiet_answering(network: Network, settings: SearchConfig, simulations: int) -> Answering:
    """Return the compiled answers of a network that knows quiet positions only."""
    game = network.game
    thinking = replace(settings, simulations=max(1, simulations))
    evaluate = network_evaluator(network, thinking)

    @jax.jit
    def answer(params: chex.ArrayTree, drawn: jax.Array):
        params = inference_copy(network, params, len(drawn))
        zeros = jnp.zeros(len(drawn), jnp.int32)
        state = State(drawn, zeros, zeros)
        if simulations:
            return tuple(choose(game, searched(game, thinking, evaluate, params), state))
        choice = choose(game, at_sight(network, params), state)
        return (*choice, win_probability(network, params, drawn))

    return answer


def examine(suite: Suite, answer: Answering, params: chex.ArrayTree) -> Answers:
    """Ask a network about every position of a suite."""
    parts = []
    for first in range(0, len(suite), BATCH):
        rows = suite.drawn[first : first + BATCH]
        padded = np.ones((BATCH, suite.game.num_edges), bool)
        padded[: len(rows)] = rows
        parts.append([part[: len(rows)] for part in jax.device_get(answer(params, padded))])
    return Answers(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def examine_agent(suite: Suite, agent: Agent, simulations: int) -> Answers:
    """Ask an agent about every position of a suite."""
    answer = answering(agent.network, agent.settings, simulations)
    return examine(suite, answer, agent.params)


def examine_player(suite: Suite, player: Player, seed: int = 0) -> Answers:
    """Ask any player; it has moves and no values."""
    keys = jax.random.split(jax.random.key(seed), len(suite))
    zeros = jnp.zeros(len(suite), jnp.int32)
    return Answers(player.choose(keys, State(jnp.asarray(suite.drawn), zeros, zeros)))
