"""What self-play hands to replay and learning."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.config import SelfplayConfig
from jaxzero.game import State

TINY = 1e-30  # a prior below it is none; keeps the divergence finite


class Positions(NamedTuple):
    """Positions to learn from, those of all games of one ply after the other: P of them."""

    drawn: jax.Array  # [P, A] bool, edges on the board
    policy: jax.Array  # [P, A] float32, improved policy of the search
    margin: jax.Array  # [P] int32, boxes the side to move won from here on minus those it lost
    margin_known: jax.Array  # [P] bool, no random move comes here or after


class RandomMoves(NamedTuple):
    """When the games of a batch have uniformly random moves instead of those of the search."""

    opening: jax.Array  # [B] int32, random moves at the start
    deviation: jax.Array  # [B] int32, number of a later random move; -1: none

    def at(self, number: jax.Array) -> jax.Array:
        """Return whether move `number` [] is random in each game: [B] bool."""
        return (number < self.opening) | (number == self.deviation)


def random_moves(settings: SelfplayConfig, key: jax.Array, games: int, moves: int) -> RandomMoves:
    """Draw the random moves of `games` games of `moves` moves each."""
    opening_key, game_key, move_key = jax.random.split(key, 3)
    longest = min(settings.opening_plies, moves)
    opening = jax.random.randint(opening_key, (games,), 0, longest + 1)
    deviates = jax.random.bernoulli(game_key, settings.deviations, (games,))
    later = jax.random.randint(move_key, (games,), opening, moves)
    return RandomMoves(opening, jnp.where(deviates, later, -1))


def results_known(random: jax.Array) -> jax.Array:
    """Return whether results speak of these moves [T, B]: no random one comes here or after."""
    return ~(jnp.cumsum(random[::-1], axis=0)[::-1] > 0)


def policy_entropy(policy: jax.Array) -> jax.Array:
    """Return the entropy of policies, in nats: [..., A] to [...]."""
    return -jnp.sum(jax.scipy.special.xlogy(policy, policy), axis=-1)


def policy_divergence(policy: jax.Array, prior: jax.Array) -> jax.Array:
    """Return how far policies are from priors, KL(policy || prior) in nats: [..., A] to [...]."""
    return jnp.sum(jax.scipy.special.rel_entr(policy, jnp.maximum(prior, TINY)), axis=-1)


def to_first(state: State) -> jax.Array:
    """Return the boxes of the first player minus those of the second."""
    return jnp.where(state.player == 0, state.margin, -state.margin)


def results(first_margin: jax.Array) -> dict[str, jax.Array]:
    """Return metrics of the results of games, given the first player's final margins [B]."""
    return {
        "selfplay/first_margin": first_margin.mean(dtype=jnp.float32),
        "selfplay/first_wins": jnp.mean(first_margin > 0),
        "selfplay/draws": jnp.mean(first_margin == 0),
    }
