"""Test the host memory and the cores that are available in a container."""

import os
from pathlib import Path

import pytest

from jaxzero.host.memory import available_host_bytes, cores

GIB = 2**30


def write_files(system: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).write_text(text)
    return system


MACHINE = {"proc/meminfo": "MemTotal: 33554432 kB\nMemAvailable:   16777216 kB\n"}
GROUPS = {
    "none": ({}, 16),
    "unlimited": (
        {
            "proc/self/cgroup": "0::/work\n",
            "sys/fs/cgroup/work/memory.max": "max\n",
            "sys/fs/cgroup/work/memory.current": "5",
        },
        16,
    ),
    "the group of the process": (
        {
            "proc/self/cgroup": "0::/pod/work\n",
            "sys/fs/cgroup/pod/work/memory.max": f"{6 * GIB}\n",
            "sys/fs/cgroup/pod/work/memory.current": f"{3 * GIB}\n",
            "sys/fs/cgroup/pod/work/memory.stat": f"anon 1\ninactive_file {GIB}\n",
        },
        4,
    ),
    "a group around it": (
        {
            "proc/self/cgroup": "0::/pod/work\n",
            "sys/fs/cgroup/pod/memory.max": f"{2 * GIB}\n",
            "sys/fs/cgroup/pod/memory.current": "0\n",
        },
        2,
    ),
    "version 1 in a container": (
        {
            "proc/self/cgroup": "4:memory:/docker/of-the-host\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{8 * GIB}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{GIB}\n",
        },
        7,
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_a_container_has_what_its_group_leaves_of_the_machine(case, tmp_path):
    files, gibibytes = GROUPS[case]
    assert available_host_bytes(write_files(tmp_path, MACHINE | files)) == gibibytes * GIB


QUOTAS = {
    "none": ({}, 64),
    "unlimited": ({"sys/fs/cgroup/work/cpu.max": "max 100000\n"}, 64),
    "the group of the process": ({"sys/fs/cgroup/work/cpu.max": "250000 100000\n"}, 3),
    "less than one": ({"sys/fs/cgroup/cpu.max": "5000 100000\n"}, 1),
    "more than there are": ({"sys/fs/cgroup/work/cpu.max": "9900000 100000\n"}, 64),
    "version 1": (
        {
            "proc/self/cgroup": "3:cpu,cpuacct:/pod\n",
            "sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us": "200000\n",
            "sys/fs/cgroup/cpu/pod/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
        2,
    ),
}


@pytest.mark.parametrize("case", QUOTAS)
def test_a_container_has_as_many_cores_as_its_quota(case, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(64)}, raising=False)
    files, count = QUOTAS[case]
    own = {"proc/self/cgroup": "0::/work\n"}
    assert cores(write_files(tmp_path, own | files)) == count
