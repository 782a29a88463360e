"""The picture of several studies: errors against time and against positions seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxzero.files import save_figure

ACROSS = {"seconds": "seconds of learning", "positions": "positions seen"}
DOWN = {
    "wrong_decisive": "wrong moves in decisive positions, %",
    "value_error": "value error, boxes",
}


def draw_comparison(path: Path, results: dict[str, dict[str, Any]]) -> None:
    """Draw the curves of results by name into a PNG, all axes logarithmic."""
    figure = Figure(figsize=(12, 8), layout="constrained")
    axes = figure.subplots(len(DOWN), len(ACROSS), sharex="col", sharey="row")
    for row, (error, error_name) in enumerate(DOWN.items()):
        for column, (effort, effort_name) in enumerate(ACROSS.items()):
            axis = axes[row, column]
            for name, result in results.items():
                _draw_line(axis, result["curve"], effort, error, name)
            axis.set(xscale="log", yscale="log")
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("{x:g}")
            axis.grid(alpha=0.3, which="both")
            if row == len(DOWN) - 1:
                axis.set_xlabel(effort_name)
            if column == 0:
                axis.set_ylabel(error_name)
    axes[0, 0].legend(fontsize=8)
    save_figure(path, figure)


def _draw_line(axis: Axes, curve: list[dict], effort: str, error: str, name: str) -> None:
    scale = 100.0 if error == "wrong_decisive" else 1.0
    # Nothing at 0, before the start and for errors that are gone, has a place on these axes.
    points = [(at[effort], scale * at[error]) for at in curve if at[effort] and at[error]]
    axis.plot(*zip(*points, strict=True) if points else ((), ()), marker="o", ms=4, label=name)
