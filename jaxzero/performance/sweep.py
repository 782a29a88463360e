"""A sweep: comma lists multiplied out, one process a point, one line of results a point.

The process of the sweep never asks for a device: the points need all of its memory. A point is

python -m jaxzero.performance.sweep STEM ROUNDS

which reads STEM.yaml, writes STEM.json and ends when its standard input closes.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import traceback
import typing
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import config_of, dotted, load_config, parse, refuse_given, save_config
from jaxzero.config import Config
from jaxzero.errors import OUT_OF_MEMORY, InputError, shortened
from jaxzero.host.environment import check_devices
from jaxzero.host.files import append_text, locked_folder, make_folder, write_json, write_text
from jaxzero.host.interrupts import end_with_parent
from jaxzero.host.readers import check_mapping, read_json, read_json_lines, read_mapping
from jaxzero.host.status import doing
from jaxzero.runs.run_dir import new_folder

# Numbers of a point that ran; the others may be unknown.
MEASURED = (
    "games_per_second_with_learning",
    "evaluations_per_second_with_learning",
    "peak_memory_bytes",
)
# Earlier results do not have them.
LATER = {"decisions_per_second_with_learning": int | float | None, "notes": list}
COLUMNS = (
    "selfplay_of_network",
    "learner_samples_per_second",
    "learning_share",
    "replay_ratio",
    "iteration_mfu",
    "predicted_memory_bytes",
)
SWEEP_FILE, RESULTS_FILE, POINTS = "sweep.json", "results.jsonl", "points"
COUNTED_BATCH = 64  # operations per position hardly depend on the batch
PRESETS = {
    # Doubles until it does not fit: the end of the list is out of reach of any device.
    "batch": {"selfplay.games": [str(2**power) for power in range(6, 25)]},
    "update_interval": {"learner.updates_per_iteration": [str(2**power) for power in range(3, 9)]},
}

Row = dict[str, Any]  # settings, status, and the result or the error


@dataclass(frozen=True)
class Point:
    """One combination of the swept values."""

    settings: dict[str, Any]  # value of each swept field, by dotted name
    config: Config | None  # None: the combination is impossible
    error: str = ""


@dataclass(frozen=True)
class Grid:
    """What is fixed, what varies, and every combination."""

    base: Config
    fields: tuple[str, ...]
    points: tuple[Point, ...]
    growing: bool  # a series of points ends with the first that does not run


# The command line


def read_grid(parser: ArgumentParser, arguments: list[str]) -> tuple[Grid, Namespace]:
    """Parse a command line with comma lists; return the grid and the parsed single values.

    Raises: InputError for unknown fields, values of the wrong type, empty lists, or where no
    combination at all is possible.
    """
    rest, lists = split_lists(arguments)
    options = parse(parser, rest)
    preset = PRESETS.get(options.preset, {})
    refuse_given(arguments, preset, f"cannot stand beside --preset {options.preset}")
    lists |= preset
    if not lists:
        raise InputError(
            "preset: nothing varies; name one, or list values as in --selfplay.games 256,512"
        )
    values = {}
    for name, texts in lists.items():
        typed = (parse(parser, [*rest, f"--{name}={text}"])[name] for text in texts)
        values[name] = list(dict.fromkeys(typed))

    def point(*combination: Any) -> Point:
        settings, namespace = dict(zip(values, combination, strict=True)), options.clone()
        for name, value in settings.items():
            namespace[name] = value
        try:
            return Point(settings, config_of(parser, namespace))
        except InputError as error:
            return Point(settings, None, str(error))

    points = tuple(itertools.starmap(point, itertools.product(*values.values())))
    # Without its lists the command line need not be possible.
    base = next((point.config for point in points if point.config is not None), None)
    if base is None:
        raise InputError(points[0].error)
    return Grid(base, tuple(values), points, options.preset == "batch"), options


def split_lists(arguments: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Separate the options that hold comma lists from a command line."""
    rest, lists = [], {}
    known, remaining = set(sweepable_fields()), iter(arguments)
    for argument in remaining:
        option, equals, text = argument.partition("=")
        name = option.removeprefix("--")
        if not option.startswith("--") or name not in known:
            rest.append(argument)
            continue
        text = text if equals else next(remaining, "")
        lists.pop(name, None)  # of options that are given twice the last one counts
        if "," not in text:
            rest.append(f"{option}={text}")
            continue
        lists[name] = [entry.strip() for entry in text.split(",")]
        if not all(lists[name]):
            raise InputError(f"{name}: {shortened(repr(text))} has an empty entry")
    return rest, lists


