"""Test closed, full and broken standard streams: at most one line, no traceback, no abort."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time

import pytest
from script_runner import ROOT, TINY

from jaxzero.host.status import MARK

SCRIPTS = sorted((ROOT / "scripts").glob("*.py"))
HANGS = 240  # seconds; every command here ends sooner


def shell(command: str, given: str = "", **environment: str) -> subprocess.CompletedProcess:
    """Run a command line in bash; $PYTHON is the current Python."""
    # As for most users: Python buffers its output to files.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=kept | {"PYTHONPATH": str(ROOT), "PYTHON": sys.executable} | environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=HANGS,
    )


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_guards_its_process_before_it_imports_more(path):
    """The other tests need few scripts: `install` and `run_script` guard all of them."""
    body = ast.parse(path.read_text()).body
    source = [ast.unparse(node) for node in body]
    first = next(number for number, text in enumerate(source) if "interrupts import" in text)
    assert first <= 2, "only the docstring and the future come before"
    assert source[first + 1].startswith("if __name__ == '__main__':\n    install()")
    assert source[-1] == "if __name__ == '__main__':\n    run_script(main)"


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "2> /dev/full", "<&- >&- 2>&-"])
def test_the_command_needs_no_stream(streams):
    for words, code in (("--version", 0), ("tarin", 2)):
        done = shell(f"$PYTHON -m jaxzero {words} {streams}")
        assert done.returncode == code
        assert "Traceback" not in done.stderr and done.stderr.count("\n") <= (code == 2)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--help", "solve --rows 1 --cols 1"])
def test_output_that_cannot_be_written_is_one_line(words, unbuffered):
    full = shell(f"$PYTHON -m jaxzero {words} > /dev/full", PYTHONUNBUFFERED=unbuffered)
    assert full.returncode == 1 and full.stderr.count("\n") == 1
    assert full.stderr.startswith("error: standard output ")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_has_seen_enough_is_told_nothing(unbuffered):
    long = "print('x' * 99, flush=True)\nwhile True: print('x' * 99)"
    code = f"from jaxzero.host.interrupts import install; install()\n{long}"
    line = f'$PYTHON -c "{code}" | head -1; exit ${{PIPESTATUS[0]}}'
    done = shell(line, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (1, "") and done.stdout.strip("x") == "\n"


GAME = "play h0,0\ngenmove\nquit\n"


@pytest.mark.parametrize("streams", ["<&-", "> /dev/full"])
def test_an_engine_ends_by_itself_whatever_its_streams_are(streams):
    # A thread still compiles longer searches: a normal shutdown of Python would abort.
    done = shell(f"$PYTHON scripts/engine.py --weights 2x2 --seconds 30 {streams}", GAME)
    assert done.returncode == (streams == "> /dev/full")
    begins = ("jaxzero: ", "error: ", MARK)
    assert all(line.startswith(begins) for line in done.stderr.splitlines())


def test_a_training_outlives_who_reads_its_output(tmp_path):
    done = shell(f"$PYTHON scripts/train.py {TINY} --run_dir {tmp_path}/run | head -1")
    # A slow machine also prints status lines.
    said = [line for line in done.stderr.splitlines() if not line.startswith(MARK)]
    assert len(said) == 1 and said[0].startswith("warning: standard output ")
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["iterations"] == 2


TERMINAL = """
import os, pty, signal, sys
child, terminal = pty.fork()
if child == 0:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], *sys.argv[2:]])
while b"ready" not in os.read(terminal, 999):
    pass
os.close(terminal)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
AFTER_ITS_TERMINAL = """
from jaxzero.host.interrupts import install; install()
import os, sys, time
from pathlib import Path
from jaxzero.host.files import check_file, write_text
check_file("out", Path(sys.argv[1]))
terminal = os.dup(2)
print("ready")
try:
    while True:
        os.write(terminal, b"."); time.sleep(0.01)
except OSError:
    pass  # the terminal is gone
print("more"); print("more", file=sys.stderr)
write_text(Path(sys.argv[1]), "done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="terminals differ")
def test_a_script_that_writes_files_outlives_its_terminal(tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-c", TERMINAL, AFTER_ITS_TERMINAL, str(out)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    assert subprocess.run(command, env=environment, timeout=HANGS).returncode == 0
    assert out.read_text() == "done"


def test_a_stream_that_another_program_made_non_blocking_loses_nothing(tmp_path):
    code = """
from jaxzero.host.interrupts import install; install()
import os, sys
os.set_blocking(0, False); os.set_blocking(1, False)
print("x" * 10**6)
print(sys.stdin.read(), chr(0xdcff))  # the name of a file need not be text
"""
    command = [sys.executable, "-c", code]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, **pipes) as process:
        time.sleep(0.5)  # the pipe is full
        said, _ = process.communicate("given", timeout=HANGS)
    assert process.returncode == 0 and said == "x" * 10**6 + "\ngiven \\udcff\n"
