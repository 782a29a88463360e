"""Test Ctrl-C at any moment of any script: at most two lines, exit code 130, only whole files."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from script_runner import ROOT, TINY, python, read_by_script, run_here

from jaxzero.host.interrupts import TOGETHER_SECONDS
from jaxzero.host.status import MARK
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.weights import load_agent

SECONDS = 60.0  # limit for a stop; a stop usually takes less than one second


pytestmark = pytest.mark.usefixtures("heeds_ctrl_c")


class Ended(NamedTuple):
    code: int
    lines: list[str]  # on stderr, without import times and status lines
    said: str  # on stdout


def start(command: list[str], folder: Path) -> subprocess.Popen:
    """Start a process in its own group; it writes to the files `out` and `err` in `folder`."""
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def await_text(process: subprocess.Popen, path: Path, pattern: str) -> None:
    """Wait until a process has written `pattern` to `path`."""
    deadline = time.monotonic() + 240
    while not re.search(pattern, path.read_text(), re.MULTILINE):
        assert time.monotonic() < deadline and process.poll() is None, path.read_text()
        time.sleep(0.005)


def send(
    process: subprocess.Popen, folder: Path, number: int = signal.SIGINT, group: bool = False
) -> Ended:
    """Send a signal to a process or, like a terminal, to its group; wait until the process ends."""
    (os.killpg if group else os.kill)(process.pid, number)
    try:
        code = process.wait(SECONDS)
    finally:
        process.kill()
    lines = (folder / "err").read_text().splitlines()
    lines = [line for line in lines if not line.startswith(("import time:", MARK))]
    return Ended(code, lines, (folder / "out").read_text())


def assert_polite(ended: Ended, code: int = 130) -> None:
    assert len(ended.lines) <= 2 and ended.lines[-1].startswith("Stopped."), ended.lines
    assert ended.code == code


HARD = "solve.py --rows 5 --cols 5 --position h0,0 --seconds 300"
DUAL = "play.py --mode dual --player perfect --rows 3 --cols 4 --games 2000"


@pytest.mark.parametrize(
    ("script", "stream", "moment", "wait"),
    [
        ("train.py", "err", r"import time:.*\| +jax$", 0.0),
        (HARD, "out", "Solving", 1.0),
        ("play.py --rows 2 --cols 2", "out", "2x2 boxes", 0.5),  # waits for input
        (DUAL, "out", "2000 games", 1.0),
    ],
)
def test_an_interrupt_at_a_moment_of_a_script(script, stream, moment, wait, tmp_path):
    name, *options = script.split()
    imports = ["-X", "importtime"] if stream == "err" else []
    process = start(["-u", *imports, f"scripts/{name}", *options], tmp_path)
    await_text(process, tmp_path / stream, moment)
    time.sleep(wait)
    assert_polite(send(process, tmp_path))


def start_training(folder: Path) -> subprocess.Popen:
    options = [*TINY.split(), "--iterations", "100000", "--checkpoint_every", "1"]
    command = ["-u", "scripts/train.py", *options, "--run_dir", str(folder / "run")]
    process = start(command, folder)
    await_text(process, folder / "out", " +2/100000")
    return process


def test_the_first_signal_of_training_saves_and_says_how_to_go_on(tmp_path):
    process, run = start_training(tmp_path), tmp_path / "run"
    process.send_signal(signal.SIGTERM)  # as `timeout` does: to the process, then to its group
    ended = send(process, tmp_path, signal.SIGTERM, group=True)
    assert ended.code == 143 and ended.lines == []
    assert "Finishing this iteration. Ctrl-C again stops at once." in ended.said
    assert f"To go on: python scripts/train.py --run_dir {run} --resume" in ended.said
    stopped = int(re.search(r"Stopped after (\d+) of 100000 iterations", ended.said)[1])
    assert load_agent(run).iteration == stopped >= 2
    # On one device, like the first process; the tests have two devices.
    options = ["--resume", "--devices", "1", "--max_minutes", "0.001"]
    resumed = run_here("train.py", "--run_dir", run, *options)
    assert resumed.returncode == 0 and "Stopped after" in resumed.stdout, resumed.stderr


def test_the_second_interrupt_of_training_stops_at_once(tmp_path):
    process = start_training(tmp_path)
    process.send_signal(signal.SIGINT)
    await_text(process, tmp_path / "out", "Finishing this iteration")
    time.sleep(2 * TOGETHER_SECONDS)
    ended = send(process, tmp_path)
    assert ended.code == 130 and len(ended.lines) <= 1
    skipped = []
    with Checkpoints(tmp_path / "run") as checkpoints:  # checkpoints to resume from
        checkpoints.restore_newest(say=skipped.append)
    assert skipped == []


def test_a_signal_while_the_strength_is_measured_says_how_to_measure_it(tmp_path):
    options = [*TINY.split(), "--iterations", "1", "--evaluation.final_games", "100000"]
    run = tmp_path / "run"
    process = start(["-u", "scripts/train.py", *options, "--run_dir", str(run)], tmp_path)
    await_text(process, tmp_path / "out", "Measuring the final strength")
    time.sleep(TOGETHER_SECONDS)
    ended = send(process, tmp_path, signal.SIGTERM)
    assert_polite(ended, 143)
    assert ended.lines[-1].endswith(f" python scripts/train.py --run_dir {run} --resume")
    assert load_agent(run).iteration == 1


INSTALL = "from jaxzero.host import interrupts\ninterrupts.install()\n"


def start_code(code: str, folder: Path) -> subprocess.Popen:
    """Start a small script and wait until it has printed "ready"."""
    process = start(["-u", "-c", INSTALL + code], folder)
    await_text(process, folder / "out", "ready")
    return process


SWALLOWED = """
print("ready")
while True:
    try:
        sum(range(1000))
    except BaseException:
        pass
