"""The structure of a position: free boxes, chains, loops and safe edges.

A box with three drawn sides is free: the mover can take it, and taking it may free the next. A
position without a free box is quiet. In a quiet position the boxes with two open sides form chains
and loops, joined through open sides. An edge that touches none of them is safe. A box with three or
four open sides is a joint. A chain that ends at a joint later becomes part of a longer one.

The edges of a row are packed into one unsigned integer, the lowest bit the leftmost. A rule about
all boxes of a row is then a few bitwise operations.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.game.rules import DotsAndBoxes, split_edges


class Structure(NamedTuple):
    """The structure of one position; `quiet` is the position after all free boxes are taken."""

    taken: jax.Array  # [] int32, free boxes: all boxes that the mover can take now
    declined: jax.Array  # [] int32, free boxes that the mover can leave at the end: 0, 2 or 4
    quiet: jax.Array  # [A] bool, edges drawn once all free boxes are taken
    safe: jax.Array  # [A] bool, edges that give no box away in the quiet position
    free: jax.Array  # [rows, cols] bool, the free boxes
    length: jax.Array  # [rows, cols] int32, boxes of the chain or loop here in `quiet`; 0: none
    loop: jax.Array  # [rows, cols] bool, whether it is a loop
    open_sides: jax.Array  # [rows, cols] int32, sides not drawn in `quiet`
    first: jax.Array  # [rows, cols] int32, first box of the chain or loop here; num_boxes: none
    joined: jax.Array  # [rows, cols] int32, ends of the chain here that are at joints: 0 to 2


def structure(game: DotsAndBoxes, drawn: jax.Array) -> Structure:
    """Analyse one position, given by its drawn edges [A] bool."""
    chex.assert_shape(drawn, (game.num_edges,), custom_message="drawn")
    before = pack_edges(game, drawn)
    after = take_all(before)
    taken = _all_sides(_sides(after)) & ~_all_sides(_sides(before))
    sides = jnp.stack([unpack(side, game.cols) for side in _sides(after)])
    open_sides = 4 - jnp.sum(sides, axis=0, dtype=jnp.int32)
    between = Links(
        right=~unpack(after.vertical >> 1, game.cols)[:, :-1],
        down=~unpack(after.horizontal, game.cols)[1:-1],
    )
    parts = find_components(game, between, open_sides)
    return Structure(
        taken=jnp.sum(jax.lax.population_count(taken), dtype=jnp.int32),
        declined=_declined(before, after, taken),
        quiet=unpack_edges(game, after),
        safe=unpack_edges(game, _untouched(game, after, pack(open_sides == 2))),
        free=unpack(taken, game.cols),
        open_sides=open_sides,
        **parts._asdict(),
    )


class Rows(NamedTuple):
    """One bit per edge, such as whether it is drawn."""

    horizontal: jax.Array  # [rows + 1] uint32, `cols` bits each
    vertical: jax.Array  # [rows] uint32, `cols + 1` bits each


def take_all(drawn: Rows) -> Rows:
    """Close every box with three drawn sides until there is none."""

    def free(drawn: Rows) -> jax.Array:
        return _three_sides(_sides(drawn))

    def close(drawn: Rows) -> Rows:
        sides = _edges_of(free(drawn))
        return Rows(drawn.horizontal | sides.horizontal, drawn.vertical | sides.vertical)

    return jax.lax.while_loop(lambda drawn: jnp.any(free(drawn) > 0), close, drawn)


def _declined(before: Rows, after: Rows, taken: jax.Array) -> jax.Array:
    """Return how many of the `taken` boxes [rows] the mover can leave: [] int32.

    2 if they include a half-open chain of at least two boxes: its outer edge leaves them. Else 4
    if they include a closed chain of at least four: an inner edge leaves them. A box that was free
    from the start is the end of a chain; the edge it lacks cannot leave it.
    """
    inner = taken & ~_three_sides(_sides(before))
    two = four = False
    # Horizontal edges, then vertical ones.
    for late, early, one, other, inner_one, inner_other in zip(
        after, before, *_beside(taken), *_beside(inner), strict=True
    ):
        new = late & ~early
        two |= jnp.any(new & ((inner_one & ~other) | (inner_other & ~one)) > 0)
        four |= jnp.any(new & inner_one & inner_other > 0)
    return jnp.where(two, 2, jnp.where(four, 4, 0)).astype(jnp.int32)


def _untouched(game: DotsAndBoxes, drawn: Rows, chained: jax.Array) -> Rows:
    """Return the open edges that touch no box of `chained` [rows]."""
    sides = _edges_of(chained)
    return Rows(
        ~(drawn.horizontal | sides.horizontal) & jnp.uint32((1 << game.cols) - 1),
        ~(drawn.vertical | sides.vertical) & jnp.uint32((2 << game.cols) - 1),
    )


def _sides(edges: Rows) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return the bits above, below, left and right of the boxes, [rows] each.

    The bit to the right of the last box belongs to no box. Masks of boxes never contain it.
    """
    horizontal, vertical = edges
    return horizontal[:-1], horizontal[1:], vertical, vertical >> 1


