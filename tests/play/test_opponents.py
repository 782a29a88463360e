"""Test which network plays each board of the page."""

from __future__ import annotations

import chex
import pytest

from jaxzero.game import DotsAndBoxes
from jaxzero.play.opponents import agent_of
from jaxzero.runs.resize import resize
from jaxzero.runs.weights import load_weights


@pytest.mark.parametrize(
    ("rows", "cols", "name"),
    [(3, 3, "3x3"), (4, 4, "5x5"), (6, 5, "5x5"), (5, 7, "7x7")],
)
def test_a_board_has_the_network_that_plays_it_best(rows, cols, name):
    board = DotsAndBoxes(rows, cols)
    expected = resize(load_weights(name).agent, board, "weights")
    chex.assert_trees_all_equal(agent_of(board).params, expected.params)
