"""Records of games: a game as data, checked at construction, and the texts that hold it.

json  rows, cols, start, moves, names, title, date, comments, variations
ccgc  the JSON of the Chinese collegiate competition: 5x5 from an empty board
text  a line with the size, such as # 5x5, and the edges in order, by name or number
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import numpy as np

from jaxzero.errors import InputError
from jaxzero.game.board import count_sides, play_moves
from jaxzero.game.rules import DotsAndBoxes
from jaxzero.game.text import edge_at, edge_name, parse_edge, parse_edges, place_of, plain

FORMATS = ("json", "ccgc", "text")
CCGC_BOARD = DotsAndBoxes(5, 5)
LONGEST_TEXT = 2**20  # characters
LARGEST_SIDE = 20  # rows and columns
LONGEST_NAME = 200  # characters
LONGEST_COMMENT = 1000  # characters
RESULTS = ("", "first resigned", "second resigned", "first timed out", "second timed out")
_PIECE = re.compile(r"([rb])\(([a-f])([1-6]),([hv])\)")
_SIZE = re.compile(r"#? *([0-9]{1,3}) *x *([0-9]{1,3})", re.IGNORECASE)

Comments = tuple[tuple[int, str], ...]  # the number of moves before each comment, and its text


@dataclass(frozen=True)
class Variation:
    """Alternative moves in a game or in another variation."""

    at: int  # moves before the variation
    moves: tuple[int, ...]  # edges in order
    comments: Comments = ()
    variations: tuple[Variation, ...] = ()  # each begins after the first move of this one


@dataclass(frozen=True)
class RecordedGame:
    """A game, played so far: the player who closes a box moves again; every edge is drawn once.

    Raises: InputError, with field and value, for data that cannot be a game.
    """

    rows: int
    cols: int
    start: tuple[int, ...] = ()  # edges drawn before the game, owned by nobody; sorted
    moves: tuple[int, ...] = ()  # edges in order, player 0 first
    names: tuple[str, str] = ("", "")  # of player 0 and player 1
    title: str = ""
    date: str = ""
    result: str = ""  # one of RESULTS: who lost before the last edge was drawn, and why
    comments: Comments = ()
    variations: tuple[Variation, ...] = ()

    def __post_init__(self):
        for name in ("rows", "cols"):
            _check_whole(name, getattr(self, name), 1, LARGEST_SIDE)
        _check_edges(self.board, "start", self.start)
        _check_edges(self.board, "moves", self.moves, self.start)
        names = _listed("names", self.names)
        if len(names) != 2:
            raise InputError(f"names: {shown(list(names))} must be two names")
        if self.result not in RESULTS:
            raise InputError(f"result: {shown(self.result)} is none of {', '.join(RESULTS[1:])}")
        checked = {
            "start": tuple(sorted(self.start)),
            "moves": tuple(self.moves),
            "names": tuple(_one_line("names", name) for name in names),
            "title": _one_line("title", self.title),
            "date": _one_line("date", self.date),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def draw(self, edge: int) -> RecordedGame:
        """Return the game with one more move. Raises: InputError for an illegal edge."""
        if 0 <= edge < self.board.num_edges and self.drawn[edge]:
            raise InputError(f"edge {edge_name(self.board, edge)} is already drawn")
        return replace(self, moves=(*self.moves, edge), result="")

    def cut(self, plies: int) -> RecordedGame:
        """Return the game after its first `plies` moves."""
        return replace(
            self,
            moves=self.moves[:plies],
            result="",
            comments=tuple(one for one in self.comments if one[0] <= plies),
            variations=tuple(one for one in self.variations if one.at <= plies),
        )

    @cached_property
    def board(self) -> DotsAndBoxes:
        return DotsAndBoxes(self.rows, self.cols)

    @cached_property
    def drawn(self) -> np.ndarray:
        """The edges on the board: [A] bool."""
        drawn = np.zeros(self.board.num_edges, bool)
        drawn[[*self.start, *self.moves]] = True
        return drawn

    @property
    def is_over(self) -> bool:
        return bool(self.drawn.all())

    @property
    def boxes_left(self) -> int:
        return int((count_sides(self.board, self.drawn)[:-1] < 4).sum())

    @cached_property
    def _replayed(self) -> tuple[list[int], dict[int, int]]:
        return play_moves(self.board, self.start, self.moves)

    @property
    def players(self) -> list[int]:
        """The player, 0 or 1, of every move and of the next one."""
        return self._replayed[0]

    @property
    def player(self) -> int:
        """The side to move, 0 or 1; in a finished game, the side that drew the last edge."""
        return self.players[-1]

    @property
    def owners(self) -> dict[int, int]:
        """The player, 0 or 1, of each closed box that has an owner."""
        return self._replayed[1]

    @property
    def score(self) -> tuple[int, int]:
        """The boxes of player 0 and of player 1."""
        owners = list(self.owners.values())
        return owners.count(0), owners.count(1)

    @property
    def margin(self) -> int:
        """Boxes of the side to move minus the opponent's."""
        return self.score[self.player] - self.score[1 - self.player]

    @classmethod
    def from_json(cls, content: Any) -> RecordedGame:
        """Build a game from the result of `to_json`; edges may be names. Raises: InputError."""
        if not isinstance(content, dict):
            raise InputError(f"game: {shown(content)} must be an object with rows, cols and moves")
        known = [field.name for field in fields(cls)]
        for name in content:
            if name not in known:
                raise InputError(f"{shown(name)}: no such field")
        for name in ("rows", "cols"):
            if name not in content:
                raise InputError(f"{name}: is missing")
            _check_whole(name, content[name], 1, LARGEST_SIDE)
        board = DotsAndBoxes(content["rows"], content["cols"])
        edges = {
            name: tuple(_numbered(name, board, edge) for edge in _listed(name, content[name]))
            for name in ("start", "moves")
            if name in content
        }
        game = cls(**{**content, **edges, "comments": (), "variations": ()})
        try:
            return replace(game, **_read_lines(board, game.start, game.moves, 0, content))
        except RecursionError as error:
            raise InputError("variations: lie too deep within each other") from error

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON; result, comments and variations only if there are any."""
        single = ("rows", "cols", "title", "date")
        lists = {name: list(getattr(self, name)) for name in ("start", "moves", "names")}
        single += ("result",) if self.result else ()
        return {name: getattr(self, name) for name in single} | lists | _lines_to_json(self)


def format_of_file(path: Path) -> str:
    """Return the format that a file name ends with. Raises: InputError for other endings."""
    if "".join(path.suffixes[-2:]).lower() == ".ccgc.json":
        return "ccgc"
    named = {".json": "json", ".txt": "text"}.get(path.suffix.lower())
    if named is None:
        raise InputError(f"{path} must end with .json, .ccgc.json or .txt")
    return named


def read_game(text: str, board: DotsAndBoxes | None = None) -> RecordedGame:
    """Read a game in any of FORMATS. `board` is the board of a list of edges without a size.

    Raises: InputError, with the field and its value, for any other text.
    """
    if len(text) > LONGEST_TEXT:
        raise InputError(f"text: {len(text)} characters are more than {LONGEST_TEXT}")
    if not text.lstrip().startswith("{"):
        return _read_edges(text, board)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for numbers that are too long
        raise InputError(f"text: is not JSON ({' '.join(str(error).split())[:100]})") from error
    return _read_ccgc(content) if "game" in content else RecordedGame.from_json(content)


def write_game(game: RecordedGame, name: str) -> str:
    """Return a game as text for `read_game`, in the format `name`, one of FORMATS.

    Raises: InputError for an unknown format and for a game that the format cannot hold.
    """
    if name not in FORMATS:
        raise InputError(f"format: {name[:40]!r} is unknown (known: {', '.join(FORMATS)})")
    if name == "text":
        if game.start:
            raise InputError("format: text holds games from an empty board, not a start position")
        edges = " ".join(edge_name(game.board, edge) for edge in game.moves)
        return f"# {game.board}\n{edges}".rstrip() + "\n"
    content = _to_ccgc(game) if name == "ccgc" else game.to_json()
    return json.dumps(content, ensure_ascii=False) + "\n"


def _read_edges(text: str, board: DotsAndBoxes | None) -> RecordedGame:
    """Read the size and the edges; other lines that start with # are comments."""
    lines = [line.strip() for line in plain(text).splitlines()]
    sizes = [size for size in map(_SIZE.fullmatch, lines) if size]
    if len(sizes) > 1:
        raise InputError(f"text: has two sizes, {sizes[0][0]!r} and {sizes[1][0]!r}")
    if sizes:
        board = RecordedGame(*map(int, sizes[0].groups())).board  # which checks the size
    edges = [line for line in lines if not line.startswith("#") and not _SIZE.fullmatch(line)]
    if not sizes and not any(edges):
        raise InputError("text: holds no game")
    if board is None:
        raise InputError("text: needs the size of the board in its first line, such as # 5x5")
    try:
        moves = parse_edges(board, "\n".join(edges))
    except InputError as error:
        raise InputError(f"text: {error}") from error
    return RecordedGame(board.rows, board.cols, moves=tuple(moves))


