"""Results of studies: measured, stored, and compared as tables and figures."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tabulate import tabulate

from jaxzero.config import Config, SearchConfig
from jaxzero.errors import InputError, shortened
from jaxzero.host.files import save_figure, write_csv, write_json
from jaxzero.host.readers import check_mapping, read_mapping
from jaxzero.network.network import Network, count_params
from jaxzero.performance.timing import network_call, seconds_per_call
from jaxzero.study.fit import CurvePoint, Fit
from jaxzero.study.labels import Labels

RESULT_FILE, CURVE_FILE = "result.json", "curve.csv"
INFERENCE_BATCH = 512  # positions per evaluation, when speed is measured
INFERENCE_SECONDS = 0.3  # length of the measurement

Result = dict[str, Any]
# Settings that the table shows.
SHOWN = {"network": ("trunk", "channels", "blocks", "features"), "game": ("rows", "cols")}

# Columns of the table: key of the result, heading, format.
ERRORS = {
    "wrong": ("wrong", "{:.2%}"),
    "wrong_decisive": ("decisive", "{:.2%}"),
    "value_error": ("value error", "{:.3f}"),
    "right_sign": ("right sign", "{:.2%}"),
}
COSTS = {
    "parameters": ("parameters", "{:,}"),
    "evaluations_per_second": ("evals/s", "{:,.0f}"),
    "ms_per_update": ("ms/update", "{:.3g}"),
    "positions": ("seen", "{:,}"),
    "seconds": ("seconds", "{:.0f}"),
}

# Axes of the figure: key of the curve, label.
ACROSS = {"seconds": "seconds of learning", "positions": "positions seen"}
DOWN = {
    "wrong_decisive": "wrong moves in decisive positions, %",
    "value_error": "value error, boxes",
}


def errors_of(scores: dict[str, Any]) -> dict[str, float | None]:
    """Return the `ERRORS` of scores: shares of moves and positions, and boxes."""
    return {
        "wrong": _rest(scores["optimal_share"]),
        "wrong_decisive": scores["wrong_share"],
        "value_error": scores["value_error"],
        "right_sign": scores["sign_accuracy"],
    }


def _rest(share: float | None) -> float | None:
    return None if share is None else round(1 - share, 5)


def result_of(config: Config, labels: Labels, done: Fit) -> Result:
    """Return the result of one study; measures the speed of inference."""
    network, params = Network(labels.test.game, config.network), done.learner.params
    last = done.curve[-1]
    return {
        "config": asdict(config),
        "labels": labels.source,
        "label_positions": labels.positions,
        "test_positions": len(labels.test),
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "parameters": count_params(done.learner.params),
        "batch_size": config.learner.batch_size,
        "updates": last.updates,
        "positions": last.positions,
        "seconds": last.seconds,
        "ms_per_update": 1000 * last.seconds / last.updates,
        "compile_seconds": done.compile_seconds,
        "evaluations_per_second": evaluations_per_second(network, config.search, params),
        **errors_of(last.scores["all"]),
        "by_undrawn": {
            band: {"positions": scores["positions"], **errors_of(scores)}
            for band, scores in last.scores["by_undrawn"].items()
        },
        "curve": [curve_row(point) for point in done.curve],
    }


def evaluations_per_second(network: Network, settings: SearchConfig, params: Any) -> float:
    """Measure evaluations a second, in batches of INFERENCE_BATCH on one device."""
    repeats = 4
    while True:
        call = network_call(network, settings, params, INFERENCE_BATCH, repeats)
        (seconds,) = seconds_per_call(call)
        if seconds > INFERENCE_SECONDS / 2 or repeats > 10_000:
            return INFERENCE_BATCH * repeats / seconds
        repeats = int(1 + repeats * min(100.0, INFERENCE_SECONDS / seconds))


def curve_row(point: CurvePoint) -> dict[str, Any]:
    """Return one line of the curve."""
    return {
        "seconds": round(point.seconds, 3),
        "positions": point.positions,
        "updates": point.updates,
        "loss": point.loss,
        **errors_of(point.scores["all"]),
    }


def point_line(point: CurvePoint) -> str:
    """Return one line with the errors after some learning."""
    errors = errors_of(point.scores["all"])
    parts = [f"{head} {_written(ERRORS, key, errors[key])}" for key, (head, _) in ERRORS.items()]
    return f"{point.seconds:8.1f} s {point.positions:>12,} positions   " + "  ".join(parts)


def write_result(out: Path, result: Result) -> None:
    """Write `result.json` and `curve.csv`."""
    write_json(out / RESULT_FILE, result)
    curve = result["curve"]
    write_csv(out / CURVE_FILE, list(curve[0]), curve)


def read_results(given: list[Path]) -> dict[str, Result]:
    """Return the results in these folders by name, where names repeat by path.

    Files among them, as in `runs/*`, are skipped. Raises: InputError for a folder without a
    result, and if there is no folder.
    """
    folders = [folder for folder in given if not folder.is_file()]
    last = [folder.name for folder in folders]
    names = [folder.name if last.count(folder.name) == 1 else str(folder) for folder in folders]
    results = {
        name: read_result(folder / RESULT_FILE) for name, folder in zip(names, folders, strict=True)
    }
    if not results:
        raise InputError(f"compare: {', '.join(map(str, given))} holds no folder of a study")
    return results


def read_result(path: Path) -> Result:
    """Read the result of one study. Raises: InputError."""
    number = int | float
    kinds = {"config": dict, "by_undrawn": dict, "curve": list, **dict.fromkeys(COSTS, number)}
    result = read_mapping("compare", path, kinds)
    sections = result["config"]
    for name, fields in SHOWN.items():
        check_mapping("compare", path, sections.get(name), dict.fromkeys(fields, int | str))
    errors = [result, *result["by_undrawn"].values(), *result["curve"]]
    for entry in errors:
        check_mapping("compare", path, entry, dict.fromkeys(ERRORS, number | None))
    for band in result["by_undrawn"]:
        if not re.fullmatch("[0-9]{1,4}-[0-9]{1,4}", band):
            raise InputError(f"compare: {shortened(repr(band))} in {path} is no band of edges")
    for entry in result["curve"]:
        check_mapping("compare", path, entry, dict.fromkeys(ACROSS, number))
    return result


def format_results(results: dict[str, Result]) -> str:
    """Return a line for each result, best first, then its errors by undrawn edges."""
    ranked = dict(sorted(results.items(), key=lambda item: item[1]["wrong_decisive"] or 0.0))
    shown, rows = COSTS | ERRORS, []
    for name, row in ranked.items():
        network, board = row["config"]["network"], row["config"]["game"]
        size = f"{network['channels']}x{network['blocks']}"
        about = f"{network['trunk']} {size} {network['features']}"
        numbers = [_written(shown, key, row[key]) for key in shown]
        rows.append([name, f"{board['rows']}x{board['cols']}", about, *numbers])
    heads = ["study", "board", "network", *(head for head, _ in shown.values())]
    wrong = _table_by_undrawn(ranked, "wrong_decisive", "wrong moves, decisive")
    error = _table_by_undrawn(ranked, "value_error", "value error, boxes")
    return "\n\n".join([_table(rows, heads), wrong, error])


def _table_by_undrawn(results: dict[str, Result], key: str, title: str) -> str:
    """Return a table of one error of every result, with a column for each band."""
    bands = list(dict.fromkeys(band for row in results.values() for band in row["by_undrawn"]))
    bands.sort(key=lambda band: int(band.split("-")[0]))
    rows = [
        [name, *(_written(ERRORS, key, row["by_undrawn"].get(band, {}).get(key)) for band in bands)]
        for name, row in results.items()
    ]
    return _table(rows, [f"{title}, by undrawn edges", *bands])


def _written(formats: dict[str, tuple[str, str]], key: str, value: float | None) -> str:
    return "-" if value is None else formats[key][1].format(value)


def _table(rows: list[list[str]], heads: list[str]) -> str:
    left = ("left",)
    return tabulate(rows, heads, "plain", stralign="right", colalign=left, disable_numparse=True)


def write_comparison(out: Path, results: dict[str, Result]) -> None:
    """Write `comparison.csv`, one line per result."""
    keys = [*COSTS, *ERRORS]
    rows = [
        {
            "study": name,
            "network": json.dumps(row["config"]["network"]),
            **{key: row[key] for key in keys},
        }
        for name, row in results.items()
    ]
    write_csv(out / "comparison.csv", list(rows[0]), rows)


def draw_results(path: Path, results: dict[str, Result]) -> None:
    """Draw the curves of results by name into a PNG; all axes are logarithmic."""
    figure = Figure(figsize=(12, 8), layout="constrained")
    axes = figure.subplots(len(DOWN), len(ACROSS), sharex="col", sharey="row")
    for row, (error, error_name) in enumerate(DOWN.items()):
        for column, (effort, effort_name) in enumerate(ACROSS.items()):
            axis = axes[row, column]
            for name, result in results.items():
                _draw_line(axis, result["curve"], effort, error, name)
            axis.set(xscale="log", yscale="log")
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("{x:g}")
            axis.grid(alpha=0.3, which="both")
            if row == len(DOWN) - 1:
                axis.set_xlabel(effort_name)
            if column == 0:
                axis.set_ylabel(error_name)
    axes[0, 0].legend(fontsize=8)
    save_figure(path, figure)


def _draw_line(axis: Axes, curve: list[dict], effort: str, error: str, name: str) -> None:
    scale = 100.0 if error == "wrong_decisive" else 1.0
    # A logarithmic axis has no place for 0: the start, and an error that is gone.
    points = [(at[effort], scale * at[error]) for at in curve if at[effort] and at[error]]
    axis.plot(*zip(*points, strict=True) if points else ((), ()), marker="o", ms=4, label=name)
