"""What self-play hands to replay and learning."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game import State


class Positions(NamedTuple):
    """Positions to learn from, those of all games of one ply after the other: P of them."""

    drawn: jax.Array  # [P, A] bool, edges on the board
    policy: jax.Array  # [P, A] float32, improved policy of the search
    margin: jax.Array  # [P] int32, boxes the side to move won from here on minus those it lost
    margin_known: jax.Array  # [P] bool, no random move of the opening comes after


def policy_entropy(policy: jax.Array) -> jax.Array:
    """Return the entropy of policies, in nats: [..., A] to [...]."""
    return -jnp.sum(jax.scipy.special.xlogy(policy, policy), axis=-1)


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
