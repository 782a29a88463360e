"""The two sides of a game in the terminal, and how a player on one of them moves."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from jaxzero.agent.players import Player
from jaxzero.game import DotsAndBoxes
from jaxzero.play.record import Record


@dataclass(frozen=True)
class Side:
    """One side: a player, or the person at the keyboard."""

    mark: str  # stands in its boxes and in the score; short
    player: Player | None = None  # None: the person

    @property
    def is_person(self) -> bool:
        return self.player is None

    @property
    def name(self) -> str:
        return self.mark if self.is_person else f"{self.mark} ({self.player.name})"


Sides = tuple[Side, Side]  # in the order of moving


def choose(player: Player, record: Record, seed: int) -> int:
    """Return the edge a player draws.

    It depends on the seed and the ply alone, so after taking moves back the same comes again.
    """
    key = jax.random.fold_in(jax.random.key(seed), len(record.moves))
    return int(player.choose(key[None], record.state())[0])


def play_turn(player: Player, record: Record, seed: int) -> Record:
    """Let a player draw edges until the turn passes or the game is over."""
    mover = record.player
    while record.player == mover and not record.is_over:
        record = record.draw(choose(player, record, seed))
    return record


def warm_up(player: Player, game: DotsAndBoxes) -> None:
    """Compile what a player needs before the first move is waited for.

    Raises: InputError where the player cannot play on this board.
    """
    # With a single edge left there is nothing to think about.
    last_ply = Record(game, tuple(range(game.num_edges - 1)))
    choose(player, last_ply, 0)
