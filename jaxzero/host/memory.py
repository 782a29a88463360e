"""Memory of the host: the bytes still free on the machine or in the container."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

# Control groups, version 2 and version 1: controller, limit, use, and the cache within the use.
GROUPS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_host_bytes(system: Path = Path("/")) -> int | None:
    """Return the bytes that a process can still allocate, or None if unknown."""
    left = [*_left_in_groups(system)]
    if (machine := _fields(system / "proc/meminfo").get("MemAvailable:")) is not None:
        left.append(machine * 1024)
    return min(left, default=None)


def _left_in_groups(system: Path) -> Iterator[int]:
    """Yield the free bytes of each control group that holds this process."""
    own = [line.split(":", 2) for line in _lines(system / "proc/self/cgroup")]
    for controller, limit_file, use_file, cache_field in GROUPS:
        root = system / "sys/fs/cgroup" / controller
        # In a container the name may be that on the host, while `root` is already the group.
        folders = [root / name.lstrip("/") for _, known, name in own if known == controller]
        around = [parent for folder in folders for parent in folder.parents]
        for group in {root, *folders, *(one for one in around if one.is_relative_to(root))}:
            limit, use = _lines(group / limit_file), _lines(group / use_file)
            if limit and use and limit[0] != "max":
                cache = _fields(group / "memory.stat").get(cache_field, 0)
                yield max(0, int(limit[0]) - int(use[0]) + cache)


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
