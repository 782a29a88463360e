"""Test the host memory and the cores that are available in a container."""

import os
from pathlib import Path

import pytest

from jaxzero.host.memory import available_host_bytes, cores

GIB = 2**30
MEMINFO = "MemTotal: 33554432 kB\nMemAvailable:   16777216 kB\n"
STAT = f"anon 1\ntotal_inactive_file 7\ninactive_file {GIB}\n"


def write_files(system: Path, **files: str) -> Path:
    """Write the files of a control group, by their names with an underscore."""
    group = system / "sys/fs/cgroup"
    group.mkdir(parents=True)
    for name, text in files.items():
        (group / name.replace("_", ".")).write_text(text)
    return system


@pytest.mark.parametrize(
    ("group", "gibibytes"),
    [
        ({}, 16),
        ({"memory_max": "max\n", "memory_current": "5\n"}, 16),
        ({"memory_max": f"{6 * GIB}\n", "memory_current": f"{3 * GIB}\n", "memory_stat": STAT}, 4),
    ],
)
def test_a_container_has_what_its_group_leaves_of_the_machine(group, gibibytes, tmp_path):
    write_files(tmp_path, **group)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text(MEMINFO)
    assert available_host_bytes(tmp_path) == gibibytes * GIB


@pytest.mark.parametrize(
    ("quota", "count"), [("max", 64), ("250000", 3), ("5000", 1), ("9900000", 64)]
)
def test_a_container_has_as_many_cores_as_its_quota(quota, count, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(64)}, raising=False)
    assert cores(write_files(tmp_path, cpu_max=f"{quota} 100000\n")) == count
