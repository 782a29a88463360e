"""Continue a position to the end of the game, and find who gets each box."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxzero.game import DotsAndBoxes
from jaxzero.game.board import play_moves
from jaxzero.network.network import Agent
from jaxzero.play.looking import line_of_play
from jaxzero.solver import small


def exact_line(
    board: DotsAndBoxes, drawn: np.ndarray, first: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the edges `first` and perfect play to the end after them, where few edges are left."""
    line, drawn = [*first], with_drawn(drawn, first)
    while not drawn.all():
        line.append(int(small.small_values(board, drawn).argmax()))
        drawn[line[-1]] = True
    return tuple(line)


def expected_owners(agent: Agent, drawn: np.ndarray, line: Sequence[int]) -> tuple[int | None, ...]:
    """Return who gets each box: [boxes], 0 for the side to move, 1 for the other side.

    Boxes that are already closed get None. After `line` the network plays without a search. Once
    few edges are left, play is perfect.
    """
    board = agent.network.board
    before_end = max(int(np.count_nonzero(~drawn)) - small.MAX_UNDRAWN, 1)
    moves = tuple(line[:before_end])
    moves += line_of_play(agent, with_drawn(drawn, moves), edges=before_end - len(moves))
    moves = exact_line(board, drawn, moves)
    _, owners = play_moves(board, np.flatnonzero(drawn).tolist(), moves)
    return tuple(owners.get(box) for box in range(board.num_boxes))


def with_drawn(drawn: np.ndarray, edges: Sequence[int]) -> np.ndarray:
    """Return a copy of a position [A] bool in which `edges` are drawn."""
    after = drawn.copy()
    after[list(edges)] = True
    return after
