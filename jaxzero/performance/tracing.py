"""A profiler trace of one iteration, for Perfetto and TensorBoard, and the copies seen in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax

from jaxzero.files import make_folder, temporary_folder

COPY = re.compile(r"Memcpy(D2H|H2D)", re.IGNORECASE)
SIZE = re.compile(r"\bsize:(\d+)")


class Trace(NamedTuple):
    """Files of a trace and the copies between host and device that it recorded."""

    perfetto: Path | None  # open at ui.perfetto.dev
    tensorboard: Path | None  # open with tensorboard and its profile plugin
    copies: dict[str, tuple[int, int]] | None  # H2D, D2H: (count, bytes); None: not recorded


def take_trace(run: Callable[[], object], folder: Path) -> Trace:
    """Record one call of `run` in `folder`."""
    make_folder("trace", folder)
    files = []
    with temporary_folder(folder) as unfinished:
        with jax.profiler.trace(str(unfinished), create_perfetto_trace=True):
            run()
        for path in sorted(unfinished.rglob("*")):
            place = folder / path.relative_to(unfinished)
            if path.is_dir():
                place.mkdir(exist_ok=True)
            else:
                files.append(path.replace(place))
    perfetto = [path for path in files if path.name.startswith("perfetto_trace")]
    planes = [path for path in files if path.name.endswith(".xplane.pb")]
    on_host = jax.default_backend() == "cpu"
    copies = None if on_host or not planes else copies_in(planes[0])
    return Trace(next(iter(perfetto), None), next(iter(planes), None), copies)


def copies_in(path: Path) -> dict[str, tuple[int, int]]:
    """Count the copies between host and device in a recorded trace, and their bytes."""
    profile = jax.profiler.ProfileData.from_file(str(path))
    events = (
        (event.name, " ".join(str(value) for _, value in event.stats))
        for plane in profile.planes
        if plane.name.startswith("/device:")
        for line in plane.lines
        for event in line.events
        if COPY.search(event.name)
    )
    return count_copies(events)


def count_copies(events) -> dict[str, tuple[int, int]]:
    """Add up (name, details) of events such as ("MemcpyD2H", "... size:4 ...") by direction."""
    totals = {"H2D": (0, 0), "D2H": (0, 0)}
    for name, details in events:
        direction, size = COPY.search(name)[1].upper(), SIZE.search(details)
        count, total = totals[direction]
        totals[direction] = (count + 1, total + (int(size[1]) if size else 0))
    return totals


def trace_lines(trace: Trace) -> list[str]:
    """Say where the trace lies, how to open it, and which copies it holds."""
    lines = []
    if trace.perfetto:
        lines += [str(trace.perfetto), "  for https://ui.perfetto.dev"]
    if trace.tensorboard:
        lines += [str(trace.tensorboard), "  for TensorBoard with its profile plugin"]
    if trace.copies:
        lines += [
            f"copies {name}: {count} of {total} bytes in all, as the device recorded them"
            for name, (count, total) in trace.copies.items()
        ]
    return lines
