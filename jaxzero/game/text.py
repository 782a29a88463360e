"""Names of edges and pictures of boards, as text.

`h2,1` is the horizontal edge in row 2 of dots and column 1 of boxes; `v2,1` is the vertical edge in
row 2 of boxes and column 1 of dots.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from reprlib import repr as shown
from typing import Any

import numpy as np

from jaxzero.errors import InputError
from jaxzero.game.rules import DotsAndBoxes

_PLACE = r"(0|[1-9]\d*)"  # no 01: h01,3 could also be h0,1 and edge 3
_NAME = re.compile(rf"([hv])\s*{_PLACE}[\s,]+{_PLACE}|([hv])(\d)(\d)", re.IGNORECASE)
# In a list a blank or comma can be inside a name or between names: the longest name counts.
_ENTRY = re.compile(r"(?:[hv]\s*\d+[\s,]+\d+|[hv]?\d+)(?![^\s,;])|[^\s,;][^\s;]*", re.IGNORECASE)
# h11 3 could be h11,3, or h1,1 and edge 3.
_TWO_WAYS = re.compile(r"[hv]\d\d(?!,\d)[\s,]", re.IGNORECASE)
_WIDTH = 7  # characters between two dots


def edge_name(board: DotsAndBoxes, edge: int) -> str:
    """Return the name of an edge, such as `h2,1` or `v0,3`.

    Raises: IndexError for a number that is not an edge of the board.
    """
    if not 0 <= edge < board.num_edges:
        raise IndexError(f"edge {edge} is not on a {board} board (0 to {board.num_edges - 1})")
    return "{}{},{}".format(*place_of(board, edge))


def place_of(board: DotsAndBoxes, edge: int) -> tuple[str, int, int]:
    """Return the kind of an edge, `h` or `v`, its row and its column."""
    if edge < board.num_horizontal:
        return "h", *divmod(edge, board.cols)
    return "v", *divmod(edge - board.num_horizontal, board.cols + 1)


def edge_at(board: DotsAndBoxes, kind: str, row: int, col: int) -> int | None:
    """Return the number of the edge of a kind, `h` or `v`, at a place; None off the board."""
    rows, cols = board.rows + (kind == "h"), board.cols + (kind == "v")
    if not (0 <= row < rows and 0 <= col < cols):
        return None
    return (0 if kind == "h" else board.num_horizontal) + row * cols + col


def plain(text: str) -> str:
    """Return a text with plain letters, digits and commas for those of East Asian keyboards."""
    return unicodedata.normalize("NFKC", text).replace("、", ",")


def drawn_of(board: DotsAndBoxes, position: Any) -> np.ndarray:
    """Return the drawn edges of a position: [A] bool.

    A position is a text for `parse_edges`, the numbers or names of the drawn edges, each once, or A
    booleans, True where an edge is drawn. Arrays of NumPy and JAX are taken as lists.
    Raises: InputError for anything else.
    """
    try:
        return _drawn_of(board, to_python(position))
    except InputError as error:
        raise InputError(f"position: {error}") from error


def _drawn_of(board: DotsAndBoxes, position: Any) -> np.ndarray:
    if isinstance(position, str):
        edges = parse_edges(board, position)
    else:
        is_list = isinstance(position, Iterable) and not isinstance(
            position, Mapping | bytes | bytearray
        )
        if not is_list:
            raise InputError(f"{shown(position)} must be a list of drawn edges")
        entries = [to_python(entry) for entry in position]
        if entries and all(isinstance(entry, bool) for entry in entries):
            if len(entries) != board.num_edges:
                raise InputError(f"{len(entries)} booleans must be {board.num_edges}")
            return np.array(entries)
        for entry in entries:
            if isinstance(entry, bool) or not isinstance(entry, int | str):
                raise InputError(f"{shown(entry)} must be the number or name of an edge: 7 or h2,1")
        edges = [parse_edge(board, str(entry)) for entry in entries]
    drawn = np.zeros(board.num_edges, bool)
    drawn[edges] = True
    if drawn.sum() < len(edges):  # as in a mask of zeros and ones, of drawn or of legal edges
        raise InputError(
            f"{shown(edges)} has an edge twice; a position is the drawn edges, each once, or "
            f"{board.num_edges} booleans, True where an edge is drawn"
        )
    return drawn


def to_python(value: Any) -> Any:
    """Return an array or a number of NumPy or JAX as a list or as Python's own number."""
    return np.asarray(value).tolist() if hasattr(value, "__array__") else value