def sweepable_fields(cls: type = Config, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of fields with one value; texts may hold commas of their own."""
    for name, hint in typing.get_type_hints(cls).items():
        if is_dataclass(hint):
            yield from sweepable_fields(hint, f"{prefix}{name}.")
        elif hint is not str:
            yield prefix + name


# The sweep


def run_sweep(grid: Grid, out: Path, rounds: int = 3, point_minutes: float = 10.0) -> list[Row]:
    """Measure the points of a grid that `out` does not hold yet; return all rows there.

    A point that timed out is measured again where it has more time now.

    Raises: InputError where `out` cannot be written or holds another sweep, and where no point is
    possible; then nothing stays in the folder.
    """
    with new_folder("out", out), locked_folder("out", out):
        open_folder(grid, out)
        measured = _run_points(grid, out, rounds, point_minutes)
        if any(row["status"] != "invalid" for row in measured):
            return measured
        shutil.rmtree(out / POINTS)
        for name in (SWEEP_FILE, RESULTS_FILE):
            (out / name).unlink()
        raise InputError(measured[0]["error"])


def _run_points(grid: Grid, out: Path, rounds: int, point_minutes: float) -> list[Row]:
    """Measure the points that a folder does not hold yet, alone in it."""
    before = read_rows(out)
    refuse_other_settings(grid, before, out)
    rows = {json.dumps(row["settings"]): row for row in before}
    # Without a line that a crash cut off.
    write_text(out / RESULTS_FILE, "".join(json.dumps(row) + "\n" for row in rows.values()))
    ended = []  # series of a growing sweep that do not run any more
    for number, point in enumerate(grid.points, start=1):
        series = {name: v for name, v in point.settings.items() if name != "selfplay.games"}
        if series in ended:
            continue
        key = json.dumps(point.settings)
        if key not in rows or may_end_now(rows[key], point_minutes):
            print(f"[{number}/{len(grid.points)}] measuring {point.settings} ...", flush=True)
            with doing(f"measuring point {number} of {len(grid.points)}"):
                row = {"settings": point.settings, **measure(point, out, rounds, point_minutes)}
            append_text(out / RESULTS_FILE, json.dumps(row) + "\n")
            print(f"[{number}/{len(grid.points)}] {headline(row)}", flush=True)
            rows[key] = row
        if grid.growing and rows[key]["status"] not in ("ok", "invalid"):
            ended.append(series)
    return sorted(rows.values(), key=lambda row: list(row["settings"].values()))


def may_end_now(row: Row, point_minutes: float) -> bool:
    """Return whether a point had less time than these minutes and timed out."""
    had = row.get("point_minutes")  # earlier results do not say it
    return row["status"] == "timed out" and (
        not isinstance(had, int | float) or had < point_minutes
    )


def open_folder(grid: Grid, out: Path) -> None:
    """Create the folder of a sweep, or check that it holds the same one."""
    content = {"base": asdict(grid.base), "fields": list(grid.fields)}
    file = out / SWEEP_FILE
    kinds = {"base": dict, "fields": list}
    before = read_mapping("out", file, kinds) if file.exists() else content
    if not all(isinstance(name, str) for name in before["fields"]):
        raise InputError(f"out: fields in {file} are no names")
    if content["fields"] != before["fields"]:
        old, new = (", ".join(held["fields"]) or "nothing" for held in (before, content))
        raise InputError(f"out: {out} sweeps {old}, not {new}")
    old = dict(dotted(before["base"]))
    for name, value in dotted(content["base"]):
        if name not in grid.fields and value != old.get(name):
            raise InputError(f"{name}: {value} contradicts {old.get(name)} of the sweep in {out}")
    make_folder("out", out / POINTS)
    write_json(file, before)


def read_rows(out: Path) -> list[Row]:
    """Read the results of a sweep, without a line cut off by a crash."""
    file = out / RESULTS_FILE
    rows = list(read_json_lines("out", file)) if file.exists() else []
    for row in rows:
        _check_row(file, row)
    return rows


def _check_row(file: Path, row: Row) -> None:
    """Raise an InputError for a result that no sweep has written."""
    check_mapping("out", file, row, {"settings": dict, "status": str})
    number, status = int | float, row["status"]
    if status == "ok":
        maybe = dict.fromkeys(COLUMNS, number | None)
        maybe |= {name: kind for name, kind in LATER.items() if name in row}
        kinds = {"device": str, "versions": dict, "compile_seconds": number} | maybe
        check_mapping("out", file, row, kinds | dict.fromkeys(MEASURED, number))
        check_mapping("out", file, row["versions"], {"jax": str})
    elif status == "does not fit":
        memory = ("predicted_memory_bytes", "device_memory_bytes")
        check_mapping("out", file, row, dict.fromkeys(memory, number))
    else:
        check_mapping("out", file, row, {"error": str})


def refuse_other_settings(grid: Grid, rows: list[Row], out: Path) -> None:
    """Raise an InputError for results whose settings are not those of a grid."""

    def kinds(settings: dict[str, Any]) -> list[tuple[str, type]]:
        plain = json.loads(json.dumps(settings))  # a setting may be of a type for its range
        return [(name, type(value)) for name, value in plain.items()]

    known = [kinds(point.settings) for point in grid.points]
    for row in rows:
        if kinds(row["settings"]) not in known:
            shown = shortened(repr(row["settings"]))
            raise InputError(f"out: settings {shown} in {out} are not of this sweep")


def label(settings: dict[str, Any]) -> str:
    """Name a point by its settings, e.g. games=256,simulations=16; "base" where none vary."""
    parts = (f"{name.split('.')[-1]}={value}" for name, value in settings.items())
    return ",".join(parts) or "base"


def headline(row: Row) -> str:
    """Say how a point went, in one line."""
    # Slow to import; options are checked before.
    from jaxzero.performance.report import SPEED
    from jaxzero.runs.memory import mebibytes

    name = label(row["settings"])
    if row["status"] == "does not fit":
        needed, limit = (mebibytes(row[f"{kind}_memory_bytes"]) for kind in ("predicted", "device"))
        return f"{name}: does not fit (predicted {needed}, device has {limit})"
    if row["status"] != "ok":
        return f"{name}: {row['status']} ({row['error']})"
    decided = row.get("decisions_per_second_with_learning")
    decisions = f"{decided:,.0f} decisions/s, " if decided else ""
    return (
        f"{name}: {row[SPEED]:.4g} games/s, {decisions}"
        f"{row['evaluations_per_second_with_learning']:,.0f} evaluations/s, "
        f"peak {mebibytes(row['peak_memory_bytes'])}"
    )


def measure(point: Point, out: Path, rounds: int, point_minutes: float) -> Row:
    """Measure a point in its own process; return its status with numbers or an error."""
    if point.config is None:
        return {"status": "invalid", "error": point.error}
    stem = str(out / POINTS / label(point.settings))
    config, log, result = (Path(f"{stem}.{kind}") for kind in ("yaml", "log", "json"))
    result.unlink(missing_ok=True)
    save_config(point.config, config)
    command = [sys.executable, "-m", "jaxzero.performance.sweep", stem, str(rounds)]
    reader, writer = os.pipe()  # its other end closes with this process, however it ends
    try:
        with log.open("w") as file:
            code = subprocess.run(
                command,
                stdin=reader,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=60 * point_minutes,
            ).returncode
    except subprocess.TimeoutExpired:
        error = f"after {point_minutes:g} minutes"
        return {"status": "timed out", "error": error, "point_minutes": point_minutes}
    finally:
        os.close(reader)
        os.close(writer)
    if result.exists():
        return read_json("out", result)
    return death(code, log.read_text(errors="replace"))


def death(code: int, log: str) -> Row:
    """Explain a process that ended without a result, from its exit code and what it printed."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    last = lines[-1] if lines else "no message"
    if code == -signal.SIGKILL:
        return {"status": "out of memory", "error": "killed, as systems do where memory ends"}
    if re.search("bad_alloc|MemoryError", log) or OUT_OF_MEMORY.search(log):
        return {"status": "out of memory", "error": last}
    cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return {"status": "failed", "error": f"{cause}: {last}"}


# One point, in a process of its own


def measure_point(config: Config, rounds: int) -> Row:
    """Measure training with `config`.

    Raises: DoesNotFit, and InputError for settings that do not divide over the devices.
    """
    # Here, because the process of the sweep checks its options before anything slow is imported.
    from jaxzero.network.layers import compute_dtype
    from jaxzero.network.network import Network
    from jaxzero.performance.monitor import training
    from jaxzero.performance.report import count_flops, describe, measures, notes_on
    from jaxzero.performance.timing import (
        Part,
        make_workload,
        matmul_part,
        network_part,
        time_parts,
    )
    from jaxzero.runs.memory import peak_memory_bytes
    from jaxzero.training.iteration import compile_iteration
    from jaxzero.training.parallel import choose_devices, local_copy

    devices = choose_devices(config.devices)
    config.check_devices(len(devices))
    without = replace(config, learner=replace(config.learner, updates_per_iteration=0))
    with training(config, devices) as run:
        network = Network(config.game.board, config.network)
        playing = compile_iteration(without, network, devices).compiled
        work = make_workload(config, local_copy(run.progress.learner), len(devices))
        parts = {
            "iteration": Part(run.step),
            "selfplay": Part(lambda: run.step(playing)),
            "network": network_part(work, max(1, work.evaluations // work.games // 4)),
        }
        seconds = time_parts(parts, rounds)
        memory = {
            "peak_memory_bytes": max(map(peak_memory_bytes, devices)),
            "predicted_memory_bytes": run.program.predicted,
        }
    seconds["learning"] = seconds["iteration"] - seconds["selfplay"]
    ceiling = time_parts({"matmul": matmul_part(compute_dtype(config.network))}, rounds=5)
    limits = count_flops(config, work.learner, COUNTED_BATCH, COUNTED_BATCH)
    limits["matmul_ceiling_flops"] = 1 / ceiling["matmul"]
    result = describe(config, devices) | measures(
        config, len(devices), seconds, limits, run.games()
    )
    del result["config"]  # the sweep holds it once for all points
    ratio = {"replay_ratio": config.replay_ratio, "compile_seconds": run.compile_seconds}
    return result | memory | ratio | {"notes": list(notes_on(config))}


def outcome(config: Config, rounds: int) -> Row:
    """Return the status of a point with its measurements, or with the last line of its error."""
    from jaxzero.runs.memory import DoesNotFit

    try:
        check_devices()
        return {"status": "ok", **measure_point(config, rounds)}
    except DoesNotFit as error:
        sizes = {"predicted_memory_bytes": error.needed, "device_memory_bytes": error.limit}
        return {"status": "does not fit", "error": str(error), **sizes}
    except InputError as error:
        return {"status": "invalid", "error": str(error)}
    except Exception as error:
        traceback.print_exc()
        return death(1, f"{type(error).__name__}: {error}")


def main(stem: str, rounds: str) -> None:
    """Measure the point of a config file and write its outcome."""
    end_with_parent(sys.stdin.fileno())
    # Let the out-of-memory killer choose this process, not the parent that keeps the results.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    write_json(Path(f"{stem}.json"), outcome(load_config(f"{stem}.yaml"), int(rounds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
