"""Test clients that leave, hang or come in large numbers: the server keeps nothing of them."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import anyio
import numpy as np
import pytest
from client import GAME, PATIENCE, Client

pytest.importorskip("starlette", reason="needs the extra jaxzero[web]")

from jaxzero.game import DotsAndBoxes
from jaxzero.game.records import RecordedGame
from jaxzero.host import background
from jaxzero.host.background import Programs
from jaxzero.page import answers, server
from jaxzero.page.server import Queue, lines_in_turn, make_app
from jaxzero.play import analysis, opponents
from jaxzero.play.analysis import Analysis

NOTHING = Analysis("structure", (), (), 0, 0)
pytestmark = pytest.mark.usefixtures("solver_is_loaded")


def ask(app, question: dict = GAME) -> Client:
    return anyio.run(Client("/api/analyse", question).ask, app)


def stay_and_leave(clients: list[Client], app, until=lambda: True, seconds: float = 0.3) -> None:
    """Let clients ask at the same time; let them leave after `seconds`, once `until` is true."""

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for client in clients:
                group.start_soon(client.ask, app)
            with anyio.fail_after(PATIENCE):
                await anyio.sleep(seconds)
                while not until():
                    await anyio.sleep(0.01)
            for client in clients:
                client.leave()

    anyio.run(run)


def test_an_analysis_ends_with_its_reader(monkeypatch):
    """It is closed between two stages."""
    ended, begun = [], threading.Event()

    def prove(*_):
        begun.set()
        try:
            while True:
                time.sleep(0.05)
                yield NOTHING
        finally:
            ended.append(time.monotonic())

    monkeypatch.setattr(answers, "stages", prove)
    clients = [Client("/api/analyse", GAME) for _ in range(server.AT_ONCE)]
    stay_and_leave(clients, make_app(), begun.is_set)
    assert len(ended) == server.AT_ONCE


def test_moves_that_nobody_waits_for_are_not_computed(monkeypatch):
    drawn = []

    def think(_player, game, _seed):
        time.sleep(0.5)
        drawn.append(free := int(np.flatnonzero(~game.drawn)[0]))
        return free

    monkeypatch.setattr(opponents, "choose", think)
    monkeypatch.setattr(opponents, "player_of", lambda *_: None)
    monkeypatch.setattr(opponents, "warm_up", lambda *_: None)
    app = make_app()
    # The drawn edges leave one side of the first box and two of the second: one turn takes both.
    question = {**GAME, "cols": 1, "start": [0, 2, 3, 4, 5], "level": "2"}
    stay_and_leave([Client("/api/move", question) for _ in range(8)], app)
    assert len(drawn) <= 2 * server.AT_ONCE, "both edges, of those whose turn it was"
    assert anyio.run(Client("/api/move", question).ask, app).status == 200


def test_streams_are_bounded_and_what_nobody_waits_for_is_not_compiled(gate, monkeypatch):
    boards = []

    def programs(board: DotsAndBoxes) -> Programs:
        return Programs(board, gate, lambda: boards.append(board.cols) or gate.wait(PATIENCE))

    monkeypatch.setattr(answers, "analysis_programs", programs)
    monkeypatch.setattr(answers, "stages", lambda *_: iter([NOTHING]))
    monkeypatch.setattr(background, "_threads", ThreadPoolExecutor(1))
    monkeypatch.setattr(server, "MAX_WAITING", 6)
    app = make_app()
    clients = [Client("/api/analyse", {**GAME, "cols": cols}) for cols in range(1, 8)]
    stay_and_leave(clients, app, lambda: all(client.lines for client in clients))
    assert sum([*client.lines[0]] == ["error"] for client in clients) == 1
    threading.Timer(0.3, gate.set).start()
    assert ask(app, {**GAME, "cols": 8}).lines[-1]["stage"] == "done", "the places come back"
    assert len(boards) == 2 and boards[1] == 8


def test_streams_share_the_tables_of_the_solver(monkeypatch):
    """Waiting streams have no table, whatever their number."""
    made, new_table = [], analysis.new_table
    monkeypatch.setattr(analysis, "new_table", lambda _: made.append(1) or new_table(2**10))
    game = RecordedGame(2, 2)
    streams = [answers.analyses(game, 16, 60) for _ in range(10)]
    assert [next(stream)["stage"] for stream in streams] == ["structure"] * 10
    assert len(made) <= server.AT_ONCE


def test_lines_that_say_nothing_new_are_not_sent():
    async def run() -> list[str]:
        found = ({"bounds": bounds} for bounds in (1, 1, 1, 2, 2, 1))
        return [line async for line in lines_in_turn(Queue(), found)]

    assert [json.loads(line)["bounds"] for line in anyio.run(run)] == [1, 2, 1]


def test_others_have_their_turn_between_slices():
    """An analysis takes one slice per turn: a question waits for a slice, not for an analysis."""
    over = threading.Event()

    def slow():
        while not over.is_set():
            time.sleep(0.02)
            yield {"stage": "exact"}

    async def run() -> None:
        where = Queue()

        async def read() -> None:
            assert [line async for line in lines_in_turn(where, slow())]

        async with anyio.create_task_group() as group:
            for _ in range(3 * server.AT_ONCE):
                group.start_soon(read)
            await anyio.sleep(0.1)
            with anyio.fail_after(PATIENCE):
                assert [await where.ask(int, "7") for _ in range(5)] == [7] * 5
            over.set()

    anyio.run(run)
