"""The plain game as the search sees it: every position is a node, every undrawn edge a move.

`quiet_game` has the same functions; the setting `search.nodes` chooses. All are for ONE game.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game import DotsAndBoxes, State, boxes_gained, discount, is_over
from jaxzero.game import step as draw_edge
from jaxzero.game.structure import Structure

View = jax.Array  # [A] bool, edges on the board: all there is to know


class Node(NamedTuple):
    """A position in the search tree, and what the move to it brought."""

    state: State
    reward: jax.Array  # [] float32, utility gained by the mover
    discount: jax.Array  # [] float32, 1: the mover moves again, -1: the opponent, 0: the end


def view(game: DotsAndBoxes, drawn: jax.Array) -> View:
    """Return what the rules say about a position with these drawn edges [A]."""
    return drawn


def legal(game: DotsAndBoxes, view: View) -> jax.Array:
    """Return the moves of a position: [A] bool."""
    return ~view


def prior(game: DotsAndBoxes, view: View, logits: jax.Array) -> jax.Array:
    """Return the logits of the moves from those of the edges: [A] to [A]."""
    return logits


def target(game: DotsAndBoxes, view: View, policy: jax.Array) -> jax.Array:
    """Return the policy over edges that belongs to a policy over moves: [A] to [A]."""
    return policy


def searched(state: State, view: View) -> State:
    """Return the position that is searched for a position: the same."""
    return state


def structure_of_searched(view: View) -> Structure | None:
    """Return the structure of the searched position where it is known: it is not."""
    return None


def resolve(state: State, view: View, value: jax.Array) -> State:
    """Return the searched position once captures are decided by its value [] in boxes."""
    return state


def total(view: View, value: jax.Array, margin: jax.Array) -> jax.Array:
    """Return the remaining margin of a position when its searched position ends with `margin`."""
    return margin


def edge_to_draw(
    game: DotsAndBoxes, drawn: jax.Array, view: View, value: jax.Array, move: jax.Array
) -> jax.Array:
    """Return the edge to draw now, given value and best move of the searched position: [] int32."""
    return move


def play(game: DotsAndBoxes, state: State, move: jax.Array) -> tuple[State, View]:
    """Play a move in a searched position; return the next position and its view."""
    after, _ = draw_edge(game, state, move)
    return after, after.drawn


def root(state: State, view: View) -> Node:
    """Return the root of a search."""
    return Node(state, jnp.float32(0), jnp.float32(0))


def expand(game: DotsAndBoxes, node: Node, move: jax.Array) -> tuple[Node, View]:
    """Return the node behind a move, and its view. After the end reward and discount are 0."""
    before = node.state
    after, again = draw_edge(game, before, move)
    reward = boxes_gained(before, after, again) / game.num_boxes
    already_over = is_over(before)
    return Node(
        state=after,
        reward=jnp.where(already_over, 0.0, reward),
        discount=jnp.where(already_over, 0.0, discount(after, again)),
    ), after.drawn


def outcome(game: DotsAndBoxes, node: Node, value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return reward and discount of the move to a node."""
    return node.reward, node.discount
