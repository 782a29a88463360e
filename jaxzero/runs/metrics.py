"""Metrics of a run: JSON lines, TensorBoard, Prometheus, a line on the terminal, a figure."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxzero.host.files import append_text, make_folder, save_figure, write_text
from jaxzero.host.readers import read_json_lines

if TYPE_CHECKING:
    from tensorboardX.proto.summary_pb2 import Summary

FILE_NAME = "metrics.jsonl"
DISCARDED = "metrics_discarded.jsonl"
PROMETHEUS = "metrics.prom"
LARGEST, LARGEST_ITERATION = 1e30, 2**31  # beyond them nothing was measured


class MetricsWriter:
    """Writes the metrics of each iteration to `metrics.jsonl` and all other places."""

    def __init__(self, run_dir: Path, first: int, last: int):
        """Go on after iteration `first` of `last`; `last` 0: unknown.

        Records of later iterations are of a past that no checkpoint holds: they move to DISCARDED.
        """
        # Slow to import, and many read metrics, few write them. Its SummaryWriter hands events to a
        # thread: where the disk is full the thread dies, and the next call waits for it for ever.
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog

        self._path, self._run = run_dir / FILE_NAME, run_dir.resolve().name
        lines = read_metrics(run_dir)
        later = [line for line in lines if line["iteration"] > first]
        if later:
            append_text(run_dir / DISCARDED, "".join(json.dumps(line) + "\n" for line in later))
        kept = (json.dumps(line) + "\n" for line in lines if line["iteration"] <= first)
        write_text(self._path, "".join(kept))
        folder = run_dir / "tensorboard"
        make_folder("run_dir", folder)
        self._board = EventsWriter(str(folder / "events"))
        # TensorBoard hides what an earlier file says of this iteration and later ones.
        self._show(step=first + 1, session_log=SessionLog(status=SessionLog.START))
        self._of = f"/{last}" if last else ""

    def write(self, iteration: int, metrics: dict[str, Any], headline: str) -> None:
        """Record an iteration (they count from 1); `headline` is its one line for people."""
        append_text(self._path, json.dumps({"iteration": iteration, **metrics}) + "\n")
        self._show(step=iteration, summary=scalars(metrics))
        write_text(self._path.with_name(PROMETHEUS), prometheus(self._run, iteration, metrics))
        # One write, so that another thread's line cannot come before the end of this one.
        print(f"{iteration:>5}{self._of}  {headline}\n", end="", flush=True)

    def _show(self, **event: Any) -> None:
        """Write one event of TensorBoard. Raises: OSError that names the file."""
        from tensorboardX.proto.event_pb2 import Event

        try:
            self._board.write_event(Event(wall_time=time.time(), **event))
            self._board.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._board._file_name) from error

    def close(self) -> None:
        with suppress(OSError):  # what it could not write has been told
            self._board.close()

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, *_error) -> None:
        self.close()


def scalars(metrics: dict[str, Any]) -> Summary:
    """Return the numbers among metrics as TensorBoard reads them."""
    from tensorboardX.proto.summary_pb2 import Summary

    numbers = {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
    return Summary(
        value=[
            Summary.Value(tag=re.sub(r"[^-/\w.]", "_", name), simple_value=value)
            for name, value in numbers.items()
        ]
    )


def prometheus(run: str, iteration: int, metrics: dict[str, Any]) -> str:
    """Return the last numbers of a run in the text format of Prometheus, one gauge each.

    The textfile collector of its node exporter reads such a file. Source: Prometheus, "Exposition
    formats", text-based format 0.0.4.
    """
    label = re.sub(r'(["\\])', r"\\\1", run).replace("\n", r"\n")
    lines = []
    for name, value in {"iteration": iteration, **metrics}.items():
        if isinstance(value, (int, float)):
            plain = "jaxzero_" + re.sub("[^a-zA-Z0-9]+", "_", name)
            lines += [f"# TYPE {plain} gauge", f'{plain}{{run="{label}"}} {value:.9g}']
    return "\n".join(lines) + "\n"


def read_metrics(run_dir: Path) -> list[dict[str, Any]]:
    """Read the metrics of a run, one dict per iteration: finite numbers by name.

    Lines and values that are no metrics are dropped. Raises: InputError where the file cannot be
    read.
    """
    path = run_dir / FILE_NAME
    if not path.exists():
        return []
    lines = []
    for line in read_json_lines("run_dir", path):
        numbers = {name: value for name, value in line.items() if _is_number(value)}
        iteration = numbers.get("iteration", 0)
        if isinstance(iteration, int) and 0 < iteration < LARGEST_ITERATION:
            lines.append(numbers)
    return lines


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) < LARGEST  # not nan


PANELS = {
    "Loss": ["learn/policy_loss", "learn/margin_loss"],
    "Policy, nats": ["selfplay/policy_entropy", "learn/policy_divergence"],
    "Error of the remaining margin, boxes": ["learn/margin_error"],
    "Speed, games per second": ["speed/games_per_second"],
    "Result of self-play, boxes for the first player": ["selfplay/first_margin"],
}
PLAYER_PANELS = {  # beginning and end of the names of metrics, factor and offset
    "Points in matches, %": ("versus/", "/points", 100.0, 0.0),
    "Wrong moves on solved positions, %": ("suite/", "/optimal_share", -100.0, 100.0),
    "Margin lost a move on solved positions, boxes": ("suite/", "/boxes_lost", 1.0, 0.0),
}
ACROSS = 4  # panels


class Line(NamedTuple):
    """One line of a panel."""

    label: str
    color: str
    iterations: list[int]
    values: list[float]


def draw_curves(path: Path, title: str, metrics: list[dict[str, Any]]) -> None:
    """Draw losses, entropy, speed and strength over the iterations of a run into a PNG.

    There are panels for what was measured. A player has one colour in all of them.
    """
    from matplotlib.figure import Figure  # slow to import

    panels = {name: list(lines) for name, lines in _panels(metrics) if lines}
    columns = max(1, min(ACROSS, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    width, height = 3.75 * columns, 0.5 + 3.25 * rows  # inches
    figure = Figure(figsize=(width, height))
    # Not a layout of matplotlib's own, which draws everything twice.
    edges = {"left": 0.6 / width, "right": 1 - 0.2 / width, "bottom": 0.6 / height}
    figure.subplots_adjust(**edges, top=1 - 0.85 / height, wspace=0.25, hspace=0.4)
    figure.suptitle(title)
    for number, (name, lines) in enumerate(panels.items(), start=1):
        axis = figure.add_subplot(rows, columns, number)
        for line in lines:
            # A line through one point is not seen.
            marker = "o" if name in PLAYER_PANELS or len(line.values) == 1 else ""
            style = {"color": line.color, "marker": marker, "markersize": 3}
            axis.plot(line.iterations, line.values, label=line.label, **style)
        if name in PLAYER_PANELS:
            axis.set_ylim(bottom=0)
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("iteration")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    save_figure(path, figure)


def _panels(metrics: list[dict[str, Any]]) -> Iterator[tuple[str, list[Line]]]:
    """Yield the names of all panels with their lines, none where nothing was measured."""

    def line(key: str, label: str, number: int, scale: float = 1.0, offset: float = 0.0) -> Line:
        points = {record["iteration"]: record[key] for record in metrics if key in record}
        values = [offset + scale * value for value in points.values()]
        return Line(label, f"C{number}", list(points), values)

    keys = {key for record in metrics for key in record}
    for name, series in PANELS.items():
        known = [key for key in series if key in keys]
        yield name, [line(k, k.split("/")[1].replace("_", " "), i) for i, k in enumerate(known)]
    parts = [key.split("/") for key in sorted(keys)]
    ofs = [part[1] for part in parts if len(part) == 3 and part[0] in ("versus", "suite")]
    players = list(dict.fromkeys(ofs))
    for name, (prefix, suffix, *scaled) in PLAYER_PANELS.items():
        named = ((f"{prefix}{player}{suffix}", player) for player in players)
        yield name, [line(k, who, players.index(who), *scaled) for k, who in named if k in keys]
