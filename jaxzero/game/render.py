"""Boards as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jaxzero.game.notation import edge_name
from jaxzero.game.rules import DotsAndBoxes

_WIDTH = 7  # characters between two dots


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
    """Draw the vertical edges of one row; a label is centred on its edge and may run into boxes."""
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
