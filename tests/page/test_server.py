"""Laws of the server: it answers questions about any game, and nothing a client sends breaks it."""

from __future__ import annotations

import json
import random
import threading
from contextlib import nullcontext
from functools import partial
from itertools import pairwise

import anyio
import pytest

pytest.importorskip("starlette", reason="needs the extra jaxzero[web]")

from jaxzero.game import DotsAndBoxes
from jaxzero.game.notation import FORMATS
from jaxzero.page import desk, server
from jaxzero.page.levels import LEVELS
from jaxzero.page.server import MOST_BYTES, lines_in_turn, make_app
from jaxzero.play.analysis import Verdict
from jaxzero.players import single
from jaxzero.solver import small
from jaxzero.solver.endgame import solve

GAME = {"rows": 2, "cols": 2, "start": [], "moves": []}
APP = make_app(("here",))
OWN = ((b"host", b"here"),)


@pytest.fixture(scope="module", autouse=True)
def solver_is_loaded():
    """Load what the solver's first call has to compile; so few edges then take it no time."""
    solve(DotsAndBoxes(2, 2), [0, 4])


def ask(path: str, body: object = None, method: str = "POST", headers=OWN) -> tuple[int, bytes]:
    """Send one request to the application; return status and body."""
    return anyio.run(partial(send_request, path, body, method, headers))


async def send_request(
    path: str, body: object = None, method: str = "POST", headers=OWN
) -> tuple[int, bytes]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": list(headers),
        "server": ("here", 80),
        "client": ("there", 1),
    }
    parts = [data[i : i + 1000] for i in range(0, len(data), 1000)] or [b""]
    status, answer = [], bytearray()

    async def receive():
        if not parts:
            await anyio.sleep_forever()
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message):
        if message["type"] == "http.response.start":
            status.append(message["status"])
            assert dict(message["headers"])[b"content-security-policy"]
        answer.extend(message.get("body", b""))

    with anyio.fail_after(120):
        await APP(scope, receive, send)
    return status[0], bytes(answer)


def refusal(path: str, body: object) -> str:
    status, answer = ask(path, body)
    assert status == 400, answer
    message = json.loads(answer)["error"]
    assert message and "\n" not in message and "Traceback" not in message
    return message


def lines(path: str, body: object) -> list[dict]:
    status, answer = ask(path, body)
    assert status == 200, answer
    return [json.loads(line) for line in answer.splitlines()]


def test_the_page_learns_what_there_is():
    status, answer = ask("/api/info", method="GET")
    found = json.loads(answer)
    assert status == 200 and len(found["levels"]) == len(LEVELS)
    assert found["formats"] == list(FORMATS)
    assert {"rows": 5, "cols": 5, "name": "5x5", "trained": True} in found["boards"]


@pytest.mark.parametrize("level", ["0", "2"])
def test_a_turn_is_played_to_its_end_and_follows_the_seed(level):
    # A chain of two boxes is open: greedy takes both and then moves on.
    question = {**GAME, "moves": [0, 2, 6, 8, 4, 7], "level": level}
    status, answer = ask("/api/move", {**question, "seed": 5})
    edges = json.loads(answer)["edges"]
    assert status == 200 and edges and not set(edges) & set(question["moves"])
    assert ask("/api/move", {**question, "seed": 5})[1] == answer
    if level == "0":
        others = {ask("/api/move", {**GAME, "level": level, "seed": s})[1] for s in range(12)}
        assert len(others) > 1, "a seed matters"


@pytest.fixture
def no_position_is_small(monkeypatch):
    """Let the compiled solver and the network answer where a small board has few edges left."""
    monkeypatch.setattr(small, "MOST_UNDRAWN", -1)


def test_an_analysis_gets_better_until_it_is_exact(no_position_is_small):
    found = lines("/api/analyse", {**GAME, "moves": [0, 4], "simulations": 16, "seconds": 5})
    # The solver proves so few edges before the network is asked, and nothing later hides that.
    assert [line["stage"] for line in found[:3]] == ["structure", "policy", "search"]
    assert len({line["exact"]["value"] for line in found}) == 1
    assert len(found[-1]["line"]) == 10, "play goes on to the end of the game"
    last = found[-1]
    assert last["stage"] == "done" and all(one["exact"] for one in last["edges"])
    assert {one["edge"] for one in last["edges"]} == set(range(12)) - {0, 4}
    best = {one["edge"] for one in last["edges"] if one["lost"] == 0}
    assert best == set(last["exact"]["best"]) and last["best"] in best
    assert min(one["lost"] for one in last["edges"]) == 0
    assert last["win"] + last["draw"] + last["lose"] == pytest.approx(1)


def test_no_number_of_simulations_needs_a_program_of_its_own(monkeypatch, no_position_is_small):
    question = {**GAME, "moves": [0], "simulations": 16, "seconds": 0}
    lines("/api/analyse", question)
    monkeypatch.setattr(single, "kept_program", None)  # nothing can be compiled any more
    assert lines("/api/analyse", {**question, "simulations": 63})[-1]["simulations"] == 63
    assert lines("/api/review", {**GAME, "moves": [0], "simulations": 200})[-1] == {"done": True}
    for level in ("advanced", "master"):
        assert ask("/api/move", {**GAME, "level": level})[0] == 200


