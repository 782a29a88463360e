"""A sweep: all combinations of comma lists, with one process and one result file per point.

The process of the sweep opens no device: the points need all of its memory. A point is the command

python -m jaxzero.performance.sweep STEM ROUNDS

It reads STEM.yaml and writes STEM.json. Modules that use jax are imported late, after the options
are checked.
"""

import itertools
import re
import signal
import subprocess
import sys
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import config_of, load_config
from jaxzero.config import Config, dotted, typed_fields
from jaxzero.errors import InputError
from jaxzero.host.files import read_json, write_json
from jaxzero.host.progress import working
from jaxzero.host.table import table
from jaxzero.runs.run_dir import new_folder, save_config

SWEEP_FILE, POINTS = "sweep.json", "points"
GAMES = "selfplay.games_per_iteration"
# --preset batch: doubles until it does not fit or gets slower; no device reaches the end.
BATCH = {GAMES: [str(2**power) for power in range(6, 25)]}
SPEED = "games_per_second_with_learning"
COLUMNS = {
    SPEED: "games/s",
    "decisions_per_second_with_learning": "decisions/s",
    "evaluations_per_second_with_learning": "evals/s",
    "replay_ratio": "replay ratio",
    "peak_memory_bytes": "peak MiB",
    "predicted_memory_bytes": "predicted MiB",
    "compile_seconds": "compile s",
}
KNEE = 0.9  # share of the best speed that is good enough
CHOICES = {"best": "best games/s", "knee": f"smallest with {KNEE:.0%} of it"}

Row = dict[str, Any]  # settings, status, and the result or the error


@dataclass(frozen=True)
class Point:
    """One combination of the swept values."""

    settings: dict[str, Any]  # value of each swept field, by dotted name
    config: Config | None  # None: the combination is impossible
    error: str = ""


@dataclass(frozen=True)
class Grid:
    """The fixed settings, the swept fields, and every combination."""

    base: Config
    fields: tuple[str, ...]
    points: tuple[Point, ...]
    growing: bool  # a series ends with a failure or two points slower than its best


def run_sweep(grid: Grid, out: Path, rounds: int = 3, point_minutes: float = 10.0) -> list[Row]:
    """Measure the points of a grid that `out` does not hold yet; return the rows of all points.

    Raises: InputError if `out` cannot be written or holds another sweep.
    """
    rows, ended, speeds = [], set(), {}  # `ended` series, and speeds by series
    with new_folder("out", out):
        open_folder(grid, out)
        for number, point in enumerate(grid.points, start=1):
            series = str({n: v for n, v in point.settings.items() if n != GAMES})
            if series in ended:
                continue
            row = read_row(out / POINTS / f"{point_label(point.settings)}.json")
            if row is None:
                place = f"{number} of {len(grid.points)}"
                print(f"point {place}, {point_label(point.settings)} ...", flush=True)
                with working(f"measuring point {place}"):
                    row = measure(point, out, rounds, point_minutes)
            rows.append({"settings": point.settings} | row)
            print(row_line(rows[-1]), flush=True)
            measured = speeds.setdefault(series, [0.0])
            measured.append(row.get(SPEED, 0.0))
            slower = max(measured[-2:]) < max(measured)  # twice in a row
            if grid.growing and (slower or row["status"] not in ("ok", "invalid")):
                ended.add(series)
    return rows


# The command line


def read_grid(parser: ArgumentParser, arguments: list[str]) -> tuple[Grid, Namespace]:
    """Parse a command line with comma lists; return the grid and the parsed single values.

    Raises: InputError for unknown fields, values of the wrong type, empty lists, or if no
    combination is possible.
    """
    rest, given = split_lists(arguments)
    options = parser.parse_args(rest)
    lists = {name: texts for name, texts in given.items() if len(texts) > 1}
    if options.preset == "batch":
        if GAMES in given:
            raise InputError(f"--{GAMES} cannot be combined with --preset batch")
        lists |= BATCH
    if not lists:
        raise InputError("--preset or a list is required, such as --search.simulations 16,32")
    values = {}
    for name, texts in lists.items():
        typed = (parser.parse_args([*rest, f"--{name}={text}"])[name] for text in texts)
        values[name] = list(dict.fromkeys(typed))

    def point(*combination: Any) -> Point:
        settings, namespace = dict(zip(values, combination, strict=True)), options.clone()
        for name, value in settings.items():
            namespace[name] = value
        try:
            return Point(settings, config_of(namespace))
        except InputError as error:
            return Point(settings, None, str(error))

    points = tuple(itertools.starmap(point, itertools.product(*values.values())))
    # The command line without its lists may be impossible: take a config that is possible.
    base = next((point.config for point in points if point.config is not None), None)
    if base is None:
        raise InputError(points[0].error)
    return Grid(base, tuple(values), points, options.preset == "batch"), options


