"""The calls of `scripts/gpu.py`: each goes on where the last one stopped; no GPU is needed here."""

from __future__ import annotations

import json
import os
import runpy
import time
from types import SimpleNamespace

import pytest
from script_runner import ROOT, run_here
from test_house import Parsed, read_by_script

from jaxzero.errors import InputError

gpu = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "gpu.py")))
GPUS = {"NVIDIA H100 80GB HBM3": 81559, "NVIDIA GeForce RTX 4060": 8188, "NVIDIA A10": 23028}


@pytest.fixture
def call(tmp_path):
    """Return a function that makes one call of so many minutes and returns the records."""
    file = tmp_path / "state.json"

    def one_call(steps, minutes=1.0):
        state = gpu.read_state(file, None)
        gpu.run_steps(steps, state, file, tmp_path, time.monotonic(), minutes)
        return json.loads(file.read_text())["steps"]

    return one_call


def test_what_is_done_is_not_done_again(call, tmp_path):
    steps = [gpu.Step(name, ["-c", f"print('{name}')"], 1) for name in ("first", "second")]
    for _ in range(2):
        records = call(steps)
        assert [record["status"] for record in records.values()] == ["done", "done"]
    assert (tmp_path / "first.log").read_text() == "first\n"


def test_a_step_that_fails_twice_is_left(call):
    steps = [gpu.Step("bad", ["-c", "raise SystemExit(3)"], 1), gpu.Step("good", ["-c", ""], 1)]
    assert call(steps)["bad"] == {
        **{"status": "open", "calls": 0, "failures": 1, "exit_code": 3},
        "seconds": pytest.approx(0, abs=30),
    }
    records = call(steps)
    assert (records["bad"]["status"], records["bad"]["failures"]) == ("failed", 2)
    assert records["good"]["calls"] == 1


def test_a_step_that_runs_out_of_time_goes_on_in_the_next_call(call):
    sleep = ["-c", "import time; time.sleep(60)"]
    steps = [gpu.Step("sweep", sleep, 1, goes_on=True), gpu.Step("later", ["-c", ""], 1)]
    for number in (1, 2, 3):
        records = call(steps, minutes=0.02)
        assert records["sweep"]["status"] == "open" and records["sweep"]["calls"] == number
        assert "later" not in records


def test_a_call_of_many_short_steps_ends_in_time_too(call):
    sleep = ["-c", "import time; time.sleep(0.4)"]
    records = call([gpu.Step(str(number), sleep, 3) for number in range(9)], minutes=0.01)
    assert 1 <= len(records) <= 2  # the second needs a third of the time


@pytest.mark.parametrize(
    ("name", "known"),
    [
        *[("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA H200", "H200"), ("NVIDIA H100 PCIe", None)],
        *[("NVIDIA GeForce RTX 4060", "RTX 4060"), ("NVIDIA GeForce RTX 4060 Ti", None)],
    ],
)
def test_the_prediction_is_of_this_gpu_or_of_none(name, known):
    assert gpu.target_of(gpu.Gpu(name, 0)) == known


def test_training_goes_on_until_it_is_complete(call, tmp_path):
    steps = [gpu.Step("train", ["-c", ""], 0, tmp_path / "summary.json")]
    assert [call(steps)["train"]["status"] for _ in range(3)] == ["open"] * 3
    (tmp_path / "summary.json").touch()
    assert call(steps)["train"] | {"seconds": 0} == {
        **{"status": "done", "calls": 4, "failures": 0, "exit_code": 0, "seconds": 0}
    }


@pytest.mark.parametrize("name", GPUS)
def test_every_command_is_one_of_its_script(name, tmp_path):
    here = gpu.Gpu(name, GPUS[name])
    config = ROOT / "configs" / f"{gpu.preset_of(here)}.yaml"
    steps = gpu.steps_of(here, config, tmp_path, tmp_path, 60)
    assert len({step.name for step in steps}) == len(steps)
    known = name != "NVIDIA A10"
    assert any(step.name.startswith("predict") for step in steps) == known
    for step in steps[1:]:
        script, *words = map(str, step.command)
        with pytest.raises(Parsed):
            read_by_script(script.removeprefix("scripts/"), words)


def test_measured_stands_beside_predicted(tmp_path):
    measured = {"games_per_second_with_learning": 90.0, "device": "NVIDIA H100 80GB HBM3"}
    (tmp_path / "64x6.json").write_text(json.dumps(measured))
    predicted = {"predicted": {"games_per_second": 120.0}}
    (tmp_path / "64x6_predicted.json").write_text(json.dumps(predicted))
    text = gpu.report(gpu.summarise({"gpu": None, "steps": {}}, tmp_path))
    (row,) = [line for line in text.splitlines() if line.startswith("64x6")]
    assert row.split()[1:3] == ["90", "120"]


def test_a_trial_is_of_the_config_that_is_named(tmp_path, monkeypatch):
    made = []
    for name, stand_in in (
        ("gpu_here", lambda: None),
        ("run_steps", lambda steps, *_: made.extend(steps)),
    ):
        monkeypatch.setitem(gpu.main.__globals__, name, stand_in)
    folders = ["--out", str(tmp_path / "out"), "--run_dir", str(tmp_path / "runs")]
    for config in ("configs/tiny.yaml", "tiny"):
        made.clear()
        gpu.main(["--config", config, *folders])
        (train,) = [step for step in made if step.name == "train"]
        assert train.command[-1] == ROOT / "configs" / "tiny.yaml"


def test_a_gpu_that_says_no_memory_needs_a_config(tmp_path, monkeypatch):
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'NVIDIA GB10, [N/A]'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert gpu.gpu_here() == ("NVIDIA GB10", None)
    with pytest.raises(InputError, match=r"^config: .* NVIDIA GB10"):
        gpu.preset_of(gpu.gpu_here())


def test_without_a_gpu_it_asks_for_a_config():
    done = run_here("gpu.py")
    assert gpu.gpu_here() is not None or (done.returncode, done.stderr.count("\n")) == (2, 1)
