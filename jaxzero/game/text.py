"""Names of edges and pictures of boards, as text.

`h2,1` is the horizontal edge in row 2 of dots and column 1 of boxes; `v2,1` is the vertical edge in
row 2 of boxes and column 1 of dots.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from jaxzero.game.rules import DotsAndBoxes

_NAME = re.compile(r"([hv])\s*(\d+)[\s,]+(\d+)|([hv])(\d)(\d)", re.IGNORECASE)
_WIDTH = 7  # characters between two dots


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
    kind, row, col = (group for group in match.groups() if group)
    kind, row, col = kind.lower(), int(row), int(col)
    rows, cols = (game.rows + 1, game.cols) if kind == "h" else (game.rows, game.cols + 1)
    if row >= rows or col >= cols:
        raise ValueError(
            f"edge {kind}{row},{col} is not on a {game} board "
            f"({kind} rows 0 to {rows - 1}, columns 0 to {cols - 1})"
        )
    offset = 0 if kind == "h" else game.num_horizontal
    return offset + row * cols + col


def render(
    game: DotsAndBoxes,
    drawn: Sequence[bool],
    owners: Mapping[int, str] | None = None,
    labels: Mapping[int, str] | None = None,
) -> str:
    """Draw one board: lines for drawn edges, `labels` (default: the names) for the others.

    `drawn` is [A] bool. `owners` maps a box (row by row) to a short mark drawn inside it.
    """
    owners = owners or {}
    if labels is None:
        labels = {edge: edge_name(game, edge) for edge in range(game.num_edges)}
    drawn = np.asarray(drawn, bool)
    lines = []
    for row in range(game.rows + 1):
        lines.append(_dots(game, drawn, row, labels))
        if row < game.rows:
            lines.append(_boxes(game, drawn, row, {}, {}))
            lines.append(_boxes(game, drawn, row, owners, labels))
            lines.append(_boxes(game, drawn, row, {}, {}))
    return "\n".join(line.rstrip() for line in lines)


def _dots(game: DotsAndBoxes, drawn: np.ndarray, row: int, labels: Mapping[int, str]) -> str:
    edges = range(row * game.cols, (row + 1) * game.cols)
    spans = ["-" * _WIDTH if drawn[e] else labels.get(e, "").center(_WIDTH) for e in edges]
    return "  +" + "+".join(spans) + "+"


def _boxes(
    game: DotsAndBoxes,
    drawn: np.ndarray,
    row: int,
    owners: Mapping[int, str],
    labels: Mapping[int, str],
) -> str:
    """Draw the vertical edges of one row. A label is centred on its edge, may run into boxes."""
    canvas = [" "] * ((game.cols + 1) * (_WIDTH + 1) + 4)
    first = game.num_horizontal + row * (game.cols + 1)
    for col in range(game.cols + 1):
        mark = "|" if drawn[first + col] else labels.get(first + col, "")
        _write(canvas, 2 + col * (_WIDTH + 1), mark)
        owner = owners.get(row * game.cols + col, "") if col < game.cols else ""
        _write(canvas, 2 + col * (_WIDTH + 1) + (_WIDTH + 1) // 2, owner)
    return "".join(canvas)


def _write(canvas: list[str], centre: int, text: str) -> None:
    start = max(0, centre - len(text) // 2)
    canvas[start : start + len(text)] = text
