"""Memory and processor cores of the host: what the machine or the container leaves free."""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Iterator
from pathlib import Path

# Control groups, version 2 and version 1: controller, limit, use, and the cache within the use.
GROUPS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def cores(system: Path = Path("/")) -> int:
    """Return how many cores this process may use, by its affinity and the quotas of its groups."""
    allowed = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()]
    for controller, *names in (("", "cpu.max"), ("cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us")):
        for group in _groups(system, controller):
            words = " ".join(line for name in names for line in _lines(group / name)).split()
            if len(words) == 2 and words[0] not in ("max", "-1"):
                allowed.append(math.ceil(int(words[0]) / int(words[1])))
    return max(1, min(allowed))


def available_host_bytes(system: Path = Path("/")) -> int | None:
    """Return the bytes that a process can still allocate, or None if unknown."""
    left = [*_left_in_groups(system)]
    if (machine := _fields(system / "proc/meminfo").get("MemAvailable:")) is not None:
        left.append(machine * 1024)
    return min(left, default=None)


def _left_in_groups(system: Path) -> Iterator[int]:
    """Yield the free bytes of each control group that holds this process."""
    for controller, limit_file, use_file, cache_field in GROUPS:
        for group in _groups(system, controller):
            limit, use = _lines(group / limit_file), _lines(group / use_file)
            if limit and use and limit[0] != "max":
                cache = _fields(group / "memory.stat").get(cache_field, 0)
                yield max(0, int(limit[0]) - int(use[0]) + cache)


def _groups(system: Path, controller: str) -> set[Path]:
    """Return the folders of the groups of a controller that hold this process, if they exist."""
    own = [line.split(":", 2) for line in _lines(system / "proc/self/cgroup")]
    root = system / "sys/fs/cgroup" / controller
    # In a container the name may be that on the host, while `root` is already the group.
    folders = [root / name.lstrip("/") for _, known, name in own if controller in known.split(",")]
    around = [parent for folder in folders for parent in folder.parents]
    return {root, *folders, *(one for one in around if one.is_relative_to(root))}


def _fields(path: Path) -> dict[str, int]:
    """Return the number in each line of a system file, by the first word of the line."""
    return {words[0]: int(words[1]) for words in map(str.split, _lines(path))}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def process_peak_bytes() -> int:
    """Return the most memory this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
