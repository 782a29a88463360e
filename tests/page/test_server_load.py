"""Test the real server with fifty parallel games: no error, no mix-up; print the time of a turn.

`pytest -m slow -s tests/page/test_server_load.py` prints the number for docs/playing.md.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection

import numpy as np
import pytest
from script_runner import ROOT

pytest.importorskip("starlette", reason="needs the extra jaxzero[web]")

from jaxzero.game import DotsAndBoxes
from jaxzero.game.records import RecordedGame
from jaxzero.play.game import draw_turn

GAMES, BOARD = 50, DotsAndBoxes(3, 3)
LEVELS = ("2", "3", "5", "6")  # greedy, two policies, a search; a game keeps its level
PATIENCE = 600  # seconds for an answer: programs compile


@pytest.fixture(scope="module")
def port():
    """Yield the port of a server in its own process."""
    script = [sys.executable, "-u", "scripts/play.py", "--web", "--port", "0"]
    # As users run it, with the compiler optimisations that the tests turn off.
    ours = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS")
    env = {name: value for name, value in os.environ.items() if name not in ours}
    with subprocess.Popen(script, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as server:
        yield int(server.stdout.readline().split(":")[2].split("/")[0])
        server.terminate()


def ask(port: int, path: str, **question: object) -> dict:
    """Return the last line of an answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    question |= {"rows": BOARD.rows, "cols": BOARD.cols}
    connection.request("POST", f"/api/{path}", json.dumps(question))
    response = connection.getresponse()
    found = response.read()
    assert response.status == 200, (path, question, response.status, found)
    connection.close()
    return json.loads(found.splitlines()[-1])


def turn(port: int, game: RecordedGame, number: int) -> list[int]:
    level = LEVELS[number % len(LEVELS)]
    return ask(port, "move", moves=game.moves, level=level, seed=number)["edges"]


def play(port: int, number: int) -> list[tuple[RecordedGame, list[int], float]]:
    """Play one game against the server; return every turn of the engine and its seconds."""
    rng, game, turns = random.Random(number), RecordedGame(BOARD.rows, BOARD.cols), []
    while not game.is_over:
        game = draw_turn(game, lambda now: rng.choice(np.flatnonzero(~now.drawn).tolist()))
        if not game.is_over:
            began = time.perf_counter()
            edges = turn(port, game, number)
            turns.append((game, edges, time.perf_counter() - began))
            drawing = iter(edges)  # raises if an edge of another game is already drawn
            game = draw_turn(game, lambda _, drawing=drawing: next(drawing))
            assert next(drawing, None) is None, "an engine draws one turn"
    return turns


@pytest.mark.slow
def test_fifty_games_at_once(port):
    for level in LEVELS:
        ask(port, "warm", level=level)
    with ThreadPoolExecutor(GAMES + 1) as threads:
        thought = threads.submit(ask, port, "analyse", simulations=16, seconds=1)
        games = list(threads.map(partial(play, port), range(GAMES)))
        assert thought.result()["stage"] == "done"
    rng = random.Random(0)
    for number in rng.sample(range(GAMES), 10):  # the same questions, one at a time
        for game, edges, _ in rng.sample(games[number], 2):
            assert turn(port, game, number) == edges
    seconds = [seconds for turns in games for *_, seconds in turns]
    print(f"\n{GAMES} games of {BOARD} at once: {np.median(seconds):.2f} s a turn (median)")
