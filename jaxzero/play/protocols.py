"""What programs say to an engine, and what it answers, line by line.

    gtp      commands and answers like those of the Go Text Protocol
    sau      the SAU game platform 2.1, which the Chinese collegiate competition uses
    botzone  lines of JSON, as on botzone.org.cn

A line that cannot be understood gets an answer that says why; the game stays as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from jaxzero import __version__
from jaxzero.config import GameConfig
from jaxzero.errors import InputError, nearest
from jaxzero.game import DotsAndBoxes, edge_name, parse_edge, render
from jaxzero.play import LONGEST_CLOCK
from jaxzero.play.analysis import analyse
from jaxzero.play.analysis_report import to_json
from jaxzero.play.engine import Clock, Session
from jaxzero.play.game import Record
from jaxzero.runs.resize import resize

Protocol = Callable[[Session, str], list[str]]  # one line to the lines of the answer

ANALYSIS_SIMULATIONS = 256
KEEP_RUNNING = ">>>BOTZONE_REQUEST_KEEP_RUNNING<<<"


def gtp(engine: Session, line: str) -> list[str]:
    """Answer a command of the text protocol: `= ANSWER` or `? WHY NOT`, then an empty line."""
    number, _, rest = line.strip().partition(" ")
    if not number.isdecimal():
        number, rest = "", line.strip()
    words = rest.split("#")[0].split()
    if not words:
        return []
    name, *arguments = words
    try:
        if name not in GTP:
            raise InputError(f"{name[:40]}: unknown command{nearest(name[:40], GTP)}")
        return [f"={number} {GTP[name](engine, arguments)}".rstrip() + "\n"]
    except ValueError as error:
        return [f"?{number} {error}\n"]


def _quit(engine: Session, arguments: list[str]) -> str:
    engine.done = True
    return ""


def _only(arguments: list[str], count: int, example: str) -> list[str]:
    if len(arguments) != count:
        raise InputError(f"arguments: {' '.join(arguments)[:40]!r} must be {example}")
    return arguments


def _new_game(engine: Session, arguments: list[str]) -> str:
    if not arguments:
        engine.new_game()
        return ""
    sides = arguments * 2 if len(arguments) == 1 else _only(arguments, 2, "rows and columns")
    if not all(side.isdecimal() and len(side) < 4 for side in sides):
        raise InputError(f"new_game: {' '.join(arguments)[:40]!r} must be rows and columns")
    engine.new_game(GameConfig(*map(int, sides)).board)
    engine.get_ready()  # before the answer: no clock runs yet
    return ""


def _play(engine: Session, arguments: list[str]) -> str:
    record = engine.record
    for name in arguments or _only([], 1, "edges, such as h0,1"):
        record = record.draw(parse_edge(engine.game, name))
    engine.record = record
    return ""


def _genmove(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    return " ".join(edge_name(engine.game, edge) for edge in engine.play_turn())


def _undo(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    if not engine.record.moves:
        raise InputError("undo: there is no move to take back")
    engine.record = engine.record.cut(len(engine.record.moves) - 1)
    return ""


def _showboard(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    record = engine.record
    marks = {box: "AB"[owner] for box, owner in record.owners.items()}
    first, second = record.score
    state = "over" if record.is_over else f"{'AB'[record.player]} to move"
    # An empty line would end the answer.
    lines = (line or "." for line in render(record.game, record.drawn, marks).splitlines())
    board = "\n".join(lines)
    return f"\n{board}\nA {first} : {second} B, {state}"


def _time_left(engine: Session, arguments: list[str]) -> str:
    (text,) = _only(arguments, 1, "seconds")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_CLOCK:
        raise InputError(f"time_left: {text[:40]!r} must be seconds from 0 to {LONGEST_CLOCK:g}")
    engine.clock = Clock(seconds)
    return ""


def _analyze(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    record = engine.record
    agent = resize(engine.agent, engine.game, "board: this network")
    found = analyse(agent, record.drawn, record.margin, ANALYSIS_SIMULATIONS, engine.seconds)
    return json.dumps(to_json(found))


def _score(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    return "{} {}".format(*engine.record.score)


GTP: dict[str, Callable[[Session, list[str]], str]] = {
    "protocol_version": lambda _engine, _arguments: "2",
    "name": lambda _engine, _arguments: "jaxzero",
    "version": lambda _engine, _arguments: __version__,
    "list_commands": lambda _engine, _arguments: "\n".join(GTP),
    "known_command": lambda _engine, words: str(bool(words) and words[0] in GTP).lower(),
    "new_game": _new_game,
    "clear_board": _new_game,
    "boardsize": _new_game,
    "play": _play,
    "genmove": _genmove,
    "undo": _undo,
    "showboard": _showboard,
    "time_left": _time_left,
    "analyze": _analyze,
    "score": _score,
    "quit": _quit,
}


def sau(engine: Session, line: str) -> list[str]:
    """Answer a line of the SAU platform; a whole turn, captures and all, is one message."""
    try:
        match line.split():
            case [] | ["error", *_]:  # after an error of the platform there is nothing to answer
                return []
            case ["name?"]:
                return ["name jaxzero"]
            case ["new", "black" | "white" as colour]:
                engine.new_game()
                engine.plays = 0 if colour == "black" else 1
            case ["move", *said]:
                take_turn(engine, sau_edges(engine.game, said))
            case ["end", *_]:
                engine.new_game()
                return []
            case ["quit"]:
                engine.done = True
                return []
            case _:
                raise InputError(f"line: {line.strip()[:60]!r} is none of the protocol's")
    except ValueError as error:
        return [f"error {error}"]
    record = engine.record
    if record.is_over or record.player != engine.plays:
        return []
    return [sau_message(engine.game, engine.play_turn())]


def take_turn(engine: Session, edges: list[int]) -> None:
    """Draw the opponent's whole turn, or nothing where it is not one. Raises: InputError."""
    record, plays = engine.record, engine.plays
    if plays is None:
        raise InputError("move: no game has begun")
    for edge in edges:
        if record.player == plays or record.is_over:
            raise InputError(
                f"move: {edge_name(engine.game, edge)} comes after the turn has passed"
            )
        record = record.draw(edge)
    if record.player != plays and not record.is_over:
        raise InputError("move: the turn has not passed; captures go on in the same message")
    engine.record = record


