"""Names and pictures of edges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_name, parse_edge, parse_edges
from jaxzero.game.text import render


@pytest.mark.parametrize(("rows", "cols"), [(2, 3), (7, 7)])
def test_names_and_numbers_go_back_and_forth(rows, cols):
    board = DotsAndBoxes(rows, cols)
    for edge in range(board.num_edges):
        name = edge_name(board, edge)
        spaced = f" {name[0]} {name[1:]}"
        for text in (name, name.upper(), str(edge), name.replace(",", ""), spaced):
            assert parse_edge(board, text) == edge


@pytest.mark.parametrize("text", ["h3,0", "17", "x1,1", "", "h1", "-1"])
def test_what_is_no_edge_is_refused(text):
    with pytest.raises(ValueError, match="edge"):
        parse_edge(DotsAndBoxes(2, 3), text)
    with pytest.raises(IndexError):
        edge_name(DotsAndBoxes(2, 3), 17)


def wide(text: str) -> str:
    """Return a text as an East Asian keyboard writes it."""
    return "".join("\u3000" if sign == " " else chr(ord(sign) + 0xFEE0) for sign in text)


@pytest.mark.parametrize(
    "text",
    [
        "h0,1,v1,2,5",
        "h0,1; v1,2, 5,",
        "h 0 1 v 1 2 5",
        wide("h0,1;v1,2;5"),
        "h0,1、v1,2、5",
        "1\n\t15,5",
    ],
)
def test_edges_are_listed_with_any_separator_and_on_any_keyboard(text):
    assert parse_edges(DotsAndBoxes(2, 3), text) == [1, 15, 5]


@pytest.mark.parametrize("separator", [" ", ",", ", ", " ,", ",,", ";", "; ", "\n"])
def test_a_list_reads_a_text_as_one_edge_alone_is_read_or_refuses_it(separator):
    """On a large board h11 3 could be h11,3, or h1,1 and 3."""
    board, taken = DotsAndBoxes(20, 20), 0
    edges = [0, 1, 3, 21, 31, 223, 440, 462, board.num_edges - 1]
    names = {edge: edge_name(board, edge) for edge in edges}
    for edge, other in itertools.permutations(edges, 2):
        short = names[edge].replace(",", "")
        spaced = f"{short[0]} {names[edge][1:].replace(',', ' ')}"
        spelled = {names[edge]: edge, spaced: edge, str(edge): edge}
        spelled |= {short: edge} if len(short) == 3 else {}
        for (first, one), second in itertools.product(spelled.items(), (names[other], str(other))):
            text = f"{first}{separator}{second}"
            try:
                expected = [parse_edge(board, text)]
            except InputError:
                expected = [one, other]
            try:
                found = parse_edges(board, text)
            except InputError:
                assert first == short and second == str(other), text
            else:
                assert found == expected, text
                taken += 1
    assert taken > 400


@pytest.mark.parametrize("text", ["1,h0,1", "h0,1:2", "h0,1v1,2", "h01,3", "h01 3", "5" * 10**6])
def test_a_list_with_what_is_no_edge_or_twice_there_is_refused_in_short(text):
    with pytest.raises(InputError, match="edge") as caught:
        parse_edges(DotsAndBoxes(2, 3), text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("sides", [(3.0, 3), (3, True), (2, -1), ("3", 3)])
def test_a_board_has_whole_sides(sides):
    with pytest.raises(InputError, match=r"^(rows|cols): .*whole number"):
        DotsAndBoxes(*sides)


def test_a_board_of_numbers_of_numpy_is_the_same_board():
    board = DotsAndBoxes(np.int64(2), np.uint8(3))
    assert board == DotsAndBoxes(2, 3) and hash(board) == hash(DotsAndBoxes(2, 3))
    assert repr(board) == repr(DotsAndBoxes(2, 3)) and type(board.rows) is int


def test_the_picture_shows_lines_names_and_owners():
    board = DotsAndBoxes(1, 2)
    drawn = np.zeros(board.num_edges, bool)
    drawn[[0, 2, 4, 5]] = True
    assert render(board, drawn, owners={0: "A"}).splitlines() == [
        "  +-------+  h0,1 +",
        "  |       |",
        "  |   A   |     v0,2",
        "  |       |",
        "  +-------+  h1,1 +",
    ]
