"""Ctrl-C at any moment of any script: a line or two, exit code 130, nothing half-written."""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from script_runner import TINY

from jaxzero.host.interrupts import TOGETHER_SECONDS, Stop
from jaxzero.host.status import MARK
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.metrics import MetricsWriter

ROOT = Path(__file__).parents[2]
SECONDS = 60.0  # a stop takes a fraction of one; what hangs takes forever
HARD = "solve.py --rows 5 --cols 5 --position h0,0 --seconds 300"


class Ended(NamedTuple):
    code: int
    lines: list[str]  # on stderr, those about imports and of status left out
    said: str  # on stdout
    seconds: float  # from the signal to the end


@pytest.fixture(autouse=True)
def signals_are_not_ignored():
    # Programs behind a shell's & ignore Ctrl-C, those behind nohup SIGHUP, and so would those that
    # they start.
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    earlier = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in earlier.items():
        signal.signal(number, handler)


def start(command: list[str], folder: Path, mark: str = "") -> subprocess.Popen:
    """Start a process that writes to files in `folder`; its children carry `mark`."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAXZERO_MARK": mark}
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def await_text(process: subprocess.Popen, path: Path, pattern: str, seconds: float = 240) -> None:
    """Wait until a process has written `pattern` to `path`.

    Anywhere in a line: a signal may come between a line and its end.
    """
    deadline = time.monotonic() + seconds
    while not re.search(pattern, path.read_text(), re.MULTILINE):
        assert time.monotonic() < deadline and process.poll() is None, path.read_text()
        time.sleep(0.005)


def send(
    process: subprocess.Popen, folder: Path, number: int = signal.SIGINT, group: bool = False
) -> Ended:
    """Send a signal to a process, or as a terminal to its group, and wait for its end."""
    begin = time.monotonic()
    (os.killpg if group else os.kill)(process.pid, number)
    try:
        code = process.wait(30)
    finally:
        process.kill()
    seconds = time.monotonic() - begin
    lines = (folder / "err").read_text().splitlines()
    lines = [line for line in lines if not line.startswith(("import time:", MARK))]
    return Ended(code, lines, (folder / "out").read_text(), seconds)


def assert_polite(ended: Ended, code: int = 130) -> None:
    assert len(ended.lines) <= 2 and ended.lines[-1].startswith("Stopped."), ended.lines
    assert ended.code == code
    assert ended.seconds < SECONDS


@pytest.mark.parametrize("module", ["yaml", "jsonargparse", "jax"])
@pytest.mark.parametrize("script", ["evaluate.py --weights 2x2 --suite table", "train.py", HARD])
def test_an_interrupt_while_a_script_imports(script, module, tmp_path):
    name, *options = script.split()
    if name == "train.py":
        options = [*TINY.split(), "--run_dir", str(tmp_path / "run")]
    process = start(["-X", "importtime", f"scripts/{name}", *options], tmp_path)
    await_text(process, tmp_path / "err", rf"import time:.*\| +{module}$")
    assert_polite(send(process, tmp_path))


@pytest.mark.parametrize(
    ("script", "line", "wait"),
    [
        (HARD, "Solving", 0.0),
        (HARD, "Solving", 2.0),
        ("play.py --rows 2 --cols 2", "Getting ready", 0.0),
        ("play.py --rows 2 --cols 2", "2x2 boxes", 0.5),  # waits for an entry
        ("play.py --mode dual --player perfect --rows 3 --cols 4 --games 2000", "2000 games", 1.0),
    ],
)
def test_an_interrupt_after_a_line(script, line, wait, tmp_path):
    name, *options = script.split()
    process = start(["-u", f"scripts/{name}", *options], tmp_path)
    await_text(process, tmp_path / "out", line)
    time.sleep(wait)
    assert_polite(send(process, tmp_path))


def start_training(folder: Path) -> subprocess.Popen:
    options = [*TINY.split(), "--iterations", "100000", "--checkpoint_every", "1"]
    command = ["-u", "scripts/train.py", *options, "--run_dir", str(folder / "run")]
    process = start(command, folder)
    await_text(process, folder / "out", " +2/100000")
    return process


def test_the_first_interrupt_of_training_saves_and_says_so(tmp_path):
    process = start_training(tmp_path)
    process.send_signal(signal.SIGINT)  # as `timeout` does: to the process, then to its group
    ended = send(process, tmp_path, group=True)
    assert ended.code == 130 and ended.lines == []
    said = ended.said.splitlines()
    first = said.index("Finishing this iteration and saving. Ctrl-C again stops at once.")
    assert said[-1].startswith("Stopped after ") and "--resume" in said[-1]
    assert first >= len(said) - 4


def test_a_line_and_its_end_are_one_write(tmp_path, monkeypatch):
    # In two, the words of a signal may come between them: with python -u each is written at once.
    writes = []
    output = SimpleNamespace(write=writes.append, flush=lambda: None, isatty=lambda: False)
    monkeypatch.setattr(sys, "stdout", output)
    with MetricsWriter(tmp_path, first=0, last=2) as metrics:
        metrics.write(1, {}, "a line")
    Stop().request(signal.SIGINT)
    written = [text for text in writes if text]
    assert len(written) == 2 and all(text.endswith("\n") for text in written)


def test_the_second_interrupt_of_training_stops_at_once(tmp_path):
    process = start_training(tmp_path)
    process.send_signal(signal.SIGINT)
    await_text(process, tmp_path / "out", "Finishing this iteration")
    time.sleep(2 * TOGETHER_SECONDS)
    ended = send(process, tmp_path)
    assert ended.code == 130 and len(ended.lines) <= 1 and ended.seconds < SECONDS
    skipped = []
    with Checkpoints(tmp_path / "run") as checkpoints:  # to go on from
        checkpoints.restore_newest(say=skipped.append)
    assert skipped == []


def run_code(code: str, folder: Path, number: int = signal.SIGINT, wait: float = 0.2) -> Ended:
    """Interrupt a small script after it has printed "ready"."""
    code = "from jaxzero import interrupts\ninterrupts.install()\n" + code
    process = start(["-u", "-c", code], folder)
    await_text(process, folder / "out", "ready", 60)
    time.sleep(wait)
    return send(process, folder, number)


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


@pytest.mark.parametrize("code", [SWALLOWED, COMPILED, IN_A_DESTRUCTOR, AT_THE_END])
def test_an_interrupt_where_python_cannot_raise_it(code, tmp_path):
    assert_polite(run_code(code, tmp_path))


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_other_signals_end_a_script_too(name, tmp_path):
    number = signal.Signals[name]
    assert_polite(run_code(SWALLOWED, tmp_path, number), 128 + number)


ASKED = """
def ask(number):
    print("asked", number, flush=True)