def sau_message(game: DotsAndBoxes, edges: list[int]) -> str:
    """Return the message of a turn, such as `move 2 AABBCA`."""
    return f"move {len(edges)} {''.join(sau_name(game, edge) for edge in edges)}"


def sau_name(game: DotsAndBoxes, edge: int) -> str:
    """Return three letters: A, row, column of a horizontal edge; B, column, row of a vertical."""
    if edge < game.num_horizontal:
        row, col = divmod(edge, game.cols)
        return "A" + chr(65 + row) + chr(65 + col)
    row, col = divmod(edge - game.num_horizontal, game.cols + 1)
    return "B" + chr(65 + col) + chr(65 + row)


def sau_edges(game: DotsAndBoxes, said: list[str]) -> list[int]:
    """Return the edges of a message without its first word. Raises: InputError."""
    names = {sau_name(game, edge): edge for edge in range(game.num_edges)}
    if len(said) != 2 or not said[0].isdecimal() or len(said[1]) != 3 * int(said[0]):
        raise InputError(f"move: {' '.join(said)[:60]!r} must be a number and as many edges")
    parts = [said[1][i : i + 3] for i in range(0, len(said[1]), 3)]
    for part in parts:
        if part not in names:
            raise InputError(f"move: {part!r} is no edge of a {game} board")
    return [names[part] for part in parts]


def botzone(engine: Session, line: str) -> list[str]:
    """Answer a line of JSON: all requests and responses of a game so far, or the next request.

    A place is a square of the lattice of dots and edges, x and y from 0 to twice the boxes. Who is
    asked although the other side moves answers with the place -1, -1.
    """
    if not line.strip():
        return []
    x = y = -1
    try:
        _take_in(engine, _json(line))
        record = engine.record
        if record.player == engine.plays and not record.is_over:
            edge = engine.decide()
            engine.draw(edge)
            x, y = _square(engine.game, edge)
        said = {"response": {"x": x, "y": y}}
    except ValueError as error:
        said = {"response": {"x": x, "y": y}, "debug": str(error)}
    return [json.dumps(said), KEEP_RUNNING]


def _take_in(engine: Session, said: dict[str, Any]) -> None:
    """Draw what a line says was drawn, all of it or nothing. Raises: InputError."""
    game, record, plays = engine.game, engine.record, engine.plays
    if "requests" in said:
        record, (requests, responses) = Record(game), _history(said)
        places = [_place(game, request) for request in requests]
        plays = 0 if places[0] is None else 1
        own = [_place(game, response) for response in responses[: len(places)]]
        turns = zip_longest(places, own)
        # The other side's edge, then the engine's own.
        edges = [
            (edge, who)
            for turn in turns
            for edge, who in zip(turn, (1 - plays, plays), strict=True)
        ]
    else:
        place = _place(game, said)
        if plays is None:
            plays = 0 if place is None else 1
        edges = [(place, 1 - plays)]
    for edge, who in edges:
        if edge is not None and record.player != who:
            raise InputError(f"{edge_name(game, edge)}: the other side was to move")
        record = record if edge is None else record.draw(edge)
    if record.moves[: len(engine.record.moves)] != engine.record.moves:
        engine.new_game()  # another game, with a full clock
    engine.record, engine.plays = record, plays


def _history(said: dict[str, Any]) -> tuple[list, list]:
    requests, responses = said["requests"], said.get("responses", [])
    if not (isinstance(requests, list) and isinstance(responses, list) and requests):
        raise InputError("requests: must be a list with at least one request")
    return requests, responses


def _json(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError("line: is not JSON") from error
    if not isinstance(found, dict):
        raise InputError("line: must be a JSON object")
    return found


def _place(game: DotsAndBoxes, said: Any) -> int | None:
    """Return the edge at a place, None for a pass. Raises: InputError."""
    x, y = (said.get(name) for name in "xy") if isinstance(said, dict) else (None, None)
    if x == -1 and y == -1:
        return None
    whole = all(type(number) is int for number in (x, y))
    if not (whole and 0 <= x <= 2 * game.rows and 0 <= y <= 2 * game.cols and (x + y) % 2):
        raise InputError(f"x, y: {json.dumps([x, y])[:60]} is no edge of a {game} board")
    if y % 2:
        return x // 2 * game.cols + y // 2
    return game.num_horizontal + x // 2 * (game.cols + 1) + y // 2


def _square(game: DotsAndBoxes, edge: int) -> tuple[int, int]:
    if edge < game.num_horizontal:
        row, col = divmod(edge, game.cols)
        return 2 * row, 2 * col + 1
    row, col = divmod(edge - game.num_horizontal, game.cols + 1)
    return 2 * row + 1, 2 * col


PROTOCOLS: dict[str, Protocol] = {"gtp": gtp, "sau": sau, "botzone": botzone}