def prepare_at(ready: threading.Event, monkeypatch) -> None:
    """Let analyses be prepared at an event."""
    monkeypatch.setattr(server.PREPARATION, "is_done", lambda *_: ready.is_set())
    monkeypatch.setattr(server.PREPARATION, "wanted", lambda *_: nullcontext())


def test_an_analysis_that_waits_for_the_compiler_is_in_nobodys_way(
    monkeypatch, no_position_is_small
):
    ready, found = threading.Event(), []
    prepare_at(ready, monkeypatch)
    question = {**GAME, "moves": [0, 4], "simulations": 0, "seconds": 1}

    async def read(where: desk.Desk) -> None:
        found.append(lines := [])
        async for line in server.lines_in_turn(where, server.analyse(question)):
            lines.append(json.loads(line))

    async def talk() -> None:
        where = desk.Desk()
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for _ in range(2 * desk.AT_ONCE):
                    group.start_soon(read, where)
                while sum(map(len, found)) < 2 * desk.AT_ONCE:
                    await anyio.sleep(0.02)
                assert await where.ask(int, "7") == 7, "others have their turn"
                assert all(len(lines) == 1 and lines[0]["exact"] for lines in found)
                ready.set()

    anyio.run(talk)
    for lines in found:
        assert [line["preparing"] for line in lines] == [True] + [False] * (len(lines) - 1)
        assert lines[1]["stage"] == "policy" and lines[-1]["stage"] == "done"


def test_a_review_says_which_move_lost_how_much():
    # Without safe edges left the fifth move gives a box away for nothing.
    moves = [0, 2, 4, 5, 8, 9, 6]
    found = lines("/api/review", {**GAME, "moves": moves, "simulations": 16})
    assert [line["ply"] for line in found[:-1]] == list(range(len(moves) + 1))
    assert found[-1] == {"done": True} and all(line["exact"] for line in found[:-1])
    for before, after in pairwise(found[:-1]):
        sign = 1 if before["player"] == 0 else -1
        assert before["lost"] == max(0, sign * (before["margin"] - after["margin"]))


def test_games_are_read_and_written():
    said = {"title": "final", "date": "2026-01-31"}
    game = {**GAME, "moves": [3, 1], "names": ["A", "B"], **said}
    for name in FORMATS:
        if name == "ccgc":  # always 5x5
            continue
        text = json.loads(ask("/api/write", {**game, "format": name})[1])["text"]
        found = json.loads(ask("/api/read", {"text": text})[1])
        assert found["format"] == name
        assert sorted(found["start"] + found["moves"]) == [1, 3]
        assert {**found, **said} == found or name == "ascii"
    assert refusal("/api/read", {"text": "# 9x9\nh0,0"}).startswith("text: a 9x9 board")


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ("/api/move", {"rows": 0}, "rows: 0 must be"),
        ("/api/move", {"cols": 8}, "cols: 8 must be"),
        ("/api/move", {"rows": True}, "rows: true must be"),
        ("/api/move", {"moves": [1, 1]}, "moves: edge 1 is drawn twice"),
        ("/api/move", {"moves": [12]}, "moves: 12 must be"),
        ("/api/move", {"moves": list(range(12))}, "moves: the game is over"),
        ("/api/move", {"start": 3}, "start: must be a list"),
        ("/api/move", {"level": "9000"}, "level: '9000' does not exist"),
        ("/api/move", {"seed": -1}, "seed: -1 must be"),
        ("/api/analyse", {"simulations": 10**6}, "simulations: 1000000 must be"),
        ("/api/analyse", {"seconds": 10**6}, "seconds: 1000000 must be"),
        ("/api/review", {"simulations": -1}, "simulations: -1 must be"),
        ("/api/write", {"format": "pdf"}, "pdf"),
        ("/api/write", {"names": [1, 2]}, "names"),
        ("/api/read", {"text": 5}, "text: must be a text"),
    ],
)
def test_what_is_wrong_is_named(path, change, message):
    assert message in refusal(path, {**GAME, **change})


def test_strangers_are_kept_out():
    assert ask("/api/move", GAME, headers=((b"host", b"elsewhere"),))[0] == 400
    foreign = (*OWN, (b"origin", b"http://elsewhere"))
    assert ask("/api/move", GAME, headers=foreign)[0] == 403
    assert ask("/api/move", b" " * (MOST_BYTES + 1))[0] == 413
    for path in ("/../server.py", "/%2e%2e/server.py", "//etc/passwd", "/..\\server.py", "/\0"):
        assert ask(path, method="GET")[0] in (400, 404, 405), path


