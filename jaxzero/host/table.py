"""Format tables for a terminal, a pipe or a file."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], align: str = "l") -> str:
    """Return a table with a rule below its headings; a cell of None is shown as "-".

    `align` has l (left) or r (right) for each column; its last letter stands for all further ones.
    """
    cells = [["-" if cell is None else str(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    sides = align.ljust(len(widths), align[-1])

    def line(row: Sequence[str]) -> str:
        padded = []
        for cell, width, side in zip(row, widths, sides, strict=False):
            space = " " * (width - cell_len(cell))  # cell_len: wide characters take two places
            padded.append(space + cell if side == "r" else cell + space)
        return "  ".join(padded).rstrip()

    return "\n".join(map(line, cells))
