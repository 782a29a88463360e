"""The picture of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxzero.files import save_figure

PANELS = {
    "Loss": ["learn/policy_loss", "learn/margin_loss"],
    "Policy, nats": ["selfplay/policy_entropy", "learn/policy_divergence"],
    "Error of the remaining margin, boxes": ["learn/margin_error"],
    "Speed, games per second": ["speed/games_per_second"],
    "Result of self-play, boxes for the first player": ["selfplay/first_margin"],
}


def draw_curves(path: Path, title: str, metrics: list[dict[str, Any]]) -> None:
    """Draw losses, entropy, speed and strength over the iterations of a run into a PNG."""
    figure = Figure(figsize=(15, 7), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(2, 4).ravel()
    for axis, (name, series) in zip(axes, PANELS.items(), strict=False):
        for key in series:
            _draw_series(axis, metrics, key, key.split("/")[1].replace("_", " "))
        _finish(axis, name)
    groups = {
        "Points in matches, %": ("versus/", "/points", 100.0, 0.0),
        "Wrong moves on solved positions, %": ("suite/", "/optimal_share", -100.0, 100.0),
        "Boxes lost a move on solved positions": ("suite/", "/boxes_lost", 1.0, 0.0),
    }
    for axis, (name, (prefix, suffix, scale, offset)) in zip(
        axes[len(PANELS) :], groups.items(), strict=True
    ):
        keys = {key for line in metrics for key in line}
        for key in sorted(key for key in keys if key.startswith(prefix) and key.endswith(suffix)):
            _draw_series(axis, metrics, key, key.split("/")[1], "o", scale, offset)
        axis.set_ylim(bottom=0)
        _finish(axis, name)
    save_figure(path, figure)


def _draw_series(
    axis: Axes,
    metrics: list[dict[str, Any]],
    key: str,
    label: str,
    marker: str = "",
    scale: float = 1.0,
    offset: float = 0.0,
) -> None:
    points = [(line["iteration"], offset + scale * line[key]) for line in metrics if key in line]
    if points:
        axis.plot(*zip(*points, strict=True), label=label, marker=marker, markersize=3)


def _finish(axis: Axes, title: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("iteration")
    axis.grid(alpha=0.3)
    if axis.get_lines():
        axis.legend(fontsize=8)
