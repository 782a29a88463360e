"""Memory and processor cores of the host: what the machine or the container leaves free."""

import math
import os
import re
import resource
from pathlib import Path

GROUP = "sys/fs/cgroup"  # of control groups, version 2; in a container its own group


def cores(system: Path = Path("/")) -> int:
    """Return how many cores this process may use, by its affinity and its container's quota."""
    present = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = _numbers(system / GROUP / "cpu.max", r"^(\d+) (\d+)")
    return min(present, math.ceil(quota[0] / quota[1])) if quota else present


def available_host_bytes(system: Path = Path("/")) -> int | None:
    """Return the bytes that a process can still allocate, or None if unknown."""
    left, group = [], system / GROUP
    if machine := _numbers(system / "proc/meminfo", r"MemAvailable: +(\d+) kB"):
        left.append(machine[0] * 1024)
    if limit := _numbers(group / "memory.max", r"^(\d+)"):
        (used,) = _numbers(group / "memory.current", r"^(\d+)")
        cached = _numbers(group / "memory.stat", r"\binactive_file (\d+)") or [0]
        left.append(max(0, limit[0] - used + cached[0]))
    return min(left, default=None)


def _numbers(path: Path, pattern: str) -> list[int]:
    """Return the numbers that a pattern finds in a system file; none if there is no such file."""
    match = path.exists() and re.search(pattern, path.read_text())
    return [int(number) for number in match.groups()] if match else []


def process_peak_bytes() -> int:
    """Return the most memory this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
