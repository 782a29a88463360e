"""Test signals: training saves; other scripts end in one line, without partial files."""

import gc
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from script_runner import ROOT, TINY, python, run_here

from jaxzero.host.interrupts import SIGNALS, dropped_exceptions
from jaxzero.runs.weights import load_agent

SECONDS = 30.0  # limit for a stop

pytestmark = pytest.mark.usefixtures("heeds_ctrl_c")


class Ended(NamedTuple):
    code: int
    errors: list[str]  # lines of standard error
    text: str  # of standard output


def start(command: list[str], folder: Path) -> subprocess.Popen:
    """Start a process that writes to the files `out` and `err` in `folder`."""
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        return subprocess.Popen(
            [sys.executable, "-u", *command],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
        )


def await_text(process: subprocess.Popen, path: Path, pattern: str) -> None:
    """Wait until a process has written `pattern` to `path`."""
    deadline = time.monotonic() + 240
    while not re.search(pattern, path.read_text(), re.MULTILINE):
        assert time.monotonic() < deadline and process.poll() is None, path.read_text()
        time.sleep(0.005)


def send(process: subprocess.Popen, folder: Path, number: int) -> Ended:
    """Send a signal to a process and wait until the process ends."""
    process.send_signal(number)
    return await_end(process, folder)


def await_end(process: subprocess.Popen, folder: Path) -> Ended:
    """Wait until a process ends."""
    try:
        process.wait(SECONDS)
    finally:
        process.kill()
    errors = (folder / "err").read_text().splitlines()
    return Ended(process.wait(), errors, (folder / "out").read_text())


# Each lets a signal come while Python drops exceptions.
DROPPED = {
    "collector": """
def callback(*_):
    gc.callbacks.remove(callback)
    come()
gc.callbacks.append(callback)
gc.collect()""",
    "finaliser": """
class Ends:
    def __del__(self):
        come()
Ends()""",
    "weak reference": """
ends = type("Ends", (), {})()
reference = weakref.ref(ends, lambda _: come())
del ends""",
}


@pytest.mark.parametrize("where", DROPPED)
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_not_lost_where_python_drops_exceptions(where, number):
    code = f"""
import gc, signal, time, weakref
from jaxzero.cli import run_script

def come():
    signal.raise_signal({number:d})

def main(_words):
    {DROPPED[where].replace(chr(10), chr(10) + "    ")}
    print("goes on", flush=True)
    time.sleep(60)

run_script(main)
"""
    done = python("-c", code)
    assert (done.returncode, done.stdout) == (128 + number, "goes on\n")
    assert done.stderr == "Stopped.\n"


def test_ctrl_c_is_not_lost_in_the_api_and_its_hook_is_put_back():
    other = sys.unraisablehook

    def callback(*_):
        gc.callbacks.remove(callback)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), dropped_exceptions():
        gc.callbacks.append(callback)
        gc.collect()
        time.sleep(60)
    assert sys.unraisablehook is other


HARD = "solve.py --rows 5 --cols 5 --position h0,0 --seconds 300"


@pytest.mark.parametrize(
    ("script", "moment", "number"),
    [
        (HARD, "Solving", signal.SIGHUP),
        ("play.py --rows 2 --cols 2", "2x2 boxes", signal.SIGINT),  # waits for input
    ],
)
def test_a_signal_ends_a_script_in_one_line(script, moment, number, tmp_path):
    name, *options = script.split()
    process = start([f"scripts/{name}", *options], tmp_path)
    await_text(process, tmp_path / "out", moment)
    time.sleep(1)
    ended = send(process, tmp_path, number)
    assert ended.code == 128 + number and ended.errors[-1:] == ["Stopped."]


def test_the_server_of_the_page_stops_while_something_compiles(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))  # an empty cache
    process = start(["scripts/play.py", "--web", "--port", "0"], tmp_path)
    await_text(process, tmp_path / "out", "Play at")
    time.sleep(1)
    ended = send(process, tmp_path, signal.SIGINT)
    assert ended.code == 130 and ended.errors[-1:] == ["Stopped."]


def test_a_signal_removes_temporary_files_and_ends_children(tmp_path):
    code = f"""
import sys, time
from contextlib import suppress
from pathlib import Path
from jaxzero.cli import run_script
from jaxzero.host.files import atomic_write
from jaxzero.performance.sweep import run_point

def main(_words):
    with atomic_write(Path({str(tmp_path)!r}, "result.json")) as temporary:
        temporary.write_text("half")
        child = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
        run_point([sys.executable, "-c", child], Path({str(tmp_path)!r}, "log"), 600)

run_script(main)
"""
    (tmp_path / "result.json").write_text("whole")
    (tmp_path / "log").touch()
    process = start(["-c", code], tmp_path)
    await_text(process, tmp_path / "log", r"\d+\n")
    ended = send(process, tmp_path, signal.SIGTERM)
    assert ended.code == 143 and ended.errors[-1:] == ["Stopped."]
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", "log", "out", "err"}
    assert (tmp_path / "result.json").read_text() == "whole"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "log").read_text()), 0)


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
    raise SystemExit(7)