"""
COMPILED = """
import hashlib
print("ready")
hashlib.pbkdf2_hmac("sha256", b"", b"", 10**8)
"""
IN_A_DESTRUCTOR = """
import time
class Slow:
    def __del__(self):
        print("ready")
        time.sleep(60)
Slow()
"""
AT_THE_END = """
import threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print("ready")
"""


@pytest.mark.parametrize(
    ("code", "number"),
    [
        *((code, signal.SIGINT) for code in (SWALLOWED, COMPILED, IN_A_DESTRUCTOR, AT_THE_END)),
        *((SWALLOWED, number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)),
    ],
)
def test_a_signal_where_python_cannot_raise_it(code, number, tmp_path):
    process = start_code(code, tmp_path)
    time.sleep(0.2)
    assert_polite(send(process, tmp_path, number), 128 + number)


def test_the_server_of_the_page_stops_while_something_compiles(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))  # an empty cache
    process = start(["-u", "scripts/play.py", "--web", "--port", "0"], tmp_path)
    await_text(process, tmp_path / "out", "Play at")
    time.sleep(1.0)  # by now an event loop is running and receives the signals
    assert_polite(send(process, tmp_path))


def test_a_compiler_in_a_thread_does_not_abort_a_script_that_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")
    code = """
import threading, time, jax
from jaxzero.cli import run_script

def compile_for_ever():
    while True:
        jax.clear_caches()
        jax.jit(lambda x: sum(jax.numpy.sin(x * k) for k in range(200))).lower(1.0).compile()

def main(_words):
    threading.Thread(target=compile_for_ever, daemon=True).start()
    time.sleep(1)
    print("ready")
    raise SystemExit(7)

run_script(main)
"""
    process = start(["-c", INSTALL + code], tmp_path)
    assert process.wait(SECONDS) == 7
    assert [(tmp_path / name).read_text() for name in ("out", "err")] == ["ready\n", ""]


def test_a_signal_cleans_up_once_and_leaves_only_whole_files(tmp_path, monkeypatch):
    cache, result = tmp_path / "cache", tmp_path / "result.json"
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(cache))
    code = f"""
import sys
from pathlib import Path
from jaxzero.host.files import atomic_write, temporary_folder
from jaxzero.host.programs import use_compilation_cache
use_compilation_cache()
cache = Path({str(cache)!r})
(cache / "whole-cache").write_text("whole")
torn, log = (cache / "torn-cache").open("w"), (cache / "log").open("w")
read = (cache / "whole-cache").open()
sys.stdout.reconfigure(line_buffering=False, write_through=False)
with interrupts.cleaned_up(lambda: print("done with one")):
    pass
with atomic_write(Path({str(result)!r})) as temporary, temporary_folder(temporary.parent) as folder:
    temporary.write_text("half")
    (folder / "more").write_text("half")
    with interrupts.cleaned_up(lambda: print("done with two")):
        print("ready", flush=True)
        print("kept")
        while True:
            pass
