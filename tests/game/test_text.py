"""Names and pictures of edges."""

from __future__ import annotations

import numpy as np
import pytest

from jaxzero.game import DotsAndBoxes, edge_name, parse_edge
from jaxzero.game.text import parse_picture, render


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (2, 3), (5, 5), (7, 7)])
def test_names_and_numbers_go_back_and_forth(rows, cols):
    game = DotsAndBoxes(rows, cols)
    for edge in range(game.num_edges):
        name = edge_name(game, edge)
        for text in (
            name,
            name.upper(),
            str(edge),
            name.replace(",", ""),
            f" {name[0]} {name[1:]}",
        ):
            assert parse_edge(game, text) == edge


@pytest.mark.parametrize("text", ["h3,0", "v0,4", "17", "x1,1", "", "h1", "-1", "h0,3"])
def test_what_is_no_edge_is_refused_with_its_text(text):
    with pytest.raises(ValueError, match="edge"):
        parse_edge(DotsAndBoxes(2, 3), text)
    with pytest.raises(IndexError):
        edge_name(DotsAndBoxes(2, 3), 17)


def test_the_picture_shows_lines_names_and_owners():
    game = DotsAndBoxes(1, 2)
    drawn = np.zeros(game.num_edges, bool)
    drawn[[0, 2, 4, 5]] = True
    assert render(game, drawn, owners={0: "A"}).splitlines() == [
        "  +-------+  h0,1 +",
        "  |       |",
        "  |   A   |     v0,2",
        "  |       |",
        "  +-------+  h1,1 +",
    ]


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (2, 3), (20, 20)])
def test_a_picture_is_read_again_with_all_its_labels(rows, cols):
    game = DotsAndBoxes(rows, cols)
    for drawn in np.random.default_rng(0).random((5, game.num_edges)) < 0.5:
        for labels in (None, {}, {edge: str(edge) for edge in range(game.num_edges)}):
            picture = render(game, drawn, dict.fromkeys(range(game.num_boxes), "you"), labels)
            assert parse_picture(picture) == (game, np.flatnonzero(drawn).tolist())
