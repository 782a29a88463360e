"""What a player sees on the board: free boxes, chains, loops, and what is left to count.

Everything is a function of the drawn edges, packed a row into one unsigned integer (`bits.py`), so
that a rule about all boxes of a row is a few bitwise operations.

A box with three drawn sides is free: the mover can take it, and taking may free the next. When no
box is free the position is quiet. In a quiet position the boxes with two open sides form chains
and loops, joined through open sides; an edge that touches none of them is safe. A box with three or
four open sides is a joint: where a chain ends at one, it becomes part of a longer one in the end.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.game.bits import Rows, pack, pack_edges, unpack, unpack_edges
from jaxzero.game.components import Links, find_components
from jaxzero.game.rules import DotsAndBoxes


class Structure(NamedTuple):
    """The structure of one position; `quiet` is the position after all free boxes are taken."""

    taken: jax.Array  # [] int32, free boxes: all that the mover can take now
    declined: jax.Array  # [] int32, boxes of those that he may leave at the end: 0, 2 or 4
    quiet: jax.Array  # [A] bool, edges drawn once all free boxes are taken
    safe: jax.Array  # [A] bool, edges that give nothing away in the quiet position
    free: jax.Array  # [rows, cols] bool, the free boxes
    length: jax.Array  # [rows, cols] int32, boxes of the chain or loop here in `quiet`, 0: neither
    loop: jax.Array  # [rows, cols] bool, it is a loop
    open_sides: jax.Array  # [rows, cols] int32, sides not drawn in `quiet`
    first: jax.Array  # [rows, cols] int32, first box of the chain or loop here; num_boxes: neither
    joined: jax.Array  # [rows, cols] int32, ends at joints of the chain here, 0 to 2


def structure(game: DotsAndBoxes, drawn: jax.Array) -> Structure:
    """Analyse one position, given by its drawn edges [A] bool."""
    chex.assert_shape(drawn, (game.num_edges,), custom_message="drawn")
    before = pack_edges(game, drawn)
    after = take_all(game, before)
    taken = _all_sides(_sides(after)) & ~_all_sides(_sides(before))
    sides = jnp.stack([unpack(side, game.cols) for side in _sides(after)])
    open_sides = 4 - jnp.sum(sides, axis=0, dtype=jnp.int32)
    parts = find_components(game, _open_links(game, after), open_sides)
    return Structure(
        taken=jnp.sum(jax.lax.population_count(taken), dtype=jnp.int32),
        declined=_declined(before, after, taken),
        quiet=unpack_edges(game, after),
        safe=unpack_edges(game, _untouched(game, after, pack(open_sides == 2))),
        free=unpack(taken, game.cols),
        length=parts.length,
        loop=parts.loop,
        open_sides=open_sides,
        first=parts.first,
        joined=parts.joined,
    )


def take_all(game: DotsAndBoxes, drawn: Rows) -> Rows:
    """Close every box with three drawn sides until there is none."""

    def close(drawn: Rows) -> Rows:
        free = _three_sides(_sides(drawn))
        return Rows(
            drawn.horizontal | _below(free) | _above(free), drawn.vertical | free | free << 1
        )

    def any_free(drawn: Rows) -> jax.Array:
        return jnp.any(_three_sides(_sides(drawn)) > 0)

    return jax.lax.while_loop(any_free, close, drawn)


def _sides(edges: Rows) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return the bits above, below, left and right of the boxes, [rows] each.

    The bits right of the last box are those of no box; masks of boxes never have them.
    """
    inside = edges.vertical
    return edges.horizontal[:-1], edges.horizontal[1:], inside, inside >> 1


def _all_sides(sides) -> jax.Array:
    above, below, left, right = sides
    return above & below & left & right


def _three_sides(sides) -> jax.Array:
    above, below, left, right = sides
    return ((above & below) & (left ^ right)) | ((above ^ below) & (left & right))


def _below(boxes: jax.Array) -> jax.Array:
    """Return per horizontal edge the bit of the box below it: [rows] to [rows + 1]."""
    return jnp.concatenate([boxes, jnp.zeros(1, jnp.uint32)])


def _above(boxes: jax.Array) -> jax.Array:
    """Return per horizontal edge the bit of the box above it: [rows] to [rows + 1]."""
    return jnp.concatenate([jnp.zeros(1, jnp.uint32), boxes])


def _declined(before: Rows, after: Rows, taken: jax.Array) -> jax.Array:
    """Return how many of the `taken` boxes [rows] the mover may leave: [] int32.

    2 where they include a half-open chain of at least two boxes, which is left by its outer edge;
    else 4 where they include a closed chain of at least four, which is left by an inner edge. A
    box that was free from the start is the end of a chain and cannot be left by the edge it lacks.
    """
    new = Rows(*(late & ~early for late, early in zip(after, before, strict=True)))
    inner = taken & ~_three_sides(_sides(before))
    first = _above(taken), taken << 1  # per edge: the box above, the box to the left
    second = _below(taken), taken
    inner_first = _above(inner), inner << 1
    inner_second = _below(inner), inner
    leaves_two, leaves_four = [], []
    for edge, one, other, inner_one, inner_other in zip(
        new, first, second, inner_first, inner_second, strict=True
    ):
        leaves_two.append(jnp.any(edge & ((inner_one & ~other) | (inner_other & ~one)) > 0))
        leaves_four.append(jnp.any(edge & inner_one & inner_other > 0))
    two, four = (any_[0] | any_[1] for any_ in (leaves_two, leaves_four))
    return jnp.where(two, 2, jnp.where(four, 4, 0)).astype(jnp.int32)


def _untouched(game: DotsAndBoxes, drawn: Rows, chained: jax.Array) -> Rows:
    """Return the open edges that touch no box of `chained` [rows]."""
    horizontal = drawn.horizontal | _above(chained) | _below(chained)
    vertical = drawn.vertical | chained | chained << 1
    return Rows(
        ~horizontal & jnp.uint32((1 << game.cols) - 1),
        ~vertical & jnp.uint32((2 << game.cols) - 1),
    )


def _open_links(game: DotsAndBoxes, drawn: Rows) -> Links:
    """Return the edges between two boxes that are open."""
    return Links(
        right=~unpack(drawn.vertical >> 1, game.cols)[:, :-1],
        down=~unpack(drawn.horizontal, game.cols)[1:-1],
    )
