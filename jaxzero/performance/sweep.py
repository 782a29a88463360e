"""Run a sweep: one process a point, one line of results a point, resumable.

This process never asks for a device: the points need all of its memory.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from jaxzero.cli import save_config
from jaxzero.errors import InputError
from jaxzero.files import write_json, write_text
from jaxzero.performance.grid import Grid, Point, Settings
from jaxzero.performance.sweep_report import headline, label

SWEEP_FILE = "sweep.json"
RESULTS_FILE = "results.jsonl"
KNOWN_FILE = "yardsticks.json"
POINTS_FOLDER = "points"

Row = dict[str, Any]  # settings, status, and what was measured or the error


@dataclass(frozen=True)
class Effort:
    """How much a sweep does."""

    point_minutes: float = 10.0  # limit of a point
    rounds: int = 3  # timed iterations a point
    retry_failed: bool = False


def run_sweep(grid: Grid, out: Path, effort: Effort) -> list[Row]:
    """Measure the points of a grid that `out` does not hold yet; return all rows there.

    Raises: InputError where `out` cannot be written or holds another sweep.
    """
    open_folder(grid, out)
    rows = {_key(row["settings"]): row for row in read_rows(out)}
    write_rows(out, list(rows.values()))  # without a line that a crash cut off
    ended: set[str] = set()  # series of a growing sweep that do not run any more
    for number, point in enumerate(grid.points, start=1):
        key, series = _key(point.settings), _key(_others(grid, point.settings))
        if series in ended:
            continue
        row = rows.get(key)
        if row is None or (effort.retry_failed and row["status"] != "ok"):
            print(f"[{number}/{len(grid.points)}] measuring {point.settings} ...", flush=True)
            row = {"settings": point.settings, **measure(point, out, effort)}
            with (out / RESULTS_FILE).open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"[{number}/{len(grid.points)}] {headline(row)}", flush=True)
        rows[key] = row
        if grid.growing and row["status"] not in ("ok", "invalid"):
            ended.add(series)
    return sorted(rows.values(), key=lambda row: list(row["settings"].values()))


def open_folder(grid: Grid, out: Path) -> None:
    """Create the folder of a sweep, or see that it holds the same one."""
    content = {"base": asdict(grid.base), "fields": list(grid.fields)}
    file = out / SWEEP_FILE
    try:
        (out / POINTS_FOLDER).mkdir(parents=True, exist_ok=True)
        if file.exists():
            return _refuse_contradiction(content, json.loads(file.read_text()), out)
        write_json(out / KNOWN_FILE, {"ceilings": {}, "costs": {}})
        write_json(file, content)
    except OSError as error:
        raise InputError(f"out: {out} cannot be written ({error.strerror})") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"out: {file} is damaged ({error})") from error


def _refuse_contradiction(now: dict, before: dict, out: Path) -> None:
    """Raise an InputError when what is fixed or what is swept differs from the sweep in `out`."""
    if now["fields"] != before["fields"]:
        swept = (", ".join(fields) or "nothing" for fields in (now["fields"], before["fields"]))
        raise InputError("out: {} sweeps {}, not {}".format(out, *reversed(list(swept))))
    values = dict(_flat(before["base"]))
    for name, value in _flat(now["base"]):
        if name not in now["fields"] and value != values.get(name):
            raise InputError(
                f"{name}: {value} contradicts {values.get(name)} of the sweep in {out}"
            )


def measure(point: Point, out: Path, effort: Effort) -> Row:
    """Measure a point in its own process; return its status with numbers or an error."""
    if point.config is None:
        return {"status": "invalid", "error": point.error}
    files = {kind: out / POINTS_FOLDER / f"{label(point.settings)}.{kind}" for kind in FILE_KINDS}
    files["json"].unlink(missing_ok=True)
    save_config(point.config, files["yaml"])
    arguments = [files["yaml"], out / KNOWN_FILE, files["json"], effort.rounds]
    with files["log"].open("w") as log:
        try:
            code = _run(list(map(str, arguments)), log, 60 * effort.point_minutes)
        except subprocess.TimeoutExpired:
            return {"status": "timed out", "error": f"after {effort.point_minutes:g} minutes"}
    if files["json"].exists():
        return json.loads(files["json"].read_text())
    return death(code, files["log"].read_text(errors="replace"))


def _run(arguments: list[str], log: TextIO, seconds: float) -> int:
    """Run the process of a point, which ends with this one; return its exit code."""
    command = [sys.executable, "-m", "jaxzero.performance.measure_point", *arguments]
    reader, writer = os.pipe()  # its other end closes with this process, however it ends
    try:
        return subprocess.run(
            [*command, str(reader)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            pass_fds=(reader,),
        ).returncode
    finally:
        os.close(reader)
        os.close(writer)


FILE_KINDS = ("yaml", "log", "json")


def death(code: int, log: str) -> Row:
    """Explain a process that ended without a result, from its exit code and what it printed."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    last = lines[-1] if lines else "no message"
    if code == -signal.SIGKILL:
        return {"status": "out of memory", "error": "killed, as systems do where memory ends"}
    if re.search(r"bad_alloc|RESOURCE_EXHAUSTED|[Oo]ut of memory|MemoryError", log):
        return {"status": "out of memory", "error": last}
    cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return {"status": "failed", "error": f"{cause}: {last}"}


def read_rows(out: Path) -> list[Row]:
    """Read the results of a sweep; a line cut off by a crash is left out."""
    try:
        lines = (out / RESULTS_FILE).read_text().splitlines()
    except FileNotFoundError:
        return []
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def write_rows(out: Path, rows: list[Row]) -> None:
    """Replace the results of a sweep, at once."""
    write_text(out / RESULTS_FILE, "".join(json.dumps(row) + "\n" for row in rows))


def _key(settings: Settings) -> str:
    return json.dumps(settings)


def _others(grid: Grid, settings: Settings) -> Settings:
    return {name: value for name, value in settings.items() if name != "selfplay.games"}


def _flat(tree: dict, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