def test_a_full_queue_refuses(monkeypatch):
    monkeypatch.setattr(desk, "MOST_WAITING", 0)
    status, answer = ask("/api/move", {**GAME, "level": "0"})
    assert status == 503 and "try again later" in json.loads(answer)["error"]
    assert ask("/api/read", {"text": "# 2x2\nh0,0"})[0] == 200, "formats need no engine"


def test_a_full_queue_refuses_a_stream_once(monkeypatch):
    monkeypatch.setattr(desk, "MOST_WAITING", 0)

    async def two_lines() -> list[str | None]:
        stream = lines_in_turn(desk.Desk(), ({"stage": "policy"} for _ in "a"))
        return [await anext(stream, None) for _ in range(2)]

    first, second = anyio.run(two_lines)
    assert "try again later" in json.loads(first)["error"] and second is None


def test_nobody_waits_for_the_programs_of_others(monkeypatch):
    """While a review and two opponents are compiled, other visitors get their moves."""
    compiled, answers = threading.Event(), {}
    monkeypatch.setattr(server, "is_warm", lambda level, _game: level is LEVELS[0])
    monkeypatch.setattr(server, "warm_up", lambda *_: compiled.wait(60))
    prepare_at(compiled, monkeypatch)
    monkeypatch.setattr(server, "judge_exactly", lambda *_: None)
    monkeypatch.setattr(server, "judge_by_search", lambda *_: Verdict(0.0, 1, False))

    async def visit(name: str, path: str, **question: object) -> None:
        status, _ = await send_request(path, {**GAME, **question})
        answers[name] = status, compiled.is_set()

    async def visit_all() -> None:
        async with anyio.create_task_group() as visitors:
            for number in range(2):
                visitors.start_soon(partial(visit, number, "/api/move", level="2"))
                name = f"review {number}"
                visitors.start_soon(partial(visit, name, "/api/review", moves=[0]))
            await anyio.sleep(0.2)
            await visit("quick", "/api/move", level="0")
            compiled.set()

    anyio.run(visit_all)
    assert answers.pop("quick") == (200, False)
    assert set(answers.values()) == {(200, True)}


def test_a_stand_in_moves_while_a_level_compiles_and_the_answer_says_so(monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(server, "warm_up", lambda *_: gate.wait(60))
    monkeypatch.setattr(server, "PATIENCE_FOR_MOVE", 0.1)
    board = {"rows": 4, "cols": 6, "moves": [0]}  # that no other test compiles
    try:
        for level in map(str, range(len(LEVELS))):
            found = json.loads(ask("/api/move", {**board, "level": level})[1])
            assert found["by"] == "rules" and set(found["edges"]).isdisjoint(board["moves"])
        assert json.loads(ask("/api/move", {**GAME, "level": "8"})[1])["by"] == "exact"
        assert json.loads(ask("/api/warm", {**GAME, "level": "8"})[1]) == {"ready": True}
    finally:
        gate.set()


HOSTILE = (
    *(None, True, -1, 0, 1.5, 2, 10**30, "", "2", "\0", "h0,0", "../../etc/passwd", "\uff19"),
    *([], [[]], [None], [-1], ["0"], {}, {"rows": {}}, [0] * 99, "x" * 2000, "{" * 500),
)
PATHS = ("warm", "move", "read", "write", "analyse", "review")
FIELDS = ("rows", "cols", "start", "moves", "level", "seed", "text", "format", "names", "seconds")


def hostile_question(rng: random.Random) -> tuple[str, object]:
    """Return a path and a question that is wrong somewhere, or not a question at all."""
    path = "/api/" + rng.choice(PATHS)
    body: object = {**GAME, "level": "0", "simulations": 16, "seconds": 0}
    for _ in range(rng.randint(1, 4)):
        body[rng.choice((*FIELDS, "simulations"))] = rng.choice(HOSTILE)
    if rng.random() < 0.2:
        body = rng.choice(HOSTILE)
    data = json.dumps(body).encode()
    if rng.random() < 0.3:
        place = rng.randrange(len(data) + 1)
        data = data[:place] + rng.randbytes(rng.randint(0, 5)) + data[place + rng.randint(0, 3) :]
    return path, data


@pytest.mark.parametrize(
    "count", [1000, pytest.param(20_000, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_hostile_questions_get_an_answer(count, monkeypatch):
    # The engine stands aside: what it plays is tested above.
    monkeypatch.setattr(server, "warm_up", lambda *_: None)
    monkeypatch.setattr(server, "play_level", lambda _level, record, _seed: (record, None))
    monkeypatch.setattr(server, "analyses_of", lambda *_: iter(()))
    monkeypatch.setattr(server, "judge_exactly", lambda *_: Verdict(0.0, 0, True))
    rng, kinds = random.Random(count), {}
    for _ in range(count):
        path, data = hostile_question(rng)
        status, answer = ask(path, data)
        assert status in (200, 400), (path, data, status, answer)
        if status == 400:
            assert len(json.loads(answer)["error"]) < 400
        kinds[status] = kinds.get(status, 0) + 1
    assert min(kinds.values()) > count / 20