def _read_ccgc(content: dict[str, Any]) -> RecordedGame:
    """Read the record of a competition. The colour that moves first is player 0."""
    said = {name: content.get(name, "") for name in ("R", "B", "Event", "Date")}
    for name, value in said.items():
        if not isinstance(value, str):
            raise InputError(f"{name}: {shown(value)} must be text")
    pieces = [_read_piece(*entry) for entry in enumerate(_listed("game", content["game"]))]
    colours, moves = [colour for colour, _ in pieces], [edge for _, edge in pieces]
    _check_edges(CCGC_BOARD, "game", moves)
    order = "br" if colours[:1] == ["b"] else "rb"
    names = tuple(said[colour.upper()] for colour in order)
    game = RecordedGame(5, 5, (), tuple(moves), names, title=said["Event"], date=said["Date"])
    for number, (colour, player) in enumerate(zip(colours, game.players, strict=False)):
        if colour != order[player]:
            raise InputError(f"game[{number}]: {colour} is not to move, {order[player]} is")
    return game


def _read_piece(number: int, entry: Any) -> tuple[str, int]:
    """Return the colour and the edge of a piece; rows are numbered from the bottom."""
    piece = entry.get("piece") if isinstance(entry, dict) else None
    entry = isinstance(piece, str) and _PIECE.fullmatch(piece)
    if not entry:
        raise InputError(f"game[{number}]: {shown(entry)} must hold a piece such as 'r(a6,h)'")
    colour, col, row, kind = entry.groups()
    edge = edge_at(CCGC_BOARD, kind, 6 - int(row) - (kind == "v"), ord(col) - ord("a"))
    if edge is None:
        raise InputError(f"game[{number}]: {piece} is not on a {CCGC_BOARD} board")
    return colour, edge


