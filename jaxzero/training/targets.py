"""Positions to learn from: the labels of the decisions of self-play, and which ones to store.

The policy target is the improved policy of the search. Each head of the network has its own label
(`heads.py`).
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config
from jaxzero.heads import Decisions, heads_of

# Weights are integers summing to about 2^30, so the cumulative sum is exact.
TOTAL_WEIGHT = 2**30
TINY = 1e-30  # smaller priors count as this; keeps the divergence finite


class Positions(NamedTuple):
    """Positions to learn from: P of them."""

    drawn: jax.Array  # [P, A] bool, edges on the board
    policy: jax.Array  # [P, A] float32, improved search policy
    labels: dict[str, jax.Array]  # [P] int32 for each head; -1: unknown


def label(config: Config, decisions: Decisions, results: jax.Array, key: jax.Array) -> Positions:
    """Return all decisions [T * B] as positions, given the first player's final margins [N]."""
    uniform = jax.random.uniform(key, decisions.played.shape, jnp.float32)
    heads = heads_of(config.network)
    labels = {name: head.label(config, decisions, results, uniform) for name, head in heads.items()}
    for name, own in labels.items():
        chex.assert_shape(own, decisions.played.shape, custom_message=f"label of {name}")
    positions = Positions(decisions.drawn, decisions.policy, labels)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), positions)


def sampling_weights(decisions: Decisions, surprise_weight: float) -> jax.Array:
    """Return the weight of every decision in resampling: [T * B] bool or int32.

    A fraction `surprise_weight` of the total weight is proportional to the policy's surprise; the
    rest is even. Decisions that were not played have weight 0.
    Source: Wu 2019 and KataGo's documents, "policy surprise weighting".
    """
    chex.assert_equal_shape([decisions.surprise, decisions.played])
    played = decisions.played.ravel()
    if not surprise_weight:
        return played
    surprise = jnp.where(played, decisions.surprise.ravel(), 0.0)
    count, total = played.sum(dtype=jnp.int32), surprise.sum()
    # Even weights where the total surprise is 0.
    relative = jnp.where(total > 0, surprise / jnp.maximum(total, TINY), played / count)
    share = jnp.float32(1 - surprise_weight) * played / count + surprise_weight * relative
    return (share * TOTAL_WEIGHT).astype(jnp.int32)


def resample(
    positions: chex.ArrayTree, weights: jax.Array, count: int, offset: jax.Array
) -> chex.ArrayTree:
    """Sample `count` rows [T * B] in proportion to whole-number `weights` [T * B], in their order.

    Systematic resampling: the weights, laid end to end, form a line, and samples lie on it at equal
    distances. The first sample is `offset` [], 0 to 1, of a distance from the start of the line.
    """
    chex.assert_tree_shape_prefix(positions, weights.shape)
    rank = jnp.cumsum(weights, dtype=jnp.int32)
    total = rank[-1]
    wanted = (jnp.arange(count, dtype=jnp.int32) + offset) * (total / count)
    wanted = jnp.minimum(wanted.astype(jnp.int32), total - 1)
    rows = jnp.searchsorted(rank, wanted + 1)
    return jax.tree.map(lambda x: x[rows], positions)


def result_metrics(
    first_margin: jax.Array, counted: jax.Array, count: jax.Array
) -> dict[str, jax.Array]:
    """Return means of the first player's final margins [N] over the `count` games of `counted`."""

    def mean(values: jax.Array) -> jax.Array:
        return jnp.sum(values * counted, dtype=jnp.int32) / count.astype(jnp.int32)

    return {
        "selfplay/first_margin": mean(first_margin),
        "selfplay/first_wins": mean(first_margin > 0),
        "selfplay/draws": mean(first_margin == 0),
    }


def policy_entropy(policy: jax.Array) -> jax.Array:
    """Return the entropy of policies, in nats: [..., A] to [...]; no gradient where one is 0."""
    return -jnp.sum(jax.scipy.special.xlogy(policy, policy), axis=-1)


def policy_divergence(policy: jax.Array, prior: jax.Array) -> jax.Array:
    """Return KL(policy || prior) in nats: [..., A] to [...]."""
    return jnp.sum(jax.scipy.special.rel_entr(policy, jnp.maximum(prior, TINY)), axis=-1)
