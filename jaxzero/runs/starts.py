"""What a run was started on: one line for each start, so that its figures can be got again."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

import jaxzero
from jaxzero.host.files import append_text
from jaxzero.host.readers import read_json_lines
from jaxzero.runs.summary import describe_devices

STARTS_FILE = "starts.jsonl"
CHECKOUT = Path(jaxzero.__file__).parents[1]
LIBRARIES = ("jax", "jaxlib", "flax", "optax", "mctx", "numpy")
SETTINGS = ("JAX_", "XLA_", "CUDA_VISIBLE_DEVICES")  # how names of the environment begin
COMPARED = ("commit", "device", "machine", "python", "versions")
Start = dict[str, Any]


def note_start(run_dir: Path, devices: list[jax.Device], iteration: int) -> None:
    """Add a line to the starts of a run that now goes on after an iteration (0: it begins)."""
    start = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "after_iteration": iteration,
        "command": shlex.join(sys.argv),
        "commit": commit(CHECKOUT),
        "versions": {"jaxzero": jaxzero.__version__} | {name: version(name) for name in LIBRARIES},
        "python": platform.python_version(),
        "machine": f"{platform.platform()}, {os.cpu_count()} cores",
        "device": describe_devices(devices),
        "environment": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith(SETTINGS)
        },
    }
    append_text(run_dir / STARTS_FILE, json.dumps(start) + "\n")


def commit(checkout: Path) -> str | None:
    """Return the git commit of a checkout, "+" added where files differ from it; None outside."""
    if not (checkout / ".git").exists():
        return None
    git = ("git", "-C", str(checkout))
    try:
        head = subprocess.check_output([*git, "rev-parse", "HEAD"], stderr=subprocess.DEVNULL)
        changed = subprocess.check_output([*git, "status", "--porcelain", "--untracked-files=no"])
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.decode().strip() + "+" * bool(changed)


def read_starts(run_dir: Path) -> list[Start]:
    """Read the starts of a run, oldest first; older runs have none. Raises: InputError."""
    path = run_dir / STARTS_FILE
    return list(read_json_lines("run_dir", path)) if path.exists() else []


def starts_that_trained(run_dir: Path, iterations: int) -> list[Start]:
    """Return the starts of a run of so many iterations, but for those that only measured it."""
    starts = read_starts(run_dir)
    after = [start.get("after_iteration", 0) for start in starts]
    ends = [*after[1:], iterations][: len(starts)]
    return [start for start, begin, end in zip(starts, after, ends, strict=True) if end > begin]


def differences(starts: Sequence[tuple[str, Start]]) -> list[str]:
    """Return a line for each part of named starts that is not alike, and who had which.

    A name that comes several times may have had several.
    """
    lines = []
    for part in COMPARED:
        values: dict[str, list[str]] = {}
        for name, start in starts:
            values.setdefault(json.dumps(start.get(part)), []).append(name)
        if len(values) > 1:
            whose = {value: ", ".join(dict.fromkeys(who)) for value, who in values.items()}
            shown = "; ".join(f"{value} ({who})" for value, who in whose.items())
            lines.append(f"{part} differs: {shown}")
    return lines
