"""Laws of the server about clients that leave, hang or come in numbers: nothing of them stays."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from http.client import HTTPConnection

import anyio
import numpy as np
import pytest
from script_runner import ROOT

pytest.importorskip("starlette", reason="needs the extra jaxzero[web]")

from jaxzero.game import DotsAndBoxes
from jaxzero.page import desk, levels, server
from jaxzero.page.server import LOOPBACK, lines_in_turn, make_app
from jaxzero.play import analysis, looking
from jaxzero.play.analysis import Analysis
from jaxzero.play.game import Record
from jaxzero.players import preparation
from jaxzero.players.preparation import PREPARATION, Preparation
from jaxzero.players.recent import of_board
from jaxzero.solver.endgame import solve

GAME = {"rows": 2, "cols": 2, "start": [], "moves": []}
PATIENCE = 60  # seconds until a test fails instead of hanging
NOTHING = Analysis("structure", (), (), 0, 0)


@pytest.fixture(scope="module", autouse=True)
def solver_is_loaded():
    solve(DotsAndBoxes(2, 2), [0, 4])


class Client:
    """One request to an application, whose sender may leave, be slow, or read nothing."""

    def __init__(self, path: str, question: object = None, host: str = "localhost"):
        self.path, self.host, self.data = path, host, json.dumps(question).encode()
        self.status: int | None = None
        self.lines: list[dict] = []
        self.sends_all = self.reads = True
        self._left = threading.Event()

    def leave(self) -> None:
        self._left.set()

    async def ask(self, app) -> Client:
        """Ask until the answer is there, or the server has noticed that the client left."""
        parts, body = [self.data], bytearray()
        scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": self.path}
        scope |= {"raw_path": self.path.encode(), "query_string": b"", "root_path": ""}
        scope |= {"scheme": "http", "server": ("here", 80), "asgi": {"version": "3.0"}}
        scope["headers"] = [(b"host", self.host.encode())]

        async def receive():
            if parts:
                whole = self.sends_all
                return {"type": "http.request", "body": parts.pop(), "more_body": not whole}
            while not self._left.is_set():
                await anyio.sleep(0.01)
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.start":
                self.status = message["status"]
            elif not self.reads:
                await anyio.sleep_forever()
            body.extend(message.get("body", b""))
            whole, _, _ = body.rpartition(b"\n")
            self.lines = [json.loads(line) for line in whole.splitlines()]

        with anyio.fail_after(PATIENCE):
            await app(scope, receive, send)
        return self


def stay_and_leave(clients: list[Client], app, until=lambda: True, seconds: float = 0.3) -> None:
    """Let clients ask at the same time and leave after some seconds, when `until` holds."""

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
    """The solver itself stops, in the middle of what it proves."""
    ended, begun = [], threading.Event()

    def prove(*_):
        begun.set()
        try:
            solve(DotsAndBoxes(7, 7), [], seconds=600)
            yield NOTHING
        finally:
            ended.append(time.monotonic())

    monkeypatch.setattr(server, "analyses_of", prove)
    app = make_app()
    clients = [Client("/api/analyse", GAME) for _ in range(desk.AT_ONCE)]
    stay_and_leave(clients, app, begun.is_set)
    assert len(ended) == desk.AT_ONCE


def test_moves_that_nobody_waits_for_are_not_computed(monkeypatch):
    drawn = []

    def think(_player, record, _seed):
        time.sleep(0.5)
        drawn.append(free := int(np.flatnonzero(~record.drawn)[0]))
        return free

    monkeypatch.setattr(levels, "choose", think)
    monkeypatch.setattr(levels, "player_of", lambda *_: None)
    monkeypatch.setattr(server, "is_warm", lambda *_: True)
    app = make_app()
    # Two of three sides of all boxes: a side takes one box after the other.
    question = {**GAME, "cols": 1, "start": [0, 2, 3, 4, 5], "level": "2"}
    stay_and_leave([Client("/api/move", question) for _ in range(8)], app)
    assert len(drawn) <= desk.AT_ONCE, "one edge each, of those whose turn it was"
    assert anyio.run(Client("/api/move", question).ask, app).status == 200


def test_who_waits_for_what_another_compiles_may_leave(monkeypatch):
    """The turn comes back before the other is done."""
    gate, game, kept = threading.Event(), DotsAndBoxes(13, 2), []

    def compile_() -> bool:
        return gate.wait(PATIENCE / 2) or True

    def wait(*_):
        kept.append(of_board(game).get("program", compile_))
        yield NOTHING

    monkeypatch.setattr(server, "analyses_of", wait)
    other = threading.Thread(target=of_board(game).get, args=("program", compile_), daemon=True)
    other.start()
    stay_and_leave([Client("/api/analyse", GAME) for _ in range(2)], make_app())
    assert kept == [] and other.is_alive()
    gate.set()


@pytest.fixture
def compiler(monkeypatch):
    """What was compiled for an analysis, by one thread; it begins and waits for `gate`."""

    class Compiler:
        def __init__(self):
            self.gate, self.boards = threading.Event(), []

        def prepare(self, game):
            self.boards.append(game.cols)
            self.gate.wait(PATIENCE)

    made = Compiler()
    monkeypatch.setattr(preparation, "AT_ONCE", 1)
    monkeypatch.setattr(server, "prepare_board", made.prepare)
    monkeypatch.setattr(server, "prepare", made)  # the name of what is wanted
    monkeypatch.setattr(server, "PREPARATION", Preparation())
    monkeypatch.setattr(server, "analyses_of", lambda *_: iter([NOTHING]))
    yield made
    made.gate.set()


def test_boards_that_nobody_waits_for_are_not_compiled(compiler):
    app = make_app()
    clients = [Client("/api/analyse", {**GAME, "cols": cols}) for cols in range(1, 7)]
    stay_and_leave(clients, app, lambda: all(client.lines for client in clients))
    last = Client("/api/analyse", {**GAME, "cols": 7})
    threading.Timer(0.3, compiler.gate.set).start()
    anyio.run(last.ask, app)
    assert last.lines[-1]["stage"] == "done"
    assert len(compiler.boards) == 2 and compiler.boards[1] == 7


def test_open_streams_are_bounded_and_their_places_come_back(compiler, monkeypatch):
    monkeypatch.setattr(desk, "MOST_WAITING", 3)
    app = make_app()
    clients = [Client("/api/analyse", GAME) for _ in range(3)]
    late = Client("/api/analyse", GAME)

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for client in clients:
                group.start_soon(client.ask, app)
            while not all(client.lines for client in clients):
                await anyio.sleep(0.01)
            await late.ask(app)
            for client in clients:
                client.leave()

    anyio.run(run)
    assert [*late.lines[0]] == ["error"]
    compiler.gate.set()
    assert anyio.run(Client("/api/analyse", GAME).ask, app).lines[-1]["stage"] == "done"


def test_streams_share_the_tables_of_the_solver(monkeypatch):
    """Streams that wait have no table, however many they are."""
    made, new_table = [], analysis.new_table
    monkeypatch.setattr(analysis, "new_table", lambda _: made.append(1) or new_table(2**10))
    record = Record(DotsAndBoxes(2, 2))
    streams = [server.analyses_of(record, 16, 60) for _ in range(10)]
    assert [next(stream).stage for stream in streams] == ["structure"] * 10
    assert len(made) <= desk.AT_ONCE


def test_lines_that_say_nothing_new_are_not_sent():
    async def run() -> list[str]:
        found = ({"bounds": bounds} for bounds in (1, 1, 1, 2, 2, 1))
        return [line async for line in lines_in_turn(desk.Desk(), found)]

    assert [json.loads(line)["bounds"] for line in anyio.run(run)] == [1, 2, 1]


def test_others_have_their_turn_between_slices():
    """Analyses take one slice a turn: a question waits for a slice, not for an analysis."""
    over, slices = threading.Event(), []

    def slow():
        while not over.is_set():
            slices.append(1)
            time.sleep(0.02)
            yield {"stage": "exact"}

    async def run() -> int:
        where = desk.Desk()

        async def read() -> None:
            async for _ in lines_in_turn(where, slow()):
                pass

        async with anyio.create_task_group() as group:
            for _ in range(3 * desk.AT_ONCE):
                group.start_soon(read)
            while not slices:
                await anyio.sleep(0.01)
            with anyio.fail_after(PATIENCE):
                answers = [await where.ask(int, "7") for _ in range(5)]
            over.set()
        return answers

    assert anyio.run(run) == [7] * 5


def test_a_question_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 0.2, raising=False)
    slow = Client("/api/read", {"text": "# 2x2"})
    slow.sends_all = False
    assert anyio.run(slow.ask, make_app()).status == 408


def test_a_client_that_does_not_read_loses_its_place(monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 0.2, raising=False)
    monkeypatch.setattr(desk, "MOST_WAITING", 1)
    monkeypatch.setattr(server, "analyses_of", lambda *_: iter([NOTHING]))
    app = make_app()
    monkeypatch.setattr(server.PREPARATION, "is_done", lambda *_: True)
    deaf = Client("/api/analyse", GAME)
    deaf.reads = False
    anyio.run(deaf.ask, app)
    assert anyio.run(Client("/api/analyse", GAME).ask, app).lines[-1]["stage"] == "done"


class Program:
    """Stands for a compiled program."""

    def lower(self, *_):
        return self

    compile = lower

    def __call__(self, drawn, *_):
        return (drawn,)


def test_programs_and_players_of_the_last_boards_only_are_kept(monkeypatch):
    made = []

    def make(*_):
        made.append(weakref.ref(one := Program()))
        return one

    monkeypatch.setattr(looking, "kept_program", make)
    monkeypatch.setattr(levels, "make_player", make)
    monkeypatch.setattr(levels, "agent_of", lambda _: None)
    boards = [DotsAndBoxes(rows, cols) for rows in range(8, 12) for cols in range(8, 18)]
    for game in boards:
        looking.moves_of(game, np.zeros(game.num_edges, bool))
        levels.player_of("greedy", game)
    gc.collect()
    kept = sum(one() is not None for one in made)
    assert len(made) == 2 * len(boards) and 2 <= kept <= len(boards)
    last = levels.player_of("greedy", boards[-1])
    assert last is levels.player_of("greedy", boards[-1]) and last in [one() for one in made]


def test_a_level_whose_player_went_is_compiled_again():
    casual, boards = levels.LEVELS[2], [DotsAndBoxes(12, cols) for cols in range(2, 20)]
    for game in boards:
        PREPARATION.begin(game, casual, lambda: None)
        assert PREPARATION.wait(game, casual, PATIENCE) and levels.is_warm(casual, game)
    assert not levels.is_warm(casual, boards[0])


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("localhost", 200), ("127.0.0.1:8000", 200)),
        *(("[::1]", 200), ("[::1]:8000", 200)),
        *(("here.example", 400), ("localhost.example:8000", 400), ("127.0.0.1.example", 400)),
        *(("[::2]:8000", 400), ("[", 400), ("]:8000", 400), ("", 400), (":8000", 400)),
    ],
)
def test_a_page_of_this_machine_answers_to_its_names_only(host, status):
    client = Client("/api/read", {"text": "# 2x2\nh0,0"}, host)
    assert anyio.run(client.ask, make_app(LOOPBACK)).status == status


SERVER = """
from jaxzero.host.interrupts import install
install()
import time
from starlette.applications import Starlette
from starlette.routing import Route
from jaxzero.page.server import serve
def compile_for_long(_):
    print("compiling", flush=True)
    time.sleep(600)
serve("127.0.0.1", 0, lambda _: Starlette(routes=[Route("/", compile_for_long)]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_a_signal_ends_a_server_that_compiles(number):
    """At once, whatever its threads do, with the code that shells expect."""
    script, env = [sys.executable, "-u", "-c", SERVER], {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(script, stdout=pipe, stderr=pipe, text=True, env=env) as process:
        try:
            port = int(process.stdout.readline().split(":")[2].split("/")[0])
            client = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            client.request("GET", "/")
            assert process.stdout.readline() == "compiling\n"
            process.send_signal(number)
            _, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 128 + number
    assert errors.count("\n") == 1 and "Traceback" not in errors
