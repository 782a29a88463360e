"""The picture of a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxzero.files import save_figure

Row = dict[str, Any]
Line = tuple  # values of all swept fields but the first

SHARES = {
    "selfplay_of_network": "self-play, of the network alone",
    "learning_share": "time spent learning",
    "mfu": "of the ceiling of matrix products",
}


def draw_sweep(path: Path, rows: list[Row], knees: dict[Line, Row | None]) -> None:
    """Draw speed and shares against the first swept field into a PNG, a line per combination
    of the others."""
    fields = list(rows[0]["settings"])
    # Evenly spaced, whatever the values: lists double, or hold one absurd entry, or words.
    ticks = sorted({_first(row) for row in rows})
    figure = Figure(figsize=(12, 5), layout="constrained")
    speeds, shares = figure.subplots(1, 2)
    _draw_speeds(speeds, rows, knees, ticks, fields)
    if len(knees) == 1:
        for key, name in SHARES.items():
            _draw_line(shares, rows, ticks, key, name, 100.0)
        shares.set_ylabel("%")
    else:
        for line in knees:
            here = [row for row in rows if _others(row) == line]
            _draw_line(shares, here, ticks, "mfu", _name(fields, line), 100.0)
        shares.set_ylabel("of the ceiling of matrix products, %")
    for axis in (speeds, shares):
        axis.set_xlabel(fields[0] if fields else "")
        crowded = len(ticks) > 6
        axis.set_xticks(range(len(ticks)), list(map(_text, ticks)), rotation=45 if crowded else 0)
        axis.set_xlim(-0.4, len(ticks) - 0.6)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    save_figure(path, figure)


def _draw_speeds(
    axis: Axes, rows: list[Row], knees: dict[Line, Row | None], ticks: list, fields: list[str]
) -> None:
    marked = "knee: smallest with 90 % of the best"
    for line, knee in knees.items():
        here = [row for row in rows if _others(row) == line]
        _draw_line(axis, here, ticks, "games_per_second", _name(fields, line) or None)
        if knee is not None:
            place = ticks.index(_first(knee)), knee["games_per_second"]
            axis.plot(*place, "o", ms=13, mfc="none", color="black", label=marked)
            marked = None
    failed = {_first(row): row["status"] for row in rows if row["status"] != "ok"}
    for value, status in failed.items():
        place = ticks.index(value)
        axis.plot(place, 0, "x", color="tab:red", clip_on=False, ms=9, mew=2)
        axis.annotate(
            status,
            (place, 0),
            xytext=(0, 10),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=8,
            color="tab:red",
        )
    axis.set_ylabel("games per second, learning included")


def _draw_line(
    axis: Axes, rows: list[Row], ticks: list, key: str, name: str | None, scale: float = 1.0
) -> None:
    points = [
        (ticks.index(_first(row)), scale * row[key])
        for row in rows
        if row["status"] == "ok" and row[key] is not None
    ]
    if points:
        axis.plot(*zip(*sorted(points), strict=True), marker="o", markersize=4, label=name)


def _first(row: Row) -> Any:
    return next(iter(row["settings"].values()), "")


def _others(row: Row) -> Line:
    return tuple(row["settings"].values())[1:]


def _name(fields: list[str], line: Line) -> str:
    return ", ".join(
        f"{name.split('.')[-1]} {_text(value)}"
        for name, value in zip(fields[1:], line, strict=True)
    )


def _text(value: Any) -> str:
    return f"{value:,}" if type(value) is int else str(value)
