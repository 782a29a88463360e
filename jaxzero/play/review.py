"""What the moves of a game were worth: the expected end after each, and the margin each lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from jaxzero.game import fullest_beside
from jaxzero.play.analysis import Tables, prove
from jaxzero.play.game import Record
from jaxzero.players.agent import Agent
from jaxzero.players.single import think

SECONDS = 1.0  # of the solver for one position
MISTAKE_PROVEN, MISTAKE_EXPECTED = 0.5, 1.0  # margin lost at least; expected losses scatter
PHASES = ("opening", "middle", "endgame")


@dataclass(frozen=True)
class ReviewLine:
    """One position of a game, and the move that was made there."""

    ply: int
    player: int  # to move
    margin: float  # expected at the end of the game: boxes of player 0 minus those of player 1
    exact: bool  # the margin is proven
    best: int | None  # the edge to draw; None after the end of the game
    phase: str  # one of PHASES
    lost: float | None = None  # margin that the move lost; None without a move

    @property
    def is_mistake(self) -> bool:
        least = MISTAKE_PROVEN if self.exact else MISTAKE_EXPECTED
        return self.lost is not None and self.lost >= least


def review(
    agent: Agent,
    record: Record,
    simulations: int,
    tables: Tables,
    wait: Callable[[], Iterable] = tuple,
    seconds: float = SECONDS,
) -> Iterator[ReviewLine | None]:
    """Yield a line for every position of a game, in order, the last one without a move.

    Each is proven within so many `seconds` (0: no solver), or else searched. What `wait` returns
    is run through before every search: it lasts until the search is compiled, and meanwhile None
    is yielded.
    """
    before: ReviewLine | None = None
    for ply in range(len(record.moves) + 1):
        here = record.cut(ply)
        value, exact, best = 0.0, True, None
        if not here.is_over:
            proof = prove(here.game, here.drawn, seconds, tables) if seconds else None
            if proof and proof.best:
                value, best = float(proof.value), proof.best[0]
            else:
                for _ in wait():
                    yield None
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
    is_safe = fullest_beside(here.game, here.drawn)[undrawn] < 2
    return PHASES[1 if is_safe.any() else 2]


def of_first(player: int, margin: float) -> float:
    """Return a margin of one player as the margin of player 0, and back."""
    return margin if player == 0 else 0.0 - margin  # never -0.0
