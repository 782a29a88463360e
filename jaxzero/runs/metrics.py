"""Metrics of a run: JSON lines, TensorBoard, a line on the terminal, a figure."""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from jaxzero.host.files import append_text, new_figure, only_warn, save_figure, write_text

FILE_NAME = "metrics.jsonl"


class MetricsWriter:
    """Writes the metrics of each iteration to `metrics.jsonl`, TensorBoard and the terminal.

    A file that cannot be written is a warning.
    """

    def __init__(self, run_dir: Path, first: int, last: int):
        """Continue after iteration `first` of `last`; a `last` of 0 means unknown.

        Records of later iterations are dropped: no checkpoint covers them.
        """
        # Slow to import, and most users of this module only read metrics. SummaryWriter is no
        # option: on a full disk its thread dies, and the next call waits for it forever.
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog

        self._path, self._folder = run_dir / FILE_NAME, run_dir / "tensorboard"
        self._board: EventsWriter | None = None
        kept = [line for line in read_metrics(run_dir) if line["iteration"] <= first]
        with only_warn(self._path):
            write_text(self._path, "".join(json.dumps(line) + "\n" for line in kept))
        with only_warn(self._folder):
            self._folder.mkdir(exist_ok=True)
            self._board = EventsWriter(str(self._folder / "events"))
        # This event makes TensorBoard hide earlier records of this iteration and later ones.
        self._show(step=first + 1, session_log=SessionLog(status=SessionLog.START))
        self._of = f"/{last}" if last else ""

    def write(self, metrics: dict[str, Any], headline: str) -> None:
        """Record an iteration; `headline` is the line to print."""
        from tensorboardX.proto.summary_pb2 import Summary

        with only_warn(self._path):
            append_text(self._path, json.dumps(metrics) + "\n")
        iteration = metrics["iteration"]
        numbers = {
            name: x
            for name, x in metrics.items()
            if isinstance(x, (int, float)) and name != "iteration"
        }
        tags = {re.sub(r"[^-/\w.]", "_", name): x for name, x in numbers.items()}
        values = [Summary.Value(tag=tag, simple_value=x) for tag, x in tags.items()]
        self._show(step=iteration, summary=Summary(value=values))
        # One write, so that no other thread can print into this line.
        print(f"{iteration:>5}{self._of}  {headline}\n", end="", flush=True)

    def _show(self, **event: Any) -> None:
        """Write one event of TensorBoard."""
        from tensorboardX.proto.event_pb2 import Event

        if self._board:
            with only_warn(self._folder):
                self._board.write_event(Event(wall_time=time.time(), **event))
                self._board.flush()

    def close(self) -> None:
        if self._board:
            with only_warn(self._folder):
                self._board.close()

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, *_error) -> None:
        self.close()


def read_metrics(run_dir: Path) -> list[dict[str, Any]]:
    """Read the metrics of a run, one dict per iteration; a crash may have torn the last line."""
    path, lines = run_dir / FILE_NAME, []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError):
            lines.append(json.loads(line))
    return lines


PANELS = {
    "Loss": ["learn/policy_loss", "learn/margin_loss"],
    "Policy, nats": ["selfplay/policy_entropy", "learn/policy_divergence"],
    "Error of the remaining margin, boxes": ["learn/margin_error"],
    "Speed, games per second": ["speed/games_per_second"],
    "Result of self-play, boxes for the first player": ["selfplay/first_margin"],
}
PLAYER_PANELS = {  # prefix and suffix of the metric names, factor
    "Points in matches, %": ("versus/", "/points", 100.0),
    "Wrong moves on decisive positions, %": ("suite/", "/wrong_share", 100.0),
    "Margin lost a move on solved positions, boxes": ("suite/", "/boxes_lost", 1.0),
}
ACROSS = 4  # panels in a row


def draw_curves(path: Path, title: str, metrics: list[dict[str, Any]]) -> None:
    """Draw losses, entropy, speed and strength over the iterations of a run into a PNG.

    Metrics without a value get no panel. A player has the same colour in all panels.
    """
    keys = sorted({key for record in metrics for key in record})
    parts = [key.split("/") for key in keys]
    players = list(dict.fromkeys(x[1] for x in parts if x[0] in ("versus", "suite") and x[2:]))
    # The lines of each panel: metric, label, number of the colour, factor.
    panels = {
        name: [(key, key.split("/")[1].replace("_", " "), i, 1.0) for i, key in enumerate(all_)]
        for name, all_ in PANELS.items()
    }
    for name, (begin, end, factor) in PLAYER_PANELS.items():
        panels[name] = [(f"{begin}{who}{end}", who, i, factor) for i, who in enumerate(players)]
    panels = {name: [one for one in lines if one[0] in keys] for name, lines in panels.items()}
    panels = {name: lines for name, lines in panels.items() if lines}
    columns = max(1, min(ACROSS, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    width, height = 3.75 * columns, 0.5 + 3.25 * rows  # inches
    figure = new_figure(figsize=(width, height))
    # The layout engines of matplotlib draw everything twice.
    edges = {"left": 0.6 / width, "right": 1 - 0.2 / width, "bottom": 0.6 / height}
    figure.subplots_adjust(**edges, top=1 - 0.85 / height, wspace=0.25, hspace=0.4)
    figure.suptitle(title)
    for number, (name, lines) in enumerate(panels.items(), start=1):
        axis = figure.add_subplot(rows, columns, number)
        for key, label, color, factor in lines:
            points = {record["iteration"]: record[key] for record in metrics if key in record}
            values = [factor * value for value in points.values()]
            # A line through one point is invisible.
            marker = "o" if name in PLAYER_PANELS or len(values) == 1 else ""
            style = {"color": f"C{color}", "marker": marker, "markersize": 3}
            axis.plot(list(points), values, label=label, **style)
        if name in PLAYER_PANELS:
            axis.set_ylim(bottom=0)
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("iteration")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    save_figure(path, figure)
