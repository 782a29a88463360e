"""Choosing edges in any position from what is known about its quiet position.

The decision about free boxes depends on the quiet position behind them, which stays the same until
they are gone, so all edges of one capture follow one decision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.agent.network import Network, expected_margin, margin_probabilities
from jaxzero.agent.reduction import quiet_priors
from jaxzero.agent.search import Evaluator, search
from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State, is_over, margin_bins
from jaxzero.game.closing import closing_edge, declines, settle, whole_value
from jaxzero.game.structure import Structure, structure


class Verdict(NamedTuple):
    """What is thought of a batch of quiet positions."""

    edge: jax.Array  # [B] int32, the move
    value: jax.Array  # [B] float32, remaining margin of the side to move, in boxes


class Choice(NamedTuple):
    """What to play in a batch of positions."""

    edge: jax.Array  # [B] int32, the edge to draw now
    value: jax.Array  # [B] float32, remaining margin of the side to move, in boxes


Judge = Callable[[State, Structure], Verdict]  # (State [B] that is quiet, Structure [B])


def choose(game: DotsAndBoxes, judge: Judge, state: State) -> Choice:
    """Choose an edge in every position of a batch (State [B]), free boxes or not."""
    chex.assert_shape(state.drawn, (None, game.num_edges), custom_message="state.drawn")
    found = jax.vmap(partial(structure, game))(state.drawn)
    quiet = jax.vmap(partial(settle, decline=jnp.asarray(False)))(state, found)
    verdict = judge(quiet, found)
    value = jnp.where(is_over(quiet), 0.0, verdict.value)
    decline = declines(found, value)
    closing = jax.vmap(partial(closing_edge, game))(state.drawn, found, decline)
    return Choice(
        edge=jnp.where(found.taken > 0, closing, verdict.edge),
        value=whole_value(found, value, decline),
    )


def searched(
    game: DotsAndBoxes, settings: SearchConfig, evaluate: Evaluator, params: chex.ArrayTree
) -> Judge:
    """Return the judgement of a search without noise."""

    def judge(quiet: State, _found: Structure) -> Verdict:
        # Without Gumbel noise the search draws nothing, so any key will do.
        key = jax.random.key(0)
        result = search(game, settings, evaluate, params, key, quiet, gumbel_scale=0.0)
        return Verdict(result.edge, result.value * game.num_boxes)

    return judge


def at_sight(network: Network, params: chex.ArrayTree) -> Judge:
    """Return the judgement of a network without search."""
    game = network.game

    def judge(quiet: State, found: Structure) -> Verdict:
        prediction = network.apply(params, quiet.drawn)
        logits, _ = jax.vmap(partial(quiet_priors, game))(found, prediction.policy_logits)
        best = jnp.argmax(logits, axis=-1).astype(jnp.int32)
        return Verdict(best, expected_margin(game, prediction))

    return judge


def win_probability(network: Network, params: chex.ArrayTree, drawn: jax.Array) -> jax.Array:
    """Return the probability of a positive remaining margin in any positions [B, A]: [B]."""
    game = network.game
    found = jax.vmap(partial(structure, game))(drawn)
    prediction = network.apply(params, found.quiet)
    value = jnp.where(jnp.all(found.quiet, axis=-1), 0.0, expected_margin(game, prediction))
    decline = declines(found, value)
    behind = jnp.broadcast_to(margin_bins(game)[:, None], (2 * game.num_boxes + 1, len(drawn)))
    margins = jax.vmap(whole_value, in_axes=(None, 0, None))(found, behind, decline)
    return jnp.sum(margin_probabilities(prediction) * (margins.T > 0), axis=-1)
