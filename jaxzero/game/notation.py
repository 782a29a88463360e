"""Names of edges: `h2,1` is the horizontal edge in row 2 of dots, column 1 of boxes."""

from __future__ import annotations

import re

from jaxzero.game.rules import DotsAndBoxes

_NAME = re.compile(r"([hv])\s*(\d+)[\s,]+(\d+)|([hv])(\d)(\d)", re.IGNORECASE)


def edge_name(game: DotsAndBoxes, edge: int) -> str:
    """Return the name of an edge, such as `h2,1` or `v0,3`.

    Raises: IndexError for a number that is not an edge of the board.
    """
    if not 0 <= edge < game.num_edges:
        raise IndexError(f"edge {edge} is not on a {game} board (0 to {game.num_edges - 1})")
    if edge < game.num_horizontal:
        return "h{},{}".format(*divmod(edge, game.cols))
    return "v{},{}".format(*divmod(edge - game.num_horizontal, game.cols + 1))


def parse_edge(game: DotsAndBoxes, text: str) -> int:
    """Return the number of the edge that `text` names: `h2,1`, `h 2 1`, `h21` or its number.

    Raises: ValueError, with the text, for anything else and for edges off the board.
    """
    text = text.strip()
    if text.isdecimal():
        edge = int(text)
        if edge >= game.num_edges:
            raise ValueError(f"edge {text} is not on a {game} board (0 to {game.num_edges - 1})")
        return edge
    match = _NAME.fullmatch(text)
    if match is None:
        raise ValueError(f"edge {text!r} is neither a number nor a name such as h2,1 or v0,3")
    kind, row, col = (match[1], match[2], match[3]) if match[1] else (match[4], match[5], match[6])
    return _edge_at(game, kind.lower(), int(row), int(col))


def _edge_at(game: DotsAndBoxes, kind: str, row: int, col: int) -> int:
    rows, cols = (game.rows + 1, game.cols) if kind == "h" else (game.rows, game.cols + 1)
    if row >= rows or col >= cols:
        raise ValueError(
            f"edge {kind}{row},{col} is not on a {game} board "
            f"({kind} rows 0 to {rows - 1}, columns 0 to {cols - 1})"
        )
    offset = 0 if kind == "h" else game.num_horizontal
    return offset + row * cols + col
