"""How play may go on: the best edges with a line for each, and who gets which box at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxzero.game import DotsAndBoxes
from jaxzero.game.board import replay
from jaxzero.play.looking import line_of_play
from jaxzero.players.agent import Agent
from jaxzero.solver import small

if TYPE_CHECKING:
    from jaxzero.play.analysis import Analysis

MOST_LINES = 3


def best_edges(found: Analysis) -> list[int]:
    """Return the best edges of an analysis that has values, best first, at most `MOST_LINES`.

    The edges of one kind in one chain are worth the same: only the best of them is listed.
    """
    chains = [chain for chain in found.chains if chain.kind != "free"]
    chain_of = {edge: chain.boxes for chain in chains for edge in chain.edges}
    ranked = sorted(
        found.edges,
        key=lambda one: (one.edge != found.best, one.lost, -(one.visits or 0), -(one.prior or 0.0)),
    )
    listed: dict[tuple, int] = {}
    for one in ranked:
        listed.setdefault((chain_of.get(one.edge, one.edge), one.kind), one.edge)
    return list(listed.values())[:MOST_LINES]


def exact_line(game: DotsAndBoxes, drawn: np.ndarray, first: Sequence[int] = ()) -> tuple[int, ...]:
    """Return perfect play to the end of the game after the edges `first`, with few edges left."""
    line, drawn = [*first], with_drawn(drawn, first)
    while not drawn.all():
        line.append(int(small.small_values(game, drawn).argmax()))
        drawn[line[-1]] = True
    return tuple(line)


def expected_owners(agent: Agent, drawn: np.ndarray, line: Sequence[int]) -> tuple[int | None, ...]:
    """Return who gets each box: [boxes], 0 for the side to move, 1 for the other side.

    None stands for boxes that are closed already. After `line` the network plays without a search,
    and once few edges are left, play is perfect.
    """
    game = agent.network.game
    before_end = max(int(np.count_nonzero(~drawn)) - small.MOST_UNDRAWN, 1)
    moves = tuple(line[:before_end])
    moves += line_of_play(agent, with_drawn(drawn, moves), edges=before_end - len(moves))
    moves = exact_line(game, drawn, moves)
    _, owners = replay(game, np.flatnonzero(drawn).tolist(), moves)
    return tuple(owners.get(box) for box in range(game.num_boxes))


def with_drawn(drawn: np.ndarray, edges: Sequence[int]) -> np.ndarray:
    """Return a copy of a position [A] bool with these edges drawn."""
    after = drawn.copy()
    after[list(edges)] = True
    return after
