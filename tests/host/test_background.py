"""Test background programs: made once, requested or not, and work that ends when nobody waits."""

import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import closing

import pytest

from jaxzero.host import background
from jaxzero.host.background import Programs, cancelled_by, check_cancelled

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
    assert programs.ready and programs.begin().result() is None and made == [1]
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


def test_compiling_ends_between_two_programs_and_goes_on_for_a_new_request(gate):
    compiled, begun = [], threading.Event()

    def make() -> None:
        begun.set()
        gate.wait(PATIENCE)
        Programs(BOARD, "second", lambda: compiled.append(1)).get()

    programs = Programs(BOARD, "both", make)
    with closing(programs.waits()) as waits:
        next(waits)
        assert begun.wait(PATIENCE)
    late = programs.waits()
    next(late)  # the thread has not noticed yet that the first request left
    gate.set()
    for _ in late:
        pass
    assert programs.ready and compiled == [1]
    with closing(Programs(BOARD, "alone", make).waits()) as waits:
        begun.clear(), gate.clear(), compiled.clear()
        next(waits)
        assert begun.wait(PATIENCE)
        background._boards.clear()
    gate.set()
    while background._jobs:
        time.sleep(0.01)
    assert compiled == []


def test_a_check_ends_a_wait_for_another_thread(gate):
    begun, left = threading.Event(), threading.Event()
    programs = Programs(BOARD, "key", lambda: begun.set() or gate.wait(PATIENCE))
    programs.begin()
    assert begun.wait(PATIENCE)  # another test's program may still occupy the threads

    def check() -> None:
        if left.is_set():
            raise CancelledError

    def ask() -> None:
        with cancelled_by(check):
            programs.get()

    with ThreadPoolExecutor(1) as visitor:
        asked = visitor.submit(ask)
        time.sleep(0.1)
        assert not asked.done()
        left.set()
        began = time.monotonic()
        assert isinstance(asked.exception(PATIENCE), CancelledError)
        assert time.monotonic() - began < 1.0  # 0.05 on an idle machine
    check_cancelled()  # other threads have no check
