"""Runs side by side: how far from perfect play, after how many games and minutes.

Runs that differ in nothing but their seed are one entry, told by its mean and its spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from jaxzero.cli import dotted, load_config
from jaxzero.errors import InputError
from jaxzero.training.beginning import read_past
from jaxzero.training.metrics import read_metrics
from jaxzero.training.run_folder import CONFIG_FILE

LEVELS = (20, 10, 5, 3, 2, 1, 0.5)  # percent of wrong moves
PREFIX, SUFFIX = "suite/", "/optimal_share"
# Settings that do not change what is learnt.
SILENT = ("seed", "devices", "checkpoint_every", "keep_checkpoints", "save_replay")


class Point(NamedTuple):
    """Where a run stood at one of its evaluations, the weights it began with counted in."""

    games: int
    minutes: float  # of self-play and learning
    wrong: dict[str, float]  # by player: share of wrong moves on solved positions, percent


class Run(NamedTuple):
    """A run and its evaluations."""

    run_dir: Path
    settings: dict[str, Any]  # by dotted name
    points: list[Point]


class Entry(NamedTuple):
    """Runs of the same settings."""

    name: str
    runs: list[Run]


def read_run(run_dir: Path) -> Run:
    """Read a run. Raises: InputError where there is none, or none that met solved positions."""
    if not (run_dir / CONFIG_FILE).is_file():
        raise InputError(f"runs: {run_dir} holds no run (it has no {CONFIG_FILE})")
    past = read_past(run_dir)
    settings = dict(dotted(asdict(load_config(run_dir / CONFIG_FILE))))
    points = [
        Point(past.games + int(line["speed/games"]), past.minutes + line["speed/minutes"], wrong)
        for line in read_metrics(run_dir)
        if (wrong := _wrong(line))
    ]
    if not points:
        raise InputError(f"runs: {run_dir} was never measured on solved positions")
    return Run(run_dir, settings, points)


def _wrong(line: dict[str, Any]) -> dict[str, float]:
    """Return the percent of wrong moves of each player in one line of metrics."""
    keys = [key for key in line if key.startswith(PREFIX) and key.endswith(SUFFIX)]
    return {key[len(PREFIX) : -len(SUFFIX)]: 100 - 100 * line[key] for key in keys}


def group(runs: Sequence[Run]) -> list[Entry]:
    """Join runs that differ in their seed alone, named by what sets them apart from the others."""
    kept = [{k: v for k, v in run.settings.items() if k not in SILENT} for run in runs]
    names = dict.fromkeys(name for settings in kept for name in settings)
    # The value most runs have goes without saying.
    usual = {name: _commonest([settings.get(name) for settings in kept]) for name in names}
    entries: dict[str, list[Run]] = {}
    for run, settings in zip(runs, kept, strict=True):
        unusual = [f"{k} {settings.get(k)}" for k in names if settings.get(k) != usual[k]]
        entries.setdefault(", ".join(unusual) or "-", []).append(run)
    if len(entries) == 1 and len(runs) == 1:
        return [Entry(str(runs[0].run_dir), list(runs))]
    return [Entry(name, found) for name, found in entries.items()]


def _commonest(values: list[Any]) -> Any:
    return max(values, key=values.count)


def players(entries: Sequence[Entry]) -> list[str]:
    """Return the players that were measured in any run."""
    points = (point for entry in entries for run in entry.runs for point in run.points)
    return list(dict.fromkeys(name for point in points for name in point.wrong))


def final(entry: Entry, player: str) -> tuple[float, float] | None:
    """Return mean and half of the spread of the last percent of wrong moves, over the seeds."""
    last = [run.points[-1].wrong[player] for run in entry.runs if player in run.points[-1].wrong]
    return (fmean(last), (max(last) - min(last)) / 2) if last else None


def first_below(run: Run, player: str, percent: float) -> Point | None:
    """Return the first evaluation with at most so many wrong moves."""
    return next((p for p in run.points if p.wrong.get(player, 100.0) <= percent), None)


def table(entries: Sequence[Entry]) -> str:
    """Return a line per entry: its runs, games, minutes, and the wrong moves at the end."""
    who = players(entries)
    width = max(len(entry.name) for entry in entries)
    lines = [f"{'setting':<{width}}  runs    games  minutes" + "".join(f"{w:>16}" for w in who)]
    for entry in entries:
        games = fmean(run.points[-1].games for run in entry.runs)
        minutes = fmean(run.points[-1].minutes for run in entry.runs)
        ends = "".join(f"{_spread(final(entry, player)):>16}" for player in who)
        lines.append(
            f"{entry.name:<{width}}  {len(entry.runs):>4}  {games:>7,.0f}  {minutes:>7.1f}{ends}"
        )
    return "\n".join(lines)


def _spread(found: tuple[float, float] | None) -> str:
    if found is None:
        return ""
    mean, half = found
    return f"{mean:.2f} ± {half:.2f} %" if half else f"{mean:.2f} %"


def levels(entry: Entry) -> str:
    """Return a line per level of wrong moves: when the first run of an entry got there."""
    run, who = entry.runs[0], players([entry])
    lines = []
    for level in LEVELS:
        found = {player: first_below(run, player, level) for player in who}
        if any(found.values()):
            words = (
                f"{player}: {point.games:,} games, {point.minutes:.1f} min"
                for player, point in found.items()
                if point
            )
            lines.append(f"  at most {level} % wrong   {'   '.join(words)}")
    return "\n".join([entry.name, *lines])