def _to_ccgc(game: RecordedGame) -> dict[str, Any]:
    if game.board != CCGC_BOARD or game.start:
        what = game.board if game.board != CCGC_BOARD else "a start position"
        raise InputError(f"format: ccgc holds games of 5x5 from an empty board, not {what}")
    first, second = game.score
    winner = ("R" if first > second else "B") if game.is_over else ""
    if game.result:
        winner = "B" if game.result.startswith("first") else "R"
    pieces = []
    for player, edge in zip(game.players, game.moves, strict=False):
        kind, row, col = place_of(game.board, edge)
        pieces.append(f"{'rb'[player]}({'abcdef'[col]}{6 - row - (kind == 'v')},{kind})")
    return {
        "R": game.names[0],
        "B": game.names[1],
        "winner": winner,
        "RScore": first,
        "BScore": second,
        "Date": game.date,
        "Event": game.title,
        "game": [{"piece": piece} for piece in pieces],
    }


def _lines_to_json(line: RecordedGame | Variation) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if line.comments:
        entry["comments"] = {str(ply): text for ply, text in line.comments}
    if line.variations:
        entry["variations"] = [
            {"at": one.at, "moves": list(one.moves)} | _lines_to_json(one)
            for one in line.variations
        ]
    return entry


def _read_lines(
    board: DotsAndBoxes,
    start: tuple[int, ...],
    moves: tuple[int, ...],
    first: int,
    content: dict[str, Any],
) -> dict[str, Any]:
    """Return the comments and the variations of a line of moves, none before its move `first`."""

    def comment(ply: Any, text: Any) -> tuple[int, str]:
        # Python refuses to read numbers of more than 4,300 digits.
        ply = int(ply) if str(ply).isascii() and str(ply).isdigit() and len(str(ply)) < 9 else ply
        _check_whole("comments", ply, first, len(moves))
        return ply, _one_line("comments", text, LONGEST_COMMENT)

    def variation(entry: Any) -> Variation:
        names = {"at", "moves", "comments", "variations"}
        if not isinstance(entry, dict) or not {"at", "moves"} <= set(entry) <= names:
            raise InputError(f"{shown(entry)} must be an object with at and moves")
        at = entry["at"]
        _check_whole("at", at, first, len(moves))
        own = tuple(_numbered("moves", board, edge) for edge in _listed("moves", entry["moves"]))
        _check_edges(board, "moves", own, start + moves[:at])
        return Variation(at, own, **_read_lines(board, start, moves[:at] + own, at + 1, entry))

    comments = content.get("comments", {})
    if not isinstance(comments, dict):
        raise InputError(f"comments: {shown(comments)} must be an object")
    variations = []
    for number, entry in enumerate(_listed("variations", content.get("variations", []))):
        try:
            variations.append(variation(entry))
        except InputError as error:
            raise InputError(f"variations[{number}]: {error}") from error
    read = tuple(comment(*entry) for entry in comments.items())
    return {"comments": read, "variations": tuple(variations)}


def _check_edges(board: DotsAndBoxes, name: str, edges: Any, before: tuple = ()) -> None:
    """Check that every edge exists and is drawn once. Raises: InputError."""
    drawn = set(before)
    for place, edge in enumerate(_listed(name, edges)):
        _check_whole(f"{name}[{place}]", edge, 0, board.num_edges - 1)
        if edge in drawn:
            already = f"{edge_name(board, edge)} is already drawn"
            raise InputError(f"{name}[{place}]: edge {already}")
        drawn.add(edge)


def _check_whole(name: str, value: Any, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise InputError(f"{name}: {shown(value)} must be a whole number from {low} to {high}")


def _listed(name: str, value: Any) -> list | tuple:
    if not isinstance(value, list | tuple):
        raise InputError(f"{name}: {shown(value)} must be a list")
    return value


def _one_line(name: str, value: Any, longest: int = LONGEST_NAME) -> str:
    """Return a text as one printable line of at high `longest` characters."""
    if not isinstance(value, str):
        raise InputError(f"{name}: {shown(value)} must be text")
    printable = "".join(sign if sign.isprintable() else " " for sign in value)
    return " ".join(printable.split())[:longest].strip()


def _numbered(name: str, board: DotsAndBoxes, edge: Any) -> Any:
    """Return the number of an edge given by name; numbers stay. Raises: InputError."""
    if not isinstance(edge, str):
        return edge
    try:
        return parse_edge(board, edge)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
