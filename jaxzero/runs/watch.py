"""A live view of a run, and warnings: what looks wrong, and which setting to change.

The limits are chosen so that complete runs of `quick.yaml`, `cpu.yaml` and `gpu_80gb.yaml` give no
warning, and a run that failed gives one.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

try:
    import pynvml  # of the package nvidia-ml-py, which comes with the CUDA extras
except ImportError:
    pynvml = None
from rich.console import Console, ConsoleOptions, Group
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from jaxzero.config import Config
from jaxzero.config.files import config_of_file
from jaxzero.host.status import spell
from jaxzero.runs.metrics import FILE_NAME, read_metrics
from jaxzero.runs.run_dir import CONFIG_FILE, check_run
from jaxzero.runs.summary import SUMMARY_FILE, run_length, time_left

Metrics = list[dict[str, Any]]  # one dict per iteration, oldest first

# The view.
BARS = " ▁▂▃▄▅▆▇█"
CURVE = 26  # characters of a curve
SILENT = 10  # iteration times without a new record; then the run has perhaps ended
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

# The warnings.
EARLY = 5  # iterations before any trend is judged
WINDOW = 5  # iterations of a mean
COLLAPSED = 0.15  # nats of the policy's entropy
RISE = 1.3  # times the lowest mean of a loss
FLAT = 0.97  # of the first mean: a flat loss stays above; noise alone lowers a loss by 1 %
FLAT_AFTER = 30  # iterations
STEEP = 8.0  # times the usual gradient
LARGE_LOGITS = 32.0  # nats: bfloat16 has steps of 0.25 from here on
MOST_REPLAY = 9.0  # times that a position is sampled
SLOW = 0.4  # of the usual speed
IDLE = 0.75  # least fraction of parallel games that are in play
WAITING = 0.3  # fraction of an iteration that the device waits for the solver
UNSOLVED = 0.2  # fraction of games that end at a position too hard for the solver
ONE_SIDED = 0.99  # fraction of games with the same result
WORSE = 0.03  # more wrong moves than at the best evaluation
JUDGED = (  # metrics that a complete record has in every iteration
    "selfplay/policy_entropy",
    "selfplay/used",
    "learn/margin_loss",
    "learn/gradient_norm",
    "speed/evaluations_per_second",
)


def watch_run(run_dir: Path) -> Group:
    """Return the current view of a run. Raises: InputError if there is no run."""
    check_run("run_dir", run_dir)
    config = config_of_file("run_dir", run_dir / CONFIG_FILE)
    metrics = read_metrics(run_dir)
    if not metrics:
        return Group(Panel("No iteration is recorded yet.", title=Text(str(run_dir))))
    written, summary = (run_dir / FILE_NAME).stat().st_mtime, run_dir / SUMMARY_FILE
    silent = time.time() - written
    # A resumed run writes its metrics again, but its summary only at the end.
    ended = summary.exists() and summary.stat().st_mtime >= written
    title = Text(f"{run_dir}, {config.game.board}")  # rich would read markup in a str
    return Group(
        Panel(overview(config, metrics, ended, silent), title=title),
        *(shown for shown in (curves(metrics), strength(metrics)) if shown.rows),
        report(warnings_of(config, metrics), not_judged(metrics)),
    )


def overview(config: Config, metrics: Metrics, ended: bool, silent: float) -> Table:
    """Return progress, speed and resources of a run, `silent` seconds after its last record."""
    last, done = metrics[-1], fraction_done(config, metrics[-1])
    usual = median(values_of(metrics[-20:], "speed/seconds") or [0.0])
    left = time_left(done, last.get("speed/minutes", 0.0))

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
    """Return the load of each GPU of this machine; empty without a GPU."""
    found = {}
    if pynvml is None:
        return found
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        for number in range(pynvml.nvmlDeviceGetCount()):
            gpu = pynvml.nvmlDeviceGetHandleByIndex(number)
            busy = pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu
            used = pynvml.nvmlDeviceGetMemoryInfo(gpu).used / 2**20
            watts = pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000
            found[f"GPU {number}"] = f"{busy} % busy, {used:,.0f} MiB in use, {watts:.0f} W"
    return found


def curves(metrics: Metrics) -> Table:
    """Return the last value, the range and the course of each series."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for heading, justify in (("", "left"), ("now", "right"), ("from", "right"), ("to", "right")):
        table.add_column(heading, justify=justify, no_wrap=True)
    table.add_column("course")  # takes the space that is left
    for name, key, form in CURVES:
        if values := values_of(metrics, key):
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
    """Return a series as characters of eight heights; each is the mean of an equal part."""
    cuts = [len(values) * part // width for part in range(width + 1)]
    parts = [values[a:b] for a, b in itertools.pairwise(cuts) if b > a]
    means = [sum(part) / len(part) for part in parts]
    least, span = min(means), max(means) - min(means) or 1.0
    return "".join(BARS[1 + round(7 * (mean - least) / span)] for mean in means)


def strength(metrics: Metrics) -> Table:
    """Return exact play and matches at the last, the first and the best evaluation."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for heading in ("strength", "now", "at first", "best"):
        table.add_column(heading, justify="left" if heading == "strength" else "right")
    for key in sorted({key for line in metrics for key in line}):
        values = values_of(metrics, key)
        match key.split("/"):
            case ["suite", player, "optimal_share"]:
                name, values = f"{player}: wrong moves", [1 - value for value in values]
                best = min(values)
            case ["versus", player, "points"]:
                name, best = f"points against {player}", max(values)
            case _:
                continue
        table.add_row(Text(name), *(f"{value:.1%}" for value in (values[-1], values[0], best)))
    return table


def report(warnings: list[Warning], unknown: str) -> Panel:
    """Return the warnings, each with the setting to change, and what was not judged."""
    lines = []
    for warning in warnings:
        change = f"{warning.change[0].upper()}{warning.change[1:]}"
        lines.append(Text.assemble((warning.name, "bold red"), f": {warning.words}.\n  {change}."))
    if unknown:
        lines.append(Text(unknown, "yellow"))
    text = Text("\n").join(lines) if lines else Text("Nothing looks wrong.", "green")
    return Panel(text, title="warnings", border_style="red" if warnings else "none")


class Warning(NamedTuple):
    """Something that looks wrong in a run."""

    name: str
    words: str  # what was seen
    change: str  # what to do


def warnings_of(config: Config, metrics: Metrics) -> list[Warning]:
    """Return what looks wrong in a run; before EARLY iterations only its settings are judged."""
    found, ratio = [], config.replay_ratio
    if ratio > MOST_REPLAY:
        words = f"each position is sampled {ratio:.1f} times; the network learns noise"
        change = "lower learner.updates_per_iteration or learner.batch_size"
        found.append(Warning("replay ratio too high", words, change))
    if len(metrics) >= EARLY:
        found += [*of_learning(metrics), *of_games(metrics), *of_speed(metrics)]
        found += [*losses(config, metrics), *evaluations(metrics)]
    return found


def not_judged(metrics: Metrics) -> str:
    """Return in words which metrics the warnings lack; empty if they have all."""
    if len(metrics) < EARLY:
        return f"Not judged yet: that takes {EARLY} iterations, {len(metrics)} are recorded."
    missing = [key for key in JUDGED if not values_of(metrics[-WINDOW:], key)]
    return f"Not judged: the record lacks {', '.join(missing)}." if missing else ""


def of_learning(metrics: Metrics) -> Iterator[Warning]:
    """Yield warnings about policies, logits and gradients."""
    entropy = recent(metrics, "selfplay/policy_entropy")
    if entropy < COLLAPSED:
        yield Warning(
            "entropy collapse",
            f"the policy of the search has {entropy:.2f} nats of entropy: games are all alike",
            "raise selfplay.random_opening_moves and selfplay.sampled_moves",
        )
    squares = recent(metrics, "learn/logit_size")  # sum over both heads
    if squares > LARGE_LOGITS**2:
        yield Warning(
            "logits grow together",
            f"their log-sum-exp is {squares**0.5:.3g}: bfloat16 cannot tell logits of this size "
            "apart",
            "lower learner.learning_rate; go on from a checkpoint before the growth",
        )
    norms = values_of(metrics, "learn/gradient_norm")
    if len(norms) >= 2 * WINDOW and fmean(norms[-WINDOW:]) > STEEP * median(norms):
        yield Warning(
            "gradient explodes",
            f"its norm is {fmean(norms[-WINDOW:]):.3g}, usually {median(norms):.3g}",
            "lower learner.learning_rate, or raise learner.warmup_updates",
        )
    skipped = sum(values_of(metrics[-WINDOW:], "learn/skipped_updates"))
    if skipped:
        yield Warning(
            "updates skipped",
            f"{skipped:.0f} updates of the last {WINDOW} iterations had a gradient that is not "
            "finite",
            "lower learner.learning_rate",
        )


def of_games(metrics: Metrics) -> Iterator[Warning]:
    """Yield warnings about games that end alike, and about idle parallel games."""
    draws, first = (recent(metrics, f"selfplay/{name}") for name in ("draws", "first_wins"))
    ends = {
        "games are drawn": draws,
        "games are won by the first player": first,
        "games are won by the second player": 1 - draws - first,
    }
    for words, share in ends.items():
        if share >= ONE_SIDED:
            yield Warning(
                "all games end alike",
                f"{share:.0%} of the {words}",
                "raise selfplay.random_opening_moves, selfplay.sampled_moves or "
                "selfplay.random_move_fraction",
            )
    used = recent(metrics, "selfplay/used")
    if used < IDLE:
        yield Warning(
            "lanes idle",
            f"{1 - used:.0%} of the lanes hold games that are over",
            "raise selfplay.games_per_iteration, or lower selfplay.late_start_moves",
        )


def of_speed(metrics: Metrics) -> Iterator[Warning]:
    """Yield warnings about a device that became slower or waits for the solver."""
    speeds = values_of(metrics, "speed/evaluations_per_second")
    if len(speeds) >= 2 * WINDOW and fmean(speeds[-WINDOW:]) < SLOW * median(speeds):
        yield Warning(
            "slower than before",
            f"{fmean(speeds[-WINDOW:]):,.0f} evaluations/s, usually {median(speeds):,.0f}",
            "look for other programs on the device, its temperature and its power limit",
        )
    unsolved = recent(metrics, "selfplay/unsolved")
    waited = sum(values_of(metrics[-WINDOW:], "speed/solver_wait_seconds"))
    share = waited / max(sum(values_of(metrics[-WINDOW:], "speed/seconds")), 1e-9)
    if unsolved > UNSOLVED or (share > WAITING and not math.isnan(unsolved)):
        yield Warning(
            "solver too slow",
            f"{unsolved:.0%} of the games stop where it finds no value, and the device waits for "
            f"it {share:.0%} of the time",
            "lower selfplay.solver_below_edges",
        )


def losses(config: Config, metrics: Metrics) -> Iterator[Warning]:
    """Yield warnings about a loss that rises or stays flat.

    Skip the phase of late starts: games start ever earlier, so a loss may rise.
    """
    metrics = [
        line for line in metrics if fraction_done(config, line) >= config.selfplay.late_start_until
    ]
    for key, name, change in (
        ("learn/margin_loss", "value", "lower learner.updates_per_iteration"),
        # The policy loss includes the entropy of the target, which changes with the start of games.
        ("learn/policy_divergence", "policy", "lower learner.learning_rate"),
    ):
        values = values_of(metrics, key)
        if len(values) < 2 * WINDOW:
            continue
        means = [fmean(values[end - WINDOW : end]) for end in range(WINDOW, len(values) + 1)]
        if means[-1] > RISE * min(means):
            yield Warning(
                f"{name} error rises",
                f"{key} is {means[-1]:.2f} on replay, after {min(means):.2f} at its best",
                change,
            )
        elif name == "value" and len(means) > FLAT_AFTER and min(means) > FLAT * means[0]:
            yield Warning(
                "value error flat",
                f"{key} is {means[-1]:.2f} on replay, {means[0]:.2f} at the start",
                "begin games later: raise selfplay.late_start_moves, set selfplay.late_start_until"
                if not config.selfplay.late_start_moves
                else "raise learner.learning_rate or network.channels",
            )


def evaluations(metrics: Metrics) -> Iterator[Warning]:
    """Yield warnings about exact play that has become worse."""
    keys = {key for line in metrics for key in line}
    for key in sorted(k for k in keys if k.startswith("suite/") and k.endswith("/optimal_share")):
        shares = values_of(metrics, key)
        if max(shares) - shares[-1] > WORSE:
            yield Warning(
                "more wrong moves",
                f"{1 - shares[-1]:.1%} of {key.split('/')[1]} on solved positions, after "
                f"{1 - max(shares):.1%}",
                "lower learner.learning_rate, or take an earlier checkpoint",
            )


def fraction_done(config: Config, line: dict[str, Any]) -> float:
    """Return the part of a run that is done after an iteration, 0 to 1."""
    return config.fraction_done(line["iteration"], line.get("speed/minutes", 0.0))


def values_of(metrics: Metrics, key: str) -> list[float]:
    """Return the values of a metric, oldest first, where it was recorded."""
    return [float(line[key]) for line in metrics if key in line]


def recent(metrics: Metrics, key: str) -> float:
    """Return the mean of the newest values; without values nan, which gives no warning."""
    values = values_of(metrics, key)[-WINDOW:]
    return fmean(values) if values else math.nan
