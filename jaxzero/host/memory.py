"""Memory of the host: what the machine, or the container around this process, can still give."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

# Version 2 and version 1 of control groups: folder, limit, use, and what of the use is mere cache.
_GROUPS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_host_bytes(system: Path = Path("/")) -> int | None:
    """Return the bytes a process can still take, by machine and container; None: unknown."""
    known = [_machine_bytes(system), *_group_bytes(system)]
    return min((count for count in known if count is not None), default=None)


def _machine_bytes(system: Path) -> int | None:
    try:
        lines = (system / "proc/meminfo").read_text().splitlines()
        fields = dict(line.split(":") for line in lines if ":" in line)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:  # no Linux: all there is
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _group_bytes(system: Path) -> list[int]:
    """Return what is left in each control group that holds this process."""
    left = []
    for folder, limit_file, use_file, cache_field in _GROUPS:
        for group in _own_groups(system, folder):
            limit, use = _number(group / limit_file), _number(group / use_file)
            if limit is not None and use is not None:
                left.append(max(0, limit - use + _cache_bytes(group, cache_field)))
    return left


def _own_groups(system: Path, controller: str) -> list[Path]:
    """Return the folders of the group of this process and of those around it."""
    root = system / "sys/fs/cgroup" / controller
    try:
        lines = (system / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    names = [line.split(":", 2)[2] for line in lines if line.split(":", 2)[1] == controller]
    # Inside a container the name may be that of the host, while the folder shown is the group's.
    own = [root / name.lstrip("/") for name in names]
    around = [parent for path in own for parent in path.parents if parent.is_relative_to(root)]
    return list(dict.fromkeys([root, *own, *around]))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # missing, or "max"
        return None


def _cache_bytes(group: Path, field: str) -> int:
    try:
        lines = (group / "memory.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines)[field])
    except (OSError, KeyError, ValueError):
        return 0


def process_peak_bytes() -> int:
    """Return the most memory this process ever held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
