"""The game with the owner of every box, and its observation. Needs no other library.

The rules of jaxzero keep only the margin. Other libraries also show the owner of each box.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game import DotsAndBoxes, State, box_sides, initial_state, split_edges, step
from jaxzero.network.features import on_dots

OBSERVED = (
    "horizontal edges drawn",
    "vertical edges drawn",
    "own boxes",
    "boxes of the opponent",
)


class OwnedGame(NamedTuple):
    """One game in play with the owners of its boxes. Vectorise with `jax.vmap`."""

    position: State
    boxes: jax.Array  # [2, rows, cols] bool, boxes of the first and of the second player


def new_game(board: DotsAndBoxes) -> OwnedGame:
    """Return the empty board with the first player to move."""
    return OwnedGame(initial_state(board), jnp.zeros((2, board.rows, board.cols), bool))


def draw(board: DotsAndBoxes, game: OwnedGame, edge: jax.Array) -> OwnedGame:
    """Draw `edge` ([] int); the boxes that it closes belong to the side to move."""
    before = game.position
    after, _ = step(board, before, edge)
    closed = (box_sides(board, after.drawn) == 4) & (box_sides(board, before.drawn) < 4)
    mover = (jnp.arange(2) == before.player)[:, None, None]
    return OwnedGame(after, game.boxes | (mover & closed[None]))


def observe(board: DotsAndBoxes, game: OwnedGame, player: jax.Array) -> jax.Array:
    """Return the planes named in `OBSERVED` as player 0 or 1 sees them: [H, W, 4] bool.

    An edge or a box lies at its upper left dot, H = rows + 1, W = cols + 1; the rest is False.
    """
    horizontal, vertical = split_edges(board, game.position.drawn)
    own, other = jnp.where(player == 0, game.boxes, game.boxes[::-1])
    planes = [on_dots(board, plane) for plane in (horizontal, vertical, own, other)]
    return jnp.stack(planes, axis=-1)
