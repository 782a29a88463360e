"""Geometry of the board as NumPy tables (neighbours, centres, symmetries), and play_moves of games.

The tables are computed once per board and are read-only.
"""

import itertools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from jaxzero.game.rules import DotsAndBoxes


def _read_only(table: np.ndarray) -> np.ndarray:
    table.setflags(write=False)
    return table


def _edge_numbers(board: DotsAndBoxes) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the horizontals [rows + 1, cols] and verticals [rows, cols + 1]."""
    horizontals, verticals = np.split(np.arange(board.num_edges), [board.num_horizontal])
    return (
        horizontals.reshape(board.rows + 1, board.cols),
        verticals.reshape(board.rows, board.cols + 1),
    )


@lru_cache
def box_sides_table(board: DotsAndBoxes) -> np.ndarray:
    """Return the edges above, below, left and right of every box, row by row: [boxes, 4]."""
    horizontals, verticals = _edge_numbers(board)
    sides = [horizontals[:-1], horizontals[1:], verticals[:, :-1], verticals[:, 1:]]
    return _read_only(np.stack([side.ravel() for side in sides], axis=-1))


@lru_cache
def box_neighbours(board: DotsAndBoxes) -> np.ndarray:
    """Return the two boxes beside every edge: [A, 2]; `num_boxes` stands for the outside."""
    table = np.full((board.num_edges, 2), board.num_boxes)
    above, below, left, right = box_sides_table(board).T
    boxes = np.arange(board.num_boxes)
    table[above, 1] = table[below, 0] = table[left, 1] = table[right, 0] = boxes
    return _read_only(table)


def count_sides(board: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Count the drawn sides of every box of one board, the outside last: [boxes + 1] int8."""
    sides = np.zeros(board.num_boxes + 1, np.int8)
    np.add.at(sides, box_neighbours(board)[drawn], 1)
    return sides


def fullest_beside(board: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return the drawn sides of the fullest box beside each edge: [..., A] from [..., A]."""
    sides = drawn[..., box_sides_table(board)].sum(axis=-1, dtype=np.int8)
    outside = np.zeros((*sides.shape[:-1], 1), np.int8)
    return np.append(sides, outside, axis=-1)[..., box_neighbours(board)].max(axis=-1)


def take_free_boxes(board: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Take all free boxes of positions [P, A] bool; return the quiet positions."""
    sides, drawn = box_sides_table(board), drawn.copy()
    while True:
        row, box = np.nonzero(drawn[:, sides].sum(axis=-1) == 3)
        if not len(row):
            return drawn
        drawn[row[:, None], sides[box]] = True


def play_moves(
    board: DotsAndBoxes, start: Sequence[int], moves: Sequence[int]
) -> tuple[list[int], dict[int, int]]:
    """Return the player of every move and of the next one, [moves + 1], and the owners of boxes.

    The edges of `start` are drawn before the game; a box that `start` closes has no owner. After
    the end, the player of the last edge is to move.
    """
    sides, players, owners = count_sides(board, np.array(start, int)), [0], {}
    for edge in moves:
        beside = [box for box in box_neighbours(board)[edge].tolist() if box < board.num_boxes]
        sides[beside] += 1
        closed = [box for box in beside if sides[box] == 4]
        owners |= dict.fromkeys(closed, players[-1])
        players.append(players[-1] if closed else 1 - players[-1])
    return players, owners


@lru_cache
def edge_centres(board: DotsAndBoxes) -> np.ndarray:
    """Return row and column of the middle of every edge, in boxes: [A, 2] float32."""
    horizontal = np.indices((board.rows + 1, board.cols)).reshape(2, -1).T + np.array([0, 0.5])
    vertical = np.indices((board.rows, board.cols + 1)).reshape(2, -1).T + np.array([0.5, 0])
    return _read_only(np.concatenate([horizontal, vertical]).astype(np.float32))


@lru_cache
def box_centres(board: DotsAndBoxes) -> np.ndarray:
    """Return row and column of the middle of every box, in boxes: [boxes, 2] float32."""
    centres = np.indices((board.rows, board.cols)).reshape(2, -1).T + 0.5
    return _read_only(centres.astype(np.float32))


@lru_cache
def edge_permutations(board: DotsAndBoxes) -> np.ndarray:
    """Return the symmetries of the board as gathers: [S, A] int32, row 0 the identity.

    `values[permutations[s]]` is the image of `values` [A] under symmetry s, for edges and
    policies alike. S is 8 on a square board, else 4.
    """
    # All edge numbers in one array that can be flipped: dots at even rows and columns, boxes
    # at odd ones, edges between them.
    grid = np.zeros((2 * board.rows + 1, 2 * board.cols + 1), np.int32)
    grid[0::2, 1::2], grid[1::2, 0::2] = _edge_numbers(board)
    grids = [grid, grid.T] if board.rows == board.cols else [grid]
    images = [image[::down, ::right] for image in grids for right in (1, -1) for down in (1, -1)]
    rows = [np.concatenate([a[0::2, 1::2].ravel(), a[1::2, 0::2].ravel()]) for a in images]
    return _read_only(np.stack(rows))


def corner_pairs(board: DotsAndBoxes) -> list[list[int]]:
    """Return the two outer edges of each corner, the horizontal edge first."""
    horizontals, verticals = _edge_numbers(board)
    corners = itertools.product((0, -1), repeat=2)
    return [[int(horizontals[corner]), int(verticals[corner])] for corner in corners]


@lru_cache
def automorphisms(board: DotsAndBoxes) -> np.ndarray:
    """Return symmetries of the rules as gathers: [S, A] int32, row 0 the identity.

    A corner box has two edges that belong to no other box, so swapping the two changes nothing.
    Every combination of corner swaps is combined with each of `edge_permutations`. S is 128 on a
    square board, else 64.
    """
    swaps = [np.arange(board.num_edges, dtype=np.int32)]
    for pair in corner_pairs(board):
        swap = np.arange(board.num_edges, dtype=np.int32)
        swap[pair] = swap[pair[::-1]]
        swaps += [swap[before] for before in swaps]
    images = np.concatenate([swap[edge_permutations(board)] for swap in swaps])
    return _read_only(images)
