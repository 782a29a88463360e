"""Let players and people draw in a game on the host: its two sides, and their turns."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from jaxzero.game import DotsAndBoxes, State
from jaxzero.game.records import RecordedGame
from jaxzero.host.background import Programs
from jaxzero.players.players import Player

LARGEST_SIDE = 9  # most rows or columns of a board for engine and page


@dataclass(frozen=True)
class Side:
    """One side: a player, or the person at the keyboard."""

    mark: str  # short name, shown in its boxes and in the score
    player: Player | None = None  # None for the person

    @property
    def is_person(self) -> bool:
        return self.player is None

    @property
    def name(self) -> str:
        return self.mark if self.is_person else f"{self.mark} ({self.player.name})"


Sides = tuple[Side, Side]  # in the order of moving


def choose(player: Player, game: RecordedGame, seed: int) -> int:
    """Return the edge that a player draws.

    The edge depends on position, seed and ply only, so a player repeats its move after an undo.
    """
    key = jax.random.fold_in(jax.random.key(seed), len(game.moves))
    state = State(
        drawn=jnp.asarray(game.drawn)[None],
        margin=jnp.full((1,), game.margin, jnp.int32),
        player=jnp.full((1,), game.player, jnp.int32),
    )
    return int(player.decide(key[None], state).edge[0])


def draw_turn(game: RecordedGame, choose_edge: Callable[[RecordedGame], int]) -> RecordedGame:
    """Draw the edges that `choose_edge` returns until the turn passes or the game is over."""
    mover = game.player
    while game.player == mover and not game.is_over:
        game = game.draw(choose_edge(game))
    return game


def warm_up(player: Player, board: DotsAndBoxes) -> None:
    """Compile the programs of a player on a board. Raises: InputError if it cannot play there."""
    all_but_one = tuple(range(board.num_edges - 1))  # leaves the shortest search
    choose(player, RecordedGame(board.rows, board.cols, moves=all_but_one), 0)


def programs_of(player: Player, board: DotsAndBoxes) -> Programs:
    """Return the programs of a player on a board."""
    return Programs(board, player, partial(warm_up, player, board))


def boxes_text(number: int) -> str:
    """Return a number of boxes as text, such as `1 box` or `2 boxes`."""
    return f"{number} {'box' if number == 1 else 'boxes'}"
