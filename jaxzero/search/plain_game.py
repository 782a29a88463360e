"""The plain game for the search: every position is a node, every undrawn edge is a move.

`quiet_game` has the same functions; the setting `search.nodes` chooses. All are for ONE game.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game import DotsAndBoxes, State, boxes_gained, discount, is_over
from jaxzero.game import step as draw_edge
from jaxzero.game.structure import Structure

View = jax.Array  # [A] bool, edges on the board; the plain game needs nothing else


class Node(NamedTuple):
    """A position in the search tree, with the reward and the discount of the move to it."""

    state: State
    reward: jax.Array  # [] float32, utility gained by the mover
    discount: jax.Array  # [] float32, 1: the mover moves again, -1: the opponent, 0: the end


def view(board: DotsAndBoxes, drawn: jax.Array) -> View:
    """Return the view of a position with these drawn edges [A]: the edges."""
    return drawn


def legal(board: DotsAndBoxes, view: View) -> jax.Array:
    """Return the moves of a position: [A] bool."""
    return ~view


def prior(board: DotsAndBoxes, view: View, logits: jax.Array) -> jax.Array:
    """Turn logits of edges into logits of moves: [A] to [A]."""
    return logits


def target(board: DotsAndBoxes, view: View, policy: jax.Array) -> jax.Array:
    """Turn a policy over moves into a policy over edges: [A] to [A]."""
    return policy


def searched(state: State, view: View) -> State:
    """Return the position to search: the same position."""
    return state


def structure_of_searched(view: View) -> Structure | None:
    """Return None: the structure of the searched position is not known."""
    return None


def resolve(state: State, view: View, value: jax.Array) -> State:
    """Return the same position: the value [] in boxes decides no captures here."""
    return state


def total(view: View, value: jax.Array, margin: jax.Array) -> jax.Array:
    """Return the remaining margin of a position, given the `margin` of its searched position."""
    return margin


def edge_to_draw(
    board: DotsAndBoxes, drawn: jax.Array, view: View, value: jax.Array, move: jax.Array
) -> jax.Array:
    """Return the edge to draw now, given value and best move of the searched position: [] int32."""
    return move


def play(board: DotsAndBoxes, state: State, move: jax.Array) -> tuple[State, View]:
    """Play a move in a searched position; return the next position and its view."""
    after, _ = draw_edge(board, state, move)
    return after, after.drawn


def root(state: State, view: View) -> Node:
    """Return the root of a search."""
    return Node(state, jnp.float32(0), jnp.float32(0))


def expand(board: DotsAndBoxes, node: Node, move: jax.Array) -> tuple[Node, View]:
    """Return the node after a move, and its view. A move after the end has reward, discount 0."""
    before = node.state
    after, again = draw_edge(board, before, move)
    reward = boxes_gained(before, after, again) / board.num_boxes
    already_over = is_over(before)
    return Node(
        state=after,
        reward=jnp.where(already_over, 0.0, reward),
        discount=jnp.where(already_over, 0.0, discount(after, again)),
    ), after.drawn


def outcome(board: DotsAndBoxes, node: Node, value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return reward and discount of the move to a node."""
    return node.reward, node.discount
