"""A game as data: board, start position, moves and names, checked when it is made."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from reprlib import repr as shown
from typing import Any

from jaxzero.errors import InputError, nearest
from jaxzero.game.board import replay
from jaxzero.game.rules import DotsAndBoxes
from jaxzero.game.text import edge_name, parse_edge

LARGEST_SIDE = 20  # rows and columns
LONGEST_NAME = 200  # characters


@dataclass(frozen=True)
class RecordedGame:
    """A game as it was played: who closes a box moves again, and every edge is drawn once.

    Raises: InputError, with field and value, for what cannot be a game.
    """

    rows: int
    cols: int
    start: tuple[int, ...] = ()  # edges drawn before the game, owned by nobody; sorted
    moves: tuple[int, ...] = ()  # edges in order, player 0 first
    names: tuple[str, str] = ("", "")  # of player 0 and player 1
    title: str = ""
    date: str = ""

    def __post_init__(self):
        for name in ("rows", "cols"):
            _check_number(name, getattr(self, name), 1, LARGEST_SIDE)
        drawn: set[int] = set()
        for name in ("start", "moves"):
            for place, edge in enumerate(_listed(name, getattr(self, name))):
                _check_number(f"{name}[{place}]", edge, 0, self.board.num_edges - 1)
                if edge in drawn:
                    already = f"{edge_name(self.board, edge)} is already drawn"
                    raise InputError(f"{name}[{place}]: edge {already}")
                drawn.add(edge)
        names = _listed("names", self.names)
        if len(names) != 2:
            raise InputError(f"names: {shown(list(names))} must be two names")
        plain = {
            "start": tuple(sorted(self.start)),
            "moves": tuple(self.moves),
            "names": tuple(_plain("names", name) for name in names),
            "title": _plain("title", self.title),
            "date": _plain("date", self.date),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @property
    def board(self) -> DotsAndBoxes:
        return DotsAndBoxes(self.rows, self.cols)

    @property
    def players(self) -> list[int]:
        """The player, 0 or 1, of every move and of the next one."""
        return replay(self.board, self.start, self.moves)[0]

    @property
    def owners(self) -> dict[int, int]:
        """The player, 0 or 1, of each closed box that has an owner."""
        return replay(self.board, self.start, self.moves)[1]

    @property
    def score(self) -> tuple[int, int]:
        """The boxes of player 0 and of player 1."""
        owners = list(self.owners.values())
        return owners.count(0), owners.count(1)

    @classmethod
    def from_json(cls, content: Any) -> RecordedGame:
        """Build a game from what `to_json` returns; edges may have names. Raises: InputError."""
        if not isinstance(content, dict):
            raise InputError(f"game: {shown(content)} must be an object with rows, cols and moves")
        known = [field.name for field in fields(cls)]
        for name in content:
            if name not in known:
                raise InputError(f"{shown(name)}: no such field{nearest(str(name)[:40], known)}")
        for name in ("rows", "cols"):
            if name not in content:
                raise InputError(f"{name}: is missing")
            _check_number(name, content[name], 1, LARGEST_SIDE)
        board = DotsAndBoxes(content["rows"], content["cols"])
        edges = {
            name: tuple(numbered(name, board, edge) for edge in _listed(name, content[name]))
            for name in ("start", "moves")
            if name in content
        }
        return cls(**{**content, **edges})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        lists = {name: list(getattr(self, name)) for name in ("start", "moves", "names")}
        return asdict(self) | lists


def _check_number(name: str, value: Any, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise InputError(f"{name}: {shown(value)} must be a whole number from {least} to {most}")


def _listed(name: str, value: Any) -> list | tuple:
    if not isinstance(value, list | tuple):
        raise InputError(f"{name}: {shown(value)} must be a list")
    return value


def _plain(name: str, value: Any) -> str:
    """Return a text as one printable line that is not too long."""
    if not isinstance(value, str):
        raise InputError(f"{name}: {shown(value)} must be text")
    printable = "".join(sign if sign.isprintable() else " " for sign in value)
    return " ".join(printable.split())[:LONGEST_NAME].strip()


def numbered(name: str, board: DotsAndBoxes, edge: Any) -> Any:
    """Return the number of an edge that is named; numbers stay. Raises: InputError."""
    if not isinstance(edge, str):
        return edge
    if len(edge) > 20:
        raise InputError(f"{name}: {shown(edge)} is no edge")
    try:
        return parse_edge(board, edge)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
