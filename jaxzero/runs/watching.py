"""A live view of a run: speed, losses, exact play, memory, time left, warnings."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

try:
    import pynvml  # of the package nvidia-ml-py, which comes with the CUDA extras
except ImportError:
    pynvml = None
from rich.console import Console, ConsoleOptions, Group
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from jaxzero.cli import load_config
from jaxzero.config import Config
from jaxzero.host.status import spell
from jaxzero.runs.health import Metrics, Warning, not_judged, warnings_of
from jaxzero.runs.metrics import FILE_NAME, read_metrics
from jaxzero.runs.run_dir import CONFIG_FILE, check_run
from jaxzero.runs.summary import SUMMARY_FILE, run_length, time_left

BARS = " ▁▂▃▄▅▆▇█"
CURVE = 26  # characters of a curve
SILENT = 10  # times an iteration: then a run without a new record has perhaps ended
CURVES = (
    ("games/s", "speed/games_per_second", "{:,.0f}"),
    ("evaluations/s", "speed/evaluations_per_second", "{:,.0f}"),
    ("policy loss", "learn/policy_loss", "{:.3f}"),
    ("policy divergence", "learn/policy_divergence", "{:.3f}"),
    ("margin loss", "learn/margin_loss", "{:.3f}"),
    ("margin error, boxes", "learn/margin_error", "{:.2f}"),
    ("policy entropy", "selfplay/policy_entropy", "{:.2f}"),
    ("first side's margin", "selfplay/first_margin", "{:+.2f}"),
    ("logit size", "learn/logit_size", "{:.1f}"),
)


def watch_run(run_dir: Path) -> Group:
    """Return what there is to see of a run now. Raises: InputError where there is no run."""
    check_run("run_dir", run_dir)
    config, metrics = load_config(run_dir / CONFIG_FILE), read_metrics(run_dir)
    if not metrics:
        return Group(Panel("No iteration is recorded yet.", title=Text(str(run_dir))))
    written, summary = (run_dir / FILE_NAME).stat().st_mtime, run_dir / SUMMARY_FILE
    silent = time.time() - written
    # A complete run that goes on writes its metrics anew, but its summary at the end alone.
    ended = summary.exists() and summary.stat().st_mtime >= written
    title = Text(f"{run_dir}, {config.game.board}")  # a plain str may hold signs of markup
    return Group(
        Panel(overview(config, metrics, ended, silent), title=title),
        *([shown] if (shown := curves(metrics)).rows else []),
        *([strength(metrics)] if any(map(is_strength, keys_of(metrics))) else []),
        report(warnings_of(config, metrics), not_judged(metrics)),
    )


def overview(config: Config, metrics: Metrics, ended: bool, silent: float) -> Table:
    """Return how far a run is, how fast, and what it takes; `silent` seconds since a record."""
    last = metrics[-1]
    seconds = [line["speed/seconds"] for line in metrics[-20:] if "speed/seconds" in line] or [0.0]
    done = config.fraction_done(last["iteration"], last.get("speed/minutes", 0.0))
    usual, left = median(seconds), time_left(done, last.get("speed/minutes", 0.0))

    def written(key: str, form: str, scale: float = 1) -> str:
        return form.format(scale * last[key]) if key in last else ""

    if ended:
        state = Text("complete", "bold green")
    elif silent > SILENT * max(usual, 1.0):
        state = Text(f"no record for {spell(silent)}: ended, evaluating or stuck", "bold red")
    else:
        state = Text("running", "bold green")
    network, table = config.network, Table.grid(padding=(0, 2))
    rows = {
        "state": state,
        "network": f"{network.trunk} {network.channels} x {network.blocks}",
        "done": f"{done:.0%} of {run_length(config)}: iteration {last['iteration']:,}"
        + written("speed/games", ", {:,} games")
        + written("speed/minutes", ", {:.1f} minutes"),
        "time left": "" if ended else f"{left}, without evaluations",
        "an iteration": f"{usual:.1f} s" if usual else "",
        "peak memory": written("memory/peak_bytes", "{:,.0f} MiB", 2**-20),
        "lanes in play": written("selfplay/used", "{:.0%}"),
        **devices(),
    }
    for name, value in rows.items():
        if value:
            table.add_row(Text(name, "dim"), value)
    return table


def devices() -> dict[str, str]:
    """Return what the GPUs of this machine are doing; nothing where there is none."""
    if pynvml is None:
        return {}
    try:
        pynvml.nvmlInit()
        gpus = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return {f"GPU {number}": _gpu(gpu) for number, gpu in enumerate(gpus)}
    except pynvml.NVMLError:
        return {}


def _gpu(gpu: Any) -> str:
    use, memory = pynvml.nvmlDeviceGetUtilizationRates(gpu), pynvml.nvmlDeviceGetMemoryInfo(gpu)
    watts = pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000
    return f"{use.gpu} % busy, {memory.used / 2**20:,.0f} MiB in use, {watts:.0f} W"


def curves(metrics: Metrics) -> Table:
    """Return the last value, the range and the course of each series."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for heading, justify in (("", "left"), ("now", "right"), ("from", "right"), ("to", "right")):
        table.add_column(heading, justify=justify, no_wrap=True)
    table.add_column("course")  # takes the space that is left
    for name, key, form in CURVES:
        values = [line[key] for line in metrics if key in line]
        if values:
            least, most = min(values), max(values)
            numbers = (form.format(value) for value in (values[-1], least, most))
            table.add_row(name, *numbers, Curve(values))
    return table


