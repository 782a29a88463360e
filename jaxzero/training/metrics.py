"""What a run writes down: JSON lines, TensorBoard, one line or a bar on the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter
from tqdm import tqdm

from jaxzero.files import write_text

FILE_NAME = "metrics.jsonl"
DISCARDED = "metrics_discarded.jsonl"


class MetricsWriter:
    """Writes the metrics of each iteration to `metrics.jsonl`, TensorBoard and the terminal."""

    def __init__(self, run_dir: Path, first: int, last: int):
        """Go on after iteration `first`.

        Records of later iterations are of a past that no checkpoint holds: they move to DISCARDED.
        """
        self._path = run_dir / FILE_NAME
        lines = read_metrics(run_dir)
        later = [line for line in lines if line["iteration"] > first]
        if later:
            with (run_dir / DISCARDED).open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in later)
        kept = (json.dumps(line) + "\n" for line in lines if line["iteration"] <= first)
        write_text(self._path, "".join(kept))
        self._board = SummaryWriter(str(run_dir / "tensorboard"), purge_step=first + 1)
        self._bar = None
        if sys.stdout.isatty():
            self._bar = tqdm(total=last, initial=first, unit="iteration", dynamic_ncols=True)
        self._last = last

    def write(self, iteration: int, metrics: dict[str, Any], headline: str) -> None:
        """Record an iteration (they count from 1); `headline` is its one line for people."""
        with self._path.open("a") as file:
            file.write(json.dumps({"iteration": iteration, **metrics}) + "\n")
        for name, value in metrics.items():
            if isinstance(value, (int, float)):
                self._board.add_scalar(name, value, iteration)
        if self._bar is not None:
            self._bar.update()
        self.say(f"{iteration:>5}/{self._last}  {headline}")

    def say(self, line: str) -> None:
        """Print a line without tearing the bar."""
        if self._bar is not None:
            self._bar.write(line)
        else:
            print(line, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._board.close()

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, *_error) -> None:
        self.close()


def read_metrics(run_dir: Path) -> list[dict[str, Any]]:
    """Read the metrics of a run, one dict per iteration; a torn last line is dropped."""
    path = run_dir / FILE_NAME
    lines = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return lines
