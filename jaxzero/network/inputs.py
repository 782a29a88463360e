"""The inputs of the network: the edges [B, A], and features of the board.

The structure `found` of the positions [B] is None for a network that gets only the edges.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from jaxzero.game import DotsAndBoxes
from jaxzero.game.structure import Structure
from jaxzero.network.features import (
    LENGTHS_PLANE,
    PLANES,
    STRUCTURE_PLANES,
    board_planes,
    on_dots,
    structure_features,
    structure_planes,
    unpack_planes,
)

PLANES_GROUP = 16  # channels that a GPU's matrix units take at once


def edge_inputs(
    game: DotsAndBoxes, drawn: jax.Array, found: Structure | None, dtype: jnp.dtype
) -> tuple[jax.Array]:
    """Return the inputs of a dense trunk: [B, A] bool to [B, K]."""
    # Centred bits: an empty board is as far from zero as a full one.
    inputs = drawn.astype(dtype) * 2 - 1
    if found is None:
        return (inputs,)
    seen = jax.vmap(partial(structure_features, game))(drawn, found)
    # Lengths of chains add no information for a trunk that sees the whole board at once.
    more = (seen.edges, seen.boxes, seen.counts, seen.joined)
    flat = [part.reshape(len(drawn), -1).astype(dtype) for part in more]
    return (jnp.concatenate([inputs, *flat], axis=-1),)


def grid_inputs(
    game: DotsAndBoxes, drawn: jax.Array, found: Structure | None, dtype: jnp.dtype
) -> tuple[jax.Array, jax.Array]:
    """Return planes [B, H, W, F] on the grid of dots and counts [B, C]; C is 0 without a structure.

    The first `grid_planes` planes are used. The others are 0, because a GPU convolves whole groups.
    """
    used = grid_planes(found is not None)
    width = -(-used // PLANES_GROUP) * PLANES_GROUP
    words = jax.vmap(partial(board_planes, game))(drawn)
    if found is None:
        return unpack_planes(words, width).astype(dtype), jnp.zeros((len(drawn), 0), dtype)
    seen = jax.vmap(partial(structure_features, game))(drawn, found)
    words |= jax.vmap(partial(structure_planes, game))(seen) << len(PLANES)
    planes = unpack_planes(words, width).astype(dtype)
    lengths = jax.vmap(partial(on_dots, game))(seen.lengths).astype(dtype)
    is_length = jnp.arange(width, dtype=jnp.int32) == len(PLANES) + LENGTHS_PLANE
    planes = jnp.where(is_length[None, None, None], lengths[..., None], planes)
    return planes, seen.counts.astype(dtype)


def grid_planes(structure: bool) -> int:
    """Return how many planes of `grid_inputs` are used, with the structure or without."""
    return len(PLANES) + (STRUCTURE_PLANES if structure else 0)
