"""Test that long runs use no more resources at their end than early on; print the use."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import jax
import pytest

import jaxzero.training.trainer as trainer_module
from jaxzero.cli import load_config
from jaxzero.training.trainer import train

COMPILED = "/jax/core/compile/backend_compile_duration"  # an event of jax
# The first fraction of the iterations is not compared: caches and the replay fill, and the first
# evaluation and the first checkpoint compile their programs.
SETTLED = 0.2
GROWTH = 32  # MiB; allocators keep some of what was freed
Taken = dict[str, float]


def taken(compiled: list[str]) -> Taken:
    """Return the resources that this process uses now."""
    itself = Path("/proc/self")
    fields = dict(line.split(":", 1) for line in (itself / "status").read_text().splitlines())
    # Pages mapped from files do not count: the system drops and reloads them at any time.
    own = sum(int(fields[name].split()[0]) for name in ("RssAnon", "VmSwap"))
    return {
        "memory of its own, MiB": own / 2**10,
        "arrays of the device, MiB": sum(each.nbytes for each in jax.live_arrays()) / 2**20,
        "arrays of the device": len(jax.live_arrays()),
        "open files": len(list((itself / "fd").iterdir())),
        "threads": len(list((itself / "task").iterdir())),
        "objects of Python": len(gc.get_objects()),
        "programs compiled": len(compiled),
    }


def soak(monkeypatch, run_dir: Path, *options: str) -> list[Taken]:
    """Train, and return the resources in use after each iteration."""
    run, found, compiled = trainer_module.run_iteration, [], []

    def listen(event: str, _seconds: float, **_more: object) -> None:
        if event == COMPILED and threading.current_thread() is threading.main_thread():
            compiled.append(event)

    def watched(*arguments, **more):
        out = run(*arguments, **more)
        found.append(taken(compiled))
        return out

    monkeypatch.setattr(trainer_module, "run_iteration", watched)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        assert train(load_config(*options), run_dir)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc, which Linux has")
def test_a_long_run_takes_no_more_at_its_end(tmp_path, monkeypatch):
    options = ("configs/tiny.yaml", "--iterations=500", "--evaluation.evaluate_every=20")
    found = soak(monkeypatch, tmp_path / "run", *options)
    settled = found[int(SETTLED * len(found)) :]
    middle = len(settled) // 2
    # Compare maxima, because a checkpoint that is being written holds a copy for a while.
    most = {
        name: [max(each[name] for each in part) for part in (settled[:middle], settled[middle:])]
        for name in found[0]
    }
    print("", *(f"{name:<28} {most[name]}" for name in most), sep="\n")
    grown = {name: after - before for name, (before, after) in most.items()}
    assert grown["memory of its own, MiB"] < GROWTH
    assert grown["objects of Python"] < 0.02 * most["objects of Python"][0]
    for name in ("arrays of the device, MiB", "arrays of the device", "open files", "threads"):
        assert grown[name] <= 0, name
    assert grown["programs compiled"] == 0
