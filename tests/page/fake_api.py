"""A small stand-in for the server of the page: the same API, a simple player, made-up numbers.

Run it to work on the page: `python tests/page/fake_api.py 8000 0.3`; 0.3 seconds between lines.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = Path(__file__).parents[2] / "jaxzero" / "page" / "web"
POLICY = "default-src 'self'"  # as strict as the real server: the page must live with it
TRAINED = ((2, 2), (2, 3), (3, 3), (4, 4), (5, 5))
FORMATS = ["openspiel", "numbers", "sau", "codingame", "ccgc", "ascii", "json"]
INFO = {
    "version": "0.0.0",
    "boards": [{"rows": r, "cols": c, "name": f"{r}x{c}", "trained": True} for r, c in TRAINED]
    + [{"rows": 6, "cols": 6, "name": "6x6", "trained": False}],
    "sizes": {"min": 1, "max": 7},
    "default": {"rows": 5, "cols": 5},
    "levels": [{"id": str(n), "name": f"Level {n}"} for n in range(9)],
    "formats": FORMATS,
    "ready": ["3x3"],
}


class Position:
    """A game replayed in plain Python."""

    def __init__(self, game: dict):
        self.rows, self.cols = game["rows"], game["cols"]
        self.edges = (self.rows + 1) * self.cols + self.rows * (self.cols + 1)
        self.drawn = set(game["start"])
        self.player, self.margin = 0, 0  # side to move; score of player 0 minus player 1
        for edge in game["moves"]:
            if edge in self.drawn or not 0 <= edge < self.edges:
                raise ValueError(f"moves: edge {edge} cannot be drawn")
            self.draw(edge)

    def sides(self, row: int, col: int) -> set[int]:
        first, width = (self.rows + 1) * self.cols, self.cols + 1
        top = row * self.cols + col
        left = first + row * width + col
        return {top, top + self.cols, left, left + 1}

    def boxes(self) -> list[set[int]]:
        return [self.sides(r, c) for r in range(self.rows) for c in range(self.cols)]

    def closes(self, edge: int) -> int:
        return sum(edge in box and box - self.drawn == {edge} for box in self.boxes())

    def gives(self, edge: int) -> int:
        return sum(edge in box and len(box - self.drawn) == 2 for box in self.boxes())

    def draw(self, edge: int) -> bool:
        closed = self.closes(edge)
        self.drawn.add(edge)
        self.margin += closed * (1 - 2 * self.player)
        self.player ^= closed == 0
        return closed > 0

    def free(self) -> list[int]:
        return [edge for edge in range(self.edges) if edge not in self.drawn]

    def best(self) -> int:
        return min(self.free(), key=lambda edge: (-self.closes(edge), self.gives(edge), edge))

    def lost(self, edge: int) -> float:
        takes = max(map(self.closes, self.free()))
        return float(takes - self.closes(edge) + (0 if self.closes(edge) else 2 * self.gives(edge)))


def turn(position: Position) -> list[int]:
    edges: list[int] = []
    while position.free():
        edges.append(position.best())
        if not position.draw(edges[-1]):
            break
    return edges


def chains(position: Position) -> list[dict]:
    """Call boxes with two drawn sides chains of one: enough to be looked at."""
    quiet = [n for n, box in enumerate(position.boxes()) if len(box - position.drawn) == 2]
    groups: list[list[int]] = []
    for box in quiet:
        beside = position.boxes()[box] - position.drawn
        near = [g for g in groups if any(beside & position.boxes()[b] - position.drawn for b in g)]
        groups = [g for g in groups if g not in near] + [[box, *(b for g in near for b in g)]]
    return [{"boxes": g, "kind": "chain", "length": len(g), "free": False} for g in groups]


def analysis(game: dict) -> Iterator[dict]:
    position = Position(game)
    sign = 1 - 2 * position.player
    value = 1.3 if position.free() else 0.0
    structure = {
        "chains": chains(position),
        "safe": sum(not position.gives(edge) for edge in position.free()),
        "long": sum(chain["length"] > 2 for chain in chains(position)),
        "control": "mover",
    }
    last = {"exact": {"value": 1, "best": [position.best()]} if len(position.free()) < 13 else None}
    for stage, simulations in (("structure", 0), ("policy", 1), ("search", 64), ("search", 256)):
        line = position_line(position, stage, simulations, value, sign)
        yield line | {"structure": structure, "preparing": stage == "structure"}
    stage = "exact" if last["exact"] else "done"
    line = position_line(position, stage, 256, value, sign)
    yield line | {"structure": structure} | last


def position_line(position: Position, stage: str, simulations: int, value: float, sign: int):
    known = stage != "structure"
    edges = [
        {
            "edge": edge,
            "prior": 1 / len(position.free()),
            "visits": simulations // (1 + int(4 * position.lost(edge))),
            "value": value - position.lost(edge) if known else None,
            "lost": position.lost(edge) if known else None,
            "exact": stage == "exact",
            "class": edge_class(position, edge),
        }
        for edge in position.free()
    ]
    margin = position.margin * sign
    return {
        "stage": stage,
        "simulations": simulations,
        "value": value if known else None,
        "final": [[margin + d, p] for d, p in ((-3, 0.1), (-1, 0.2), (1, 0.4), (3, 0.2), (5, 0.1))],
        "win": 0.7,
        "draw": 0.0,
        "lose": 0.3,
        "edges": edges,
        "line": turn(Position({**vars_of(position)}))[:6],
        "exact": None,
    }


def vars_of(position: Position) -> dict:
    drawn = sorted(position.drawn)
    return {"rows": position.rows, "cols": position.cols, "start": drawn, "moves": []}


def edge_class(position: Position, edge: int) -> str:
    if position.closes(edge):
        return "takes"
    return ("safe", "half-hearted", "loony")[min(2, position.gives(edge))]


def review(game: dict) -> Iterator[dict]:
    for ply in range(len(game["moves"]) + 1):
        position = Position({**game, "moves": game["moves"][:ply]})
        line = {"ply": ply, "player": position.player, "margin": position.margin, "exact": False}
        if ply < len(game["moves"]):
            line |= {"lost": position.lost(game["moves"][ply]), "best": position.best()}
        yield line
    yield {"done": True}


def read(text: str) -> dict:
    from jaxzero.game.notation import format_of, read_game  # takes a second, and only here

    return {"format": format_of(text), **read_game(text).to_json()}


def write(body: dict) -> dict:
    from jaxzero.game.notation import write_game
    from jaxzero.game.recorded import RecordedGame

    start, moves = tuple(body["start"]), tuple(body["moves"])
    said = body["names"], body.get("title", ""), body.get("date", "")
    game = RecordedGame(body["rows"], body["cols"], start, moves, *said)
    return {"text": write_game(game, body["format"])}


class Handler(SimpleHTTPRequestHandler):
    """Serve the page and the API; `server.delay` is the time in seconds between lines."""

    def __init__(self, *args):
        super().__init__(*args, directory=str(PAGE))

    def end_headers(self):
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_):
        pass

    def answer(self, value: dict, status: int = 200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        with suppress(OSError):  # the page has moved on
            self.end_headers()
            self.wfile.write(body)

    def stream(self, lines: Iterator[dict]):
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        with suppress(OSError):  # the page has moved on
            self.end_headers()
            for line in lines:
                self.wfile.write(json.dumps(line).encode() + b"\n")
                self.wfile.flush()
                time.sleep(self.server.delay)

    def do_GET(self):
        if self.path == "/api/info":
            self.answer(INFO)
        else:
            super().do_GET()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = self.path.removeprefix("/api/")
        try:
            self.route(name, body)
        except ValueError as error:
            self.answer({"error": str(error)}, 400)

    def route(self, name: str, body: dict):
        if name in ("analyse", "review"):
            return self.stream({"analyse": analysis, "review": review}[name](body))
        time.sleep(self.server.delay)
        if name == "warm":
            self.answer({"ready": True})
        elif name == "move":
            self.answer({"edges": turn(Position(body))})
        elif name == "read":
            self.answer(read(body["text"]))
        elif name == "write":
            self.answer(write(body))


def serve(port: int = 0, delay: float = 0.0) -> ThreadingHTTPServer:
    """Start the server in a thread of its own; `server_address` tells the port."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.delay = delay
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    serve(int(sys.argv[1]), float(sys.argv[2]))
    threading.Event().wait()
