"""Write the tables of docs/results.md and the figure docs/strength.png from the stored results.

A table stands between `<!-- NAME -->` and the next empty line.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxzero.cli import run_script, script_parser
from jaxzero.host.files import new_figure

ROOT = Path(__file__).parents[1]
RESULTS, WEIGHTS, PAGE = ROOT / "docs/results", ROOT / "jaxzero/weights", ROOT / "docs/results.md"
# Tables of wrong moves: the files with measured players, by the names of the rows.
SUITES = {
    "5x5_test": {"": WEIGHTS / "5x5.json"},
    "5x5_runs": {
        "H200, 6.7 minutes": RESULTS / "h200_2026-11-27/strength.json",
        "two CPU cores, three hours": RESULTS / "cpu_2_cores_5x5.json",
    },
    "5x5_early": {"": RESULTS / "cpu_2_cores_5x5_early.json"},
}


def main(arguments: list[str]) -> None:
    script_parser(__doc__).parse_args(arguments)
    kept = read(RESULTS / "suite_rows.json")
    tables = {name: suite_table(files, kept.get(name, {})) for name, files in SUITES.items()}
    tables["boards"] = boards_table(read(RESULTS / "cpu_2_cores_larger_boards.json")["matches"])
    text = PAGE.read_text()
    for name, rows in tables.items():
        begin = re.escape(f"<!-- {name} -->\n")
        text, found = re.subn(f"({begin})(?:\\|.*\n)*", rf"\g<1>{markdown(rows)}", text)
        assert found == 1, f"{PAGE.name} has {found} places for the table {name}"
    PAGE.write_text(text)
    draw(ROOT / "docs/strength.png")


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def markdown(rows: list[list[str]]) -> str:
    head, *body = rows
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *body))


def suite_table(files: dict[str, Path], kept: dict[str, list]) -> list[list[str]]:
    """Return the head and the rows of wrong moves in percent by undrawn edges."""
    rows, bands = [], []
    for name, path in files.items():
        for player, parts in read(path)["suite"].items():
            bands = list(parts["by_undrawn"])
            if not rows and not name:  # runs are scored on a suite whose table is above
                counts = [
                    part["positions"] for part in (*parts["by_undrawn"].values(), parts["all"])
                ]
                rows.append(["positions", *(f"{count:,}" for count in counts)])
            shares = [percent(part) for part in parts["by_undrawn"].values()]
            rows.append([f"{name}: `{player}`" if name else f"`{player}`", *shares])
            rows[-1].append(percent(parts["all"], interval=True))
    for player, shares in kept.items():
        *numbers, last = shares if isinstance(shares[-1], list) else (*shares, None)
        cells = [f"{number:.1f}" for number in numbers]
        cells[-1] += f" [{last[0]}, {last[1]}]" if last else ""
        rows.append([f"`{player}`", *cells])
    return [["undrawn edges", *bands, "all"], *rows]


def percent(part: dict[str, Any], interval: bool = False) -> str:
    text = f"{100 * part['wrong_share']:.1f}"
    if interval and part["wrong_interval"]:
        low, high = (100 * limit for limit in part["wrong_interval"])
        text += f" [{low:.1f}, {high:.1f}]"
    return text


def boards_table(matches: list[dict]) -> list[list[str]]:
    """Return the head and the rows of matches of 7x7 against 5x5, both without search."""
    alone = [match for match in matches if match["player"] == "policy"]
    points = [match["result"] for match in alone]
    return [
        ["", *(match["board"] for match in alone)],
        [
            "points, %",
            *(
                f"{100 * p['points']:.1f} [{100 * p['low']:.1f}, {100 * p['high']:.1f}]"
                for p in points
            ),
        ],
        ["boxes ahead", *(f"{p['margin']:+.1f}" for p in points)],
    ]


def draw(path: Path) -> None:
    """Plot the wrong moves of the shipped 5x5 on 4x4 and 5x5 by undrawn edges."""
    figure = new_figure(figsize=(7, 4), layout="constrained")
    axis = figure.add_subplot()
    for color, (label, player, shares) in zip(range(4), lines(), strict=True):
        style = "-" if player == "policy" else "--"
        axis.plot(list(shares), list(shares.values()), style, marker="o", color=f"C{color // 2}")
        axis.lines[-1].set_label(f"{label}, {player}")
    axis.set_xlabel("undrawn edges")
    axis.set_ylabel("wrong moves, %")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=110)


def lines() -> Iterator[tuple[str, str, dict[int, float]]]:
    """Yield board, player, and the wrong moves in percent by the middle of a band."""
    files = {"4x4": RESULTS / "cpu_2_cores_4x4.json", "5x5": WEIGHTS / "5x5.json"}
    for name, file in files.items():
        for player, parts in read(file)["suite"].items():
            bands = parts["by_undrawn"].items()
            middle = {sum(map(int, band.split("-"))) / 2: part for band, part in bands}
            yield name, player, {x: 100 * part["wrong_share"] for x, part in middle.items()}


if __name__ == "__main__":
    run_script(main)