with interrupts.first_calls(ask):
    print("ready")
    while True:
        pass
"""


def test_signals_within_half_a_second_are_one(tmp_path):
    code = "from jaxzero import interrupts\ninterrupts.install()\n" + ASKED
    process = start(["-u", "-c", code], tmp_path)
    await_text(process, tmp_path / "out", "ready", 60)
    process.send_signal(signal.SIGUSR1)
    process.send_signal(signal.SIGTERM)
    await_text(process, tmp_path / "out", "asked", 60)
    time.sleep(2 * TOGETHER_SECONDS)
    assert process.poll() is None
    assert_polite(send(process, tmp_path, signal.SIGTERM), 143)
    assert (tmp_path / "out").read_text().count("asked") == 1


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_the_server_of_the_page_stops_while_something_compiles(name, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))  # an empty one
    process = start(["-u", "scripts/play.py", "--web", "--port", "0"], tmp_path)
    await_text(process, tmp_path / "out", "Play at")
    time.sleep(1.0)  # an event loop is running, which takes the signals
    number = signal.Signals[name]
    assert_polite(send(process, tmp_path, number), 128 + number)


COMPILES = """
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


def test_a_compiler_in_a_thread_does_not_abort_a_script_that_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")
    code = "from jaxzero import interrupts\ninterrupts.install()\n" + COMPILES
    process = start(["-c", code], tmp_path)
    assert process.wait(SECONDS) == 7
    assert [(tmp_path / name).read_text() for name in ("out", "err")] == ["ready\n", ""]


