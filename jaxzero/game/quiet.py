"""The moves of the quiet game, in which only positions without a free box are decided.

All edges of one chain or loop open the same boxes and lead to the same quiet position, so one edge
stands for them all: the one inside it that leaves its first box, which of a chain of two is the
middle one, the hard-hearted handout. Its outer edges would leave the opponent the choice to
decline, which can only help him (Berlekamp 2000, "The Dots-and-Boxes Game").
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game.features import highest_beside
from jaxzero.game.rules import DotsAndBoxes, split_edges
from jaxzero.game.structure import Structure


def fewest_decisions(game: DotsAndBoxes) -> int:
    """Return the fewest moves of a whole quiet game.

    Of the edges of a game some are such moves and the others close boxes, one each but for those
    that close two: so many more moves there are than edges beyond one for each box. (Berlekamp:
    dots and double-crosses make the turns.)
    """
    return game.num_edges - game.num_boxes


def most_decisions(game: DotsAndBoxes) -> int:
    """Return the most moves of a whole quiet game.

    Taking all closes two boxes at once only at the end of a cycle, of four boxes at least.
    """
    return fewest_decisions(game) + game.num_boxes // 4


def quiet_moves(game: DotsAndBoxes, found: Structure) -> jax.Array:
    """Return the moves in the quiet position of one structure: [A] bool.

    They are the safe edges and one edge of every chain and loop.
    """
    right, below, left = _opening_sides(game, found)
    above_edges = jnp.pad(below, ((1, 0), (0, 0)))  # the edge below a box is above the next row
    beside_edges = jnp.pad(right, ((0, 0), (1, 0))) | jnp.pad(left, ((0, 0), (0, 1)))
    return found.safe | jnp.concatenate([above_edges.ravel(), beside_edges.ravel()])


def canonical_edge(game: DotsAndBoxes, found: Structure) -> jax.Array:
    """Return for every edge the move that stands for it in the quiet position: [A] int32.

    An edge of a chain or loop has that of `quiet_moves`, any other stands for itself. The outer
    edges of a chain of two have the middle one, which is better.
    """
    right, below, _ = _opening_sides(game, found)
    box = jnp.arange(game.num_boxes).reshape(game.rows, game.cols)
    row, col = box // game.cols, box % game.cols
    beside = game.num_horizontal + row * (game.cols + 1) + col
    opening = jnp.where(right, beside + 1, jnp.where(below, box + game.cols, beside))
    first = highest_beside(jnp.where(found.length > 0, found.first + 1, 0)) - 1
    opened = opening.ravel()[jnp.maximum(first, 0)]
    chained = ~found.quiet & (first >= 0)
    return jnp.where(chained, opened, jnp.arange(game.num_edges)).astype(jnp.int32)


class Equivalence(NamedTuple):
    """Which edges are one move in a quiet position."""

    moves: jax.Array  # [A] bool, of `quiet_moves`
    canonical: jax.Array  # [A] int32, of `canonical_edge`


def equivalence(game: DotsAndBoxes, found: Structure) -> Equivalence:
    """Return the moves of the quiet position of one structure, and what stands for what."""
    return Equivalence(quiet_moves(game, found), canonical_edge(game, found))


def fold(same: Equivalence, weights: jax.Array) -> jax.Array:
    """Add up the weights of the edges that are one move, on its representative: [A] to [A]."""
    edges = jnp.arange(len(weights))
    here = (same.canonical[None, :] == edges[:, None]) & same.moves[:, None]
    # A masked sum instead of a scatter: it fuses, and adds in the same order every time.
    return jnp.sum(jnp.where(here, weights[None, :], 0), axis=1)


def spread(game: DotsAndBoxes, found: Structure, same: Equivalence, weights: jax.Array):
    """Share the weight of every move evenly among the edges as good: [A] to [A].

    The inverse of `fold`. What it returns depends on the shape of the position alone, so that
    the symmetries of the board may be applied to it.
    """
    in_pair = highest_beside(jnp.where(found.length == 2, 1, 0)) > 0
    as_good = ~found.quiet & (same.moves | ~in_pair)
    count = fold(same, as_good.astype(weights.dtype))
    share = weights / jnp.maximum(count, 1)
    return jnp.where(as_good, share[same.canonical], 0)


def _opening_sides(game: DotsAndBoxes, found: Structure) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return whose side stands for its chain or loop: right, below, left; each [rows, cols] bool.

    The first box of a chain or loop has its next one to the right or below. One that is alone has
    two open sides, of which one is not above.
    """
    horizontal, vertical = split_edges(game, ~found.quiet)
    chained = found.length > 0
    box = jnp.arange(game.num_boxes).reshape(game.rows, game.cols)
    first, alone = chained & (found.first == box), found.length == 1
    next_right = jnp.pad(chained[:, 1:], ((0, 0), (0, 1)))
    next_below = jnp.pad(chained[1:], ((0, 1), (0, 0)))
    right = first & vertical[:, 1:] & (next_right | alone)
    below = first & ~right & horizontal[1:] & (next_below | alone)
    return right, below, first & ~right & ~below
