"""The structure of a position as inputs of a network.

Who must open the first long chain depends on counts modulo 2 over the whole board, which a network
hardly learns from edges; counted for it, it learns them at once.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game.features import highest_beside, on_dots
from jaxzero.game.quiet import fewest_decisions
from jaxzero.game.rules import DotsAndBoxes, split_edges
from jaxzero.game.structure import Structure

LONGEST = 12  # chains of this length or more are counted together
LOOPS = (4, 6, 8, 10)  # loops of the last length or more likewise
MOST_CHAINS, MOST_LOOPS, MOST_LONG = 6, 3, 9  # counts beyond these read as these
CONTROL = 16  # likewise for the value of keeping control, either way
LONGEST_JOINED, MOST_JOINED = 6, 5  # likewise for chains that end at joints

EDGE_CLASSES = (
    "takes a box, now or after other free boxes",
    "safe",
    "opens a chain of one or two",
    "opens a longer chain",
    "opens a loop",
)
BOX_CLASSES = (
    "free",
    "in a chain of one",
    "in a chain of two",
    "in a chain of three",
    "in a longer chain",
    "in a loop",
    "three or four open sides",
)
JOINED_CLASSES = ("in a chain with one end at a joint", "in a chain with both ends at joints")


class StructureFeatures(NamedTuple):
    """The inputs of one position."""

    edges: jax.Array  # [A, E] bool, one of `EDGE_CLASSES` or none, for open edges
    boxes: jax.Array  # [rows, cols, K] bool, one of `BOX_CLASSES` or none, for open boxes
    lengths: jax.Array  # [rows, cols] float32, length of the chain or loop here, 1: whole board
    counts: jax.Array  # [C] bool, counts of the whole board as one-hot codes and parities
    joined: jax.Array  # [rows, cols, J] bool, one of `JOINED_CLASSES` or none, for open boxes


def structure_features(game: DotsAndBoxes, drawn: jax.Array, found: Structure) -> StructureFeatures:
    """Encode the structure `found` in one position with edges `drawn` [A]."""
    chain = jnp.where(found.loop, 0, found.length)
    opens_chain = highest_beside(chain)
    opens_loop = highest_beside(found.loop.astype(jnp.int32)) > 0
    still = ~found.quiet
    edges = [
        found.quiet & ~drawn,
        found.safe,
        still & (opens_chain > 0) & (opens_chain < 3) & ~opens_loop,
        still & (opens_chain >= 3) & ~opens_loop,
        still & opens_loop,
    ]
    boxes = [
        found.free,
        chain == 1,
        chain == 2,
        chain == 3,
        chain > 3,
        found.loop,
        found.open_sides > 2,
    ]
    return StructureFeatures(
        edges=jnp.stack(edges, axis=-1),
        boxes=jnp.stack(boxes, axis=-1),
        lengths=found.length / game.num_boxes,
        counts=jnp.concatenate([_counts(game, found, chain), _joint_counts(game, found, chain)]),
        joined=jnp.stack([found.joined == ends for ends in (1, 2)], axis=-1),
    )


def structure_planes(game: DotsAndBoxes, features: StructureFeatures) -> jax.Array:
    """Lay the features of edges and boxes on the grid of dots: [H, W, F] float32."""
    boxes = jnp.concatenate([features.boxes, features.joined], axis=-1).astype(jnp.float32)
    planes = [*jnp.moveaxis(boxes, -1, 0), features.lengths]
    for edge_class in jnp.moveaxis(features.edges.astype(jnp.float32), -1, 0):
        planes.extend(split_edges(game, edge_class))
    return jnp.stack([on_dots(game, plane) for plane in planes], axis=-1)


def _counts(game: DotsAndBoxes, found: Structure, chain: jax.Array) -> jax.Array:
    """Code what can be counted on the whole board: [C] bool."""
    boxes = game.num_boxes
    chains = _by_length(chain, min(LONGEST, boxes))
    kinds = jnp.array(LOOPS)[:, None, None]
    last = kinds == LOOPS[-1]
    is_kind = jnp.where(last, found.length[None] >= kinds, found.length[None] == kinds)
    loops = _sum_where(found.loop[None] & is_kind, _share(found.length))
    left = jnp.sum(found.open_sides > 0)
    codes = [
        jax.nn.one_hot(found.taken, boxes + 1),
        jax.nn.one_hot(found.declined // 2, 3),
        _count_code(left, boxes),
        _count_code(jnp.sum(found.open_sides == 3), boxes),
        _count_code(jnp.sum(found.open_sides == 4), boxes),
        _count_code(jnp.sum(found.safe), game.num_edges),
        _count_code(chains, MOST_CHAINS),
        _count_code(loops, MOST_LOOPS),
        _count_code(jnp.sum(chains[2:]), MOST_LONG),
        _control_code(found, chain),
    ]
    return _flat(codes)


def _joint_counts(game: DotsAndBoxes, found: Structure, chain: jax.Array) -> jax.Array:
    """Code the moves left, chains by where they end, and control without those at joints: [C] bool.

    A chain that ends at a joint is none of those that will be opened: it becomes part of one. How
    many moves are left needs no such thing: all open edges but one for each open box.
    """
    moves = jnp.sum(~found.quiet, dtype=jnp.int32) - jnp.sum(found.open_sides > 0, dtype=jnp.int32)
    alone, half, between = (jnp.where(found.joined == ends, chain, 0) for ends in range(3))
    longest = min(LONGEST_JOINED, game.num_boxes)
    codes = [
        _count_code(jnp.maximum(moves, 0), fewest_decisions(game)),
        _count_code(_by_length(alone, min(LONGEST, game.num_boxes)), MOST_CHAINS),
        _count_code(_by_length(half, longest), MOST_JOINED),
        _count_code(_by_length(between, longest), MOST_JOINED),
        _control_code(found, alone),
    ]
    return _flat(codes)


def _by_length(chain: jax.Array, longest: int) -> jax.Array:
    """Count chains of 1 to `longest` or more boxes, given the length at each box: [longest] int32.

    Every box of a chain of n counts 1/n of it; longer ones than the last length go by their own.
    """
    lengths = jnp.arange(1, longest + 1)[:, None, None]
    return _sum_where(jnp.minimum(chain, longest)[None] == lengths, _share(chain))


def _control_code(found: Structure, chain: jax.Array) -> jax.Array:
    """Code what the side nets that never opens a chain, of those given and all loops.

    Of a chain that is its length less twice the 2 boxes left at its end, of a loop less twice 4
    (Berlekamp 2000, "The Dots-and-Boxes Game").
    """
    loop = jnp.where(found.loop, found.length, 0)
    control = jnp.sum(jnp.where(chain >= 3, 1 - 4 * _share(chain), 0.0))
    control += jnp.sum(jnp.where(loop > 0, 1 - 8 * _share(loop), 0.0))
    control = jnp.round(control).astype(jnp.int32)
    return jax.nn.one_hot(jnp.clip(control, -CONTROL, CONTROL) + CONTROL, 2 * CONTROL + 1)


def _share(length: jax.Array) -> jax.Array:
    """Return what share of its chain or loop each box is, 0 where the length is."""
    return jnp.where(length > 0, 1 / jnp.maximum(length, 1), 0.0)


def _flat(codes: list[jax.Array]) -> jax.Array:
    return jnp.concatenate([code.ravel() for code in codes]) > 0


def _sum_where(mask: jax.Array, values: jax.Array) -> jax.Array:
    """Sum `values` [rows, cols] where each mask [n, rows, cols] holds, rounded: [n] int32."""
    return jnp.round(jnp.sum(mask * values[None], axis=(1, 2))).astype(jnp.int32)


def _count_code(counts: jax.Array, most: int) -> jax.Array:
    """Code counts [...] as one-hot, `most` at most, and a bit of parity: [..., most + 2]."""
    one_hot = jax.nn.one_hot(jnp.minimum(counts, most), most + 1)
    return jnp.concatenate([one_hot, (counts % 2)[..., None].astype(one_hot.dtype)], axis=-1)
