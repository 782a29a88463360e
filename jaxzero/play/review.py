"""Review a game: the expected final margin before each move, and the margin each move lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from jaxzero.game import fullest_beside
from jaxzero.network.network import Agent
from jaxzero.play.analysis import prove
from jaxzero.play.game import Record
from jaxzero.players.choosing import think

SECONDS = 1.0  # solver time for one position
MISTAKE_PROVEN, MISTAKE_EXPECTED = 0.5, 1.0  # least margin lost; expected losses are noisy
PHASES = ("opening", "middle", "endgame")


@dataclass(frozen=True)
class ReviewLine:
    """One position of a game, and the move played there."""

    ply: int
    player: int  # the side to move
    margin: float  # expected final margin: boxes of player 0 minus boxes of player 1
    exact: bool  # the margin is proven
    best: int | None  # the best edge; None in the finished game
    phase: str  # one of PHASES
    lost: float | None = None  # margin that the move lost; None after the last move

    @property
    def is_mistake(self) -> bool:
        least = MISTAKE_PROVEN if self.exact else MISTAKE_EXPECTED
        return self.lost is not None and self.lost >= least


def review(
    agent: Agent,
    record: Record,
    simulations: int,
    wait: Callable[[], Iterable[float]] = tuple,
    seconds: float = SECONDS,
) -> Iterator[ReviewLine | float]:
    """Yield a line for every position of a game in order; the last line has no move.

    The solver gets `seconds` for a position (0: no solver). Without a proof, a search values the
    position. Before a search, the items of `wait()` are yielded, the seconds of waiting for its
    programs.
    """
    before: ReviewLine | None = None
    for ply in range(len(record.moves) + 1):
        here = record.cut(ply)
        value, exact, best = 0.0, True, None
        if not here.is_over:
            proof = prove(here.board, here.drawn, seconds) if seconds else None
            if proof:
                value, best = float(proof.value), proof.best[0]
            else:
                yield from wait()
                thought = think(agent, here.drawn, simulations)
                value, exact, best = float(thought.value), False, int(thought.edge)
        margin = round(of_first(here.player, here.margin + value), 2)
        line = ReviewLine(ply, here.player, margin, exact, best, phase_of(here))
        if before is not None:
            loss = of_first(before.player, before.margin - margin)
            yield replace(before, lost=round(max(0.0, loss), 2))
        before = line
    yield before


def phase_of(here: Record) -> str:
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