"""
    result.write_text("whole")
    ended = send(start_code(code, tmp_path), tmp_path)
    assert_polite(ended)
    assert ended.said.split("\n") == ["done with one", "ready", "kept", "done with two", ""]
    assert result.read_text() == "whole"
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", "out", "err", "cache"}
    assert {path.name for path in cache.iterdir()} == {"whole-cache", "log"}


def test_importing_the_package_changes_no_signal():
    code = """
import signal, jaxzero.cli, jaxzero.host.interrupts as s
handlers = [signal.getsignal(number) for number in s.SIGNALS]
assert handlers == [signal.default_int_handler, *[signal.SIG_DFL] * 4]
assert signal.set_wakeup_fd(-1) == -1
stop = s.Stop()
with stop.on_signals():
    signal.raise_signal(signal.SIGINT)
    assert stop.signal and stop.exit_code == 130
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("second")
assert handlers == [signal.getsignal(number) for number in s.SIGNALS]
"""
    done = python("-c", code)
    assert done.returncode == 0 and done.stdout.endswith("second\n"), done.stderr


def test_sigterm_ends_a_program_of_others_after_the_block():
    code = """
import signal, jaxzero.host.interrupts as s
with s.Stop().on_signals():
    signal.raise_signal(signal.SIGTERM)
    print("finished", flush=True)
print("another training", flush=True)
"""
    done = python("-c", code)
    assert done.returncode == -signal.SIGTERM and done.stdout.endswith("finished\n"), done.stderr


# All scripts at random moments


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """Return a run to evaluate."""
    folder = tmp_path_factory.mktemp("made") / "run"
    measured = ["--evaluation.evaluate_every", "1", "--evaluation.suite", "table"]
    done = run_here("train.py", *TINY.split(), *measured, "--run_dir", folder)
    assert done.returncode == 0, done.stderr
    return folder


SMALL = TINY.replace("--iterations 2 ", "")
SCRIPTS = {
    "train": f"{TINY} --run_dir OUT/run",
    "evaluate": "--run_dir RUN --suite table --opponents random --games 8 "
    "--simulations 4 --json OUT/out.json --figures OUT/figures",
    "play": "--mode dual --player perfect --player2 greedy --rows 3 --cols 3 --games 200",
    "solve": "--rows 3 --cols 3 --json OUT/out.json",
    "export": "--run_dir RUN --out OUT/weights --games 8 --simulations 4",
    "make_suite": "--rows 3 --cols 3 --games 16 --out OUT/suite.npz",
    "benchmark": f"{SMALL} --seconds 3 --rounds 1 --json OUT/out.json --trace OUT/trace",
    "sweep": f"{SMALL} --selfplay.games_per_iteration 8,16 --rounds 1 --out OUT/sweep",
}


def test_the_options_below_exist():
    for script, options in SCRIPTS.items():
        read_by_script(f"{script}.py", options.split())


def assert_whole(folder: Path) -> None:
    """Assert that every file in `folder` can be read and that no temporary file is left."""
    for path in folder.rglob("*"):
        if "checkpoints" in path.parts or path.is_dir():  # orbax cleans up its own files
            continue
        assert not path.name.startswith("."), path
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".png":
            assert path.read_bytes().endswith(b"IEND\xaeB`\x82"), path
        elif path.suffix == ".npz":
            dict(np.load(path))  # reads all of it


def assert_alone(group: int) -> None:
    """Assert that all processes of a group end within 5 seconds."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("processes are left")


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_at_random_moments(script, run, tmp_path):
    chance, length = random.Random(script), 0.0
    for number in range(int(os.environ.get("MOMENTS", "20")) + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        options = SCRIPTS[script].replace("OUT", str(folder)).replace("RUN", str(run)).split()
        begin = time.monotonic()
        command = ["-u", "-X", "importtime", f"scripts/{script}.py", *options]
        process = start(command, folder)
        # Before this import, Python itself is starting.
        await_text(process, folder / "err", r"import time:.*\| +jaxzero.host.interrupts$")
        if number == 0:  # run to its end, to measure its duration
            assert process.wait(600) == 0, (folder / "err").read_text()
            length = time.monotonic() - begin
        else:
            time.sleep(chance.uniform(0.01, length))
            ended = send(process, folder, group=number % 2 == 0)
            # A finished script may still end by itself; training finishes its iteration.
            done = not ended.lines and ended.code in (0, -signal.SIGINT)
            finished = not ended.lines and "Finishing this iteration" in ended.said
            if not done and not finished:
                assert_polite(ended)
        assert_alone(process.pid)
        assert_whole(folder)
