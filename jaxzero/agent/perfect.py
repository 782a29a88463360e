"""The perfect player: exact wherever the solver reaches. Runs on the host.

The solver lives in `evaluation`, which the agent otherwise does not know; it needs the game alone.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jaxzero.evaluation.endgame import Table, new_table, solve_many
from jaxzero.game import DotsAndBoxes, box_neighbours, count_sides

# Boards up to 3x4 are always solved. On larger ones a position is tried from so many undrawn edges
# on and gets so many nodes, some 0.1 s: nearly always enough at 36 undrawn edges of 5x5.
ALWAYS_SOLVED_EDGES = 31
TRIED_UNDRAWN = 38
NODE_LIMIT = 200_000


def choose_edges(
    game: DotsAndBoxes, random_share: float, seeds: np.ndarray, drawn: np.ndarray
) -> np.ndarray:
    """Choose a best edge in every position, at random among the best: [B] int32.

    With probability `random_share` the edge is a random legal one instead. Where the solver runs
    out of nodes, a random edge that gives no box away is chosen. `seeds` [B] uint32, `drawn`
    [B, A] bool.
    """
    generators = [np.random.default_rng(seed) for seed in seeds]
    slips = np.array([generator.random() < random_share for generator in generators], bool)
    candidates = ~drawn
    small = game.num_edges <= ALWAYS_SOLVED_EDGES
    tried = ~slips & (small | (candidates.sum(axis=1) <= TRIED_UNDRAWN))
    solved = np.zeros(len(drawn), bool)
    if tried.any():
        limit = None if small else NODE_LIMIT
        _, best, solved[tried] = solve_many(
            game, drawn[tried], node_limit=limit, table=_table(game)
        )
        candidates[solved] = best[solved[tried]]
    for row in np.flatnonzero(~slips & ~solved):
        candidates[row] = safe_edges(game, drawn[row])
    return np.array(
        [
            generator.choice(np.flatnonzero(row))
            for generator, row in zip(generators, candidates, strict=True)
        ],
        np.int32,
    )


def safe_edges(game: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return the edges that close a box, else those that give none away, else all: [A] bool."""
    beside = box_neighbours(game)
    sides = count_sides(game, drawn)
    sides[-1] = 0
    fullest = sides[beside].max(axis=1)
    for choice in (~drawn & (fullest == 3), ~drawn & (fullest < 2)):
        if choice.any():
            return choice
    return ~drawn


@lru_cache(maxsize=4)
def _table(game: DotsAndBoxes) -> Table:
    return new_table(2**20)
