"""Test several processes of one run: they equal one process, end together, resume as one."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
from script_runner import ROOT, TINY, run_here

from jaxzero.errors import InputError, RunError
from jaxzero.measure.evaluator import TRACKED
from jaxzero.runs.metrics import read_metrics
from jaxzero.runs.weights import load_agent
from jaxzero.training.processes import check_address, ends_together

OPTIONS = [*TINY.split(), "--iterations", "3", "--checkpoint_every", "2"]
MEASURED = (
    "--evaluation.evaluate_every 2 --evaluation.games 14 "
    "--evaluation.final_games 14"  # matches of one size share a program
).split()
EXACT = "--evaluation.suite table --evaluation.opponents random".split()
PATIENCE = 240  # seconds; processes need about ten, a hang takes forever


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return one.getsockname()[1]


def start(folder: Path, name: str, devices: int, *options: object, **environment: object):
    """Start train.py with `devices` fake devices; its output goes to NAME.out and NAME.err."""
    given = {"JAX_NUM_CPU_DEVICES": devices, "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
    environment = {key: str(value) for key, value in (given | environment).items()}
    with (folder / f"{name}.out").open("w") as out, (folder / f"{name}.err").open("w") as err:
        return subprocess.Popen(
            [sys.executable, "scripts/train.py", *map(str, options)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
            stdout=out,
            stderr=err,
        )


def ended(*processes: subprocess.Popen) -> list[int]:
    """Wait for the processes and return their exit codes."""
    try:
        return [process.wait(PATIENCE) for process in processes]
    finally:
        for process in processes:
            process.kill()


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """Make a run `two` of two processes x one device and a run `one` of one x two."""
    folder = tmp_path_factory.mktemp("runs")
    # Start processes as SLURM does: only the environment identifies them, not the command line.
    slurm = {"SLURM_JOB_ID": 1, "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": 2}
    slurm["JAX_COORDINATOR_PORT"] = free_port()
    command = [*OPTIONS, *MEASURED, *EXACT, "--run_dir"]
    two = [*command, folder / "two", "--distributed"]
    processes = [
        start(folder, f"two{i}", 1, *two, SLURM_PROCID=i, SLURM_LOCALID=i, **slurm)
        for i in range(2)
    ]
    alone = run_here("train.py", *command, folder / "one")
    codes = [*ended(*processes), alone.returncode]
    errors = [(folder / f"{name}.err").read_text() for name in ("two0", "two1")]
    assert codes == [0, 0, 0], (errors, alone.stderr)
    return folder


def test_two_processes_of_one_device_equal_one_of_two(runs):
    two, one = (load_agent(runs / name).agent.params for name in ("two", "one"))
    # After nine updates that move the weights by up to 4e-3 each.
    jax.tree.map(partial(np.testing.assert_allclose, rtol=0, atol=1e-6), two, one)
    first, second = (read_metrics(runs / name) for name in ("two", "one"))
    same = ("selfplay/", "learn/", "versus/", "suite/")
    for line, like in zip(first, second, strict=True):
        names = [name for name in like if name.startswith(same)]
        np.testing.assert_allclose(
            [line[name] for name in names], [like[name] for name in names], rtol=1e-4, atol=1e-6
        )
    measured = [name for name in second[1] if name.startswith(same[2:])]
    assert len(measured) == 2 + len(TRACKED)  # an opponent; the policy alone
    two, one = (json.loads((runs / name / "summary.json").read_text()) for name in ("two", "one"))
    assert two["versus"] == one["versus"]


@pytest.mark.parametrize(
    ("error", "code"), [(InputError("field: 1 is bad"), 2), (RunError("no room"), 1)]
)
def test_an_error_of_one_process_ends_it_at_once(error, code, monkeypatch, capsys):
    """Other processes wait in a collective, so closing anything on the way out could hang."""
    monkeypatch.setattr(os, "_exit", sys.exit)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(SystemExit) as ended, ends_together("train.py"):
        raise error
    assert ended.value.code == code
    assert capsys.readouterr().err == f"error: {error}\n"


def test_the_first_process_alone_speaks_and_writes(runs):
    assert "2 processes" in (runs / "two0.out").read_text()
    assert not re.search(r"^(?!\[Gloo\])\S", (runs / "two1.out").read_text(), re.MULTILINE)
    assert len(list((runs / "two" / "tensorboard").iterdir())) == 1
    assert (runs / "two" / "summary.json").exists()


def test_one_process_resumes_what_two_have_saved(runs, tmp_path):
    shutil.copytree(runs / "two", tmp_path / "run")
    done = run_here("train.py", "--run_dir", tmp_path / "run", "--resume", "--iterations", "4")
    assert done.returncode == 0, done.stderr
    assert [line["iteration"] for line in read_metrics(tmp_path / "run")] == [1, 2, 3, 4]


def test_a_process_that_dies_ends_the_job_with_the_reason(runs, tmp_path):
    shutil.copytree(runs / "one", tmp_path / "run")
    command = ["--run_dir", tmp_path / "run", "--resume", "--iterations", 10**6]
    command += ["--evaluation.evaluate_every", 10**6, "--heartbeat_seconds", 4]
    command += ["--checkpoint_every", 1]  # so that the process often dies during a save
    command += ["--num_processes", 2, "--coordinator_address", f"localhost:{free_port()}"]
    first, second = (
        start(tmp_path, str(number), 2, *command, "--process_id", number) for number in range(2)
    )
    deadline = time.monotonic() + PATIENCE
    while "5/1000000" not in (tmp_path / "0.out").read_text():
        assert first.poll() is None and time.monotonic() < deadline, (
            tmp_path / "0.err"
        ).read_text()
        time.sleep(0.1)
    second.send_signal(signal.SIGKILL)
    assert ended(first, second)[0] not in (0, -signal.SIGKILL)
    assert re.search("process 0 of 2|task", (tmp_path / "0.err").read_text())
    # Two processes of two devices resumed the replay of one process.
    assert "576 of 576 " in (tmp_path / "0.out").read_text()


def test_a_job_that_nothing_describes_is_refused(tmp_path):
    command = [*OPTIONS, "--run_dir", tmp_path / "run", "--distributed"]
    assert ended(start(tmp_path, "0", 1, *command)) == [2]
    said = (tmp_path / "0.err").read_text()
    assert said.startswith("error: distributed: ") and said.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_taken_port_and_an_unknown_host_are_refused():
    with socket.create_server(("localhost", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
        with pytest.raises(InputError, match=f"^coordinator_address: {address} "):
            check_address(address, is_coordinator=True)
    check_address(address, is_coordinator=False)
    for is_coordinator in (True, False):
        with pytest.raises(InputError, match=r"^coordinator_address: no\.invalid:1234 "):
            check_address("no.invalid:1234", is_coordinator)


def test_a_job_whose_processes_do_not_come_ends_with_one_line(tmp_path):
    command = [*OPTIONS, "--run_dir", tmp_path / "run", "--join_seconds", 3]
    given = ["--coordinator_address", f"localhost:{free_port()}", "--num_processes", 2]
    slurm = {"SLURM_JOB_ID": 1, "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": 2}
    slurm |= {"SLURM_PROCID": 0, "SLURM_LOCALID": 0, "JAX_COORDINATOR_PORT": free_port()}
    assert ended(
        start(tmp_path, "first", 1, *command, *given, "--process_id", 0),
        start(
            tmp_path,
            "second",
            1,
            *command,
            *given[:1],
            "localhost:1",
            *given[2:],
            "--process_id",
            1,
        ),
        start(tmp_path, "slurm", 1, *command, "--distributed", **slurm),
    ) == [1, 1, 1]
    for name in ("first", "second", "slurm"):
        said = (tmp_path / f"{name}.err").read_text()
        assert said.count("error: ") == 1 and said.splitlines()[-1].startswith("error: "), said