def _all_sides(sides) -> jax.Array:
    above, below, left, right = sides
    return above & below & left & right


def _three_sides(sides) -> jax.Array:
    above, below, left, right = sides
    return ((above & below) & (left ^ right)) | ((above ^ below) & (left & right))


def _beside(boxes: jax.Array) -> tuple[Rows, Rows]:
    """Return for every edge the bit of the box above or left of it, then below or right of it."""
    none = jnp.zeros(1, jnp.uint32)
    return (
        Rows(jnp.concatenate([none, boxes]), boxes << 1),
        Rows(jnp.concatenate([boxes, none]), boxes),
    )


def _edges_of(boxes: jax.Array) -> Rows:
    """Return the sides of these boxes [rows]."""
    one, other = _beside(boxes)
    return Rows(one.horizontal | other.horizontal, one.vertical | other.vertical)


class Links(NamedTuple):
    """One bit per edge between two boxes."""

    right: jax.Array  # [rows, cols - 1] bool, between a box and its right neighbour
    down: jax.Array  # [rows - 1, cols] bool, between a box and the box below


class Components(NamedTuple):
    """The chains and loops of one position; the fields are those of `Structure`."""

    length: jax.Array  # [rows, cols] int32
    loop: jax.Array  # [rows, cols] bool
    first: jax.Array  # [rows, cols] int32
    joined: jax.Array  # [rows, cols] int32


def find_components(game: DotsAndBoxes, open_: Links, open_sides: jax.Array) -> Components:
    """Find the chains and loops of a quiet position.

    `open_` has the open edges between two boxes, `open_sides` [rows, cols] their number per box.
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
    """Return for every box the set with itself alone: [rows, cols, words] uint32."""
    words = -(-game.num_boxes // 32)
    box = jnp.arange(game.num_boxes, dtype=jnp.uint32).reshape(game.rows, game.cols, 1)
    word = jnp.arange(words, dtype=jnp.uint32).reshape(1, 1, -1)
    return jnp.where(box >> 5 == word, jnp.uint32(1) << (box & 31), jnp.uint32(0))


def _reach(links: Links, own: jax.Array) -> jax.Array:
    """Unite the sets of boxes [rows, cols, words] along `links` until nothing changes."""

    def spread(sets: jax.Array) -> jax.Array:
        right, down = links.right[..., None], links.down[..., None]
        none = (0, 0)
        return (
            sets
            | jnp.pad(jnp.where(right, sets[:, 1:], 0), (none, (0, 1), none))
            | jnp.pad(jnp.where(right, sets[:, :-1], 0), (none, (1, 0), none))
            | jnp.pad(jnp.where(down, sets[1:], 0), ((0, 1), none, none))
            | jnp.pad(jnp.where(down, sets[:-1], 0), ((1, 0), none, none))
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
    """Count the links of every box, given its links in each direction: [rows, cols] int32."""
    widths = ((0, 0), (0, 1)), ((0, 1), (0, 0)), ((0, 0), (1, 0)), ((1, 0), (0, 0))
    across = zip((to_right, to_below, to_left, to_above), widths, strict=True)
    return sum(jnp.pad(link.astype(jnp.int32), width) for link, width in across)


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
