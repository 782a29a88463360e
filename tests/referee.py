"""Dots and Boxes in plain Python, the oracle of the tests. Written to be checked by eye."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from jaxzero.game import DotsAndBoxes


def boxes_of(board: DotsAndBoxes) -> list[set[int]]:
    """Return the four edges of every box, row by row."""
    wide, start = board.cols + 1, (board.rows + 1) * board.cols
    return [
        {
            r * board.cols + c,
            (r + 1) * board.cols + c,
            start + r * wide + c,
            start + r * wide + c + 1,
        }
        for r in range(board.rows)
        for c in range(board.cols)
    ]


class Referee:
    """One game: `drawn`, `scores`, `player`; `play` returns the boxes closed."""

    def __init__(self, board: DotsAndBoxes):
        self.boxes = boxes_of(board)
        self.num_edges = board.num_edges
        self.drawn: set[int] = set()
        self.scores = [0, 0]
        self.player = 0

    def legal(self) -> list[int]:
        return [edge for edge in range(self.num_edges) if edge not in self.drawn]

    def play(self, edge: int) -> int:
        assert edge not in self.drawn
        self.drawn.add(edge)
        closed = sum(edge in box and box <= self.drawn for box in self.boxes)
        self.scores[self.player] += closed
        if not closed:
            self.player = 1 - self.player
        return closed


@cache
def exact_values(board: DotsAndBoxes):
    """Return a function from drawn edges to (value, {edge: value of the move}), by minimax.

    Values are margins in boxes, for the side to move.
    """
    boxes = [sum(1 << edge for edge in box) for box in boxes_of(board)]
    beside = [[box for box in boxes if box >> edge & 1] for edge in range(board.num_edges)]

    def moves(drawn: int) -> dict[int, int]:
        worth = {}
        for edge, near in enumerate(beside):
            after = drawn | 1 << edge
            if after != drawn:
                closed = sum(box & ~after == 0 for box in near)
                worth[edge] = closed + value(after) if closed else -value(after)
        return worth

    @cache
    def value(drawn: int) -> int:
        return max(moves(drawn).values(), default=0)

    def solve(drawn: Iterable[int]) -> tuple[int, dict[int, int]]:
        worth = moves(sum(1 << int(edge) for edge in drawn))
        return max(worth.values(), default=0), worth

    return solve
