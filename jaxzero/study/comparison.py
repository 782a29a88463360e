"""Several studies side by side, as text and as a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from jaxzero.errors import InputError
from jaxzero.files import write_csv
from jaxzero.study.report import COSTS, ERRORS, RESULT_FILE, Result


def read_results(folders: list[Path]) -> dict[str, Result]:
    """Return the results in folders by name; files in between, as of `runs/*`, are passed over.

    Raises: InputError for a folder without a result and where there is none at all.
    """
    results = {}
    for folder in folders:
        if folder.is_file():
            continue
        try:
            results[folder.name] = json.loads((folder / RESULT_FILE).read_text())
        except (OSError, ValueError) as error:
            raise InputError(f"compare: {folder} holds no result of a study ({error})") from error
    if not results:
        raise InputError(f"compare: {', '.join(map(str, folders))} holds no folder of a study")
    return results


def table(results: dict[str, Result]) -> str:
    """Return a line for each result, best first, then its share of wrong moves by undrawn edges."""
    ranked = dict(sorted(results.items(), key=lambda item: item[1]["wrong_decisive"] or 0.0))
    heads = ["study", "board", "network", *(head for head, _ in (COSTS | ERRORS).values())]
    return "\n".join(
        [
            *_aligned([heads, *(_cells(name, row) for name, row in ranked.items())]),
            *(f"\n{line}" if first else line for first, line in _band_lines(ranked)),
        ]
    )


def _cells(name: str, row: Result) -> list[str]:
    network, board = row["config"]["network"], row["config"]["game"]
    about = f"{network['trunk']} {network['channels']}x{network['blocks']} {network['features']}"
    numbers = [
        "-" if row[key] is None else write(row[key]) for key, (_, write) in (COSTS | ERRORS).items()
    ]
    return [name, f"{board['rows']}x{board['cols']}", about, *numbers]


def _band_lines(results: dict[str, Result]) -> Iterator[tuple[bool, str]]:
    """Yield (is first, line) of the tables by undrawn edges."""
    bands = list(dict.fromkeys(band for row in results.values() for band in row["by_undrawn"]))
    bands.sort(key=lambda band: int(band.split("-")[0]))
    for key, title in (
        ("wrong_decisive", "wrong moves, decisive, by undrawn edges"),
        ("value_error", "value error, boxes, by undrawn edges"),
    ):
        write = ERRORS[key][1]
        lines = [[title, *bands]]
        for name, row in results.items():
            numbers = [row["by_undrawn"].get(band, {}).get(key) for band in bands]
            lines.append([name, *("-" if x is None else write(x) for x in numbers)])
        yield from ((number == 0, line) for number, line in enumerate(_aligned(lines)))


def _aligned(lines: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]


def write_comparison(out: Path, results: dict[str, Result]) -> None:
    """Write `comparison.csv`, a line a result."""
    keys = [*COSTS, *ERRORS]
    rows = [
        {
            "study": name,
            "network": json.dumps(row["config"]["network"]),
            **{key: row[key] for key in keys},
        }
        for name, row in results.items()
    ]
    write_csv(out / "comparison.csv", list(rows[0]), rows)
