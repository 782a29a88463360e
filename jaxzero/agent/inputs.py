"""What the network is shown: the edges, and with `structure` what can be counted on the board."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from jaxzero.config import NetworkConfig
from jaxzero.game import DotsAndBoxes, board_planes
from jaxzero.game.structure import structure
from jaxzero.game.structure_features import (
    StructureFeatures,
    structure_features,
    structure_planes,
)


def edge_inputs(
    game: DotsAndBoxes, config: NetworkConfig, drawn: jax.Array, dtype: jnp.dtype
) -> jax.Array:
    """Return the inputs of a dense trunk: [B, A] bool to [B, K]."""
    # Centred bits: an empty board is as far from zero as a full one.
    inputs = drawn.astype(dtype) * 2 - 1
    if config.features == "raw":
        return inputs
    seen = jax.vmap(partial(_see, game))(drawn)
    more = (seen.edges, seen.boxes, seen.counts)
    flat = [part.reshape(len(drawn), -1).astype(dtype) for part in more]
    return jnp.concatenate([inputs, *flat], axis=-1)


def grid_inputs(
    game: DotsAndBoxes, config: NetworkConfig, drawn: jax.Array, dtype: jnp.dtype
) -> tuple[jax.Array, jax.Array]:
    """Return planes [B, H, W, F] and counts [B, C] of a convolutional trunk; C is 0 for raw."""
    planes = jax.vmap(partial(board_planes, game))(drawn).astype(dtype)
    if config.features == "raw":
        return planes, jnp.zeros((len(drawn), 0), dtype)
    seen = jax.vmap(partial(_see, game))(drawn)
    more = jax.vmap(partial(structure_planes, game))(seen).astype(dtype)
    return jnp.concatenate([planes, more], axis=-1), seen.counts.astype(dtype)


def _see(game: DotsAndBoxes, drawn: jax.Array) -> StructureFeatures:
    return structure_features(game, drawn, structure(game, drawn))
