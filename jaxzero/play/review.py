"""Review a game: the margin expected before each move and lost by it; tables and JSON of both."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from jaxzero.game import edge_name, fullest_beside
from jaxzero.game.records import RecordedGame
from jaxzero.host.table import table
from jaxzero.network.network import Agent
from jaxzero.play.analysis import prove, searched
from jaxzero.players.network_player import choose_edge

SECONDS = 1.0  # solver time for one position
MISTAKE_PROVEN, MISTAKE_EXPECTED = 0.5, 1.0  # least margin lost; expected losses are noisy
LONG_LOOK = 256  # simulations of the second look at an expected mistake, as many as in an analysis
PHASES = ("opening", "middle", "endgame")


@dataclass(frozen=True)
class ReviewLine:
    """One position of a game, and the move played there."""

    ply: int
    player: int  # the side to move
    margin: float  # expected final margin: boxes of player 0 minus boxes of player 1
    exact: bool  # the margin and the loss are proven
    best: int | None  # the best edge; None in the finished game
    phase: str  # one of PHASES
    decision: bool  # some edges are worse than others, as far as is known
    lost: float | None = None  # margin that the move lost; None after the last move

    @property
    def is_mistake(self) -> bool:
        least = MISTAKE_PROVEN if self.exact else MISTAKE_EXPECTED
        return self.lost is not None and self.lost >= least


def review(
    agent: Agent,
    game: RecordedGame,
    simulations: int,
    wait: Callable[[], Iterable[float]] = tuple,
    seconds: float = SECONDS,
) -> Iterator[ReviewLine | float]:
    """Yield a line for every position of a game from its end, where proofs are quick, to its start.

    The line of the last position has no move. The solver gets `seconds` for a position (0: no
    solver), until a proof fails: earlier positions are harder. Without a proof, a search values the
    position, and a mistake must be one in a longer search too. Before a search, the items of
    `wait()` are yielded, the seconds of waiting for its programs.
    """
    after: ReviewLine | None = None
    for ply in reversed(range(len(game.moves) + 1)):
        here = game.cut(ply)
        value, exact, best, decision = 0.0, True, None, False
        if not here.is_over:
            decision, proof = True, None
            if seconds and (after is None or after.exact):
                proof = prove(here.board, here.drawn, seconds)
            if proof:
                value, best = float(proof.value), proof.best[0]
                decision = len(proof.best) + len(game.start) + ply < game.board.num_edges
            else:
                yield from wait()
                answer = choose_edge(agent, here.drawn, simulations)
                value, exact, best = float(answer.value), False, int(answer.edge)
        margin = round(of_first(here.player, here.margin + value), 2)
        line = ReviewLine(ply, here.player, margin, exact, best, phase_of(here), decision)
        if after is not None:
            loss = of_first(line.player, line.margin - after.margin)
            line = replace(line, lost=round(max(0.0, loss), 2))
            if line.is_mistake and not exact:
                reviewed = searched(agent, here.drawn, LONG_LOOK)
                (lost,) = (one.lost for one in reviewed.edges if one.edge == game.moves[ply])
                line = replace(line, lost=round(lost, 2), best=reviewed.best)
        yield line
        after = line


def phase_of(here: RecordedGame) -> str:
    """Return the phase of a position.

    In the opening at least two thirds of the edges are undrawn; in the endgame no edge is safe.
    """
    undrawn = ~here.drawn
    if 3 * undrawn.sum() >= 2 * len(undrawn):
        return PHASES[0]
    is_safe = fullest_beside(here.board, here.drawn)[undrawn] < 2
    return PHASES[1 if is_safe.any() else 2]


def of_first(player: int, margin: float) -> float:
    """Convert a margin of `player` to a margin of player 0, or back."""
    return margin if player == 0 else 0.0 - margin  # not -margin, which can be -0.0


@dataclass(frozen=True)
class Tally:
    """Totals over some moves of one side."""

    moves: int
    mistakes: int
    lost: float  # margin, in boxes
    accuracy: float | None  # share of the decisions that lose less than half a box; None: none


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
    good = [line.lost < MISTAKE_PROVEN for line in lines if line.decision]
    return Tally(
        moves=len(lines),
        mistakes=sum(line.is_mistake for line in lines),
        lost=round(sum(line.lost for line in lines), 2),
        accuracy=round(sum(good) / len(good), 4) if good else None,
    )


def to_json(reviewed: Reviewed) -> dict[str, Any]:
    """Return a review as JSON data: the game, a line for every position, and both tallies."""
    moves = *reviewed.game.moves, None  # after the last move
    lines = [
        {**asdict(line), "edge": edge, "mistake": line.is_mistake}
        for line, edge in zip(reviewed.lines, moves, strict=True)
    ]
    sides = [
        {name: asdict(tally) for name, tally in reviewed.tallies(player).items()}
        for player in (0, 1)
    ]
    return {**reviewed.game.to_json(), "lines": lines, "sides": sides}


def format_review(reviewed: Reviewed) -> str:
    """Return a table of all moves and a table of both sides. Margins are A's boxes minus B's."""
    board, lines = reviewed.game.board, reviewed.lines
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
        for line, after, edge in zip(lines[:-1], lines[1:], reviewed.game.moves, strict=True)
    ]
    heads = ["move", "side", "edge", "margin A", "margin lost", "best", "", ""]
    sides = [
        (f"{'AB'[player]} {reviewed.game.names[player]}".strip(), phase, *_cells(tally))
        for player in (0, 1)
        for phase, tally in reviewed.tallies(player).items()
        if tally.moves
    ]
    side_heads = ["side", "phase", "moves", "mistakes", "margin lost", "accuracy"]
    return f"{table(heads, rows, 'rllrrl')}\n\n{table(side_heads, sides, 'llr')}"


def format_summary(reviews: dict[str, Reviewed]) -> str:
    """Return a table with a row for each game: {name: review}."""
    rows = []
    for name, reviewed in reviews.items():
        tallies = [reviewed.tallies(player)["all"] for player in (0, 1)]
        cells = zip(*map(_cells, tallies), strict=True)
        ends = "{} : {}".format(*reviewed.game.score)
        rows.append((name, str(reviewed.game.board), ends, *(" / ".join(both) for both in cells)))
    heads = ["game", "board", "A : B", "moves A / B", "mistakes", "margin lost", "accuracy"]
    return table(heads, rows)


def _cells(tally: Tally) -> tuple[str, ...]:
    accuracy = "-" if tally.accuracy is None else f"{tally.accuracy:.0%}"
    return str(tally.moves), str(tally.mistakes), f"{tally.lost:.2f}", accuracy
