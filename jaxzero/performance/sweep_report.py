"""The report of a sweep: the fastest point, the knee, the largest point, a table and a figure."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxzero.cli import dotted
from jaxzero.host.files import save_figure, write_csv, write_json
from jaxzero.performance.report import SPEED, WIDTH, Share, table
from jaxzero.performance.sweep import Row, headline, label

KNEE = 0.9  # share of the best speed that is good enough
COLUMNS = (
    (SPEED, "games/s", lambda x: f"{x:,.0f}" if x >= 100 else f"{x:.3g}"),
    ("decisions_per_second_with_learning", "decisions\n/s", lambda x: f"{x:,.0f}"),
    ("evaluations_per_second_with_learning", "evals/s", lambda x: f"{x:,.0f}"),
    ("selfplay_of_network", "of the\nnetwork", lambda x: Share(x, "network", 0)),
    ("learner_samples_per_second", "samples\n/s", lambda x: f"{x:,.0f}"),
    ("learning_share", "time\nlearning", lambda x: Share(x, "whole", 0)),
    ("replay_ratio", "replay\nratio", lambda x: f"{x:.3g}"),
    ("iteration_mfu", "MFU", lambda x: Share(x, "products")),
    ("peak_memory_bytes", "peak\nMiB", lambda x: f"{x / 2**20:,.0f}"),
    ("predicted_memory_bytes", "predicted\nMiB", lambda x: f"{x / 2**20:,.0f}"),
    ("compile_seconds", "compile\ns", lambda x: f"{x:.0f}"),
)
CHOICES = {
    "best": "best games/s",
    "knee": f"smallest with {KNEE:.0%} of it",
    "largest": "largest tried",
}
TOO_LARGE = ("does not fit", "out of memory")  # states of a point
RISING = 1.05  # times the speed of the point before: more than noise
CURVES = {
    "selfplay_of_network": "self-play, of the network alone",
    "learning_share": "time spent learning",
    "iteration_mfu": "of the ceiling of matrix products",
}


def choices(rows: list[Row]) -> dict[str, Row]:
    """Return the fastest point, the knee and the largest point that ran; empty where none did.

    The knee has the smallest value of the first swept field that still reaches KNEE of the best
    games per second, the other fields as at the best point.
    """
    ran = [row for row in rows if row["status"] == "ok"]
    if not ran:
        return {}
    best = max(ran, key=lambda row: row[SPEED])
    enough = [
        row
        for row in ran
        if other_values(row) == other_values(best) and row[SPEED] >= KNEE * best[SPEED]
    ]
    # Of equal sizes the last.
    sizes = [row["predicted_memory_bytes"] or row["peak_memory_bytes"] for row in ran]
    largest = max(range(len(ran)), key=lambda i: (sizes[i], i))
    return {"best": best, "knee": min(enough, key=first_value), "largest": ran[largest]}


def names_of_choices(rows: list[Row]) -> dict[str, str]:
    """Return `CHOICES`; the largest point is the largest that fits where a larger one did not."""
    fits = any(row["status"] in TOO_LARGE for row in rows)
    return CHOICES | ({"largest": "largest that fits"} if fits else {})


def advice(rows: list[Row], best: Row) -> str:
    """Return a line where the best point is the last of its list and the speed still rises."""
    line = [row for row in rows if other_values(row) == other_values(best)]
    ran = [row for row in line if row["status"] == "ok"]
    if line[-1] is not best or len(ran) < 2 or isinstance(first_value(best), (str, bool)):
        return ""
    if best[SPEED] < RISING * ran[-2][SPEED]:
        return ""
    field = next(iter(best["settings"]))
    return f"games/s still rises at the end of the list: try {field} above {first_value(best):,}"


def sweep_table(rows: list[Row], chosen: dict[str, Row]) -> str:
    """Lay rows out, marked B, K or L where chosen as best, knee or largest; then the failures."""
    fields = [name.split(".")[-1].replace("_", "\n") for name in rows[0]["settings"]]
    cells = []
    for row in rows:
        values = ((row.get(key), write) for key, _, write in COLUMNS)
        if row["status"] == "ok":
            written = [None if value is None else write(value) for value, write in values]
        else:
            written = [textwrap.fill(row["status"], 8)] + [""] * (len(COLUMNS) - 1)
        marks = "".join(name[0].upper() for name, other in chosen.items() if other is row)
        cells.append([*row["settings"].values(), *written, marks])
    headings = [*fields, *(heading for _, heading, _ in COLUMNS), ""]
    failures = [headline(row) for row in rows if row["status"] != "ok"]
    align = "r" * (len(headings) - 1) + "l"
    return "\n".join([table(headings, cells, align), *failures])


def write_report(out: Path, base: dict[str, Any], rows: list[Row]) -> None:
    """Write `results.csv`, `results.json` and `figure.png`, and print table and choices."""
    chosen, ran = choices(rows), [row for row in rows if row["status"] == "ok"]
    named = {name: row["settings"] for name, row in chosen.items()}
    write_json(out / "results.json", {"base": base, "points": rows, **named})
    flat = [dict(dotted({**row["settings"], **row, "settings": {}})) for row in rows]
    write_csv(out / "results.csv", list(dict.fromkeys(name for row in flat for name in row)), flat)
    draw_sweep(out / "figure.png", rows, chosen.get("knee"))
    print("\n" + sweep_table(rows, chosen) + "\n")
    words = names_of_choices(rows)
    for name, row in chosen.items():
        print(f"{name[0].upper()}  {words[name]:<24} {headline(row)}")
    if chosen and (line := advice(rows, chosen["best"])):
        print(f"   {line}")
    devices = {f"{row['device']}, jax {row['versions']['jax']}" for row in ran}
    print(f"   {'measured on':<24} {'; '.join(sorted(devices)) or '-'}")
    for note in dict.fromkeys(str(note) for row in ran for note in row.get("notes", [])):
        print(textwrap.fill(f"note: {note}", WIDTH))
    print(", ".join(str(out / name) for name in ("results.csv", "results.json", "figure.png")))


def draw_sweep(path: Path, rows: list[Row], knee: Row | None) -> None:
    """Draw speed and shares against the first swept field, a line for each value of the others."""
    fields = list(rows[0]["settings"])
    # Evenly spaced, whatever the values: lists double, or hold one absurd entry, or words.
    ticks = sorted({first_value(row) for row in rows})
    lines = dict.fromkeys(other_values(row) for row in rows)
    figure = Figure(figsize=(12, 5), layout="constrained")
    speeds, shares = figure.subplots(1, 2)
    for number, line in enumerate(lines):
        here = [row for row in rows if other_values(row) == line]
        name = label(dict(zip(fields[1:], line, strict=True))) if line else ""
        _draw_line(speeds, here, ticks, SPEED, name, f"C{number}")
        curves = CURVES.items() if len(lines) == 1 else [("iteration_mfu", name)]
        for other, (key, text) in enumerate(curves, start=number + (len(lines) == 1)):
            _draw_line(shares, here, ticks, key, text, f"C{other}", 100.0)
    speeds.set_ylabel("games per second, learning included")
    shares.set_ylabel("%" if len(lines) == 1 else "of the ceiling of matrix products, %")
    if knee:
        ring = {"ms": 13, "mfc": "none", "color": "black", "label": CHOICES["knee"]}
        speeds.plot(ticks.index(first_value(knee)), knee[SPEED], "o", **ring)
    for axis in (speeds, shares):
        axis.set_xlabel(fields[0] if fields else "")
        turned = 45 if len(ticks) > 6 else 0
        texts = [f"{tick:,}" if type(tick) is int else str(tick) for tick in ticks]
        axis.set_xticks(range(len(ticks)), texts, rotation=turned)
        axis.set_xlim(-0.4, len(ticks) - 0.6)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    save_figure(path, figure)


def _draw_line(
    axis: Axes,
    rows: list[Row],
    ticks: list,
    key: str,
    name: str,
    color: str,
    scale: float = 1.0,
) -> None:
    points = sorted(
        (ticks.index(first_value(row)), scale * row[key])
        for row in rows
        if row["status"] == "ok" and row[key] is not None
    )
    if points:
        style = {"marker": "o", "markersize": 4, "color": color}
        axis.plot(*zip(*points, strict=True), label=name or None, **style)


def first_value(row: Row) -> Any:
    """Return the value of the first swept field."""
    return next(iter(row["settings"].values()), "")


def other_values(row: Row) -> tuple:
    """Return the values of the other swept fields, which one line of the figure shares."""
    return tuple(row["settings"].values())[1:]
