"""Solving what a person asks for."""

from __future__ import annotations

import numpy as np
import pytest

from jaxzero.errors import InputError
from jaxzero.evaluation.solving import describe, parse_position, solve_board, solve_drawn
from jaxzero.game import DotsAndBoxes

GAME = DotsAndBoxes(2, 2)


def test_positions_are_read_from_names_numbers_and_files(tmp_path):
    (tmp_path / "position").write_text("h0,0 h0,1\nv0,0\n")
    for text in ("h0,0 h0,1 v0,0", "0,1,6", "0 1 6", str(tmp_path / "position")):
        assert np.flatnonzero(parse_position(GAME, text)).tolist() == [0, 1, 6]


@pytest.mark.parametrize("text", ["h9,0", "12", "0 0", "h0,0 0", "edge", "nowhere.txt"])
def test_bad_positions_are_refused(text):
    with pytest.raises(InputError, match=r"^position: "):
        parse_position(GAME, text)


def test_a_position_shows_the_value_of_each_move():
    solved = solve_drawn(GAME, "h0,0 h0,1 v0,0 v0,1 h2,1")
    assert (solved.value, solved.best) == (0, [2])
    text = describe(GAME, solved)
    assert "value +0" in text and "best: h1,0" in text and "-4" in text


def test_a_full_board_is_over():
    solved = solve_drawn(GAME, " ".join(map(str, range(12))))
    assert (solved.value, solved.best) == (0, [])


def test_boards_beyond_all_reach_are_refused():
    with pytest.raises(InputError, match="4x4 has 40 edges"):
        solve_board(DotsAndBoxes(4, 4))
