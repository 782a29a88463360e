"""Test background programs: made once, requested or not."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from jaxzero.host import background
from jaxzero.host.background import Programs

PATIENCE = 60  # seconds until a test fails instead of hanging
BOARD = "a board"


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch):
    monkeypatch.setattr(background, "_boards", background.OrderedDict())


@pytest.fixture
def one_thread(monkeypatch):
    """Compile with one thread."""
    with ThreadPoolExecutor(1) as threads:
        monkeypatch.setattr(background, "_threads", threads)
        yield


def test_a_program_is_made_once_for_all_callers():
    made = []
    programs = Programs(BOARD, "key", lambda: time.sleep(0.1) or made.append(1) or "value")
    with ThreadPoolExecutor(4) as callers:
        found = [callers.submit(programs.get) for _ in range(4)]
    assert {each.result() for each in found} == {"value"} and made == [1]
    assert programs.ready and programs.begin().result() == "value" and made == [1]
    assert not list(programs.waits())


@pytest.mark.parametrize(
    ("most", "name"), [(background.MAX_BOARDS, "board"), (background.MAX_PROGRAMS, "key")]
)
def test_what_was_used_most_recently_is_kept(most, name):
    programs = [
        Programs(**{"board": BOARD, "key": 0, "make": object} | {name: number})
        for number in range(most + 1)
    ]
    values = [one.get() for one in programs[:most]]
    assert programs[0].get() is values[0]
    programs[most].get()
    assert [one.ready for one in programs[:3]] == [True, False, True]


def test_what_fails_ends_the_waiting_and_fails_again_where_it_is_used():
    programs = Programs(BOARD, "key", lambda: 1 / 0)
    list(programs.waits())
    assert not programs.ready
    with pytest.raises(ZeroDivisionError):
        programs.get()


def test_what_nobody_requests_any_more_is_not_compiled(gate, one_thread):
    compiled = []
    Programs(BOARD, "first", lambda: gate.wait(PATIENCE)).begin()
    with closing(Programs(BOARD, "given up", lambda: compiled.append(1)).waits()) as waits:
        next(waits)
    second = Programs(BOARD, "second", lambda: compiled.append(2)).begin()
    gate.set()
    second.result(PATIENCE)
    assert compiled == [2]
