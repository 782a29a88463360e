"""The quiet game for the search: quiet positions are nodes, safe edges and openings are actions.

A position without a free box is quiet. The side that faces free boxes takes all of them, or
declines the last two or four. The value of the next quiet position decides, so the search spends no
simulations on captures. When the value of a node changes, this decision is made again.

It implements `SearchedGame` (`interface.py`), as `plain_game` does.
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
from jaxzero.game.structure import Structure
from jaxzero.game.structure import find_structure as find_structure  # of the interface
from jaxzero.network.network import IMPOSSIBLE

TINY = 1e-30  # smallest prior; keeps the logarithm finite


class Embedding(NamedTuple):
    """A quiet position in the search tree, and the free boxes that are captured before it."""

    state: State  # as if all free boxes were taken; the search reads the edges only
    free: FreeBoxes


def searched(state: State, structure: Structure) -> State:
    return settle(state, structure, jnp.zeros((), bool))


def structure_of_searched(structure: Structure) -> Structure:
    return once_quiet(structure)


def legal(board: DotsAndBoxes, drawn: jax.Array, structure: Structure) -> jax.Array:
    return quiet_moves(board, structure)


def prior(board: DotsAndBoxes, structure: Structure, logits: jax.Array) -> jax.Array:
    # The probabilities of edges that count as one move add up.
    together = fold(board, structure, jax.nn.softmax(logits))
    moves = quiet_moves(board, structure)
    return jnp.where(moves, jnp.log(jnp.maximum(together, TINY)), IMPOSSIBLE)


def target(board: DotsAndBoxes, structure: Structure, policy: jax.Array) -> jax.Array:
    return spread(board, structure, policy)


def resolve(state: State, structure: Structure, value: jax.Array) -> State:
    return settle(state, structure, declines(structure, value))


def total(structure: Structure, value: jax.Array, margin: jax.Array) -> jax.Array:
    return whole_value(structure, margin, declines(structure, value))


def edge_to_draw(
    board: DotsAndBoxes,
    drawn: jax.Array,
    structure: Structure,
    value: jax.Array,
    action: jax.Array,
) -> jax.Array:
    closing = closing_edge(board, drawn, structure, declines(structure, value))
    return jnp.where(structure.taken > 0, closing, action)


def play(board: DotsAndBoxes, state: State, action: jax.Array) -> tuple[State, Structure]:
    return open_up(board, state, action)


def embed(state: State, structure: Structure) -> Embedding:
    return Embedding(state, FreeBoxes(structure.taken, structure.declined))


def expand(
    board: DotsAndBoxes, embedding: Embedding, action: jax.Array
) -> tuple[Embedding, Structure]:
    faced, structure = open_up(board, embedding.state, action)
    return embed(searched(faced, structure), structure), structure


def outcome(
    board: DotsAndBoxes, embedding: Embedding, value: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return reward and discount of the action that led to an embedding, given its value.

    The opponent takes or declines the cnt free boxes, whichever is worth more. Let s be the boxes
    that can be declined, and V the value of the node in boxes. The action is worth -(cnt + V) if s
    is 0, else -(cnt - s + |V + s|): minus the larger of cnt + V and cnt - 2 s - V
    (`game/quiet.py`).
    """
    decline = declines(embedding.free, value * board.num_boxes)
    reward = -captured(embedding.free, decline) / board.num_boxes
    sign = jnp.where(decline, jnp.float32(1), -1)
    return reward, jnp.where(is_over(embedding.state), 0.0, sign)
