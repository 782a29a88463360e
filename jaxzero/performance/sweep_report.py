"""What a sweep tells people: lines, a table, the choices it suggests, CSV and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from jaxzero.files import write_csv, write_json
from jaxzero.performance.sweep_figure import draw_sweep
from jaxzero.training.throughput import share_cell, share_notes

Row = dict[str, Any]

WIDTH = 120  # characters of a line of the table, at most
KNEE = 0.9  # share of the best speed that is good enough

COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "games_per_second": ("games/s", lambda x: f"{x:,.0f}" if x >= 100 else f"{x:.3g}"),
    "evaluations_per_second": ("evals/s", lambda x: f"{x:,.0f}"),
    "selfplay_of_network": ("of the network", share_cell),
    "samples_per_second": ("samples/s", lambda x: f"{x:,.0f}"),
    "learning_share": ("time learning", share_cell),
    "replay_ratio": ("replay ratio", lambda x: f"{x:.3g}"),
    "mfu": ("MFU", partial(share_cell, places=1)),
    "peak_memory_bytes": ("peak MiB", lambda x: f"{x / 2**20:,.0f}"),
    "predicted_memory_bytes": ("predicted MiB", lambda x: f"{x / 2**20:,.0f}"),
    "compile_seconds": ("compile s", lambda x: f"{x:.0f}"),
}


def label(settings: dict[str, Any]) -> str:
    """Name a point by its settings, e.g. games=256,simulations=16; "base" where none vary."""
    parts = (f"{name.split('.')[-1]}={value}" for name, value in settings.items())
    return ",".join(parts) or "base"


def headline(row: Row) -> str:
    """Say how a point went, in one line."""
    if row["status"] != "ok":
        return f"{label(row['settings'])}: {failure(row)}"
    peak = row["peak_memory_bytes"] / 2**20
    return (
        f"{label(row['settings'])}: {row['games_per_second']:.4g} games/s, "
        f"{row['evaluations_per_second']:,.0f} evaluations/s, peak {peak:,.0f} MiB"
    )


def failure(row: Row) -> str:
    """Say why a point has no numbers."""
    if row["status"] == "does not fit":
        needed, limit = (
            f"{row[f'{kind}_memory_bytes'] / 2**20:,.0f} MiB" for kind in ("predicted", "device")
        )
        return f"does not fit (predicted {needed}, device has {limit})"
    return f"{row['status']} ({row['error']})"


def choices(rows: list[Row]) -> dict[str, Row]:
    """Return the fastest point, the knee and the largest point that ran; empty where none did.

    The knee is the smallest value of the first swept field that still reaches KNEE of the best
    games per second, the other fields as at the best point.
    """
    ran = [row for row in rows if row["status"] == "ok"]
    if not ran:
        return {}
    best = max(ran, key=speed)
    line = [row for row in ran if others(row) == others(best)]
    sizes = [row["predicted_memory_bytes"] or row["peak_memory_bytes"] for row in ran]
    largest = max(range(len(ran)), key=lambda i: (sizes[i], i))
    return {"best": best, "knee": knee(line), "largest": ran[largest]}


def knee(line: list[Row]) -> Row:
    """Return the first row, by the first swept field, that reaches KNEE of the best speed."""
    enough = KNEE * max(map(speed, line))
    in_order = sorted(line, key=lambda row: list(row["settings"].values())[:1])
    return next(row for row in in_order if speed(row) >= enough)


def speed(row: Row) -> float:
    return row["games_per_second"]


def others(row: Row) -> tuple:
    """Return the values of all swept fields but the first: what one line of the figure shares."""
    return tuple(row["settings"].values())[1:]


def table(rows: list[Row], chosen: dict[str, Row]) -> str:
    """Return the rows as text, marked B, K or L where chosen as best, knee or largest."""
    names = [name.split(".")[-1].replace("_", " ") for name in rows[0]["settings"]]
    names += [head for head, _ in COLUMNS.values()]
    heads = [textwrap.wrap(name, 8, break_long_words=False) for name in names]
    cells = [_cells(row) for row in rows]
    widths = [
        max(map(len, head + [line[i] for line in cells if i < len(line)]))
        for i, head in enumerate(heads)
    ]
    depth = max(map(len, heads))
    lines = [
        _aligned([([""] * depth + head)[level - depth] for head in heads], widths)
        for level in range(depth)
    ]
    lines.append("-" * len(lines[0]))
    for row, line in zip(rows, cells, strict=True):
        marks = "".join(name[0].upper() for name, other in chosen.items() if other is row)
        text = _aligned(line, widths) + (f" {marks}" if marks else "")
        if row["status"] != "ok":
            text = f"{text}  {failure(row)}"
            text = text if len(text) <= WIDTH else f"{text[: WIDTH - 4]} ..."
        lines.append(text.rstrip())
    ran = [row for row in rows if row["status"] == "ok"]
    notes = [
        *share_notes({"network": [row["selfplay_of_network"] for row in ran]}),
        *share_notes({"products": [row["mfu"] for row in ran]}, places=1),
    ]
    for note in notes:
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="  ")
    return "\n".join(lines)


def _cells(row: Row) -> list[str]:
    cells = [str(value) for value in row["settings"].values()]
    if row["status"] != "ok":
        return cells
    return cells + [
        "-" if row[key] is None else write(row[key]) for key, (_, write) in COLUMNS.items()
    ]


def _aligned(cells: list[str], widths: list[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=False))


def write_report(out: Path, base: dict[str, Any], rows: list[Row]) -> None:
    """Write `results.csv`, `results.json` and `figure.png`, and print table and choices."""
    chosen = choices(rows)
    settings = {name: row["settings"] for name, row in chosen.items()}
    content = {"base": base, "points": rows, **settings}
    write_json(out / "results.json", content)
    _write_csv(out / "results.csv", rows)
    draw_sweep(out / "figure.png", rows, {others(row): knee_of(rows, row) for row in rows})
    print("\n" + table(rows, chosen))
    words = {
        "best": "best games/s",
        "knee": f"smallest with {KNEE:.0%} of it",
        "largest": "largest that fits",
    }
    print()
    for name, row in chosen.items():
        print(f"{name[0].upper()}  {words[name]:<24} {headline(row)}")
    devices = {f"{row['device']}, jax {row['jax']}" for row in rows if row["status"] == "ok"}
    print(f"   {'measured on':<24} {'; '.join(sorted(devices)) or '-'}")
    print(", ".join(str(out / name) for name in ("results.csv", "results.json", "figure.png")))


def knee_of(rows: list[Row], row: Row) -> Row | None:
    """Return the knee of the line that `row` is on, or None where nothing on it ran."""
    line = [other for other in rows if others(other) == others(row) and other["status"] == "ok"]
    return knee(line) if line else None


def _write_csv(path: Path, rows: list[Row]) -> None:
    flat = [row["settings"] | {k: v for k, v in row.items() if k != "settings"} for row in rows]
    columns = list(dict.fromkeys(name for row in flat for name in row))
    write_csv(path, columns, flat)
