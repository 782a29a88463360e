"""Rows of edges or boxes as unsigned integers, the lowest bit the leftmost."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game.rules import DotsAndBoxes, split_edges


class Rows(NamedTuple):
    """Something about edges, such as whether they are drawn, a bit each."""

    horizontal: jax.Array  # [rows + 1] uint32, `cols` bits each
    vertical: jax.Array  # [rows] uint32, `cols + 1` bits each


def pack(bits: jax.Array) -> jax.Array:
    """Pack rows of bits: [..., n] bool to [...] uint32, n at most 32."""
    places = jnp.arange(bits.shape[-1], dtype=jnp.uint32).reshape((1,) * (bits.ndim - 1) + (-1,))
    return jnp.sum(bits.astype(jnp.uint32) << places, axis=-1, dtype=jnp.uint32)


def unpack(rows: jax.Array, count: int) -> jax.Array:
    """Unpack rows of bits: [...] uint32 to [..., count] bool."""
    places = jnp.arange(count, dtype=jnp.uint32).reshape((1,) * rows.ndim + (-1,))
    return (rows[..., None] >> places) & 1 > 0


def pack_edges(game: DotsAndBoxes, values: jax.Array) -> Rows:
    """Pack one bit per edge, [A] bool."""
    return Rows(*map(pack, split_edges(game, values)))


def unpack_edges(game: DotsAndBoxes, rows: Rows) -> jax.Array:
    """Unpack one bit per edge: [A] bool."""
    horizontal = unpack(rows.horizontal, game.cols)
    vertical = unpack(rows.vertical, game.cols + 1)
    return jnp.concatenate([horizontal.ravel(), vertical.ravel()])
