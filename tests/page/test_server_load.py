"""The real server under fifty games at once: no error, no mix-up, and what it takes (printed).

`pytest -m slow -s tests/page/test_server_load.py` prints the figures of docs/playing.md.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra jaxzero[web]")

from jaxzero.game import DotsAndBoxes
from jaxzero.play.game import Record

ROOT = Path(__file__).parents[2]
GAMES, BOARD = 50, DotsAndBoxes(3, 3)
LEVELS = ("2", "3", "5", "6")  # greedy, two policies, a search; a game keeps its level
PATIENCE = 600  # seconds for an answer: programs compile


@pytest.fixture(scope="module")
def port():
    """The port of a server in a process of its own."""
    script = [sys.executable, "-u", "scripts/play.py", "--web", "--port", "0"]
    # As people run it: the tests turn the optimisations of the compiler off.
    ours = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS")
    env = {name: value for name, value in os.environ.items() if name not in ours}
    with subprocess.Popen(script, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as server:
        yield int(server.stdout.readline().split(":")[2].split("/")[0])
        server.terminate()


class Client:
    """One visitor with one connection, who notes how long answers took."""

    def __init__(self, port: int):
        self.connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.seconds: list[float] = []

    def request(self, method: str, path: str, question: dict | None = None) -> bytes:
        body = None if question is None else json.dumps(question)
        start = time.perf_counter()
        self.connection.request(method, path, body)
        response = self.connection.getresponse()
        found = response.read()
        self.seconds.append(time.perf_counter() - start)
        assert response.status == 200, (path, question, response.status, found)
        return found

    def turn(self, record: Record, level: str, seed: int) -> list[int]:
        question = {"rows": BOARD.rows, "cols": BOARD.cols, "moves": record.moves}
        question |= {"level": level, "seed": seed}
        return json.loads(self.request("POST", "/api/move", question))["edges"]


def play(port: int, number: int) -> tuple[Client, list[tuple[Record, list[int]]]]:
    """Play one game against the server; return its client and every turn of the engine."""
    client, rng = Client(port), random.Random(number)
    record, level, turns = Record(BOARD), LEVELS[number % len(LEVELS)], []
    while not record.is_over:
        before = record
        record = record.draw(rng.choice(np.flatnonzero(~record.drawn).tolist()))
        if record.is_over or record.player == before.player:
            continue
        asked, mover = record, record.player
        edges = client.turn(asked, level, number)
        turns.append((asked, edges))
        for edge in edges:
            assert record.player == mover, "an engine draws one turn"
            record = record.draw(edge)  # raises for an edge of another game that is drawn in this
        assert record.is_over or record.player != mover, "and the whole turn"
    return client, turns


def figures(name: str, seconds: list[float]) -> str:
    median, most = (1000 * np.quantile(seconds, share) for share in (0.5, 0.95))
    return f"{name:<28} {len(seconds):>5} {median:>8.0f} ms {most:>8.0f} ms"


@pytest.mark.slow
def test_fifty_games_at_once(port):
    prepare, page, thinker = Client(port), Client(port), Client(port)
    started = time.perf_counter()
    for level in LEVELS:
        question = {"rows": BOARD.rows, "cols": BOARD.cols, "level": level}
        prepare.request("POST", "/api/warm", question)
    compiled = time.perf_counter() - started

    over = threading.Event()

    def browse() -> None:
        while not over.is_set():
            assert page.request("GET", "/app.js").startswith(b"/**")
            time.sleep(0.05)

    def analyse() -> None:
        question = {"rows": BOARD.rows, "cols": BOARD.cols, "simulations": 16, "seconds": 1}
        for _ in range(5):
            lines = thinker.request("POST", "/api/analyse", question).splitlines()
            assert json.loads(lines[-1])["stage"] == "done"

    with ThreadPoolExecutor(GAMES + 2) as threads:
        watcher, thought = threads.submit(browse), threads.submit(analyse)
        try:
            games = list(threads.map(play, [port] * GAMES, range(GAMES)))
            thought.result()
        finally:
            over.set()  # else a failed game would leave it browsing
        watcher.result()

    alone, rng = Client(port), random.Random(0)
    for number in rng.sample(range(GAMES), 10):  # the same questions, one at a time
        for record, edges in rng.sample(games[number][1], 2):
            assert alone.turn(record, LEVELS[number % len(LEVELS)], number) == edges

    moves = [second for client, _ in games for second in client.seconds]
    print(f"\n{GAMES} games of {BOARD} at once; compiling took {compiled:.1f} s before them")
    print(f"{'':<28} {'asked':>5} {'median':>11} {'95 %':>11}")
    print(figures("page asset", page.seconds))
    print(figures("turn of the engine", moves))
    print(figures("turn, nobody else", alone.seconds))
    first, *later = thinker.seconds
    print(figures("first analysis: it compiles", [first]))
    print(figures("another analysis", later))
