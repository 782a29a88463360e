"""Symmetries of the board, as permutations of its edges."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jaxzero.game.rules import DotsAndBoxes


def edge_lattice(game: DotsAndBoxes) -> np.ndarray:
    """Return edge numbers on the (2 rows + 1) x (2 cols + 1) lattice, -1 at dots and boxes."""
    lattice = np.full((2 * game.rows + 1, 2 * game.cols + 1), -1)
    lattice[0::2, 1::2] = np.arange(game.num_horizontal).reshape(game.rows + 1, game.cols)
    lattice[1::2, 0::2] = np.arange(game.num_horizontal, game.num_edges).reshape(
        game.rows, game.cols + 1
    )
    return lattice


def edges_of_lattice(lattice: np.ndarray) -> np.ndarray:
    """Read a lattice back in the order of the edges: [A]."""
    return np.concatenate([lattice[0::2, 1::2].ravel(), lattice[1::2, 0::2].ravel()])


def board_transforms(game: DotsAndBoxes) -> list:
    """Return the transforms of a 2-D array that map the board to itself: 8, or 4 on a rectangle."""
    flips = [lambda a: a, lambda a: a[::-1], lambda a: a[:, ::-1], lambda a: a[::-1, ::-1]]
    if game.rows != game.cols:
        return flips
    return flips + [lambda a, flip=flip: flip(a.T) for flip in flips]


@lru_cache
def edge_permutations(game: DotsAndBoxes) -> np.ndarray:
    """Return every symmetry as a gather: `values[permutations[s]]` is the board seen through s.

    Shape [S, A] int32; row 0 is the identity. The same gather serves edges and policies.
    """
    lattice = edge_lattice(game)
    rows = [edges_of_lattice(transform(lattice)) for transform in board_transforms(game)]
    permutations = np.stack(rows).astype(np.int32)
    permutations.setflags(write=False)
    return permutations
