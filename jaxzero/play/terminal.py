"""A game in the terminal, through any pair of functions that read and write lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxzero.game import DotsAndBoxes
from jaxzero.play import wording
from jaxzero.play.analysis import hint, verdict
from jaxzero.play.entries import COMMANDS, PROMPT, find_entry
from jaxzero.play.record import Record
from jaxzero.play.sides import Side, Sides, play_turn


@dataclass(frozen=True)
class Setup:
    """Who plays, and how the terminal is reached."""

    sides: Sides
    read: Callable[[str], str]  # shows a prompt and returns a line; EOFError at the end of input
    write: Callable[[str], None]  # shows a line
    seed: int = 0
    seconds: float = 5.0  # limit of the solver for each question

    @property
    def person(self) -> Side | None:
        return next((side for side in self.sides if side.is_person), None)

    @property
    def opponent(self) -> Side:
        """The side that is not the person's."""
        return next(side for side in self.sides if not side.is_person)


def play_game(game: DotsAndBoxes, setup: Setup) -> Record:
    """Play one game and return its record, unfinished where the person stops it."""
    record = Record(game)
    try:
        while not record.is_over:
            if setup.person is None or setup.sides[record.player].is_person:
                setup.write(wording.position(record, setup.sides))
            record = _take_turn(record, setup)
    except EOFError:  # also how `quit` ends a game
        setup.write(f"\nStopped at {wording.score(record, setup.sides)}.")
        return record
    setup.write(wording.position(record, setup.sides))
    setup.write(wording.result(record, setup.sides))
    return record


def _take_turn(record: Record, setup: Setup) -> Record:
    """Return the record after a player's turn or a person's decision."""
    side = setup.sides[record.player]
    if side.player is None:
        return _decide(record, setup)
    after = play_turn(side.player, record, setup.seed)
    setup.write(wording.turn(record, after, setup.sides))
    return after


def _decide(record: Record, setup: Setup) -> Record:
    """Ask the person until an entry changes the game."""
    while True:
        entry = setup.read(PROMPT)
        try:
            found = find_entry(record.game, entry)
            after = record.draw(found) if isinstance(found, int) else _ANSWERS[found](record, setup)
        except ValueError as error:
            setup.write(str(error))
            continue
        if after is not record:
            return after


def _undo(record: Record, setup: Setup) -> Record:
    """Return the record at the person's previous decision."""
    for plies in reversed(range(len(record.moves))):
        earlier = record.cut(plies)
        if setup.sides[earlier.player].is_person:
            return earlier
    setup.write("there is no move of yours to take back")
    return record


def _hint(record: Record, setup: Setup) -> Record:
    setup.write(hint(record, setup.opponent.player, setup.seed, setup.seconds))
    return record


def _solve(record: Record, setup: Setup) -> Record:
    for line in verdict(record, setup.seconds):
        setup.write(line)
    return record


def _board(record: Record, setup: Setup) -> Record:
    setup.write(wording.position(record, setup.sides))
    return record


def _help(record: Record, setup: Setup) -> Record:
    width = max(map(len, COMMANDS))
    for name, meaning in COMMANDS.items():
        setup.write(f"  {name:<{width}}  {meaning}")
    return record


def _quit(record: Record, setup: Setup) -> Record:
    raise EOFError


_ANSWERS = {
    "undo": _undo,
    "hint": _hint,
    "solve": _solve,
    "board": _board,
    "help": _help,
    "quit": _quit,
}
