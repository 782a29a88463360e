"""The quiet game: players choose moves only in positions without a free box.

Opening. All edges of a chain or loop open the same boxes and lead to the same quiet position. So
one edge represents them all: an inner edge beside the first box. In a chain of two boxes it is the
middle edge, the hard-hearted handout. The outer edges of a chain of two let the opponent decline,
which is never better for the mover.

Capturing. The side that faces cnt free boxes either takes all of them or declines. To decline, it
leaves the last s boxes, and the other side has to move in the quiet position. If V is the value of
the quiet position, taking all is worth cnt + V and declining is worth cnt - 2 s - V.

Source: Berlekamp 2000, "The Dots-and-Boxes Game".
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game.rules import (
    DotsAndBoxes,
    State,
    boxes_closed,
    highest_beside,
    is_over,
    lowest_beside,
    sides_of_boxes,
    split_edges,
)
from jaxzero.game.structure import Structure, find_structure, first_boxes


def min_decisions(board: DotsAndBoxes) -> int:
    """Return the fewest moves of a whole quiet game.

    Every edge is either a quiet move or closes one or two boxes. If no edge closes two boxes, the
    number of moves is edges minus boxes. Every edge that closes two boxes adds a move.
    """
    return board.num_edges - board.num_boxes


def max_decisions(board: DotsAndBoxes) -> int:
    """Return the most moves of a whole quiet game.

    Two boxes close at once only at the end of a cycle, which has at least four boxes.
    """
    return min_decisions(board) + board.num_boxes // 4


def quiet_moves(board: DotsAndBoxes, structure: Structure) -> jax.Array:
    """Return the moves in the quiet position of one structure: [A] bool.

    These are the safe edges and one edge of every chain and loop.
    """
    return structure.safe | _at_openings(board, structure, jnp.ones((board.rows, board.cols), bool))


def _at_openings(board: DotsAndBoxes, structure: Structure, values: jax.Array) -> jax.Array:
    """Copy values [rows, cols] of first boxes of chains and loops to the opening edges: [A].

    All other edges get 0.
    """
    sides = _opening_sides(board, structure)
    right, below, left = (jnp.where(side, values, jnp.int32(0)) for side in sides)
    above_edges = jnp.pad(below, ((1, 0), (0, 0)))  # the edge below a box is above the next row
    beside_edges = jnp.pad(right, ((0, 0), (1, 0))) + jnp.pad(left, ((0, 0), (0, 1)))
    return jnp.concatenate([above_edges.ravel(), beside_edges.ravel()]).astype(values.dtype)


def _opening_sides(
    board: DotsAndBoxes, structure: Structure
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the box sides that open chains and loops: right, below, left [rows, cols] bool.

    The second box of a chain or loop is to the right of the first box or below it. A chain of one
    box has two open sides, so at least one of the two is not above.
    """
    horizontal, vertical = split_edges(board, ~structure.quiet)
    chained = structure.length > 0
    first, alone = first_boxes(structure), structure.length == 1
    next_right = jnp.pad(chained[:, 1:], ((0, 0), (0, 1)))
    next_below = jnp.pad(chained[1:], ((0, 1), (0, 0)))
    right = first & vertical[:, 1:] & (next_right | alone)
    below = first & ~right & horizontal[1:] & (next_below | alone)
    return right, below, first & ~right & ~below


class Equivalence(NamedTuple):
    """Which edges of a quiet position count as one move."""

    # [A] bool, edges equivalent to the canonical one; the outer edges of a two-chain are weaker.
    as_good: jax.Array
    canonical: jax.Array  # [A] int32, the move that represents each edge; outside chains itself


def equivalence(board: DotsAndBoxes, structure: Structure) -> Equivalence:
    """Return the move that represents each edge of the quiet position of one structure."""
    right, below, _ = _opening_sides(board, structure)
    box = jnp.arange(board.num_boxes, dtype=jnp.int32).reshape(board.rows, board.cols)
    row, col = box // board.cols, box % board.cols
    beside = board.num_horizontal + row * (board.cols + 1) + col
    opening = jnp.where(right, beside + 1, jnp.where(below, box + board.cols, beside))
    first = highest_beside(jnp.where(structure.length > 0, structure.first + 1, 0)) - 1
    opened = opening.ravel()[jnp.maximum(first, 0)]
    chained = ~structure.quiet & (first >= 0)
    canonical = jnp.where(chained, opened, jnp.arange(board.num_edges, dtype=jnp.int32))
    in_pair = highest_beside((structure.length == 2).astype(jnp.int32)) > 0
    return Equivalence(~structure.quiet & (quiet_moves(board, structure) | ~in_pair), canonical)


