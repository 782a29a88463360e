"""Chains and loops: sets of boxes with two open sides, joined through them.

Every box gathers the set of boxes it can reach, a bit each, from its neighbours until nothing
changes.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game.rules import DotsAndBoxes


class Links(NamedTuple):
    """Something about the edges between two boxes."""

    right: jax.Array  # [rows, cols - 1] bool, between a box and the one to the right
    down: jax.Array  # [rows - 1, cols] bool, between a box and the one below


class Components(NamedTuple):
    """What a `Structure` says of chains and loops."""

    length: jax.Array  # [rows, cols] int32
    loop: jax.Array  # [rows, cols] bool
    first: jax.Array  # [rows, cols] int32
    joined: jax.Array  # [rows, cols] int32


def find_components(game: DotsAndBoxes, open_: Links, open_sides: jax.Array) -> Components:
    """Find the chains and loops of a quiet position.

    `open_` are its open edges between two boxes, `open_sides` [rows, cols] how many each box has.
    """
    chained, joint = open_sides == 2, open_sides > 2
    inside = Links(
        open_.right & chained[:, :-1] & chained[:, 1:], open_.down & chained[:-1] & chained[1:]
    )
    own = jnp.where(chained[..., None], _singletons(game), 0)
    reached = _reach(inside, own)

    def among(chosen: jax.Array) -> jax.Array:
        """Count the chosen boxes [rows, cols] in the chain or loop of every box."""
        set_ = jnp.where(chosen[..., None], own, 0).reshape(game.num_boxes, -1)
        set_ = jnp.bitwise_or.reduce(set_, axis=0)
        counts = jax.lax.population_count(reached & set_[None, None])
        return jnp.sum(counts, axis=-1, dtype=jnp.int32)

    links = _count_links(*inside, *inside)
    to_joints = _count_links(
        open_.right & joint[:, 1:],
        open_.down & joint[1:],
        open_.right & joint[:, :-1],
        open_.down & joint[:-1],
    )
    word = jnp.arange(own.shape[-1], dtype=jnp.uint32).reshape(1, 1, -1)
    lowest = jax.lax.population_count((reached & (~reached + 1)) - 1) + 32 * word
    first = jnp.min(jnp.where(reached > 0, lowest, game.num_boxes), axis=-1)
    return Components(
        length=jnp.sum(jax.lax.population_count(reached), axis=-1, dtype=jnp.int32),
        # The two ends of a chain have fewer than two links; a loop has no end.
        loop=chained & (among(links < 2) == 0),
        first=first.astype(jnp.int32),
        joined=among(to_joints > 0) + among(to_joints > 1),
    )


def _singletons(game: DotsAndBoxes) -> jax.Array:
    """Return the set of every box alone, a bit for each box: [rows, cols, words] uint32."""
    words = -(-game.num_boxes // 32)
    box = jnp.arange(game.num_boxes, dtype=jnp.uint32).reshape(game.rows, game.cols, 1)
    word = jnp.arange(words, dtype=jnp.uint32).reshape(1, 1, -1)
    return jnp.where(box >> 5 == word, jnp.uint32(1) << (box & 31), jnp.uint32(0))


def _reach(links: Links, own: jax.Array) -> jax.Array:
    """Unite the sets of boxes [rows, cols, words] along `links` until nothing changes."""

    def spread(sets: jax.Array) -> jax.Array:
        right, down = links.right[..., None], links.down[..., None]
        none = ((0, 0), (0, 0), (0, 0))
        return (
            sets
            | jnp.pad(jnp.where(right, sets[:, 1:], 0), (none[0], (0, 1), none[2]))
            | jnp.pad(jnp.where(right, sets[:, :-1], 0), (none[0], (1, 0), none[2]))
            | jnp.pad(jnp.where(down, sets[1:], 0), ((0, 1), none[1], none[2]))
            | jnp.pad(jnp.where(down, sets[:-1], 0), ((1, 0), none[1], none[2]))
        )

    reached, _ = jax.lax.while_loop(
        lambda sets: jnp.any(sets[0] != sets[1]),
        lambda sets: (spread(sets[0]), sets[0]),
        (spread(own), own),
    )
    return reached


def _count_links(
    to_right: jax.Array, to_below: jax.Array, to_left: jax.Array, to_above: jax.Array
) -> jax.Array:
    """Count the links of every box, given those across each inner edge: [rows, cols] int32."""
    widths = ((0, 0), (0, 1)), ((0, 1), (0, 0)), ((0, 0), (1, 0)), ((1, 0), (0, 0))
    across = zip((to_right, to_below, to_left, to_above), widths, strict=True)
    return sum(jnp.pad(link.astype(jnp.int32), width) for link, width in across)
