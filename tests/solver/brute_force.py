"""Minimax in plain Python, straight from the rules, to check the solver against."""

from __future__ import annotations

import numpy as np

from jaxzero.game import DotsAndBoxes


class BruteForce:
    """Margins of all positions of one board, met positions remembered as bit sets of edges."""

    def __init__(self, game: DotsAndBoxes):
        self.full = (1 << game.num_edges) - 1
        self.boxes_of = [[] for _ in range(game.num_edges)]
        for row in range(game.rows):
            for col in range(game.cols):
                top = row * game.cols + col
                left = game.num_horizontal + row * (game.cols + 1) + col
                sides = (top, top + game.cols, left, left + 1)
                box = sum(1 << edge for edge in sides)
                for edge in sides:
                    self.boxes_of[edge].append(box)
        self.margins = {self.full: 0}

    def move_margins(self, drawn: int) -> dict[int, int]:
        """Return the margin after each legal edge, for the side that draws it."""
        margins = {}
        for edge, boxes in enumerate(self.boxes_of):
            after = drawn | 1 << edge
            if after == drawn:
                continue
            closed = sum(box & ~after == 0 for box in boxes)
            rest = self.margin(after)
            margins[edge] = closed + rest if closed else -rest
        return margins

    def margin(self, drawn: int) -> int:
        """Return the margin of the side to move."""
        if drawn not in self.margins:
            self.margins[drawn] = max(self.move_margins(drawn).values())
        return self.margins[drawn]


def as_number(drawn: np.ndarray) -> int:
    """Return [A] bool as a bit set."""
    return sum(1 << int(edge) for edge in np.flatnonzero(drawn))
