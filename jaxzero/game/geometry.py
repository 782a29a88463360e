"""Lookup tables of the board, for code on the host."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jaxzero.game.rules import DotsAndBoxes


@lru_cache
def box_sides_table(game: DotsAndBoxes) -> np.ndarray:
    """Return the edges above, below, left and right of every box, row by row: [boxes, 4]."""
    horizontals = np.arange(game.num_horizontal).reshape(game.rows + 1, game.cols)
    verticals = np.arange(game.num_horizontal, game.num_edges).reshape(game.rows, game.cols + 1)
    sides = [horizontals[:-1], horizontals[1:], verticals[:, :-1], verticals[:, 1:]]
    table = np.stack([side.ravel() for side in sides], axis=-1)
    table.setflags(write=False)
    return table


@lru_cache
def box_neighbours(game: DotsAndBoxes) -> np.ndarray:
    """Return the two boxes beside every edge: [A, 2]; `num_boxes` stands for the outside."""
    table = np.full((game.num_edges, 2), game.num_boxes)
    above, below, left, right = box_sides_table(game).T
    boxes = np.arange(game.num_boxes)
    table[above, 1] = table[below, 0] = table[left, 1] = table[right, 0] = boxes
    table.setflags(write=False)
    return table


@lru_cache
def edge_centres(game: DotsAndBoxes) -> np.ndarray:
    """Return row and column of the middle of every edge, in boxes: [A, 2] float32."""
    horizontal = np.indices((game.rows + 1, game.cols)).reshape(2, -1).T
    vertical = np.indices((game.rows, game.cols + 1)).reshape(2, -1).T
    beside, below = np.array([0, 0.5]), np.array([0.5, 0])
    table = np.concatenate([horizontal + beside, vertical + below]).astype(np.float32)
    table.setflags(write=False)
    return table


@lru_cache
def box_centres(game: DotsAndBoxes) -> np.ndarray:
    """Return row and column of the middle of every box, in boxes: [boxes, 2] float32."""
    table = (np.indices((game.rows, game.cols)).reshape(2, -1).T + 0.5).astype(np.float32)
    table.setflags(write=False)
    return table


def count_sides(game: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Count the drawn sides of every box of one board: [boxes + 1] int8, the last the outside."""
    sides = np.zeros(game.num_boxes + 1, np.int8)
    np.add.at(sides, box_neighbours(game)[drawn], 1)
    return sides
