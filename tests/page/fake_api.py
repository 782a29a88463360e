"""The server of the page with a simple player and made-up numbers instead of the engines.

Run it to work on the page: `python tests/page/fake_api.py 8000 0.3`, 0.3 seconds between lines.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import uvicorn

from jaxzero.game import DotsAndBoxes, box_neighbours, count_sides
from jaxzero.game.records import RecordedGame
from jaxzero.host.background import Programs
from jaxzero.page import answers
from jaxzero.page.server import make_app
from jaxzero.play import review
from jaxzero.play.analysis import Analysis, Chain, EdgeFacts
from jaxzero.play.game import draw_turn

FINAL = ((-3, 0.1), (-1, 0.2), (1, 0.4), (3, 0.2), (5, 0.1))  # margin to come, probability


def boxes_beside(game: RecordedGame, drawn_sides: int) -> np.ndarray:
    """Count the boxes beside every edge that have `drawn_sides` drawn sides: [A]."""
    sides = count_sides(game.board, game.drawn)
    sides[-1] = 0  # the outside
    return (sides[box_neighbours(game.board)] == drawn_sides).sum(axis=1)


def losses(game: RecordedGame) -> dict[int, int]:
    """Return what every undrawn edge loses: boxes not taken, plus twice the boxes given away."""
    free, taken, given = ~game.drawn, boxes_beside(game, 3), boxes_beside(game, 2)
    lost = taken[free].max() - taken + 2 * given * (taken == 0)
    return {edge: int(lost[edge]) for edge in np.flatnonzero(free)}


def best_edge(game: RecordedGame) -> int:
    lost = losses(game)
    return int(min(lost, key=lost.get))


def play(_level, game: RecordedGame, _seed) -> RecordedGame:
    return draw_turn(game, best_edge)


def think(board: DotsAndBoxes, drawn: np.ndarray, _simulations) -> SimpleNamespace:
    game = RecordedGame(board.rows, board.cols, tuple(np.flatnonzero(drawn).tolist()))
    takes = boxes_beside(game, 3)[~drawn].max()
    return SimpleNamespace(edge=best_edge(game), value=takes)


def analyses(
    board: DotsAndBoxes, drawn: np.ndarray, ahead: int, delay: float
) -> Iterator[Analysis]:
    """Yield made-up analyses; with at most 12 undrawn edges the last one is exact."""
    game = RecordedGame(board.rows, board.cols, tuple(np.flatnonzero(drawn).tolist()))
    if game.is_over:
        return
    lost, given = losses(game), boxes_beside(game, 2)
    kinds = np.array(["safe", "half-hearted", "loony"])[given]
    kinds[boxes_beside(game, 3) > 0] = "takes"
    quiet = np.flatnonzero(count_sides(board, drawn)[:-1] == 2).tolist()
    rules = {
        "chains": tuple(Chain((box,), "chain", ()) for box in quiet),
        "safe": int(np.sum(given[~drawn] == 0)),
        "declined": 2,
        "final": tuple((ahead + margin, chance) for margin, chance in FINAL),
        "best": best_edge(game),
        "line": draw_turn(game, best_edge).moves,
        "lines": tuple((int(edge),) for edge in sorted(lost, key=lost.get)[:3]),
    }
    stages = [("structure", 0), ("policy", 1), ("search", 64), ("search", 256), ("exact", 256)]
    for stage, simulations in stages if len(lost) < 13 else stages[:-1]:
        exact = stage == "exact"
        edges = []
        for edge, loss in lost.items():
            known = {} if stage == "structure" else {"value": 1.3 - loss, "lost": loss}
            facts = {"prior": 1 / len(lost), "visits": simulations // (1 + 4 * loss)}
            edges.append(EdgeFacts(int(edge), str(kinds[edge]), **facts, **known, exact=exact))
        value, bounds = None if stage == "structure" else 1.3, (1, 1) if exact else None
        yield Analysis(
            stage, tuple(edges), simulations=simulations, value=value, bounds=bounds, **rules
        )
        time.sleep(delay)


def searched(board: DotsAndBoxes, drawn: np.ndarray, _simulations) -> Analysis:
    return [*analyses(board, drawn, 0, 0.0)][-1]


@contextmanager
def serve(port: int = 0, delay: float = 0.0) -> Iterator[str]:
    """Run the server in its own thread during a block; yield the address of the page."""
    listening = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(make_app(), log_level="error", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    running = threading.Thread(target=server.run, args=([listening],), daemon=True)
    engines = {"play_level": play, "agent_of": lambda board: board}
    of_reviews = patch.multiple(review, choose_edge=think, prove=lambda *_: None, searched=searched)
    engines["stages"] = lambda board, drawn, ahead, *_: analyses(board, drawn, ahead, delay)
    compiled = patch.object(Programs, "ready", True)
    with patch.multiple(answers, **engines), of_reviews, compiled:
        running.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        server.should_exit = True
        running.join()


if __name__ == "__main__":
    with serve(int(sys.argv[1]), float(sys.argv[2])):
        threading.Event().wait()
