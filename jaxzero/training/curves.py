"""The picture of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

PANELS = {
    "Loss": ["learn/policy_loss", "learn/margin_loss"],
    "Policy, nats": ["selfplay/policy_entropy", "learn/policy_divergence"],
    "Error of the remaining margin, boxes": ["learn/margin_error"],
    "Speed, games per second": ["speed/games_per_second"],
}


def draw_curves(path: Path, title: str, metrics: list[dict[str, Any]]) -> None:
    """Draw losses, entropy, speed and strength over the iterations of a run into a PNG."""
    figure = Figure(figsize=(12, 7), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(2, 3).ravel()
    for axis, (name, series) in zip(axes, PANELS.items(), strict=False):
        for key in series:
            _draw_series(axis, metrics, key, key.split("/")[1].replace("_", " "))
        _finish(axis, name)
    strength = sorted({key for line in metrics for key in line if key.startswith("versus/")})
    for key in strength:
        if key.endswith("/points"):
            _draw_series(axes[4], metrics, key, key.split("/")[1], marker="o", scale=100)
    axes[4].set_ylim(0, 102)
    _finish(axes[4], "Points in matches, %")
    _draw_series(axes[5], metrics, "selfplay/first_margin", "mean margin of the first player")
    _finish(axes[5], "Result of self-play, boxes")
    figure.savefig(path, dpi=110)


def _draw_series(
    axis: Axes,
    metrics: list[dict[str, Any]],
    key: str,
    label: str,
    marker: str = "",
    scale: float = 1.0,
) -> None:
    points = [(line["iteration"], scale * line[key]) for line in metrics if key in line]
    if points:
        axis.plot(*zip(*points, strict=True), label=label, marker=marker, markersize=3)


def _finish(axis: Axes, title: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("iteration")
    axis.grid(alpha=0.3)
    if axis.get_lines():
        axis.legend(fontsize=8)
