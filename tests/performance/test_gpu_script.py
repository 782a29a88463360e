"""Test `make gpu` (`tests/gpu.py`): each call resumes where the last one stopped; needs no GPU."""

from __future__ import annotations

import os

import gpu
import pytest
from script_runner import ROOT, read_by_script

GPUS = {"NVIDIA H100 80GB HBM3": 81559, "NVIDIA GeForce RTX 4060": 8188, "NVIDIA A10": 23028}


def test_what_is_done_is_not_done_again_and_what_has_no_time_waits(tmp_path):
    touch = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch(); print('ran')"
    steps = [gpu.Step(name, ["-c", touch, str(tmp_path / name)], tmp_path / name) for name in "ab"]
    bad = gpu.Step("bad", ["-c", "raise SystemExit(3)"], tmp_path / "never")
    gpu.run_steps([bad, *steps], tmp_path, lambda: -1.0)
    assert not list(tmp_path.iterdir())
    for _ in range(2):
        gpu.run_steps([bad, *steps], tmp_path, lambda: 1.0)
    assert (tmp_path / "a.log").read_text() == (tmp_path / "b.log").read_text() == "ran\n"


def test_a_step_that_runs_out_of_time_is_stopped_and_goes_on_in_the_next_call(tmp_path):
    result = tmp_path / "result"
    result_and_wait = f"import time; open({str(result)!r}, 'w'); time.sleep(60)"
    steps = [gpu.Step("slow", ["-c", result_and_wait], result)]
    for _ in range(2):
        gpu.run_steps(steps, tmp_path, lambda: 0.02)
        assert not result.exists()


def test_a_step_has_its_environment_and_that_of_the_call(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/where/packages/are")
    show = "import os; print(os.environ['PYTHONPATH'], os.environ['OWN'])"
    step = gpu.Step("shown", ["-c", show], tmp_path / "never", {"OWN": "1"})
    gpu.run_steps([step], tmp_path, lambda: 1.0)
    assert (tmp_path / "shown.log").read_text() == f"{ROOT}{os.pathsep}/where/packages/are 1\n"


@pytest.mark.parametrize("name", GPUS)
def test_every_command_is_one_of_its_script(name, tmp_path):
    here = gpu.Gpu(name, GPUS[name])
    config = ROOT / "configs" / f"{gpu.gpu_preset(here.memory_mib)}.yaml"
    steps = gpu.steps_of(here, config, tmp_path, tmp_path, 60)
    assert len({step.name for step in steps}) == len(steps)
    for step in steps[1:]:
        script, *words = step.command
        read_by_script(script.removeprefix("scripts/"), words)


def test_a_gpu_that_says_no_memory_is_found_without_it(tmp_path, monkeypatch):
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'NVIDIA GB10, [N/A]'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert gpu.gpu_here() == ("NVIDIA GB10", None)
