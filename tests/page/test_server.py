"""Test the server: it answers questions about any game, and no request breaks it."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator

import anyio
import pytest
from client import GAME, GZIP, Client

pytest.importorskip("starlette", reason="needs the extra jaxzero[web]")

from jaxzero.game.records import RecordedGame
from jaxzero.host import programs
from jaxzero.host.background import Programs
from jaxzero.page import answers, server
from jaxzero.page.server import LOOPBACK, MAX_BYTES, make_app
from jaxzero.play import review
from jaxzero.play.game import draw_turn
from jaxzero.players.network_player import Choice
from jaxzero.players.players import LEVELS
from jaxzero.solver import small
from jaxzero.solver.endgame import Solution

APP = make_app(LOOPBACK)
pytestmark = pytest.mark.usefixtures("solver_is_loaded")


@pytest.fixture
def no_position_is_small(monkeypatch):
    """Treat no position as small, so that the compiled solver and the network answer."""
    monkeypatch.setattr(small, "MAX_UNDRAWN", -1)


def ask(path: str, question: object = None, status: int | None = 200, **other) -> Client:
    """Send one request to the application and check the status; return the client."""
    client = anyio.run(Client(f"/api/{path}", question, **other).ask, APP)
    assert status in (None, client.status), client.body
    return client


def test_parallel_questions_get_whole_turns_and_each_its_own():
    rng, clients = random.Random(0), {}
    for seed in range(40):
        moves = tuple(rng.sample(range(12), rng.randrange(9)))
        question = {**GAME, "moves": moves, "level": rng.choice("023"), "seed": seed}
        clients[Client("/api/move", question)] = question

    async def visit_all() -> None:
        async with anyio.create_task_group() as group:
            for client in clients:
                group.start_soon(client.ask, APP)

    anyio.run(visit_all)
    for client, question in clients.items():
        assert client.json == ask("move", question).json
        edges = iter(client.json["edges"])
        draw_turn(RecordedGame(2, 2, moves=question["moves"]), lambda _, edges=edges: next(edges))
        assert next(edges, None) is None, "one turn and no more"
    others = {bytes(ask("move", {**GAME, "level": "0", "seed": seed}).body) for seed in range(12)}
    assert len(others) > 1, "a seed matters"


def test_an_analysis_gets_better_until_it_is_exact(no_position_is_small):
    lines = ask("analyse", {**GAME, "moves": [0, 4], "simulations": 16, "seconds": 5}).lines
    found = [line for line in lines if line["preparing"] is None]
    # With few edges the solver has its proof before the network is asked; later lines keep it.
    assert [line["stage"] for line in found[:3]] == ["structure", "policy", "search"]
    assert len({line["exact"]["value"] for line in found}) == 1
    last = found[-1]
    assert len(last["line"]) == 10, "play goes on to the end of the game"
    assert last["stage"] == "done" and all(one["exact"] for one in last["edges"])
    assert {one["edge"] for one in last["edges"]} == set(range(12)) - {0, 4}
    best = {one["edge"] for one in last["edges"] if one["lost"] == 0}
    assert best == set(last["exact"]["best"]) and last["best"] in best
    assert last["win"] + last["draw"] + last["lose"] == pytest.approx(1)


def test_no_number_of_simulations_needs_a_program_of_its_own(monkeypatch, no_position_is_small):
    question = {**GAME, "moves": [0], "simulations": 16, "seconds": 0}
    ask("analyse", question)
    monkeypatch.setattr(programs, "kept_program", None)  # from here on nothing can compile
    last = ask("analyse", {**question, "simulations": 63}).lines[-1]
    assert last["simulations"] == 63
    assert len({one["edge"] for one in last["lines"]}) == 3
    assert ask("review", {**GAME, "moves": [0], "simulations": 200}).lines[-1] == {"done": True}
    for level in ("advanced", "master"):
        ask("move", {**GAME, "level": level})


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ("move", {"rows": 0}, "rows: 0 "),
        ("move", {"cols": 10}, "board: a 2x10 board is beyond 9x9"),
        ("move", {"moves": [1, 1]}, "moves[1]: edge h0,1 is already drawn"),
        ("move", {"level": "9000"}, "level: '9000' "),
        ("move", {"seed": -1}, "seed: -1 "),
        ("analyse", {"simulations": 10**6}, "simulations: 1000000 "),
        ("analyse", {"seconds": 10**6}, "seconds: 1000000 "),
        ("problem", {"theme": "x" * 500}, "theme: 'xxx"),
        ("problem", {"theme": "loops", "seed": 2**32}, "seed: 4294967296 "),
        ("problem", {"theme": "loops", "grade": 1e300}, "grade: 1e+300 "),
        ("write", {"format": "pdf"}, "format: 'pdf' "),
        ("read", {"text": "# 9x10\nh0,0"}, "text: a 9x10 board is beyond 9x9"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(path, change, message):
    said = ask(path, {**GAME, **change}, status=400).json["error"]
    assert said.startswith(message) and "\n" not in said


def test_strangers_are_kept_out():
    ask("move", GAME, status=403, headers=[(b"origin", b"http://elsewhere")])
    ask("move", b" " * (MAX_BYTES + 1), status=413)
    text = {"text": "# 2x2\nh0,0"}
    for host in ("localhost", "127.0.0.1:8000", "[::1]", "[::1]:8000"):
        ask("read", text, host=host)
    others = ["here.example", "localhost.example:8000", "127.0.0.1.example"]
    for host in (*others, "[::2]:8000", "[", "]:8000", "", ":8000"):
        assert b"--host" in ask("read", text, 400, host=host).body


def test_a_full_queue_refuses(monkeypatch):
    monkeypatch.setattr(server, "MAX_WAITING", 0)
    ask("move", {**GAME, "level": "0"}, status=503)
    ask("read", {"text": "# 2x2\nh0,0"})  # formats need no engine


def test_nobody_waits_for_the_programs_of_others(monkeypatch, no_position_is_small):
    """Others get their moves, and lines come one by one, while analyses and opponents compile."""
    compiled, visitors = threading.Event(), {}

    def waits(programs: Programs) -> Iterator[float]:
        while programs.key is not LEVELS[0] and not compiled.is_set():
            yield 1.5

    monkeypatch.setattr(Programs, "ready", property(lambda _: compiled.is_set()))
    monkeypatch.setattr(Programs, "waits", waits)
    monkeypatch.setattr(review, "prove", lambda *_: None)
    monkeypatch.setattr(review, "choose_edge", lambda *_: Choice(1, 0.0))
    monkeypatch.setattr(answers, "play_level", lambda _level, game, _seed: game.draw(1))
    questions = {
        "move": {"level": "2"},
        "problem": {"theme": "chains"},
        "review": {"moves": [0]},
        "analyse": {"moves": [0, 4], "simulations": 0, "seconds": 1},
    }

    async def visit_all() -> None:
        async with anyio.create_task_group() as group:
            for path, question in questions.items():
                sent = f"/api/{path}", GAME | question
                visitors[path] = [Client(*sent, headers=[GZIP]) for _ in range(4)]
                for client in visitors[path]:
                    group.start_soon(client.ask, APP)
            with anyio.fail_after(60):
                while not all(client.lines for client in visitors["analyse"]):
                    await anyio.sleep(0.02)
            quick = await Client("/api/move", {**GAME, "level": "0"}).ask(APP)
            assert quick.status == 200
            assert all(client.status is None for client in visitors["move"] + visitors["problem"])
            begun = [], [{"preparing": 1}]  # sent once a second
            assert all(client.lines in begun for client in visitors["review"])
            compiled.set()

    anyio.run(visit_all)
    assert {client.status for clients in visitors.values() for client in clients} == {200}
    for client in visitors["analyse"]:
        preparing = [line["preparing"] for line in client.lines]
        assert preparing == [1] + [None] * (len(preparing) - 1) and client.lines[0]["exact"]
        assert [client.lines[n]["stage"] for n in (1, 2, -1)] == ["structure", "policy", "done"]


HOSTILE = (
    *(None, True, -1, 0, 1.5, 2, 10**30, "", "2", "\0", "h0,0", "../../etc/passwd", "\uff19"),
    *([], [[]], [None], [-1], ["0"], {}, {"rows": {}}, [0] * 99, "x" * 2000, "{" * 500),
)
PATHS = ("warm", "move", "problem", "read", "write", "analyse", "review")
FIELDS = ("rows", "cols", "start", "moves", "level", "seed", "text", "format", "names", "seconds")
FIELDS += ("theme", "grade")


def hostile_question(rng: random.Random) -> tuple[str, bytes]:
    """Return a path and a question that is wrong somewhere, or not a question at all."""
    body: object = {**GAME, "level": "0", "simulations": 16, "seconds": 0}
    body["theme"] = rng.choice(("chains", "opening"))
    for _ in range(rng.randint(1, 4)):
        body[rng.choice((*FIELDS, "simulations"))] = rng.choice(HOSTILE)
    if rng.random() < 0.2:
        body = rng.choice(HOSTILE)
    data = json.dumps(body).encode()
    if rng.random() < 0.3:
        place = rng.randrange(len(data) + 1)
        data = data[:place] + rng.randbytes(rng.randint(0, 5)) + data[place + rng.randint(0, 3) :]
    return rng.choice(PATHS), data


def test_hostile_questions_get_an_answer(monkeypatch):
    # The engine is replaced: other tests check its moves.
    monkeypatch.setattr(Programs, "ready", True)
    monkeypatch.setattr(answers, "play_level", lambda _level, game, _seed: game)
    monkeypatch.setattr(answers, "stages", lambda *_: iter(()))
    monkeypatch.setattr(review, "prove", lambda *_: Solution(0, 0, 0, (0,)))
    rng, kinds = random.Random(0), {200: 0, 400: 0}
    for _ in range(600):
        path, data = hostile_question(rng)
        client = ask(path, data, status=None)
        assert client.status in (200, 400), (path, data, client.status, client.body)
        if client.status == 400:
            assert client.json["error"]
        kinds[client.status] += 1
    assert min(kinds.values()) > 30
