"""Test progress: a line at intervals without a terminal, nothing for short work."""

import time

from jaxzero.host import progress
from jaxzero.host.progress import working


def test_long_work_shows_lines_and_blocks_inside_show_nothing(monkeypatch, capsys):
    monkeypatch.setattr(progress, "INTERVAL", 0.05)
    with working("outside", total=10) as report, working("inside"):
        report(3)
        time.sleep(0.2)
    shown = capsys.readouterr()
    assert shown.out == "" and "outside: 0 s, 3 of 10\n" in shown.err and "inside" not in shown.err
    with working("again"):
        time.sleep(0.2)
    assert "again: 0 s\n" in capsys.readouterr().err


def test_short_work_and_a_muted_process_show_nothing(monkeypatch, capsys):
    with working("short"):
        pass
    monkeypatch.setattr(progress, "INTERVAL", 0.01)
    monkeypatch.setattr(progress._state, "quiet", True)
    with working("muted"):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
