"""Test that a silent script reports its current task, on standard error only."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time

import pytest
from script_runner import ROOT

from jaxzero.host import status
from jaxzero.host.status import CLEAR, MARK, doing, mute, spell, status_lines, waiting

GUARD = 60.0  # seconds


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(status, "SILENCE", 0.05)
    monkeypatch.setattr(status, "TICK", 0.01)


def said(capfd, enough: str) -> str:
    """Read standard error until it contains `enough`; return the text."""
    text, deadline = "", time.monotonic() + GUARD
    while enough not in text:
        assert time.monotonic() < deadline, text
        text += capfd.readouterr().err
        time.sleep(0.01)
    return text


def test_the_innermost_task_is_named_and_standard_output_gets_nothing(capfd):
    with status_lines("outside"):
        said(capfd, f"{MARK}outside: 0 s\n")
        with doing("solving"):
            with doing("reading"):
                said(capfd, f"{MARK}reading: 0 s\n")
            said(capfd, f"{MARK}solving: 0 s\n")
        said(capfd, f"{MARK}outside: ")
    assert capfd.readouterr().out == ""


def test_nothing_is_left_after_the_block(capfd):
    before = sys.stdout, sys.stderr
    with pytest.raises(ZeroDivisionError), status_lines("outside"), doing("dividing"):
        assert (sys.stdout, sys.stderr) != before
        raise ZeroDivisionError
    assert (sys.stdout, sys.stderr) == before
    assert not any(thread.name == "status" for thread in threading.enumerate())
    capfd.readouterr()
    time.sleep(0.2)
    assert capfd.readouterr().err == ""


def test_nobody_is_disturbed_while_the_script_waits_or_prints(capfd, monkeypatch):
    with status_lines("outside"):
        with waiting():
            capfd.readouterr()
            time.sleep(0.3)
            assert capfd.readouterr().err == ""
        monkeypatch.setattr(status, "SILENCE", 30.0)
        print("a word")
        time.sleep(0.2)
        assert capfd.readouterr() == ("a word\n", "")
        monkeypatch.setattr(status, "SILENCE", 0.05)
        monkeypatch.setattr(status, "OF_AGE", 1e9)  # lines get rarer with time
        time.sleep(0.2)
        assert capfd.readouterr().err == ""
        monkeypatch.setattr(status, "OF_AGE", 0.0)
        mute()
        time.sleep(0.2)
        assert capfd.readouterr().err == ""
    assert [*map(spell, (0.4, 99.4, 100, 3725))] == ["0 s", "99 s", "0:01:40", "1:02:05"]


def test_other_threads_name_nothing(capfd):
    began, ended = threading.Event(), threading.Event()

    def work() -> None:
        with doing("elsewhere"):
            began.set()
            ended.wait(GUARD)

    with status_lines("outside"):
        thread = threading.Thread(target=work)
        thread.start()
        began.wait(GUARD)
        text = said(capfd, MARK) + said(capfd, MARK)
        ended.set()
        thread.join()
    assert "elsewhere" not in text


SCRIPT = """
import sys, time
from jaxzero.host import status
status.SILENCE, status.TICK = 0.1, 0.01
with status.status_lines("outside"):
    time.sleep(0.5)
    print("a word", flush=True)
    time.sleep(0.5)
sys.exit(3)
"""
COMMAND = [sys.executable, "-c", SCRIPT]


def test_a_terminal_has_one_line_that_other_words_replace():
    ours, theirs = pty.openpty()
    process = subprocess.Popen(COMMAND, cwd=ROOT, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:  # Linux raises this when the other end is closed
        pass
    os.close(ours)
    assert process.wait(GUARD) == 3
    text = seen.decode()
    assert text.count("\n") == 1 and text.endswith(CLEAR)
    before, after = text.split("a word\r\n")
    assert before.endswith(CLEAR) and before.count(MARK) > 1 and after.count(MARK) > 1


def test_a_terminal_that_is_stopped_stops_no_script():
    ours, theirs = pty.openpty()
    os.write(ours, b"\x13")  # Ctrl-S; a hanging connection has the same effect
    process = subprocess.Popen(COMMAND, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    out, _ = process.communicate(timeout=GUARD)
    os.close(ours)
    assert (process.returncode, out) == (3, b"a word\n")
