"""Speak a text protocol that follows the Go Text Protocol.

The colours b and w are the first and the second player. A move is the name of an edge.
"""

import inspect
import json
import re
from collections.abc import Callable

from jaxzero import __version__
from jaxzero.errors import InputError
from jaxzero.game import edge_name, parse_edge, render
from jaxzero.game.records import RecordedGame
from jaxzero.play.analysis import analyse
from jaxzero.play.analysis_report import to_json
from jaxzero.play.engine import Clock, Session
from jaxzero.runs.resize import asked_board, resize

ANALYSIS_SIMULATIONS = 256
LONGEST_CLOCK = 1e6  # seconds for all decisions of a game
COLOURS = ("b", "w")  # of the first and the second player
PLAYERS = {"b": 0, "black": 0, "w": 1, "white": 1}


def gtp(engine: Session, line: str) -> list[str]:
    """Answer a command: `= ANSWER` or `? ERROR`, then an empty line.

    The answer repeats a number that stands before the command. An empty line or a line with only a
    comment gets no answer.
    """
    words, number = line.split("#")[0].split(), ""
    if not words:
        return []
    if re.fullmatch("[0-9]{1,20}", words[0]):
        number = words.pop(0)
    try:
        name, *arguments = words or [""]
        if name not in COMMANDS:
            raise InputError(f"{name!r} is not a command")
        return [f"={number} {_obey(engine, name, arguments)}".rstrip() + "\n"]
    except ValueError as error:
        return [f"?{number} {error}\n"]


def _obey(engine: Session, name: str, arguments: list[str]) -> str:
    """Return the answer of a command. Raises: InputError for a wrong number of arguments."""
    takes = inspect.signature(COMMANDS[name])
    try:
        takes.bind(engine, *arguments)
    except TypeError as error:
        known = " and ".join([*takes.parameters][1:]) or "nothing"
        shown = repr(" ".join(arguments))
        raise InputError(f"arguments: {shown} of {name} must be {known}") from error
    return COMMANDS[name](engine, *arguments) or ""


def _boardsize(engine: Session, rows: str, cols: str | None = None) -> None:
    sides = rows, rows if cols is None else cols
    if not all(re.fullmatch("[0-9]{1,3}", side) for side in sides):
        raise InputError(f"size: {' '.join(sides)!r} must be rows and columns")
    engine.new_game(asked_board(*map(int, sides), engine.board))
    engine.get_ready()  # now, because no clock runs before the answer


def _play(engine: Session, *edges: str) -> None:
    player, names = _split_colour(edges)
    if not names:
        raise InputError("arguments: '' of play must be edges, such as h0,1")
    game = engine.game
    for name in names:
        _check_turn(game, player)
        game = game.draw(parse_edge(engine.board, name))
    engine.go_on(game)


def _genmove(engine: Session, colour: str = "") -> str:
    player, rest = _split_colour((colour,) if colour else ())
    if rest:
        raise InputError(f"arguments: {colour!r} of genmove must be b or w")
    _check_turn(engine.game, player)
    return _names(engine, engine.play_turn())


def _names(engine: Session, edges: list[int]) -> str:
    return " ".join(edge_name(engine.board, edge) for edge in edges)


def _split_colour(words: tuple[str, ...]) -> tuple[int | None, tuple[str, ...]]:
    """Return the player named by the first word, None if it is no colour, and the other words."""
    player = PLAYERS.get(words[0].lower()) if words else None
    return player, words[player is not None :]


def _check_turn(game: RecordedGame, player: int | None) -> None:
    if player not in (None, game.player) and not game.is_over:
        raise InputError(f"turn: {COLOURS[player]} is not to move, {COLOURS[game.player]} is")


def _showboard(engine: Session) -> str:
    game = engine.game
    marks = {box: COLOURS[owner] for box, owner in game.owners.items()}
    first, second = game.score
    state = "over" if game.is_over else f"{COLOURS[game.player]} to move"
    # An empty line would end the answer, so it gets a dot.
    lines = (line or "." for line in render(game.board, game.drawn, marks).splitlines())
    board = "\n".join(lines)
    return f"\n{board}\nb {first} : {second} w, {state}"


def _analyze(engine: Session) -> str:
    game = engine.game
    agent = resize(engine.agent, engine.board, "board: this network")
    analysis = analyse(agent, game.drawn, game.margin, ANALYSIS_SIMULATIONS, engine.seconds)
    return json.dumps(to_json(analysis))


def _final_score(engine: Session) -> str:
    if not engine.game.is_over:
        raise InputError("final_score: the game is not over; score counts the boxes so far")
    first, second = engine.game.score
    ahead = first - second
    return f"{'B' if ahead > 0 else 'W'}+{abs(ahead)}" if ahead else "0"


def _time_settings(engine: Session, seconds: str, overtime: str, turns: str) -> None:
    """Set the clocks: seconds for a game, then overtime for `turns` turns; 0 1 0: no clock."""
    main, more, count = _numbers("time_settings", (seconds, overtime, turns))
    turn = more / max(count, 1.0) if count else 0.0
    engine.start_clocks(None if more and not count else Clock(main, turn))


def _time_left(engine: Session, *words: str) -> None:
    """Set the clock of a player (default: the side to move), for the game or for some turns."""
    player, rest = _split_colour(words)
    if not 1 <= len(rest) <= 2:
        shown = repr(" ".join(rest))
        raise InputError(f"time_left: {shown} must be 1 or 2 numbers, seconds and turns")
    seconds, turns = [*_numbers("time_left", rest), 0.0][:2]
    clock = Clock(0.0, seconds / max(turns, 1.0)) if turns else Clock(seconds)
    engine.clocks[engine.game.player if player is None else player] = clock


def _numbers(name: str, words: tuple[str, ...]) -> list[float]:
    """Return the arguments of a command as numbers of seconds or turns. Raises: InputError."""
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if not numbers or not all(0 <= number <= LONGEST_CLOCK for number in numbers):
        shown = repr(" ".join(words))
        raise InputError(f"{name}: {shown} must be numbers from 0 to {LONGEST_CLOCK:g}")
    return numbers


def _quit(engine: Session, *_words: str) -> None:
    engine.done = True


COMMANDS: dict[str, Callable[..., str | None]] = {
    "protocol_version": lambda *_: "2",
    "name": lambda *_: "jaxzero",
    "version": lambda *_: __version__,
    "list_commands": lambda *_: "\n".join(COMMANDS),
    "known_command": lambda _engine, name="", *_: str(name in COMMANDS).lower(),
    "clear_board": lambda engine: engine.new_game(),
    "boardsize": _boardsize,
    "play": _play,
    "genmove": _genmove,
    "undo": lambda engine: _names(engine, engine.undo()),
    "showboard": _showboard,
    "time_settings": _time_settings,
    "time_left": _time_left,
    "komi": lambda _engine, points: None,  # tools for Go send it
    "analyze": _analyze,
    "score": lambda engine: "{} {}".format(*engine.game.score),
    "final_score": _final_score,
    "quit": _quit,
}
