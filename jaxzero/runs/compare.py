"""Compare runs: wrong moves on solved positions against games and minutes of training.

Runs that differ only in their seed form one group, with a mean and an interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import cycle, product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.stats import t
from tabulate import tabulate

from jaxzero.config.files import config_of_file, dotted
from jaxzero.errors import InputError, as_field
from jaxzero.host.files import save_figure
from jaxzero.host.readers import check_mapping, read_mapping
from jaxzero.runs.metrics import read_metrics
from jaxzero.runs.run_dir import CONFIG_FILE, check_run
from jaxzero.runs.summary import SUMMARY_FILE
from jaxzero.runs.weights import initial_note

LEVELS = (20, 10, 5, 3, 2, 1, 0.5)  # percent of wrong moves
PREFIX, SUFFIX = "suite/", "/optimal_share"
STYLES = ("--", "-", ":", "-.")  # lines of the players
SUMMARY = {"iterations": int, "games": int, "minutes": int | float, "suite": dict}
FLOOR = 0.05  # percent; a suite of some thousand positions cannot measure less
# Settings that do not change the training.
SILENT = ("seed", "devices", "checkpoint_every", "keep_checkpoints", "save_replay")


class Measurement(NamedTuple):
    """One evaluation of a run; games and minutes include those of its initial weights."""

    games: int
    minutes: float  # of self-play and learning
    wrong: dict[str, float]  # by player: share of wrong moves on solved positions, percent


class MeasuredRun(NamedTuple):
    """A run and its measurements."""

    run_dir: Path
    settings: dict[str, Any]  # by dotted name
    measurements: list[Measurement]
    finished: bool  # it has reached the limits of its config


class RunGroup(NamedTuple):
    """Runs with the same settings."""

    name: str
    runs: list[MeasuredRun]


def read_run(run_dir: Path) -> MeasuredRun:
    """Read a run. Raises: InputError if there is none or it has no measurement."""
    check_run("runs", run_dir)
    with as_field("runs", "run_dir", str(run_dir)):
        name, past = initial_note(run_dir)
        metrics = read_metrics(run_dir)
    config = config_of_file("runs", run_dir / CONFIG_FILE)
    settings = dict(dotted(asdict(config)))
    settings["weights"] = name or "none"
    measurements = []
    for line in metrics:
        keys = [key for key in line if key.startswith(PREFIX) and key.endswith(SUFFIX)]
        wrong = {key[len(PREFIX) : -len(SUFFIX)]: 100 - 100 * line[key] for key in keys}
        if wrong and {"speed/games", "speed/minutes"} <= line.keys():
            games, minutes = int(line["speed/games"]), line["speed/minutes"]
            measurements.append(Measurement(past.games + games, past.minutes + minutes, wrong))
    path, wrong = run_dir / SUMMARY_FILE, {}
    summary = read_mapping("runs", path, SUMMARY) if path.exists() else {}  # of a complete run
    for player, score in summary.get("suite", {}).items():
        parts = check_mapping("runs", path, score, {"all": dict})["all"]
        share = check_mapping("runs", path, parts, {"optimal_share": float})
        wrong[player] = 100 - 100 * share["optimal_share"]
    if wrong and not (measurements and measurements[-1].games >= past.games + summary["games"]):
        games, minutes = past.games + summary["games"], past.minutes + summary["minutes"]
        measurements.append(Measurement(games, minutes, wrong))
    if not measurements:
        raise InputError(f"runs: {run_dir} was never measured on solved positions")
    done = bool(summary) and config.fraction_done(summary["iterations"], summary["minutes"]) == 1
    return MeasuredRun(run_dir, settings, measurements, done)


def group_runs(runs: Sequence[MeasuredRun]) -> list[RunGroup]:
    """Group runs that differ only in their seed; the name lists the unusual settings."""
    kept = [{k: v for k, v in run.settings.items() if k not in SILENT} for run in runs]
    names = dict.fromkeys(name for settings in kept for name in settings)
    # The most frequent value of a setting stays out of the name.
    values = {name: [settings.get(name) for settings in kept] for name in names}
    usual = {name: max(given, key=given.count) for name, given in values.items()}
    groups: dict[str, list[MeasuredRun]] = {}
    for run, settings in zip(runs, kept, strict=True):
        unusual = [f"{k} {settings.get(k)}" for k in names if settings.get(k) != usual[k]]
        group = groups.setdefault(", ".join(unusual) or "-", [])
        seed = run.settings["seed"]
        if same := next((other for other in group if other.settings["seed"] == seed), None):
            raise InputError(
                f"runs: {same.run_dir} and {run.run_dir} have the same settings and seed {seed}: "
                "there is no mean of seeds; --names keeps them apart"
            )
        group.append(run)
    if len(runs) == 1:
        return [RunGroup(str(runs[0].run_dir), list(runs))]
    return [RunGroup(name, found) for name, found in groups.items()]


def ends(group: RunGroup) -> list[Measurement]:
    """Return the last measurement of each finished run, or of each run if none is finished."""
    finished = [run for run in group.runs if run.finished]
    return [run.measurements[-1] for run in finished or group.runs]


def players(groups: Sequence[RunGroup]) -> list[str]:
    """Return the players that were measured in any run."""
    found = (one.wrong for group in groups for run in group.runs for one in run.measurements)
    return list(dict.fromkeys(name for wrong in found for name in wrong))


def final(group: RunGroup, player: str) -> str:
    """Return the mean of wrong moves at the `ends`, with a 95 % interval for several runs.

    The interval uses Student's t distribution.
    """
    last = [end.wrong[player] for end in ends(group) if player in end.wrong]
    if not last:
        return ""
    mean = fmean(last)
    if len(last) == 1:
        return f"{mean:.2f} %"
    half = t.ppf(0.975, len(last) - 1) * stdev(last) / math.sqrt(len(last))
    return f"{mean:.2f} % [{max(0.0, mean - half):.2f}, {min(100.0, mean + half):.2f}]"


def format_runs(groups: Sequence[RunGroup]) -> str:
    """Return a table with a line per group: runs, games, minutes and final wrong moves.

    Means are over the finished runs, or over all runs if none is finished.
    """
    who, rows = players(groups), []
    for group in groups:
        games = fmean(end.games for end in ends(group))
        minutes = fmean(end.minutes for end in ends(group))
        unfinished = sum(not run.finished for run in group.runs)
        runs = f"{len(group.runs)}" + f", {unfinished} unfinished" * bool(unfinished)
        wrong = [final(group, player) for player in who]
        rows.append([group.name, runs, f"{games:,.0f}", f"{minutes:.1f}", *wrong])
    heads, left = ["setting", "runs", "games", "minutes", *who], ("left",)
    return tabulate(rows, heads, "plain", stralign="right", colalign=left, disable_numparse=True)


def levels(group: RunGroup) -> str:
    """Return when the first run of a group reached each level of wrong moves, a line a level."""
    run, who = group.runs[0], players([group])
    lines = []
    for level in LEVELS:
        found = {
            player: next((m for m in run.measurements if m.wrong.get(player, 100) <= level), None)
            for player in who
        }
        if any(found.values()):
            words = (
                f"{player}: {one.games:,} games, {one.minutes:.1f} min"
                for player, one in found.items()
                if one
            )
            lines.append(f"  at most {level} % wrong   {'   '.join(words)}")
    name = f"{group.name}: {run.run_dir}" if len(group.runs) > 1 else group.name
    return "\n".join([name, *lines])


def draw_runs(path: Path, groups: Sequence[RunGroup]) -> None:
    """Draw the wrong moves of every run into a figure: groups by colour, players by line style."""
    figure = Figure(figsize=(13, 5.5), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    styled = list(zip(players(groups), cycle(STYLES), strict=False))
    for axis, field in zip(axes, ("minutes", "games"), strict=True):
        for (player, style), (number, group) in product(styled, enumerate(groups)):
            for seed, run in enumerate(group.runs):
                shown = [one for one in run.measurements if player in one.wrong]
                axis.plot(
                    [getattr(one, field) for one in shown],
                    [max(FLOOR, one.wrong[player]) for one in shown],
                    style,
                    color=f"C{number % 10}",
                    marker="o",
                    markersize=2.5,
                    linewidth=1.2,
                    label=None if seed else f"{group.name}, {player}",
                )
        axis.set_xlabel(f"{field} of self-play and learning")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.grid(alpha=0.3, which="both")
        for scale in (axis.xaxis, axis.yaxis):
            scale.set_major_locator(LogLocator(subs=(1, 2, 5)))
            scale.set_major_formatter("{x:,g}")
            scale.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel("wrong moves on solved positions, %")
    handles, labels = axes[0].get_legend_handles_labels()
    columns = min(3, len(styled))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8)
    save_figure(path, figure)
