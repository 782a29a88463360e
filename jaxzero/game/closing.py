"""What becomes of free boxes: the side that faces them takes all, or declines the last few.

With cnt free boxes of which s may be left, and V the value of the quiet position behind them, a
side wins cnt + V by taking all, and by leaving s, for which the other side has to move there,
cnt - 2 s - V (Berlekamp 2000, "The Dots-and-Boxes Game").
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game.rules import DotsAndBoxes, State, box_sides, is_over
from jaxzero.game.structure import Structure, structure


class FreeBoxes(NamedTuple):
    """What a side faces in one position; a `Structure` has the same fields."""

    taken: jax.Array  # [] int32, free boxes
    declined: jax.Array  # [] int32, those of them that can be left at the end: 0, 2 or 4


def free_boxes(found: Structure) -> FreeBoxes:
    """Return what a side faces in the position of one structure."""
    return FreeBoxes(found.taken, found.declined)


def declines(found: Structure | FreeBoxes, value: jax.Array) -> jax.Array:
    """Return whether a side leaves what it can, given the quiet value [] in boxes: [] bool."""
    return (found.declined > 0) & (value < -found.declined)


def captured(found: Structure | FreeBoxes, decline: jax.Array) -> jax.Array:
    """Return the boxes the side to move wins on its way to the quiet position, less those it
    leaves: [] int32."""
    return found.taken - jnp.where(decline, 2 * found.declined, 0)


def whole_value(found: Structure, value: jax.Array, decline: jax.Array) -> jax.Array:
    """Return the value [] of a position in boxes from that of its quiet position."""
    return captured(found, decline) + jnp.where(decline, -value, value)


def settle(state: State, found: Structure, decline: jax.Array) -> State:
    """Return the quiet position of one game with the free boxes given out."""
    margin = state.margin + captured(found, decline)
    return State(
        drawn=found.quiet,
        margin=jnp.where(decline, -margin, margin),
        player=jnp.where(decline, 1 - state.player, state.player),
    )


def open_up(game: DotsAndBoxes, state: State, edge: jax.Array) -> tuple[State, Structure]:
    """Draw `edge` ([] int) in a quiet position and return what the other side faces.

    Past the end nothing changes.
    """
    drawn = state.drawn | (jnp.arange(game.num_edges) == edge)
    over = is_over(state)
    facing = State(
        drawn=drawn,
        margin=jnp.where(over, state.margin, -state.margin),
        player=jnp.where(over, state.player, 1 - state.player),
    )
    return facing, structure(game, drawn)


def closing_edge(
    game: DotsAndBoxes, drawn: jax.Array, found: Structure, decline: jax.Array
) -> jax.Array:
    """Return an edge that carries out a decision about the free boxes of one position: [] int32.

    To take all, any edge that closes a box. To decline, one that closes a box while as many can
    still be declined, and where there is none the edge that leaves just those.
    """
    after = drawn[None, :] | jnp.eye(game.num_edges, dtype=bool)
    sides = jax.vmap(partial(box_sides, game))(after)
    closed = jnp.sum(sides == 4, axis=(1, 2)) > jnp.sum(box_sides(game, drawn) == 4)
    closes = ~drawn & closed
    there = jax.vmap(partial(structure, game))(after)
    same = jnp.all(there.quiet == found.quiet[None, :], axis=1) & ~drawn
    keeps = closes & same & (there.declined == found.declined)
    leaves = ~closes & same & (there.taken == found.declined)
    rank = jnp.where(decline, 2 * keeps + leaves, closes)
    return jnp.argmax(rank).astype(jnp.int32)
