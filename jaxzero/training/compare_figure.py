"""The picture of runs side by side: distance from perfect play against minutes and games."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from jaxzero.files import save_figure
from jaxzero.training.compare import Entry, players

STYLES = ("--", "-", ":", "-.")
FLOOR = 0.05  # percent; below it a suite of some thousand positions says nothing


def draw_comparison(path: Path, entries: Sequence[Entry]) -> None:
    """Draw the wrong moves of every run into a PNG; entries by colour, players by style."""
    figure = Figure(figsize=(13, 5.5), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, field in zip(axes, ("minutes", "games"), strict=True):
        _draw(axis, entries, field)
        axis.set_xlabel(f"{field} of self-play and learning")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.grid(alpha=0.3, which="both")
        for scale in (axis.xaxis, axis.yaxis):
            scale.set_major_locator(LogLocator(subs=(1, 2, 5)))
            scale.set_major_formatter("{x:,g}")
            scale.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel("wrong moves on solved positions, %")
    handles, labels = axes[0].get_legend_handles_labels()
    columns = min(3, len(players(entries)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8)
    save_figure(path, figure)


def _draw(axis: Axes, entries: Sequence[Entry], field: str) -> None:
    for player, style in zip(players(entries), STYLES, strict=False):
        for number, entry in enumerate(entries):
            for seed, run in enumerate(entry.runs):
                places = [p for p in run.points if player in p.wrong]
                axis.plot(
                    [getattr(p, field) for p in places],
                    [max(FLOOR, p.wrong[player]) for p in places],
                    style,
                    color=f"C{number % 10}",
                    marker="o",
                    markersize=2.5,
                    linewidth=1.2,
                    label=None if seed else f"{entry.name}, {player}",
                )