def split_lists(arguments: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return a command line without its comma lists, and the values of all given settings."""
    # Texts and sections may contain commas.
    kinds = {name: kind for name, kind in typed_fields(Config) if not is_dataclass(kind)}
    rest, given, words = [], {}, iter(arguments)
    for word in words:
        name, equals, text = word.removeprefix("--").partition("=")
        if kinds.get(name, str) is str:
            rest.append(word)
            continue
        text = text if equals else next(words, "")
        given[name] = [entry.strip() for entry in text.split(",")]
        if len(given[name]) == 1:
            rest.append(f"--{name}={text}")
        elif not all(given[name]):
            raise InputError(f"{name}: {text!r} has an empty entry")
    return rest, given


# The folder


def open_folder(grid: Grid, out: Path) -> None:
    """Create the folder of a sweep, or check that it holds the same sweep."""
    base = dict(dotted(asdict(grid.base)))
    sweep = {"fields": list(grid.fields)} | {n: base[n] for n in base if n not in grid.fields}
    if (out / SWEEP_FILE).exists():
        held = read_json("out", out / SWEEP_FILE)
        differing = [name for name in sweep | held if sweep.get(name) != held.get(name)]
        if differing:
            raise InputError(f"out: {out} holds a sweep with other {', '.join(differing)}")
    # First: `check_new_folder` knows the folder of a sweep by this file.
    write_json(out / SWEEP_FILE, sweep)
    (out / POINTS).mkdir(exist_ok=True)


def read_row(file: Path) -> Row | None:
    """Return the result of a point, or None if there is none yet."""
    return read_json("out", file) if file.exists() else None


def point_label(settings: dict[str, Any]) -> str:
    """Name a point by its settings, e.g. games=256,simulations=16."""
    return ",".join(f"{name.split('.')[-1]}={value}" for name, value in settings.items())


# One point, in a process of its own


def measure(point: Point, out: Path, rounds: int, point_minutes: float) -> Row:
    """Measure a point in its own process; return and save its status with numbers or an error."""
    if point.config is None:
        return {"status": "invalid", "error": point.error}
    stem = str(out / POINTS / point_label(point.settings))
    config, log, result = (Path(f"{stem}.{kind}") for kind in ("yaml", "log", "json"))
    result.unlink(missing_ok=True)
    save_config(point.config, config)
    command = [sys.executable, "-m", "jaxzero.performance.sweep", stem, str(rounds)]
    try:
        code = run_point(command, log, 60 * point_minutes)
        row = read_row(result) or death(code, log.read_text(errors="replace"))
    except subprocess.TimeoutExpired:
        row = {"status": "timed out", "error": f"after {point_minutes:g} minutes"}
    write_json(result, row)
    return row


def run_point(command: list[str], log: Path, seconds: float) -> int:
    """Run the process of a point and return its exit code; kill it if this process ends first.

    Raises: subprocess.TimeoutExpired.
    """
    with (
        log.open("w") as file,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            return process.wait(seconds)
        finally:
            process.kill()
            process.wait()


def death(code: int, log: str) -> Row:
    """Explain a process that ended without a result, from its exit code and its output."""
    from jaxzero.runs.memory import OUT_OF_MEMORY

    lines = [line.strip() for line in log.splitlines() if line.strip()]
    last = lines[-1] if lines else "no message"
    if code == -signal.SIGKILL:
        return {"status": "out of memory", "error": "killed, as systems do where memory ends"}
    if re.search("bad_alloc|MemoryError", log) or OUT_OF_MEMORY.search(log):
        return {"status": "out of memory", "error": last}
    return {"status": "failed", "error": f"exit code {code}: {last}"}


def main(stem: str, rounds: str) -> None:
    """Measure the point of a config file and write its outcome."""
    # Let the out-of-memory killer choose this process, not the parent that keeps the results.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    write_json(Path(f"{stem}.json"), measured_row(load_config(f"{stem}.yaml"), int(rounds)))


def measured_row(config: Config, rounds: int) -> Row:
    """Return the status of a point with its measurements, or why it cannot be measured."""
    from jaxzero.host.programs import check_devices
    from jaxzero.runs.memory import DoesNotFit, mebibytes

    try:
        check_devices()
        return {"status": "ok", **measured(config, rounds)}
    except DoesNotFit as error:
        needed, limit = mebibytes(error.needed), mebibytes(error.limit)
        return {"status": "does not fit", "error": f"predicted {needed}, device has {limit}"}
    except InputError as error:
        return {"status": "invalid", "error": str(error)}
    except Exception as error:
        traceback.print_exc()
        return death(1, f"{type(error).__name__}: {error}")


def measured(config: Config, rounds: int) -> Row:
    """Measure whole iterations of a config: speed and memory. Raises: InputError, DoesNotFit."""
    from jaxzero.performance.report import describe, iteration_rates
    from jaxzero.performance.timing import Training, seconds_per_call
    from jaxzero.runs.memory import peak_memory_bytes
    from jaxzero.training.devices import choose_devices

    devices = choose_devices(config.devices)
    config.check_devices(len(devices))
    run = Training(config, devices)
    (seconds,) = seconds_per_call(run.step, rounds=rounds)
    result = describe(config, devices) | iteration_rates(config, run.done, seconds)
    del result["config"]  # the sweep holds it once for all points
    return result | {
        "seconds": seconds,
        "peak_memory_bytes": peak_memory_bytes(devices),
        "predicted_memory_bytes": run.program.predicted,
        "compile_seconds": run.compile_seconds,
    }


# The report


def write_report(out: Path, base: dict[str, Any], rows: list[Row]) -> None:
    """Write `results.json`, and print the table and the choices."""
    chosen = choices(rows)
    named = {name: row["settings"] for name, row in chosen.items()}
    write_json(out / "results.json", {"base": base, "points": rows, **named})
    print("\n" + sweep_table(rows, chosen) + "\n")
    for name, row in chosen.items():
        print(f"{name[0].upper()}  {CHOICES[name]:<24} {row_line(row)}")
    devices = {row["device"] for row in rows if row["status"] == "ok"}
    print(f"   {'measured on':<24} {'; '.join(sorted(devices)) or '-'}")
    print(out / "results.json")


def choices(rows: list[Row]) -> dict[str, Row]:
    """Return the fastest point and the knee; empty if no point ran.

    The knee has the smallest value of the first swept field that still reaches KNEE of the best
    games per second. Its other fields are those of the best point.
    """
    ran = [row for row in rows if row["status"] == "ok"]
    if not ran:
        return {}
    best = max(ran, key=lambda row: row[SPEED])

    def split(row: Row) -> tuple[Any, list[Any]]:
        first, *others = row["settings"].values()
        return first, others

    enough = [row for row in ran if split(row)[1] == split(best)[1]]
    enough = [row for row in enough if row[SPEED] >= KNEE * best[SPEED]]
    return {"best": best, "knee": min(enough, key=lambda row: split(row)[0])}


def row_line(row: Row) -> str:
    """Return the outcome of a point in one line."""
    from jaxzero.runs.memory import mebibytes

    name = point_label(row["settings"])
    if row["status"] != "ok":
        return f"{name}: {row['status']} ({row['error']})"
    return (
        f"{name}: {row[SPEED]:.4g} games/s, "
        f"{row['decisions_per_second_with_learning']:,.0f} decisions/s, "
        f"{row['evaluations_per_second_with_learning']:,.0f} evaluations/s, "
        f"peak {mebibytes(row['peak_memory_bytes'])}"
    )


def sweep_table(rows: list[Row], chosen: dict[str, Row]) -> str:
    """Format the rows, with B at the best point and K at the knee; then the failures."""

    def cell(row: Row, name: str) -> str | None:
        value = row[name]
        if value is None:
            return None
        value = value / 2**20 if name.endswith("bytes") else value
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    cells = []
    for row in rows:
        if row["status"] == "ok":
            written = [cell(row, name) for name in COLUMNS]
        else:
            written = [row["status"]] + [""] * (len(COLUMNS) - 1)
        marks = "".join(name[0].upper() for name, other in chosen.items() if other is row)
        cells.append([*row["settings"].values(), *written, marks])
    fields = [name.split(".")[-1] for name in rows[0]["settings"]]
    headings = [*fields, *COLUMNS.values(), ""]
    failures = [row_line(row) for row in rows if row["status"] != "ok"]
    return "\n".join([table(headings, cells, "r" * (len(headings) - 1) + "l"), *failures])


if __name__ == "__main__":
    main(*sys.argv[1:])
