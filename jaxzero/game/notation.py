"""Games as text, in the formats that people and programs exchange.

    openspiel  P1(h,0,1) P2(v,2,3); also h0,1 v2,3 and h 0 1
    numbers    0,7,12: numbers of edges as here and in OpenSpiel
    ccgc       the JSON of the Chinese collegiate competition; always 5x5
    sau        lines of the SAU platform, one per turn: move 2 AABBCA; 5x5 if no size is given
    codingame  A1 R: a box (column, row from below) and its side
    ascii      a picture: the position, without the order of the moves
    json       rows, cols, start, moves, names, title, date

Lines that start with # are not moves. The header lines are `# 5x5`, `# 5x5 swedish`,
`# start: h0,0 v0,0`, `# player 1: NAME`, `# player 2: NAME`, `# title: TEXT` and `# date: TEXT`;
other lines with # are comments. If there is no size, the board is the one that the edges fill
exactly, else the smallest square board that holds them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import numpy as np

from jaxzero.errors import InputError, nearest
from jaxzero.game.move_lists import (
    CCGC_BOARD,
    MOVE_LISTS,
    Move,
    edges_of,
    name_of_list,
    read_moves,
    read_page,
    turns_of,
    with_turns_checked,
    write_moves,
)
from jaxzero.game.recorded import RecordedGame
from jaxzero.game.rules import DotsAndBoxes
from jaxzero.game.text import parse_picture, render

LONGEST_TEXT = 2**20  # characters
_PIECE = re.compile(r"([rb])\(([a-f])([1-6]),([hv])\)")


def format_of(text: str) -> str:
    """Return the format of a text, one of FORMATS. Raises: InputError for any other text."""
    if len(text) > LONGEST_TEXT:
        raise InputError(f"text: {len(text)} characters are more than {LONGEST_TEXT}")
    if text.lstrip().startswith("{"):
        return "ccgc" if "game" in _parse_json(text) else "json"
    page = read_page(text)
    lines = [(number, line.strip()) for number, line in page.lines if line.strip()]
    if not lines and page.board:
        return "openspiel"  # a game without moves
    if not lines:
        raise InputError("text: holds no game")
    number, first = lines[0]
    found = "ascii" if first.startswith("+") else name_of_list(first)
    if found:
        return found
    known = ", ".join(FORMATS)
    raise InputError(f"line {number}: {first[:40]!r} begins none of the formats {known}")


def format_of_file(path: Path) -> str:
    """Return the format that a file name ends with: game.json, game.ccgc.json, game.numbers.txt.

    `.txt` alone is openspiel. Raises: InputError for other endings.
    """
    endings = [ending[1:].lower() for ending in path.suffixes]
    named = [ending for ending in endings if ending in FORMATS]
    if not named and endings[-1:] != ["txt"]:
        known = f".json, .txt, or .FORMAT.txt with one of {', '.join(FORMATS)}"
        raise InputError(f"{path} must end with {known}")
    return named[0] if named else "openspiel"


def read_game(text: str, board: DotsAndBoxes | None = None) -> RecordedGame:
    """Read a game in any of FORMATS. `board` is the expected board; a text may then omit its size.

    Raises: InputError, with the line or the field and its value, for any other text.
    """
    name = format_of(text)
    game = read_moves(text, board, name) if name in MOVE_LISTS else _READERS[name](text)
    if board not in (None, game.board):
        raise InputError(f"board: the text holds a game on {game.board}, not on {board}")
    return game


def _parse_json(text: str) -> dict[str, Any]:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for numbers that are too long
        raise InputError(f"text: is not JSON ({' '.join(str(error).split())[:100]})") from error


def _read_ccgc(text: str) -> RecordedGame:
    """Read the record of a competition. The colour that moves first is player 0."""
    content = _parse_json(text)
    said = {name: content.get(name, "") for name in ("R", "B", "Event", "Date")}
    for name, value in said.items():
        if not isinstance(value, str):
            raise InputError(f"{name}: {shown(value)} must be text")
    if not isinstance(content["game"], list):
        raise InputError(f"game: {shown(content['game'])} must be a list")
    pieces = []
    for place, entry in enumerate(content["game"]):
        piece = entry.get("piece") if isinstance(entry, dict) else None
        found = isinstance(piece, str) and _PIECE.fullmatch(piece)
        if not found:
            raise InputError(f"game[{place}]: {shown(entry)} must hold a piece such as 'r(a6,h)'")
        pieces.append((f"game[{place}]", found))
    first = pieces[0][1][1] if pieces else "r"
    moves = [
        Move(place, p[0], p[4], int(p[3]) - 1, ord(p[2]) - ord("a"), int(p[1] != first))
        for place, p in pieces
    ]
    names = (said["R"], said["B"]) if first == "r" else (said["B"], said["R"])
    edges = edges_of(CCGC_BOARD, (), moves, upside_down=True)
    game = RecordedGame(5, 5, (), tuple(edges), names, title=said["Event"], date=said["Date"])
    return with_turns_checked(game, moves)


def _read_ascii(text: str) -> RecordedGame:
    """Read a picture. Its edges become the start, because the players of the edges are unknown."""
    page = read_page(text)
    lines = [""] * len(text.splitlines())
    for number, line in page.lines:
        lines[number - 1] = line
    try:
        board, drawn = parse_picture("\n".join(lines))
    except ValueError as error:
        raise InputError(str(error)) from error
    page.start = tuple({*page.start, *drawn})
    if page.board not in (None, board):
        raise InputError(f"text: the picture shows {board}, the line above it says {page.board}")
    return page.game(board, [])


def write_game(game: RecordedGame, name: str) -> str:
    """Return a game as text for `read_game`, in the format `name`, one of FORMATS.

    Lists of moves begin with their header lines. `ascii` holds only the position.
    Raises: InputError for an unknown format and for a game that the format cannot hold.
    """
    if name not in FORMATS:
        known = f"{nearest(name, FORMATS)} (known: {', '.join(FORMATS)})"
        raise InputError(f"format: {name[:40]!r} is unknown{known}")
    if name in MOVE_LISTS:
        return write_moves(game, name)
    return _WRITERS[name](game) + "\n"


def _write_ccgc(game: RecordedGame) -> str:
    if game.board != CCGC_BOARD or game.start:
        what = game.board if game.board != CCGC_BOARD else "a start position"
        raise InputError(f"format: ccgc holds games of 5x5 from an empty board, not {what}")
    over = len(game.moves) == game.board.num_edges
    pieces = [
        f"{'rb'[player]}({'abcdef'[col]}{6 - row - (kind == 'v')},{kind})"
        for player, turn in turns_of(game)
        for kind, row, col in turn
    ]
    first, second = game.score
    return json.dumps(
        {
            "R": game.names[0],
            "B": game.names[1],
            "winner": ("R" if first > second else "B") if over else "",
            "RScore": first,
            "BScore": second,
            "Date": game.date,
            "Event": game.title,
            "game": [{"piece": piece} for piece in pieces],
        },
        ensure_ascii=False,
    )


def _write_ascii(game: RecordedGame) -> str:
    drawn = np.zeros(game.board.num_edges, bool)
    drawn[[*game.start, *game.moves]] = True
    marks = {box: "12"[player] for box, player in game.owners.items()}
    return render(game.board, drawn, marks, labels={})


_READERS = {
    "ccgc": _read_ccgc,
    "ascii": _read_ascii,
    "json": lambda text: RecordedGame.from_json(_parse_json(text)),
}
_WRITERS = {
    "ccgc": _write_ccgc,
    "ascii": _write_ascii,
    "json": lambda game: json.dumps(game.to_json(), ensure_ascii=False),
}
FORMATS = (*MOVE_LISTS, *_READERS)
