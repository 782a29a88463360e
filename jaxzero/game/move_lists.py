"""Lists of moves as text, below header lines with the board, the start and the players.

The formats are openspiel, numbers, sau and codingame; `jaxzero.game.notation` describes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from string import ascii_uppercase
from typing import NamedTuple

from jaxzero.errors import InputError, nearest
from jaxzero.game.board import american_start, icelandic_start, swedish_start
from jaxzero.game.recorded import LARGEST_SIDE, RecordedGame
from jaxzero.game.rules import DotsAndBoxes
from jaxzero.game.text import edge_at, edge_name, parse_edges, place_of, plain

CCGC_BOARD = DotsAndBoxes(5, 5)
STARTS = {"american": american_start, "swedish": swedish_start, "icelandic": icelandic_start}

_NUMBER, _END = "([0-9]{1,3})", r"(?=[\s,;]|$)"
_PATTERNS = {  # the first match counts, because H20 T begins like an edge of openspiel
    "codingame": re.compile(rf"([A-T])([1-9][0-9]?) ?([TBLR]){_END}", re.IGNORECASE),
    "openspiel": re.compile(
        rf"(?:P([12])\()?([hv])[ ,]{{0,2}}(?:{_NUMBER}[ ,]{{1,2}}{_NUMBER}|([0-9])([0-9]))"
        rf"(?(1)\)){_END}",
        re.IGNORECASE,
    ),
    "numbers": re.compile(_NUMBER + _END),
}
_TURN = re.compile(r"move +([0-9]{1,3}) +((?:[AB][A-U][A-U])+)")
_PLATFORM = re.compile(r"(move|new|name\??|end|quit)( |$)")
_MESSAGE = re.compile(r"[ ,;]MSG\b.*", re.IGNORECASE)  # message of a CodinGame player
_SIZE = re.compile(rf"#? *{_NUMBER} *x *{_NUMBER}(?: +([a-z]+))?", re.IGNORECASE)
_FIELD = re.compile(r"# *(start|title|date|player 1|player 2):(.*)", re.IGNORECASE)


class Move(NamedTuple):
    """A move as written in a text. Rows are numbered as in the format of the text."""

    place: str  # in the text, for error messages
    text: str
    kind: str  # h or v; empty if `row` is the number of the edge
    row: int
    col: int = 0
    player: int | None = None


@dataclass
class Page:
    """The move lines and the header of a text."""

    lines: list[tuple[int, str]] = field(default_factory=list)  # line numbers from 1, and lines
    board: DotsAndBoxes | None = None
    start: tuple[int, ...] = ()
    said: dict[str, str] = field(default_factory=dict)

    def game(self, board: DotsAndBoxes, moves: list[int]) -> RecordedGame:
        names = (self.said.get("player 1", ""), self.said.get("player 2", ""))
        title, date = self.said.get("title", ""), self.said.get("date", "")
        return RecordedGame(
            board.rows, board.cols, self.start, tuple(moves), names, title=title, date=date
        )


def read_page(text: str) -> Page:
    """Split a text into its move lines and its header. Raises: InputError."""
    page = Page()
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if size := _SIZE.fullmatch(plain(bare)):
            _read_size(page, number, bare, size)
        elif said := _FIELD.fullmatch(bare):
            page.said[said[1].lower()] = said[2]
            if said[1].lower() == "start":
                page.start += _read_start(page, number, said[2])
        elif not bare.startswith("#"):
            page.lines.append((number, plain(line)))
    return page


def _read_size(page: Page, number: int, line: str, found: re.Match) -> None:
    rows, cols, name = int(found[1]), int(found[2]), (found[3] or "american").lower()
    if not (1 <= rows <= LARGEST_SIDE and 1 <= cols <= LARGEST_SIDE):
        most = f"{LARGEST_SIDE}x{LARGEST_SIDE}"
        raise InputError(f"line {number}: {line[:40]!r} must be a board from 1x1 to {most}")
    if page.board:
        raise InputError(f"line {number}: {line[:40]!r} is a second size, after {page.board}")
    if name not in STARTS:
        known = f"{nearest(name, STARTS)} (known: {', '.join(STARTS)})"
        raise InputError(f"line {number}: start {name[:40]!r} is unknown{known}")
    page.board = DotsAndBoxes(rows, cols)
    page.start = STARTS[name](page.board)


def _read_start(page: Page, number: int, edges: str) -> tuple[int, ...]:
    if not page.board:
        raise InputError(f"line {number}: start needs the size of the board before it, as # 5x5")
    try:
        return tuple(parse_edges(page.board, edges))
    except InputError as error:
        raise InputError(f"line {number}: {error}") from error


def name_of_list(line: str) -> str | None:
    """Return the format that a text with this first line has; None if there is none."""
    if _PLATFORM.match(line):
        return "sau"
    line = line.replace("\t", " ")
    return next((name for name, pattern in _PATTERNS.items() if pattern.match(line)), None)


def read_moves(text: str, board: DotsAndBoxes | None, name: str) -> RecordedGame:
    """Read a game in the format `name`, one of MOVE_LISTS. Raises: InputError."""
    page = read_page(text)
    moves = list(_sau_moves(page) if name == "sau" else _moves_of(page, name))
    board = page.board or board or (CCGC_BOARD if name == "sau" else _smallest_board(moves))
    edges = edges_of(board, page.start, moves, upside_down=name == "codingame")
    return with_turns_checked(page.game(board, edges), moves)


def _moves_of(page: Page, name: str) -> Iterator[Move]:
    """Yield the moves of openspiel, codingame and numbers. Raises: InputError."""
    for number, line in page.lines:
        line, at = line.replace("\t", " "), 0
        if name == "codingame":
            line = _MESSAGE.sub("", line)
        while at < len(line):
            if line[at] in " ,;":
                at += 1
                continue
            found = _PATTERNS[name].match(line, at)
            if not found:
                wrong = f"{line[at : at + 20]!r} begins no move such as {_EXAMPLES[name]}"
                raise InputError(f"line {number}: {wrong}")
            yield _MOVES[name](f"line {number}", found)
            at = found.end()


def _openspiel_move(place: str, found: re.Match) -> Move:
    player, kind, row, col, digit, digit2 = found.groups()
    number = int(player) - 1 if player else None
    return Move(place, found[0], kind.lower(), int(row or digit), int(col or digit2), number)


def _codingame_move(place: str, found: re.Match) -> Move:
    """Return the move of a box side, such as A1 R. Rows are numbered from the bottom."""
    row, col, side = int(found[2]) - 1, ord(found[1].upper()) - ord("A"), found[3].upper()
    if side in "TB":
        return Move(place, found[0], "h", row + (side == "T"), col)
    return Move(place, found[0], "v", row, col + (side == "R"))


_EXAMPLES = {"openspiel": "P1(h,0,1) or h0,1", "codingame": "A1 R", "numbers": "12"}
_MOVES = {
    "openspiel": _openspiel_move,
    "codingame": _codingame_move,
    "numbers": lambda place, found: Move(place, found[0], "", int(found[1])),
}


def _sau_moves(page: Page) -> Iterator[Move]:
    """Yield the moves of the SAU platform: one line per turn. Raises: InputError."""
    turns = 0
    for number, line in page.lines:
        bare = line.strip()
        if not bare or (_PLATFORM.match(bare) and not bare.startswith("move")):
            continue
        found = _TURN.fullmatch(bare)
        codes = re.findall("...", found[2]) if found else []
        if not found or int(found[1]) != len(codes):
            raise InputError(f"line {number}: {bare[:40]!r} must be a turn such as move 2 AABBCA")
        for code in codes:
            first, second = ord(code[1]) - ord("A"), ord(code[2]) - ord("A")
            kind, row, col = ("h", first, second) if code[0] == "A" else ("v", second, first)
            yield Move(f"line {number}", code, kind, row, col, turns % 2)
        turns += 1


def _smallest_board(moves: list[Move]) -> DotsAndBoxes:
    """Return the board that the moves fill, else the smallest square board that holds them.

    Raises: InputError if edge numbers fill several boards.
    """
    if moves[0].kind:
        rows = max(1, *(move.row + (move.kind == "v") for move in moves))
        cols = max(1, *(move.col + (move.kind == "h") for move in moves))
        full = DotsAndBoxes(rows, cols)
        side = min(LARGEST_SIDE, max(rows, cols))
        return full if full.num_edges == len(moves) else DotsAndBoxes(side, side)
    edges = 1 + max(move.row for move in moves)
    sides = range(1, LARGEST_SIDE + 1)
    boards = [DotsAndBoxes(rows, cols) for rows in sides for cols in sides]
    filled = [board for board in boards if board.num_edges == edges == len(moves)]
    square = next((side for side in sides if 2 * side * (side + 1) >= edges), LARGEST_SIDE)
    if filled and DotsAndBoxes(square, square) not in filled:
        known = " or ".join(map(str, filled))
        raise InputError(f"board: {edges} edges fill a board of {known}: name it, as # {filled[0]}")
    return DotsAndBoxes(square, square)


def edges_of(
    board: DotsAndBoxes, start: tuple[int, ...], moves: list[Move], upside_down: bool = False
) -> list[int]:
    """Return the edge number of every move; `upside_down`: rows are numbered from the bottom.

    Raises: InputError for a move off the board and for an edge that is already drawn.
    """
    edges, drawn = [], set(start)
    for number, move in enumerate(moves, 1):
        row = board.rows - (move.kind == "v") - move.row if upside_down else move.row
        edge = edge_at(board, move.kind, row, move.col) if move.kind else move.row
        if edge is None or edge >= board.num_edges:
            raise InputError(f"{move.place}: {move.text} is not on a {board} board")
        if edge in drawn:
            raise InputError(f"{move.place}: move {number}, {move.text}, is already drawn")
        edges.append(edge)
        drawn.add(edge)
    return edges


def with_turns_checked(game: RecordedGame, moves: list[Move]) -> RecordedGame:
    """Return `game` unchanged. Raises: InputError for a move of the wrong player."""
    for number, (move, player) in enumerate(zip(moves, game.players, strict=False), 1):
        if move.player not in (None, player):
            wrong = f"move {number}, {move.text}, is of player {move.player + 1}"
            raise InputError(f"{move.place}: {wrong}, but player {player + 1} is to move")
    return game


def write_moves(game: RecordedGame, name: str) -> str:
    """Return a game as text in the format `name`, one of MOVE_LISTS, below its header."""
    lines = [*_header(game), *MOVE_LISTS[name](game)]
    return "".join(f"{line}\n" for line in lines)


def _header(game: RecordedGame) -> Iterator[str]:
    known = [name for name, start in STARTS.items() if start(game.board) == game.start]
    yield " ".join(["#", str(game.board), *(known[:1] if game.start else ())])
    if not known:
        yield "# start: " + " ".join(edge_name(game.board, edge) for edge in game.start)
    said = {"player 1": game.names[0], "player 2": game.names[1]}
    for name, value in (said | {"title": game.title, "date": game.date}).items():
        if value:
            yield f"# {name}: {value}"


def turns_of(game: RecordedGame) -> Iterator[tuple[int, list[tuple[str, int, int]]]]:
    """Yield the player and the edges (kind, row, column) of every turn."""
    drawn = zip(game.players, game.moves, strict=False)
    for player, turn in groupby(drawn, key=lambda one: one[0]):
        yield player, [place_of(game.board, edge) for _, edge in turn]


def _openspiel_lines(game: RecordedGame) -> Iterator[str]:
    for player, turn in turns_of(game):
        yield " ".join(f"P{player + 1}({kind},{row},{col})" for kind, row, col in turn)


def _numbers_lines(game: RecordedGame) -> Iterator[str]:
    if game.moves:
        yield ",".join(map(str, game.moves))


def _sau_lines(game: RecordedGame) -> Iterator[str]:
    for _, turn in turns_of(game):
        yield f"move {len(turn)} {''.join(sau_name(*place) for place in turn)}"


def sau_name(kind: str, row: int, col: int) -> str:
    """Name an edge for the SAU platform: A, row, column if horizontal, else B, column, row."""
    first, second = (row, col) if kind == "h" else (col, row)
    return ("A" if kind == "h" else "B") + ascii_uppercase[first] + ascii_uppercase[second]


def _codingame_lines(game: RecordedGame) -> Iterator[str]:
    board = game.board

    def side_of(kind: str, row: int, col: int) -> str:
        """Return a box and its side: T or L, except at the bottom and the right border."""
        beyond = row == board.rows if kind == "h" else col == board.cols
        side = ("TB" if kind == "h" else "LR")[beyond]
        row, col = (row - beyond, col) if kind == "h" else (row, col - beyond)
        return f"{chr(ord('A') + col)}{board.rows - row} {side}"

    for _, turn in turns_of(game):
        yield " ".join(side_of(*place) for place in turn)


MOVE_LISTS = {  # from a game to its lines, for every format
    "openspiel": _openspiel_lines,
    "numbers": _numbers_lines,
    "sau": _sau_lines,
    "codingame": _codingame_lines,
}
