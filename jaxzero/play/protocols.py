"""What programs say to an engine, and what it answers, line by line.

    gtp      commands and answers like those of the Go Text Protocol
    sau      the SAU game platform 2.1, which the Chinese collegiate competition uses
    botzone  lines of JSON, as on botzone.org.cn

A line that cannot be understood gets an answer that says why; the game stays as it was.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import islice, takewhile, zip_longest
from typing import Any

import numpy as np

from jaxzero import __version__
from jaxzero.config import GameConfig
from jaxzero.errors import InputError, nearest, one_line, shortened
from jaxzero.game import DotsAndBoxes, edge_name, parse_edge, render
from jaxzero.play import LONGEST_CLOCK
from jaxzero.play.analysis import analyse
from jaxzero.play.analysis_report import to_json
from jaxzero.play.engine import Clock, Session
from jaxzero.play.game import Record
from jaxzero.runs.resize import resize

Protocol = Callable[[Session, str], list[str]]  # one line to the lines of the answer

ANALYSIS_SIMULATIONS = 256
MOST_KOMI = 1000.0
COLOURS = ("b", "w")  # of the first and of the second player
PLAYERS = {"b": 0, "black": 0, "w": 1, "white": 1}
SAU_WORDS = {"name?": 1, "new": 2, "move": 3, "error": 1, "end": 1, "quit": 1}  # first: number
KEEP_RUNNING = ">>>BOTZONE_REQUEST_KEEP_RUNNING<<<"


def gtp(engine: Session, line: str) -> list[str]:
    """Answer a command of the text protocol: `= ANSWER` or `? WHY NOT`, then an empty line.

    A number before a command comes back with its answer. A line without words, as one that only
    comments, has no answer. The colours b and w are the first and the second player.
    """
    words, number = _plain(line).split("#")[0].split(), ""
    if not words:
        return []
    if re.fullmatch("[0-9]{1,20}", words[0]):
        number = words.pop(0)
    try:
        name, *arguments = words or [""]
        if name not in GTP:
            raise InputError(f"{shortened(repr(name))} is no command{nearest(name, GTP)}")
        return [f"={number} {GTP[name](engine, arguments)}".rstrip() + "\n"]
    except ValueError as error:
        return [f"?{number} {one_line(str(error))}\n"]


def _plain(line: str) -> str:
    """Return a line without control characters, as a byte order mark or the end of a line."""
    return "".join(sign for sign in line if sign.isprintable() or sign.isspace())


def _quit(engine: Session, arguments: list[str]) -> str:
    engine.done = True
    return ""


def _only(arguments: list[str], count: int, example: str) -> list[str]:
    if len(arguments) != count:
        raise InputError(f"arguments: {shortened(repr(' '.join(arguments)))} must be {example}")
    return arguments


def _of_player(engine: Session, arguments: list[str]) -> tuple[int | None, list[str]]:
    """Return the player whose colour comes first, None where there is none, and the rest."""
    player = PLAYERS.get(arguments[0].lower()) if arguments else None
    return player, arguments[player is not None :]


def _check_turn(record: Record, player: int | None) -> None:
    if player not in (None, record.player) and not record.is_over:
        raise InputError(f"turn: {COLOURS[player]} is not to move, {COLOURS[record.player]} is")


def _clear_board(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    engine.new_game()
    return ""


def _boardsize(engine: Session, arguments: list[str]) -> str:
    sides = arguments * 2 if len(arguments) == 1 else _only(arguments, 2, "rows and columns")
    if not all(re.fullmatch("[0-9]{1,3}", side) for side in sides):
        raise InputError(f"size: {shortened(repr(' '.join(arguments)))} must be rows and columns")
    engine.new_game(GameConfig(*map(int, sides)).board)
    engine.get_ready()  # before the answer: no clock runs yet
    return ""


def _new_game(engine: Session, arguments: list[str]) -> str:
    return (_boardsize if arguments else _clear_board)(engine, arguments)


def _play(engine: Session, arguments: list[str]) -> str:
    player, names = _of_player(engine, arguments)
    record = engine.record
    for name in names or _only(names, 1, "edges, such as h0,1"):
        _check_turn(record, player)
        record = record.draw(parse_edge(engine.game, name))
    engine.go_on(record)
    return ""


def _genmove(engine: Session, arguments: list[str]) -> str:
    player, rest = _of_player(engine, arguments)
    _only(rest, 0, "nothing or a colour, b or w")
    _check_turn(engine.record, player)
    return _names(engine, engine.play_turn())


def _undo(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    return _names(engine, engine.undo())


def _names(engine: Session, edges: list[int]) -> str:
    return " ".join(edge_name(engine.game, edge) for edge in edges)


def _showboard(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    record = engine.record
    marks = {box: COLOURS[owner] for box, owner in record.owners.items()}
    first, second = record.score
    state = "over" if record.is_over else f"{COLOURS[record.player]} to move"
    # An empty line would end the answer.
    lines = (line or "." for line in render(record.game, record.drawn, marks).splitlines())
    board = "\n".join(lines)
    return f"\n{board}\nb {first} : {second} w, {state}"


def _time_left(engine: Session, arguments: list[str]) -> str:
    """Set the clock of a player, or of whoever is to move; with stones it is for so many turns."""
    player, rest = _of_player(engine, arguments)
    seconds, stones = [*_numbers("time_left", rest, (1, 2)), 0.0][:2]
    clock = Clock(0.0, seconds / max(stones, 1.0)) if stones else Clock(seconds)
    if player is None:
        engine.clock, engine.clocks = clock, {}
    else:
        engine.clocks[player] = clock
    return ""


def _time_settings(engine: Session, arguments: list[str]) -> str:
    """Set the clock of all games: seconds, then overtime for so many turns; 0 1 0: no clock."""
    main, overtime, stones = _numbers("time_settings", arguments, (3,))
    turn = overtime / max(stones, 1.0) if stones else 0.0
    engine.full = None if overtime and not stones else Clock(main, turn)
    engine.clock, engine.clocks = replace(engine.full) if engine.full else None, {}
    return ""


def _komi(engine: Session, arguments: list[str]) -> str:
    """Give boxes to the second player in `final_score`; play is for boxes and does not change."""
    (engine.komi,) = _numbers("komi", arguments, (1,), -MOST_KOMI, MOST_KOMI)
    return ""


def _numbers(
    name: str,
    arguments: list[str],
    counts: tuple[int, ...],
    least: float = 0.0,
    most: float = LONGEST_CLOCK,
) -> list[float]:
    """Return so many numbers, the arguments of a command. Raises: InputError."""
    try:
        numbers = [float(argument) for argument in arguments]
    except ValueError:
        numbers = []
    if len(numbers) not in counts or not all(least <= number <= most for number in numbers):
        shown, words = shortened(repr(" ".join(arguments))), " or ".join(map(str, counts))
        raise InputError(f"{name}: {shown} must be {words} numbers from {least:g} to {most:g}")
    return numbers


def _analyze(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    record = engine.record
    agent = resize(engine.agent, engine.game, "board: this network")
    found = analyse(agent, record.drawn, record.margin, ANALYSIS_SIMULATIONS, engine.seconds)
    return json.dumps(to_json(found))


def _score(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    return "{} {}".format(*engine.record.score)


def _final_score(engine: Session, arguments: list[str]) -> str:
    _only(arguments, 0, "nothing")
    if not engine.record.is_over:
        raise InputError("final_score: the game is not over; score counts the boxes so far")
    first, second = engine.record.score
    ahead = first - second - engine.komi
    return f"{'B' if ahead > 0 else 'W'}+{abs(ahead):g}" if ahead else "0"


GTP: dict[str, Callable[[Session, list[str]], str]] = {
    "protocol_version": lambda _engine, _arguments: "2",
    "name": lambda _engine, _arguments: "jaxzero",
    "version": lambda _engine, _arguments: __version__,
    "list_commands": lambda _engine, _arguments: "\n".join(GTP),
    "known_command": lambda _engine, words: str(bool(words) and words[0] in GTP).lower(),
    "new_game": _new_game,
    "clear_board": _clear_board,
    "boardsize": _boardsize,
    "play": _play,
    "genmove": _genmove,
    "undo": _undo,
    "showboard": _showboard,
    "time_settings": _time_settings,
    "time_left": _time_left,
    "komi": _komi,
    "analyze": _analyze,
    "score": _score,
    "final_score": _final_score,
    "quit": _quit,
}


def sau(engine: Session, line: str) -> list[str]:
    """Answer a line of the SAU platform; a whole turn, captures and all, is one message.

    The words of a message may stand on several lines, and several messages on one.
    """
    engine.words += _plain(line).split()
    answers = []
    while not engine.done and (message := _next_message(engine.words)):
        answers += _answer(engine, message)
    return answers


def _next_message(words: deque[str]) -> list[str]:
    """Take the first message out of `words`, nothing where some of its words are still to come."""
    if not words:
        return []
    if words[0] in ("error", "end"):
        message = list(words)  # what stands behind them is for people
    else:
        length = SAU_WORDS.get(words[0], len(words))
        message = [words[0], *takewhile(_is_argument, islice(words, 1, length))]
        is_number = message[0] != "move" or len(message) == 1 or message[1].isdecimal()
        if len(message) == len(words) < length and is_number:
            return []
    for _ in message:
        words.popleft()
    return message


def _is_argument(word: str) -> bool:
    return word not in SAU_WORDS


def _answer(engine: Session, message: list[str]) -> list[str]:
    """Answer one message of the platform."""
    refused, engine.refused = engine.refused, None
    try:
        match message:
            case ["name?"]:
                return ["name jaxzero"]
            case ["new", "black" | "white" as colour]:
                engine.new_game()
                engine.plays = 0 if colour == "black" else 1
            case ["move", *said]:
                take_turn(engine, sau_edges(engine.game, said))
            case ["error", *_]:
                if refused is None:  # of another message than a move
                    return []
                refused.add(engine.undo()[0])
                if refused.issuperset(np.flatnonzero(~engine.record.drawn).tolist()):
                    raise InputError("move: every edge that is left was refused")
            case ["end", *_]:
                engine.new_game()
                return []
            case ["quit"]:
                engine.done = True
                return []
            case _:
                shown = shortened(repr(" ".join(message)))
                raise InputError(f"line: {shown} is none of the protocol's")
    except ValueError as error:
        return [f"error {one_line(str(error))}"]
    record = engine.record
    if record.is_over or record.player != engine.plays:
        return []
    engine.refused = refused if message[0] == "error" else set()
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
    engine.go_on(record)


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
    line = _plain(line)
    if not line.strip():
        return []
    x = y = -1
    try:
        _take_in(engine, _json(line))
        record = engine.record
        if record.player == engine.plays and not record.is_over:
            edge = engine.decide()
            engine.record = engine.record.draw(edge)
            x, y = _square(engine.game, edge)
        said = {"response": {"x": x, "y": y}}
    except (ValueError, RecursionError) as error:  # what is deep enough cannot be shown either
        said = {"response": {"x": x, "y": y}, "debug": one_line(str(error))}
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
