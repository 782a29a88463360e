"""Self-play: whole games on the device, one scan over the plies.

Every game lasts exactly A plies, so there is nothing to reset, truncate or mask. With the
reduction `exact` games differ in length; they are played in `quiet_selfplay.py`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.agent.search import Evaluator, search
from jaxzero.config import Config
from jaxzero.game import DotsAndBoxes, State, boxes_gained, initial_states, random_edge, step
from jaxzero.training.positions import (
    Positions,
    policy_entropy,
    random_moves,
    results,
    results_known,
    to_first,
)
from jaxzero.training.quiet_selfplay import play_quiet_games


class Ply(NamedTuple):
    """One ply of all games."""

    drawn: jax.Array  # [B, A] bool, edges before the move
    policy: jax.Array  # [B, A] float32, improved policy of the search
    player: jax.Array  # [B] int32, side to move
    closed: jax.Array  # [B] int32, boxes the move closed
    random: jax.Array  # [B] bool, the move was a random one


def play_games(
    game: DotsAndBoxes,
    config: Config,
    evaluate: Evaluator,
    params: chex.ArrayTree,
    key: jax.Array,
    games: int,
    plies: int = 0,
) -> tuple[Positions, dict[str, jax.Array]]:
    """Play `games` games and return their positions and scalar metrics.

    With `plies` the games are cut after so many; that is for measuring speed, not for learning.
    """
    if config.search.reduction == "exact":
        return play_quiet_games(game, config, evaluate, params, key, games, plies)
    random_key, play_key = jax.random.split(key)
    random = random_moves(config.selfplay, random_key, games, game.num_edges)
    start = initial_states(game, games)

    def play_ply(state: State, ply: jax.Array) -> tuple[State, Ply]:
        search_key, uniform_key, sample_key = jax.random.split(jax.random.fold_in(play_key, ply), 3)
        found = search(game, config.search, evaluate, params, search_key, state)
        sampled = jax.random.categorical(sample_key, jnp.log(found.policy)).astype(jnp.int32)
        chosen = jnp.where(ply < config.selfplay.sampled_plies, sampled, found.edge)
        at_random = jax.vmap(random_edge)(jax.random.split(uniform_key, games), state)
        is_random = random.at(ply)
        edge = jnp.where(is_random, at_random, chosen)
        next_state, again = jax.vmap(partial(step, game))(state, edge)
        closed = jax.vmap(boxes_gained)(state, next_state, again)
        return next_state, Ply(state.drawn, found.policy, state.player, closed, is_random)

    end, plies = jax.lax.scan(play_ply, start, jnp.arange(plies or game.num_edges))
    margins = jax.vmap(remaining_margins, in_axes=1, out_axes=1)(plies.closed, plies.player)
    positions = Positions(plies.drawn, plies.policy, margins, results_known(plies.random))
    first_margin = to_first(end)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), positions), {
        "selfplay/policy_entropy": policy_entropy(plies.policy).mean(),
        **results(first_margin),
    }


def remaining_margins(closed: jax.Array, player: jax.Array) -> jax.Array:
    """Return the margin still to come at every ply of one game, for its side to move: [T] int32.

    `closed` [T] are the boxes each move closed, `player` [T] who made it. Scores add up, so the
    target is a reverse cumulative sum of the boxes, signed by their owner.
    """
    chex.assert_equal_shape([closed, player], custom_message="closed and player")
    sign = 1 - 2 * player
    to_first = jnp.cumsum((sign * closed)[::-1])[::-1]
    return sign * to_first
