"""The quiet game for the search: quiet positions are nodes, safe edges and openings are moves.

A position without a free box is quiet. The side that faces free boxes takes all of them, or
declines the last two or four. The value of the next quiet position decides, so the search spends no
simulations on captures. When the value of a node changes, this decision is made again.

`plain_game` has the same functions; the setting `search.nodes` chooses. All are for ONE game.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game import DotsAndBoxes, State, is_over
from jaxzero.game.quiet import (
    FreeBoxes,
    captured,
    closing_edge,
    declines,
    fold,
    once_quiet,
    open_up,
    quiet_moves,
    settle,
    spread,
    whole_value,
)
from jaxzero.game.structure import Structure, structure
from jaxzero.network.network import IMPOSSIBLE

View = Structure

TINY = 1e-30  # smallest prior; keeps the logarithm finite


class Node(NamedTuple):
    """A quiet position in the search tree, and the free boxes that are captured before it."""

    state: State  # as if all free boxes were taken; the search reads the edges only
    free: FreeBoxes


def view(board: DotsAndBoxes, drawn: jax.Array) -> View:
    """Return the view of a position with these drawn edges [A]: its structure."""
    return structure(board, drawn)


def legal(board: DotsAndBoxes, view: View) -> jax.Array:
    """Return the moves of the quiet position: [A] bool."""
    return quiet_moves(board, view)


def prior(board: DotsAndBoxes, view: View, logits: jax.Array) -> jax.Array:
    """Turn logits of edges into logits of moves: [A] to [A].

    The probabilities of edges that count as one move add up.
    """
    together = fold(board, view, jax.nn.softmax(logits))
    return jnp.where(quiet_moves(board, view), jnp.log(jnp.maximum(together, TINY)), IMPOSSIBLE)


def target(board: DotsAndBoxes, view: View, policy: jax.Array) -> jax.Array:
    """Turn a policy over moves into a policy over edges: [A] to [A]."""
    return spread(board, view, policy)


def searched(state: State, view: View) -> State:
    """Return the position to search: the position after all free boxes are taken."""
    return settle(state, view, jnp.zeros((), bool))


def structure_of_searched(view: View) -> Structure | None:
    """Return the structure of the searched position."""
    return once_quiet(view)


def resolve(state: State, view: View, value: jax.Array) -> State:
    """Return the quiet position after its value [] in boxes has decided the captures."""
    return settle(state, view, declines(view, value))


def total(view: View, value: jax.Array, margin: jax.Array) -> jax.Array:
    """Return the remaining margin of a position, given the `margin` of its searched position."""
    return whole_value(view, margin, declines(view, value))


def edge_to_draw(
    board: DotsAndBoxes, drawn: jax.Array, view: View, value: jax.Array, move: jax.Array
) -> jax.Array:
    """Return the edge to draw now, given value and best move of the searched position: [] int32.

    The quiet position stays the same until its free boxes are gone, so all edges of one capture
    follow one decision.
    """
    closing = closing_edge(board, drawn, view, declines(view, value))
    return jnp.where(view.taken > 0, closing, move)


def play(board: DotsAndBoxes, state: State, move: jax.Array) -> tuple[State, View]:
    """Play a move in a searched position; return the next position and its view."""
    return open_up(board, state, move)


def root(state: State, view: View) -> Node:
    """Return the root of a search."""
    return Node(state, FreeBoxes(view.taken, view.declined))


def expand(board: DotsAndBoxes, node: Node, move: jax.Array) -> tuple[Node, View]:
    """Return the node after a move, and the view of the position before its captures.

    Move -1 draws nothing and passes the turn.
    """
    faced, view = open_up(board, node.state, move)
    return Node(searched(faced, view), FreeBoxes(view.taken, view.declined)), view


def outcome(board: DotsAndBoxes, node: Node, value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return reward and discount of the move to a node, given its value [], boxes / board boxes.

    The opponent takes or declines the cnt free boxes, whichever is worth more. Let s be the boxes
    that can be declined, and V the value of the node in boxes. The move is worth -(cnt + V) if s is
    0, else -(cnt - s + |V + s|): minus the larger of cnt + V and cnt - 2 s - V (`game/quiet.py`).
    """
    decline = declines(node.free, value * board.num_boxes)
    reward = -captured(node.free, decline) / board.num_boxes
    sign = jnp.where(decline, jnp.float32(1), -1)
    return reward, jnp.where(is_over(node.state), 0.0, sign)
