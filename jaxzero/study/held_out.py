"""Which positions are never trained on: a fixed share of all, whole classes of symmetry at once.

A position and its images have the same hash, and the hash decides, so nothing has to be listed:
positions may be drawn for ever and a twin of a test position is never among those to learn from.
"""

from __future__ import annotations

from functools import lru_cache

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.game import DotsAndBoxes, edge_permutations

SHARE = 0.05  # of all classes


def held_out(game: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return whether one position [A] bool is never trained on: [] bool."""
    return symmetric_hash(game, drawn) < jnp.uint32(SHARE * 2**32)


def symmetric_hash(game: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return a number that a position [A] bool shares with its images: [] uint32."""
    chex.assert_shape(drawn, (game.num_edges,), custom_message="drawn")
    weights = jnp.asarray(_weights(game))
    codes = jnp.sum(jnp.where(drawn[None, :], weights, 0), axis=1, dtype=jnp.uint32)
    # A sum knows no order: the same for all images, which have the same codes in another one.
    return _mixed(jnp.sum(_mixed(codes), dtype=jnp.uint32))


@lru_cache
def _weights(game: DotsAndBoxes) -> np.ndarray:
    """Return a weight per edge, seen through every symmetry: [S, A] uint32."""
    weights = np.random.default_rng(0).integers(2**32, size=game.num_edges, dtype=np.uint32)
    return weights[edge_permutations(game)]


def _mixed(x: jax.Array) -> jax.Array:
    """Scatter the bits of numbers (the finaliser of MurmurHash3, Appleby 2011)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