class Curve:
    """The course of a series, as wide as its cell and at most CURVE characters."""

    def __init__(self, values: list[float]):
        self._values = values

    def __rich_measure__(self, _console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, min(CURVE, options.max_width))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield Text(sparkline(self._values, min(CURVE, options.max_width)), "cyan")


def sparkline(values: list[float], width: int = CURVE) -> str:
    """Return the course of a series as characters of eight heights, means of equal parts."""
    cuts = [len(values) * part // width for part in range(width + 1)]
    parts = [values[a:b] for a, b in itertools.pairwise(cuts) if b > a]
    means = [sum(part) / len(part) for part in parts]
    least, span = min(means), max(means) - min(means) or 1.0
    return "".join(BARS[1 + round(7 * (mean - least) / span)] for mean in means)


def is_strength(key: str) -> bool:
    return key.startswith(("suite/", "versus/")) and key.endswith(("/optimal_share", "/points"))


def keys_of(metrics: Metrics) -> set[str]:
    return {key for line in metrics for key in line}


def strength(metrics: Metrics) -> Table:
    """Return exact play and matches: at the first, the best and the last evaluation."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for heading in ("strength", "now", "at first", "best"):
        table.add_column(heading, justify="left" if heading == "strength" else "right")
    for key in sorted(filter(is_strength, keys_of(metrics))):
        values = [line[key] for line in metrics if key in line]
        kind, player = key.split("/")[:2]
        if kind == "suite":
            name, values = f"{player}: wrong moves", [1 - value for value in values]
        else:
            name = f"points against {player}"
        best = min(values) if kind == "suite" else max(values)
        table.add_row(Text(name), *(f"{value:.1%}" for value in (values[-1], values[0], best)))
    return table


def report(warnings: list[Warning], unknown: str) -> Panel:
    """Return the warnings in words, each with the setting to change, and what was not judged."""
    if not warnings:
        text = Text(unknown, "yellow") if unknown else Text("Nothing looks wrong.", "green")
        return Panel(text, title="warnings")
    lines = Text()
    for number, warning in enumerate(warnings):
        lines.append("\n" * bool(number) + warning.name, "bold red")
        lines.append(f": {warning.words}.\n  {warning.change[0].upper()}{warning.change[1:]}.")
    return Panel(lines, title="warnings", border_style="red")


def as_html(view: Any, every: float) -> str:
    """Return a view as a page that loads itself again after `every` seconds."""
    console = Console(record=True, width=96, file=io.StringIO())
    console.print(view, markup=False)
    page = console.export_html(inline_styles=False)
    refresh = f'<meta http-equiv="refresh" content="{every:g}"><title>jaxzero</title>'
    return page.replace("<head>", f"<head>{refresh}", 1)
