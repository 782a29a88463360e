"""Format the review of a game as tables for people and as JSON data for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from jaxzero.game import edge_name
from jaxzero.game.records import RecordedGame
from jaxzero.host.table import table
from jaxzero.play.review import MISTAKE_PROVEN, PHASES, ReviewLine


@dataclass(frozen=True)
class Tally:
    """Totals over some moves of one side."""

    moves: int
    mistakes: int
    lost: float  # margin, in boxes
    accuracy: float | None  # share of the moves that lose less than half a box; None: no moves


@dataclass(frozen=True)
class Reviewed:
    """A game and its review."""

    game: RecordedGame
    lines: tuple[ReviewLine, ...]  # one for every position

    def tallies(self, player: int) -> dict[str, Tally]:
        """Return tallies of a player: `all` for the whole game, and one for each of PHASES."""
        own = [line for line in self.lines[:-1] if line.player == player]
        groups = {"all": own}
        groups |= {name: [line for line in own if line.phase == name] for name in PHASES}
        return {name: _tally(lines) for name, lines in groups.items()}


def _tally(lines: list[ReviewLine]) -> Tally:
    good = sum(line.lost < MISTAKE_PROVEN for line in lines)
    return Tally(
        moves=len(lines),
        mistakes=sum(line.is_mistake for line in lines),
        lost=round(sum(line.lost for line in lines), 2),
        accuracy=round(good / len(lines), 4) if lines else None,
    )


def to_json(found: Reviewed) -> dict[str, Any]:
    """Return a review as JSON data: the game, a line for every position, and both tallies."""
    moves = *found.game.moves, None  # after the last move
    lines = [
        {**asdict(line), "edge": edge, "mistake": line.is_mistake}
        for line, edge in zip(found.lines, moves, strict=True)
    ]
    sides = [
        {name: asdict(tally) for name, tally in found.tallies(player).items()} for player in (0, 1)
    ]
    return {**found.game.to_json(), "lines": lines, "sides": sides}


def format_review(found: Reviewed) -> str:
    """Return a table of all moves and a table of both sides. Margins are A's boxes minus B's."""
    board, lines = found.game.board, found.lines
    rows = [
        (
            line.ply + 1,
            "AB"[line.player],
            edge_name(board, edge),
            f"{after.margin:+.2f}",
            f"{line.lost:.2f}",
            edge_name(board, line.best),
            "exact" if line.exact else "",
            "mistake" if line.is_mistake else "",
        )
        for line, after, edge in zip(lines[:-1], lines[1:], found.game.moves, strict=True)
    ]
    heads = ["move", "side", "edge", "margin A", "margin lost", "best", "", ""]
    sides = [
        (_side(found.game, player), phase, *_cells(tally))
        for player in (0, 1)
        for phase, tally in found.tallies(player).items()
        if tally.moves
    ]
    side_heads = ["side", "phase", "moves", "mistakes", "margin lost", "accuracy"]
    return f"{table(heads, rows, 'rllrrl')}\n\n{table(side_heads, sides, 'llr')}"


def format_summary(reviews: dict[str, Reviewed]) -> str:
    """Return a table with a row for each game: {name: review}."""
    rows = []
    for name, found in reviews.items():
        tallies = [found.tallies(player)["all"] for player in (0, 1)]
        cells = zip(*map(_cells, tallies), strict=True)
        ends = "{} : {}".format(*found.game.score)
        rows.append((name, str(found.game.board), ends, *(" / ".join(both) for both in cells)))
    heads = ["game", "board", "A : B", "moves A / B", "mistakes", "margin lost", "accuracy"]
    return table(heads, rows)


def _cells(tally: Tally) -> tuple[str, ...]:
    accuracy = "-" if tally.accuracy is None else f"{tally.accuracy:.0%}"
    return str(tally.moves), str(tally.mistakes), f"{tally.lost:.2f}", accuracy


def _side(game: RecordedGame, player: int) -> str:
    return f"{'AB'[player]} {game.names[player]}".strip()