def test_cleanups_run_once_and_what_was_printed_arrives(tmp_path):
    code = """
import sys, time
sys.stdout.reconfigure(line_buffering=False, write_through=False)
with interrupts.cleaned_up(lambda: print("done with one")):
    pass
with interrupts.cleaned_up(lambda: print("done with two")):
    print("ready", flush=True)
    print("kept")
    while True:
        pass
"""
    ended = run_code(code, tmp_path)
    assert_polite(ended)
    assert ended.said.split("\n") == ["done with one", "ready", "kept", "done with two", ""]


def test_a_file_being_written_stays_as_it_was(tmp_path):
    code = f"""
from pathlib import Path
from jaxzero.host.files import atomic_write, temporary_folder
with atomic_write(Path({str(tmp_path / "result.json")!r})) as temporary:
    temporary.write_text("half")
    with temporary_folder(temporary.parent) as folder:
        (folder / "more").write_text("half")
        print("ready")
        while True:
            pass
"""
    (tmp_path / "result.json").write_text("whole")
    assert_polite(run_code(code, tmp_path))
    assert (tmp_path / "result.json").read_text() == "whole"
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", "out", "err"}


def test_a_torn_entry_of_the_compilation_cache_goes(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    entries = [f"jit_f-{digit * 64}-cache" for digit in "abc"]
    code = f"""
import contextlib
from pathlib import Path
import jax
from jaxzero.host.programs import use_compilation_cache
cache = Path({str(cache)!r})
jax.config.update("jax_compilation_cache_dir", str(cache))
use_compilation_cache()
whole, torn, read = (cache / name for name in {entries})
whole.write_text("whole"), read.write_text("whole")
others = [cache / "log.txt", cache / "results-cache", Path({str(tmp_path / "other")!r})]
with contextlib.ExitStack() as stack:
    for path in (torn, *others):
        print("mine", file=stack.enter_context(path.open("w")), flush=True)
    stack.enter_context(read.open())
    print("ready")
    while True:
        pass
"""
    assert_polite(run_code(code, tmp_path))
    kept = {entries[0], entries[2], "log.txt", "results-cache"}
    assert {path.name for path in cache.iterdir()} == kept
    assert (tmp_path / "other").exists()


def test_importing_the_package_changes_no_signal():
    code = (
        "import signal, time, jaxzero, jaxzero.cli, jaxzero.host.interrupts as s\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "for number in s.SIGNALS[1:]:\n"
        "    assert signal.getsignal(number) is signal.SIG_DFL\n"
        "assert signal.set_wakeup_fd(-1) == -1\n"
        "stop = s.Stop()\n"
        "with stop.on_signals():\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    assert stop.requested and stop.exit_code == 143\n"
        "    signal.raise_signal(signal.SIGINT)  # together with the first one\n"
        "    time.sleep(2 * s.TOGETHER_SECONDS)\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        print('second')\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("second\n")


# All scripts at random moments.


def all_scripts(folder: Path, made: dict[str, Path]) -> dict[str, str]:
    """Return a command line for every script, with outputs in `folder`."""
    run, study = made["run"], made["study"]
    small = TINY.replace("--iterations 2 ", "")
    return {
        "train": f"{TINY} --run_dir {folder}/run",
        "evaluate": f"--run_dir {run} --suite table --opponents random --games 8 --ladder "
        f"--simulations 4 --json {folder}/out.json --figures {folder}/figures",
        "play": "--mode dual --player perfect --player2 greedy --rows 3 --cols 3 --games 200",
        "solve": f"--rows 3 --cols 3 --table {folder}/table.npz --json {folder}/out.json",
        "export": f"--run_dir {run} --out {folder}/weights --games 8 --simulations 4",
        "make_suite": f"--rows 3 --cols 3 --games 16 --out {folder}/suite.npz",
        "benchmark": f"{small} --seconds 3 --rounds 1 --json {folder}/out.json "
        f"--trace {folder}/trace",
        "sweep": f"{small} --selfplay.games 8,16 --rounds 1 --out {folder}/sweep",
        "compare": f"--runs {run} --out {folder}/figure.png",
        "study": f"{small} --minutes 0.1 --out {folder}/study"
        if study is None
        else f"--compare {study} --out {folder}/comparison",
    }


def last_line(said: str) -> str:
    """Return the last line of an output without its numbers, which differ from run to run."""
    return re.sub(r"[\d.,]+", "", said.splitlines()[-1])


def assert_whole(folder: Path) -> None:
    """See that every file in `folder` can be read and no temporary file is left."""
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if "checkpoints" in inside or path.is_dir():  # orbax cleans up by itself
            continue
        assert not path.name.startswith("."), path
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".png":
            assert path.read_bytes().endswith(b"IEND\xaeB`\x82"), path
        elif path.suffix == ".npz":
            with np.load(path) as file:
                assert all(file[name].size >= 0 for name in file.files)


def orphans(mark: str) -> list[str]:
    """Return the processes that carry a mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"JAXZERO_MARK={mark}".encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return [line for line in found if line]


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, Path | None]:
    """A run to evaluate."""
    folder = tmp_path_factory.mktemp("made")
    command = ["scripts/train.py", *TINY.split(), "--run_dir", str(folder / "run")]
    options = ["--evaluation.evaluate_every", "1", "--evaluation.suite", "table"]
    assert start([*command, *options], folder).wait(300) == 0, (folder / "err").read_text()
    return {"run": folder / "run", "study": None}


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(all_scripts(Path(), {"run": None, "study": None})))
def test_every_script_at_random_moments(script, made, tmp_path):
    moments = int(os.environ.get("MOMENTS", "20"))
    rng = random.Random(script)
    places = [tmp_path / str(number) for number in range(moments + 1)]
    lengths, slowest = [], 0.0
    for number, folder in enumerate(places):
        folder.mkdir()
        mark = secrets.token_hex(8)
        options = all_scripts(folder, made)[script].split()
        begin = time.monotonic()
        command = ["-u", "-X", "importtime", f"scripts/{script}.py", *options]
        process = start(command, folder, mark)
        # Before, Python itself starts.
        await_text(process, folder / "err", r"import time:.*\| +jaxzero.host.interrupts$")
        if number == 0:  # to its end, for the time it takes
            assert process.wait(600) == 0, (folder / "err").read_text()
            lengths.append(time.monotonic() - begin)  # its start included
            last = last_line((folder / "out").read_text())
            assert_whole(folder)
            continue
        time.sleep(rng.uniform(0.01, lengths[0]))
        ended = send(process, folder, group=number % 2 == 0)
        slowest = max(slowest, ended.seconds)
        if ended.code in (0, -signal.SIGINT) and not ended.lines:
            # It was done. While Python takes itself down, its handlers are gone: the signal itself
            # ends the process, which is 130 to a shell.
            assert last_line(ended.said) == last
            continue
        if script == "train" and not ended.lines:
            assert ended.code == 130 and "Finishing this iteration" in ended.said
        else:
            assert_polite(ended)
        assert wait_for(lambda mark=mark: not orphans(mark), 5), orphans(mark)
        assert_whole(folder)
    print(f"{script}: {moments} moments in {lengths[0]:.1f} s, slowest end {slowest:.2f} s")
