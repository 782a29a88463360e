"""The results of a benchmark for people and for files."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jaxzero.errors import InputError
from jaxzero.training.memory import mebibytes
from jaxzero.training.throughput import share_cell, share_notes

COMPARED = {
    "games_per_second": "games/s",
    "games_per_second_with_learning": "games/s with learning",
    "network_evaluations_per_second": "network evaluations/s",
    "search_evaluations_per_second": "search evaluations/s",
    "selfplay_evaluations_per_second": "self-play evaluations/s",
    "learner_samples_per_second": "learner samples/s",
    "matmul_ceiling_flops": "matmul ceiling, FLOP/s",
    "copy_ceiling_bytes": "copy ceiling, bytes/s",
    "peak_memory_bytes": "peak memory, bytes",
    "predicted_memory_bytes": "predicted memory, bytes",
    "compile_seconds": "compilation, s",
}

RATES = {"network": "network alone", "search": "search", "selfplay": "self-play"}
WIDTH = 100  # characters of a line, at most


def read_result(path: Path) -> dict[str, Any]:
    """Read an earlier result. Raises: InputError where there is none."""
    try:
        result = json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"compare: {path} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"compare: {path} is not JSON ({error})") from error
    if not isinstance(result, dict) or not {"games_per_second", "config", "device"} <= set(result):
        raise InputError(f"compare: {path} is not a result of this benchmark")
    return result


def table(result: dict[str, Any]) -> str:
    """Lay a result out, at most `WIDTH` characters wide."""
    parts = [_setting(result), _rates(result), _phases(result), _memory(result)]
    if "baseline" in result:
        parts.append(_baseline(result["baseline"]))
    parts.append(textwrap.fill(f"note: {note}", WIDTH) for note in result["notes"])
    return "\n\n".join(filter(None, ("\n".join(lines) for lines in parts)))


def _setting(result: dict[str, Any]) -> Iterator[str]:
    config, versions = result["config"], result["versions"]
    network, game = config["network"], config["game"]
    used = f"1 of {result['devices_present']} present"
    yield f"device      {result['device']} ({result['platform']}), {used}"
    yield "versions    " + ", ".join(f"{name} {value}" for name, value in versions.items())
    yield (
        f"network     {network['trunk']} {network['channels']} x {network['blocks']} on "
        f"{game['rows']}x{game['cols']}, {result['parameters']:,} parameters, "
        f"{result['compute_dtype']}"
        + (f", convolution {result['convolution']}" if result["convolution"] else "")
    )
    yield (
        f"iteration   {config['selfplay']['games']} games, "
        f"{config['search']['simulations']} simulations a move, "
        f"{config['learner']['updates_per_iteration']} updates of "
        f"{config['learner']['batch_size']} samples"
    )
    yield (
        f"ceilings    {result['matmul_ceiling_flops'] / 1e12:,.3g} TFLOP/s in matrix products, "
        f"{result['copy_ceiling_bytes'] / 1e9:,.3g} GB/s in copies, measured in this run"
    )


def _rates(result: dict[str, Any]) -> Iterator[str]:
    alone, mfu = result["network_evaluations_per_second"], result["mfu"]
    flops = result["flops_per_second"]
    of_network = {name: result[f"{name}_evaluations_per_second"] / alone for name in RATES}
    yield f"{'':<16}{'a second':>12}  {'':<12}{'of network':>10}{'TFLOP/s':>10}{'of ceiling':>11}"
    for name, label in RATES.items():
        rate = result[f"{name}_evaluations_per_second"]
        share = share_cell(of_network[name], 1)
        line = f"{label:<16}{rate:>12,.0f}  {'evaluations':<12}{share:>10}"
        if name in mfu:
            line += f"{flops[name] / 1e12:>10.3g}{share_cell(mfu[name], 1):>11}"
        yield line
    rate = result["learner_samples_per_second"]
    line = f"{'learner':<16}{rate:>12,.0f}  {'samples':<12}{'':>10}"
    yield line + f"{flops['learner'] / 1e12:>10.3g}{share_cell(mfu['learner'], 1):>11}"
    for label, name in (
        ("self-play", "games_per_second"),
        ("with learning", "games_per_second_with_learning"),
    ):
        yield f"{label:<16}{result[name]:>12,.2f}  games"
    if result["bytes_per_evaluation"]:
        yield (
            f"{'bytes moved':<16}{result['bytes_per_evaluation']:>12,.0f}  an evaluation, "
            f"{share_cell(result['copy_share'], 1)} of the copy ceiling"
        )
    shares = {"network": of_network.values(), "products": mfu.values()}
    yield from _notes(shares | {"copies": [result["copy_share"]]})


def _phases(result: dict[str, Any]) -> Iterator[str]:
    phases, whole = result["phases"], result["phases"]["iteration"]
    measured = result["iteration_measured_whole"]
    seconds = {name: phases[name] for name in ("selfplay", "replay_write", "learning", "host_gap")}
    if measured:
        seconds["sum"] = sum(seconds.values())
    yield f"{'iteration':<16}{'seconds':>12}{'share':>10}"
    for name, time in seconds.items():
        yield f"{name.replace('_', ' '):<16}{time:>12.4g}{share_cell(time / whole, 1):>10}"
    yield f"{'whole':<16}{whole:>12.4g}  {'measured' if measured else 'sum of the phases'}"
    yield from _notes({"whole": [time / whole for time in seconds.values()]})
    yield "host gap: iterations as the trainer runs them less the same back to back, at least 0"


def _notes(shares: dict[str, Iterable[float | None]]) -> Iterator[str]:
    for note in share_notes(shares, 1):
        yield from textwrap.wrap(note, WIDTH, subsequent_indent="  ")


def _memory(result: dict[str, Any]) -> Iterator[str]:
    of = "process" if result["platform"] == "cpu" else "device"
    yield (
        f"memory      {mebibytes(result['peak_memory_bytes'])} peak of the {of}, "
        f"{mebibytes(result['predicted_memory_bytes'])} predicted for the iteration"
    )
    yield f"compilation {result['compile_seconds']:.1f} s for the iteration, without a cache"


def _baseline(baseline: dict[str, Any]) -> Iterator[str]:
    network = "PyTorch" if baseline["network"] == "torch" else "network compiled"
    if baseline["convolution"] not in (None, "torch"):
        network += f", convolution {baseline['convolution']}"
    yield f"baseline: a tree in Python on the host, batches of one, {network}"
    yield f"{'processes':<16}{'games':>12}{'games/s':>10}{'evaluations/s':>15}{'we play':>12}"
    for one in baseline["by_processes"]:
        yield (
            f"{one['processes']:<16}{one['games']:>12}{one['games_per_second']:>10.3g}"
            f"{one['evaluations_per_second']:>15,.0f}{one['ratio']:>10.1f} x"
        )


def comparison(now: dict[str, Any], before: dict[str, Any]) -> str:
    """Lay out the quotients of two results, and what differs between their settings."""
    lines = [f"{'now / before':<26}{'now':>15}{'before':>15}{'ratio':>9}"]
    for name, label in COMPARED.items():
        new, old = now.get(name), before.get(name)
        if new is not None and old:
            lines.append(f"{label:<26}{new:>15,.6g}{old:>15,.6g}{new / old:>9.3f}")
    differences = list(differing(now, before))
    return "\n".join(lines + (differences or ["same device, versions and config"]))


def differing(now: dict[str, Any], before: dict[str, Any]) -> Iterator[str]:
    """Name the settings that differ, one line each."""
    for section in ("device", "platform", "versions", "config"):
        new, old = (dict(_leaves(section, result.get(section))) for result in (now, before))
        for name in sorted(new.keys() | old.keys()):
            if new.get(name) != old.get(name):
                yield f"differs: {name} {new.get(name)}, before {old.get(name)}"
    if now.get("notes") != before.get("notes"):
        yield "differs: how much was cut, see the notes of both"


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    else:
        yield name.removeprefix("config."), value
