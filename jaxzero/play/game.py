"""Represent a game on the host: its record of moves, its two sides, and turns of players."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, State, count_sides, edge_name, play_moves
from jaxzero.host.background import Programs
from jaxzero.players.players import Player
from jaxzero.solver.small import exact_answer

LARGEST_SIDE = 9  # most rows or columns of a board for engine and page


@dataclass(frozen=True)
class Record:
    """One game: the edges drawn so far, in order. All other facts follow from them."""

    board: DotsAndBoxes
    moves: tuple[int, ...] = ()
    start: tuple[int, ...] = ()  # edges drawn before the game; boxes closed by them have no owner

    def draw(self, edge: int) -> Record:
        """Return the record with one more move. Raises: InputError for an illegal edge."""
        if not 0 <= edge < self.board.num_edges:
            raise InputError(f"edge {edge} is not on a {self.board} board")
        if self.drawn[edge]:
            raise InputError(f"edge {edge_name(self.board, edge)} is already drawn")
        return replace(self, moves=(*self.moves, edge))

    def cut(self, plies: int) -> Record:
        """Return the record after the first `plies` moves."""
        return replace(self, moves=self.moves[:plies])

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
        closed = count_sides(self.board, self.drawn)[: self.board.num_boxes] == 4
        return self.board.num_boxes - int(closed.sum())

    @property
    def owners(self) -> dict[int, int]:
        """The player, 0 or 1, who owns each box: {box: player}."""
        return self._replayed[1]

    @property
    def player(self) -> int:
        """The side to move, 0 or 1; in a finished game, the side that drew the last edge."""
        return self._replayed[0][-1]

    @property
    def score(self) -> tuple[int, int]:
        """The boxes of player 0 and of player 1."""
        owned = list(self.owners.values())
        return owned.count(0), owned.count(1)

    @property
    def margin(self) -> int:
        """Boxes of the side to move minus the opponent's."""
        return self.score[self.player] - self.score[1 - self.player]

    @cached_property
    def _replayed(self) -> tuple[list[int], dict[int, int]]:
        return play_moves(self.board, self.start, self.moves)

    def state(self) -> State:
        """Return the position as a batch of one: leaves [1, ...]."""
        return State(
            drawn=jnp.asarray(self.drawn)[None],
            margin=jnp.full((1,), self.margin, jnp.int32),
            player=jnp.full((1,), self.player, jnp.int32),
        )


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


def choose(player: Player, record: Record, seed: int) -> int:
    """Return the edge that a player draws.

    The edge depends on position, seed and ply only, so a player repeats its move after an undo.
    """
    key = jax.random.fold_in(jax.random.key(seed), len(record.moves))
    return int(player.decide(key[None], record.state()).edge[0])


def choose_when_ready(
    programs: Programs, choose_edge: Callable[[Record], int], record: Record, exact: bool
) -> int:
    """Return the edge of `choose_edge`, once its programs are compiled.

    If `exact`, the solver answers instead while they are not, where few edges are left.
    """
    if exact and not programs.ready:
        edge = exact_answer(record.board, record.drawn)
        if edge is not None:
            return edge
    programs.get()
    return choose_edge(record)


def draw_turn(record: Record, choose_edge: Callable[[Record], int]) -> Record:
    """Draw the edges that `choose_edge` returns until the turn passes or the game is over."""
    mover = record.player
    while record.player == mover and not record.is_over:
        record = record.draw(choose_edge(record))
    return record


def warm_up(player: Player, board: DotsAndBoxes) -> None:
    """Compile the programs of a player on a board. Raises: InputError if it cannot play there."""
    # A position with one undrawn edge has the shortest search.
    choose(player, Record(board, tuple(range(board.num_edges - 1))), 0)


def programs_of(player: Player, board: DotsAndBoxes) -> Programs:
    """Return the programs of a player on a board."""
    return Programs(board, player, partial(warm_up, player, board))


def boxes_text(number: int) -> str:
    """Return a number of boxes as text, such as `1 box` or `2 boxes`."""
    return f"{number} {'box' if number == 1 else 'boxes'}"