def fold(board: DotsAndBoxes, structure: Structure, weights: jax.Array) -> jax.Array:
    """Sum the weights of all edges that count as one move, at that move: [A] to [A].

    `structure` is the structure of one position; edges drawn in its quiet position get weight 0.
    """
    chained = structure.length > 0
    # An edge between two boxes of a chain counts half in each.
    both = lowest_beside(chained.astype(jnp.int32)) > 0
    halves = jnp.where(structure.quiet, 0, jnp.where(both, weights / 2, weights))
    of_box = sum(sides_of_boxes(board, halves)).ravel()
    first = structure.first.ravel()
    # Masked sums instead of scatters: they add in the same order every time.
    here = first[:, None] == jnp.arange(board.num_boxes, dtype=jnp.int32)[None, :]
    of_chain = jnp.sum(jnp.where(here, of_box[:, None], 0), axis=0).reshape(chained.shape)
    return jnp.where(structure.safe, weights, _at_openings(board, structure, of_chain))


def spread(board: DotsAndBoxes, structure: Structure, weights: jax.Array) -> jax.Array:
    """Share the weight of every move evenly among its equally good edges: [A] to [A].

    `fold` undoes it. The result depends only on the shape of the position, so it commutes with the
    symmetries of the board.
    """
    as_good, canonical = equivalence(board, structure)
    count = fold(board, structure, as_good.astype(weights.dtype))
    share = weights / jnp.maximum(count, 1)
    return jnp.where(as_good, share[canonical], 0)


class FreeBoxes(NamedTuple):
    """The free boxes of one position; a `Structure` has the same fields."""

    taken: jax.Array  # [] int32, all free boxes
    declined: jax.Array  # [] int32, free boxes that the mover can leave at the end: 0, 2 or 4


def once_quiet(structure: Structure) -> Structure:
    """Turn the structure of one position into the structure of its quiet position."""
    none = jnp.zeros_like(structure.taken)
    return structure._replace(taken=none, declined=none, free=jnp.zeros_like(structure.free))


def declines(structure: Structure | FreeBoxes, value: jax.Array) -> jax.Array:
    """Return whether declining is better, given the quiet value [] in boxes: [] bool."""
    return (structure.declined > 0) & (value < -structure.declined)


def captured(structure: Structure | FreeBoxes, decline: jax.Array) -> jax.Array:
    """Return the boxes the mover takes minus the boxes it leaves: [] int32."""
    return structure.taken - jnp.where(decline, 2 * structure.declined, 0)


def whole_value(structure: Structure, value: jax.Array, decline: jax.Array) -> jax.Array:
    """Return the value [] of a position in boxes, given the `value` of its quiet position."""
    return captured(structure, decline) + jnp.where(decline, -value, value)


def settle(state: State, structure: Structure, decline: jax.Array) -> State:
    """Return one game in its quiet position, after its free boxes are taken or left."""
    margin = state.margin + captured(structure, decline)
    return State(
        drawn=structure.quiet,
        margin=jnp.where(decline, -margin, margin),
        player=jnp.where(decline, 1 - state.player, state.player),
    )


def open_up(board: DotsAndBoxes, state: State, edge: jax.Array) -> tuple[State, Structure]:
    """Draw `edge` ([] int) in a quiet position; return the next position and its structure.

    A finished game does not change.
    """
    facing = draw_quiet(board, state, edge)
    return facing, find_structure(board, facing.drawn)


def draw_quiet(board: DotsAndBoxes, state: State, edge: jax.Array) -> State:
    """Return the position that `open_up` returns, without its structure."""
    over = is_over(state)
    return State(
        drawn=state.drawn | (jnp.arange(board.num_edges, dtype=jnp.int32) == edge),
        margin=jnp.where(over, state.margin, -state.margin),
        player=jnp.where(over, state.player, 1 - state.player),
    )


def closing_edge(
    board: DotsAndBoxes, drawn: jax.Array, structure: Structure, decline: jax.Array
) -> jax.Array:
    """Return an edge that carries out a decision about the free boxes of one position: [] int32.

    To take all: any edge that closes a box. To decline: an edge that closes a box and keeps the
    number of boxes to leave; if there is none, the edge that leaves exactly these boxes.
    """
    after = drawn[None, :] | jnp.eye(board.num_edges, dtype=bool)
    closed = jax.vmap(partial(boxes_closed, board))(after) > boxes_closed(board, drawn)
    closes = ~drawn & closed
    then = jax.vmap(partial(find_structure, board))(after)
    same = jnp.all(then.quiet == structure.quiet[None, :], axis=1) & ~drawn
    keeps = closes & same & (then.declined == structure.declined)
    leaves = ~closes & same & (then.taken == structure.declined)
    rank = jnp.where(decline, jnp.int32(2) * keeps + leaves, closes)
    return jnp.argmax(rank).astype(jnp.int32)
