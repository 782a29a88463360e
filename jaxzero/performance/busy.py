"""How busy the device looks from outside: what nvidia-smi shows, on a CPU the processor time."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import NamedTuple

import jax

SAMPLE_MILLISECONDS = 200


class Busy(NamedTuple):
    """Use of the device while iterations ran, as an onlooker sees it."""

    share: float | None  # 0 to 1; None: nothing here can tell
    source: str  # who says so
    seconds: float  # how long it was watched
    iterations: int


def watch(iterate: Callable[[], object], devices: list[jax.Device], seconds: float = 2.0) -> Busy:
    """Run whole iterations for at least `seconds` and watch the device meanwhile."""
    begin, cpu_begin = time.perf_counter(), time.process_time()
    sampler = start_sampler() if devices[0].platform == "gpu" else None
    iterations = 0
    try:
        while not iterations or time.perf_counter() - begin < seconds:
            iterate()
            iterations += 1
    finally:
        shares = stop_sampler(sampler)
    wall = time.perf_counter() - begin
    if devices[0].platform == "cpu":
        share = (time.process_time() - cpu_begin) / (wall * usable_cores())
        return Busy(share, "processor time over wall time and cores", wall, iterations)
    share = statistics.mean(shares) if shares else None
    return Busy(share, "nvidia-smi", wall, iterations)


def usable_cores() -> int:
    """Count the cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_sampler() -> subprocess.Popen | None:
    """Start nvidia-smi on the visible devices, or return None where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [
        program,
        "--query-gpu=utilization.gpu",
        "--format=csv,noheader,nounits",
        f"--loop-ms={SAMPLE_MILLISECONDS}",
    ]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible:
        command.append(f"--id={visible}")
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def stop_sampler(sampler: subprocess.Popen | None) -> list[float]:
    """End the sampler and return its readings, each 0 to 1."""
    if sampler is None:
        return []
    sampler.terminate()
    printed, _ = sampler.communicate()
    return read_samples(printed)


def read_samples(printed: str) -> list[float]:
    """Read the percentages nvidia-smi printed; lines that are none (torn, unsupported) are left."""
    words = (line.strip() for line in printed.splitlines())
    return [int(word) / 100 for word in words if word.isdigit() and int(word) <= 100]
