"""Test the game of the adapters: owners and observations equal the plain-Python referee's."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from referee import Referee

from jaxzero.adapters.owned import OBSERVED, draw, new_game, observe
from jaxzero.game import DotsAndBoxes
from jaxzero.network.features import edges_from_planes

draw_edge = jax.jit(draw, static_argnums=0)
see = jax.jit(observe, static_argnums=0)


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (2, 3), (3, 2)])
def test_owners_and_observations_equal_the_referee(rows, cols):
    board = DotsAndBoxes(rows, cols)
    referee, game = Referee(board), new_game(board)
    owned: tuple[set[int], set[int]] = (set(), set())
    for edge in np.random.default_rng(rows).permutation(board.num_edges).tolist():
        mover = referee.player
        closed = {
            box
            for box, sides in enumerate(referee.boxes)
            if edge in sides and sides <= referee.drawn | {edge}
        }
        referee.play(edge)
        owned[mover].update(closed)
        game = draw_edge(board, game, edge)
        for player in range(2):
            planes = np.asarray(see(board, game, player))
            assert planes.shape == (rows + 1, cols + 1, len(OBSERVED))
            drawn = edges_from_planes(board, planes[..., :2])
            assert set(np.flatnonzero(drawn)) == referee.drawn
            assert planes[..., :2].sum() == len(referee.drawn)  # nothing beyond the board
            for plane, owner in ((2, player), (3, 1 - player)):
                boxes = planes[:rows, :cols, plane]
                assert set(np.flatnonzero(boxes)) == owned[owner]
                assert planes[..., plane].sum() == boxes.sum()
    assert [len(boxes) for boxes in owned] == referee.scores


def test_drawing_an_edge_again_gives_no_box():
    board = DotsAndBoxes(1, 1)
    game = new_game(board)
    for edge in (0, 1, 2, 3, 3):
        game = draw_edge(board, game, edge)
    assert game.boxes.sum(axis=(1, 2)).tolist() == [0, 1]
