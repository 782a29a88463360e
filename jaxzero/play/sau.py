"""Speak the protocol of SAU game platform 2.1, which the Chinese collegiate competition uses.

One message holds a whole turn with all its captures, such as `move 2 AABBCA`.
"""

from collections import deque
from itertools import islice, takewhile
from string import ascii_uppercase

import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_name
from jaxzero.game.text import place_of
from jaxzero.play.engine import Session

WORDS = {"name?": 1, "new": 2, "move": 3, "error": 1, "end": 1, "quit": 1}  # words in each message


def sau(engine: Session, line: str) -> list[str]:
    """Answer a line of the platform.

    A message can span several lines, and a line can hold several messages.
    """
    engine.words += line.split()
    answers = []
    while not engine.done and (message := _next_message(engine.words)):
        answers += _answer(engine, message)
    return answers


def _next_message(words: deque[str]) -> list[str]:
    """Remove and return the first message of `words`; return [] if it is incomplete."""
    if not words:
        return []
    if words[0] in ("error", "end"):
        message = list(words)  # other words on the line are for people
    else:
        length = WORDS.get(words[0], len(words))
        rest = takewhile(lambda word: word not in WORDS, islice(words, 1, length))
        message = [words[0], *rest]
        is_number = message[0] != "move" or len(message) == 1 or message[1].isdecimal()
        if len(message) == len(words) < length and is_number:
            return []
    for _ in message:
        words.popleft()
    return message


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
                _take_turn(engine, sau_edges(engine.board, said))
            case ["error", *_]:
                if refused is None:  # the engine's last answer was no move
                    return []
                refused.add(engine.undo()[0])
                if refused.issuperset(np.flatnonzero(~engine.game.drawn).tolist()):
                    raise InputError("move: every edge that is left was refused")
            case ["end", *_]:
                engine.new_game()
                return []
            case ["quit"]:
                engine.done = True
                return []
            case _:
                raise InputError(f"line: {' '.join(message)!r} is not of the protocol")
    except ValueError as error:
        return [f"error {error}"]
    game = engine.game
    if game.is_over or game.player != engine.plays:
        return []
    engine.refused = refused if message[0] == "error" else set()
    return [sau_message(engine.board, engine.play_turn())]


def _take_turn(engine: Session, edges: list[int]) -> None:
    """Draw the opponent's turn if it is complete and legal. Raises: InputError otherwise."""
    game, plays = engine.game, engine.plays
    if plays is None:
        raise InputError("move: no game has begun")
    for edge in edges:
        if game.player == plays or game.is_over:
            name = edge_name(engine.board, edge)
            raise InputError(f"move: {name} comes after the turn has passed")
        game = game.draw(edge)
    if game.player != plays and not game.is_over:
        raise InputError("move: the turn has not passed; captures go on in the same message")
    engine.go_on(game)


def sau_message(board: DotsAndBoxes, edges: list[int]) -> str:
    """Return the message of a turn, such as `move 2 AABBCA`."""
    names = sau_names(board)
    return f"move {len(edges)} {''.join(names[edge] for edge in edges)}"


def sau_edges(board: DotsAndBoxes, said: list[str]) -> list[int]:
    """Return the edges of a move message, given its words after `move`. Raises: InputError."""
    if len(said) != 2 or not said[0].isdecimal() or len(said[1]) != 3 * int(said[0]):
        raise InputError(f"move: {' '.join(said)[:60]!r} must be a number and as many edges")
    names = sau_names(board)
    parts = [said[1][i : i + 3] for i in range(0, len(said[1]), 3)]
    for part in parts:
        if part not in names:
            raise InputError(f"move: {part!r} is no edge of a {board} board")
    return [names.index(part) for part in parts]


def sau_names(board: DotsAndBoxes) -> list[str]:
    """Name all edges: A, row, column if horizontal, else B, column, row."""
    names = []
    for kind, row, col in (place_of(board, edge) for edge in range(board.num_edges)):
        row, col = ascii_uppercase[row], ascii_uppercase[col]
        names.append(f"A{row}{col}" if kind == "h" else f"B{col}{row}")
    return names
