"""What self-play hands to replay and learning."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Positions(NamedTuple):
    """Positions to learn from, those of all games of one ply after the other: P of them."""

    drawn: jax.Array  # [P, A] bool, edges on the board
    policy: jax.Array  # [P, A] float32, improved policy of the search
    margin: jax.Array  # [P] int32, boxes the side to move won from here on minus those it lost
    margin_known: jax.Array  # [P] bool, no random move of the opening comes after


def policy_entropy(policy: jax.Array) -> jax.Array:
    """Return the entropy of policies, in nats: [..., A] to [...]."""
    return -jnp.sum(jax.scipy.special.xlogy(policy, policy), axis=-1)
