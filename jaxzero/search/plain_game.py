"""The plain game for the search: every position is a node, every undrawn edge is an action.

It implements `SearchedGame` (`interface.py`), as `quiet_game` does.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game import DotsAndBoxes, State, boxes_gained, discount, is_over
from jaxzero.game import step as draw_edge


class Embedding(NamedTuple):
    """A position in the search tree, with the reward and the discount of the action to it."""

    state: State
    reward: jax.Array  # [] float32, utility gained by the mover
    discount: jax.Array  # [] float32, 1: the mover moves again, -1: the opponent, 0: the end


def find_structure(board: DotsAndBoxes, drawn: jax.Array) -> None:
    return None


def searched(state: State, structure: None) -> State:
    return state


def structure_of_searched(structure: None) -> None:
    return None


def legal(board: DotsAndBoxes, drawn: jax.Array, structure: None) -> jax.Array:
    return ~drawn


def prior(board: DotsAndBoxes, structure: None, logits: jax.Array) -> jax.Array:
    return logits


def target(board: DotsAndBoxes, structure: None, policy: jax.Array) -> jax.Array:
    return policy


def resolve(state: State, structure: None, value: jax.Array) -> State:
    return state


def total(structure: None, value: jax.Array, margin: jax.Array) -> jax.Array:
    return margin


def edge_to_draw(
    board: DotsAndBoxes, drawn: jax.Array, structure: None, value: jax.Array, action: jax.Array
) -> jax.Array:
    return action


def play(board: DotsAndBoxes, state: State, action: jax.Array) -> tuple[State, None]:
    return draw_edge(board, state, action)[0], None


def embed(state: State, structure: None) -> Embedding:
    return Embedding(state, jnp.float32(0), jnp.float32(0))


def expand(board: DotsAndBoxes, embedding: Embedding, action: jax.Array) -> tuple[Embedding, None]:
    before = embedding.state
    after, again = draw_edge(board, before, action)
    reward = boxes_gained(before, after, again) / board.num_boxes
    already_over = is_over(before)
    return Embedding(
        state=after,
        reward=jnp.where(already_over, 0.0, reward),
        discount=jnp.where(already_over, 0.0, discount(after, again)),
    ), None


def outcome(
    board: DotsAndBoxes, embedding: Embedding, value: jax.Array
) -> tuple[jax.Array, jax.Array]:
    return embedding.reward, embedding.discount