def parse_edges(board: DotsAndBoxes, text: str) -> list[int]:
    """Return the numbers of the edges in a text, each written as for `parse_edge`.

    Blanks, commas and semicolons separate edges. Raises: InputError for a word that is no edge or
    could be two, and for an edge that is listed twice.
    """
    edges: list[int] = []
    for word in _ENTRY.findall(plain(text)):
        if _TWO_WAYS.match(word):
            raise InputError(f"edge {word!r} can be read in two ways: write names as h1,1")
        edge = parse_edge(board, word)
        if edge in edges:
            raise InputError(f"edge {edge_name(board, edge)} is listed twice")
        edges.append(edge)
    return edges


def parse_edge(board: DotsAndBoxes, text: str) -> int:
    """Return the number of the edge that `text` names: `h2,1`, `h 2 1`, `h21` or its number.

    Raises: InputError, with the text, for anything else and for edges off the board.
    """
    text = plain(text).strip()
    if text.isdecimal() and len(text) < 10:  # Python reads no number of thousands of digits
        edge = int(text)
        if edge >= board.num_edges:
            raise InputError(f"edge {text} is not on a {board} board (0 to {board.num_edges - 1})")
        return edge
    match = _NAME.fullmatch(text)
    if match is None:
        raise InputError(f"edge {text[:40]!r} is neither a number nor a name such as h2,1 or v0,3")
    kind, row, col = (group for group in match.groups() if group)
    kind, row, col = kind.lower(), int(row), int(col)
    edge = edge_at(board, kind, row, col)
    if edge is None:
        rows, cols = board.rows - (kind == "v"), board.cols - (kind == "h")
        raise InputError(
            f"edge {kind}{row},{col} is not on a {board} board "
            f"({kind} rows 0 to {rows}, columns 0 to {cols})"
        )
    return edge


def render(
    board: DotsAndBoxes,
    drawn: Sequence[bool],
    owners: Mapping[int, str] | None = None,
    labels: Mapping[int, str] | None = None,
) -> str:
    """Draw one board: lines for drawn edges, `labels` (default: the names) for the others.

    `drawn` is [A] bool. `owners` maps a box (row by row) to a short mark drawn inside it.
    """
    owners = owners or {}
    if labels is None:
        labels = {edge: edge_name(board, edge) for edge in range(board.num_edges)}
    drawn = np.asarray(drawn, bool)
    lines = []
    for row in range(board.rows + 1):
        lines.append(_dots(board, drawn, row, labels))
        if row < board.rows:
            lines.append(_boxes(board, drawn, row, {}, {}))
            lines.append(_boxes(board, drawn, row, owners, labels))
            lines.append(_boxes(board, drawn, row, {}, {}))
    return "\n".join(line.rstrip() for line in lines)


def _dots(board: DotsAndBoxes, drawn: np.ndarray, row: int, labels: Mapping[int, str]) -> str:
    edges = range(row * board.cols, (row + 1) * board.cols)
    spans = ["-" * _WIDTH if drawn[e] else labels.get(e, "").center(_WIDTH) for e in edges]
    return "  +" + "+".join(spans) + "+"


def _boxes(
    board: DotsAndBoxes,
    drawn: np.ndarray,
    row: int,
    owners: Mapping[int, str],
    labels: Mapping[int, str],
) -> str:
    """Draw the vertical edges of one row. Labels are centred on edges and may reach into boxes."""
    canvas = [" "] * ((board.cols + 1) * (_WIDTH + 1) + 4)
    first = board.num_horizontal + row * (board.cols + 1)
    for col in range(board.cols + 1):
        mark = "|" if drawn[first + col] else labels.get(first + col, "")
        _write(canvas, 2 + col * (_WIDTH + 1), mark)
        owner = owners.get(row * board.cols + col, "") if col < board.cols else ""
        _write(canvas, 2 + col * (_WIDTH + 1) + (_WIDTH + 1) // 2, owner)
    return "".join(canvas)


def _write(canvas: list[str], centre: int, text: str) -> None:
    start = max(0, centre - len(text) // 2)
    canvas[start : start + len(text)] = text