run_script(main)
"""
    process = start(["-c", code], tmp_path)
    assert process.wait(SECONDS) == 7
    assert [(tmp_path / name).read_text() for name in ("out", "err")] == ["", ""]


def start_training(folder: Path) -> subprocess.Popen:
    options = [*TINY.split(), "--iterations", "100000", "--checkpoint_every", "1"]
    command = ["scripts/train.py", *options, "--run_dir", str(folder / "run")]
    process = start(command, folder)
    await_text(process, folder / "out", " +2/100000")
    return process


def test_the_first_signal_of_training_saves_and_the_run_is_resumed(tmp_path):
    process, run = start_training(tmp_path), tmp_path / "run"
    ended = send(process, tmp_path, signal.SIGTERM)
    assert ended.code == 143 and ended.errors == []
    assert f"--run_dir {run} --resume" in ended.text
    stopped = int(re.search(r"Stopped after (\d+) of 100000 iterations", ended.text)[1])
    assert load_agent(run).iteration == stopped >= 2
    # On one device, like the first process; the tests have two devices.
    options = ["--resume", "--devices", "1", "--max_minutes", "0.001"]
    resumed = run_here("train.py", "--run_dir", run, *options)
    assert resumed.returncode == 0 and "Stopped after" in resumed.stdout, resumed.stderr


def test_a_signal_while_the_strength_is_measured_says_how_to_measure_it(tmp_path):
    options = [*TINY.split(), "--iterations", "1", "--evaluation.final_games", "100000"]
    run = tmp_path / "run"
    process = start(["-u", "scripts/train.py", *options, "--run_dir", str(run)], tmp_path)
    await_text(process, tmp_path / "out", "Measuring the final strength")
    time.sleep(1)
    ended = send(process, tmp_path, signal.SIGTERM)
    assert ended.code == 143 and ended.errors[-1:] == ["Stopped."]
    assert f"--run_dir {run} --resume" in ended.text
    assert load_agent(run).iteration == 1


def test_a_terminal_that_closes_lets_a_training_save(tmp_path):
    run, (master, terminal) = tmp_path / "run", os.openpty()
    options = [*TINY.split(), "--iterations", "100000", "--run_dir", str(run)]
    run_it = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the terminal of this session
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
    process = subprocess.Popen(
        [sys.executable, "-c", run_it, "scripts/train.py", *options],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        **dict.fromkeys(("stdin", "stdout", "stderr"), terminal),
        start_new_session=True,
    )
    os.close(terminal)
    seen = b""
    while b" 2/100000" not in seen:
        seen += os.read(master, 4096)
    os.close(master)
    try:
        assert process.wait(SECONDS) == 129
    finally:
        process.kill()
    assert load_agent(run).iteration >= 2


def test_the_second_interrupt_of_training_stops_at_once(tmp_path, capsys):
    process = start_training(tmp_path)
    process.send_signal(signal.SIGINT)
    await_text(process, tmp_path / "out", "Stopping after this iteration")
    ended = send(process, tmp_path, signal.SIGINT)
    assert ended.code == 130 and ended.errors[-1:] == ["Stopped."]
    assert load_agent(tmp_path / "run").iteration >= 1
    assert "skipped" not in capsys.readouterr().err


def test_signals_are_as_before_outside_a_training():
    """SIGTERM or SIGHUP during a training ends a program that is not ours after the training."""
    code = """
import signal, sys, jaxzero.cli, jaxzero.host.interrupts as s
last, ignored = signal.Signals(int(sys.argv[1])), signal.Signals(int(sys.argv[2]))
signal.signal(ignored, signal.SIG_IGN)
handlers = [signal.getsignal(number) for number in s.SIGNALS]
stop = s.Stop()
with stop.on_signals():
    signal.raise_signal(ignored)
    assert stop.signal is None
    signal.raise_signal(signal.SIGINT)
    assert stop.signal == signal.SIGINT
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("second", flush=True)
assert handlers == [signal.getsignal(number) for number in s.SIGNALS]
with s.Stop().on_signals():
    signal.raise_signal(last)
    print("finished", flush=True)
print("another training", flush=True)
"""
    for last, ignored in ((signal.SIGTERM, signal.SIGHUP), (signal.SIGHUP, signal.SIGTERM)):
        done = python("-c", code, f"{last:d}", f"{ignored:d}")
        assert done.returncode == -last, done.stderr
        assert "second\n" in done.stdout and done.stdout.endswith("finished\n")
