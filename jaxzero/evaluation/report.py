"""Scores as tables for people and as figures."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from jaxzero.files import save_figure

COLUMNS = {
    "positions": "positions",
    "optimal_share": "optimal",
    "decisive_optimal_share": "decisive",
    "boxes_lost": "boxes lost",
    "wins_lost_share": "wins lost",
    "value_error": "value error",
    "sign_accuracy": "right sign",
}
SHARES = ("optimal_share", "decisive_optimal_share", "wins_lost_share", "sign_accuracy")


def format_scores(scores: dict[str, dict]) -> str:
    """Return a table of the scores of several players, by undrawn edges: {player: score()}."""
    lines = [f"{'':<26}" + "".join(f"{title:>12}" for title in COLUMNS.values())]
    for player, parts in scores.items():
        lines.append(_row(f"{player}, all", parts["all"]))
        lines += [_row(f"  {band} undrawn", part) for band, part in parts["by_undrawn"].items()]
    return "\n".join(lines)


def _row(title: str, part: dict) -> str:
    cells = (_cell(name, part.get(name)) for name in COLUMNS)
    return f"{title:<26}" + "".join(f"{cell:>12}" for cell in cells)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name in SHARES:
        return f"{value:.1%}"
    return f"{value:,}" if name == "positions" else f"{value:.3f}"


def draw_scores(
    path: Path, title: str, scores: dict[str, dict], calibrations: dict[str, list[dict]]
) -> None:
    """Draw wrong moves, value error by undrawn edges and calibration into a PNG."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    figure.suptitle(title)
    wrong, error, calibrated = figure.subplots(1, 3)
    for player, parts in scores.items():
        bands = parts["by_undrawn"]
        shares = [100 * (1 - part["optimal_share"]) for part in bands.values()]
        wrong.plot(list(bands), shares, marker="o", label=player)
        errors = {
            band: part["value_error"] for band, part in bands.items() if "value_error" in part
        }
        if errors:
            error.plot(list(errors), list(errors.values()), marker="o", label=player)
    for player, bins in calibrations.items():
        predicted, true = ([100 * part[key] for part in bins] for key in ("predicted", "true"))
        calibrated.plot(predicted, true, marker="o", label=player)
    calibrated.plot([0, 100], [0, 100], color="grey", linewidth=0.8)
    names = ("Wrong moves, %", "Value error, boxes", "Positions won, %: true against predicted")
    for axis, name in zip((wrong, error, calibrated), names, strict=True):
        axis.set_title(name, fontsize=10)
        axis.grid(alpha=0.3)
        axis.set_xlabel("predicted, %" if axis is calibrated else "undrawn edges")
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    wrong.set_ylim(bottom=0)
    error.set_ylim(bottom=0)
    save_figure(path, figure)


def draw_ladder(path: Path, ladder: list[dict]) -> None:
    """Draw Elo with its intervals over the iterations of a run into a PNG."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    steps = [rung for rung in ladder if rung["iteration"] is not None]
    elo = [rung["elo"] for rung in steps]
    spread = [
        [rung["elo"] - rung["low"] for rung in steps],
        [rung["high"] - rung["elo"] for rung in steps],
    ]
    axis.errorbar([rung["iteration"] for rung in steps], elo, yerr=spread, marker="o", capsize=3)
    for rung in ladder:
        if rung["iteration"] is None:
            axis.axhline(rung["elo"], linestyle="--", linewidth=0.8, color="grey")
            axis.annotate(rung["name"], (0, rung["elo"]), fontsize=8)
    axis.set_xlabel("iteration")
    axis.set_ylabel("Elo, 95 % intervals")
    axis.grid(alpha=0.3)
    save_figure(path, figure)
