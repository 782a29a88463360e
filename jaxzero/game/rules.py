"""The rules of Dots and Boxes, for one game at a time.

Edges are numbered horizontals first, row by row, then verticals, row by row.
This is OpenSpiel's numbering. A board of 2 x 2 boxes has 12 edges:

    +-0-+-1-+        horizontal edge (r, c): r * cols + c
    6   7   8        vertical edge (r, c):   (rows + 1) * cols + r * (cols + 1) + c
    +-2-+-3-+
    9  10  11
    +-4-+-5-+
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.errors import InputError


@dataclass(frozen=True)
class DotsAndBoxes:
    """The geometry of a board of `rows` x `cols` boxes: static, hashable, free of arrays."""

    rows: int
    cols: int

    def __post_init__(self):
        for name in ("rows", "cols"):
            value = getattr(self, name)
            try:  # converts NumPy integers to Python integers
                plain = 0 if isinstance(value, bool) else index(value)
            except TypeError:
                plain = 0
            if plain < 1:
                raise InputError(f"{name}: {value!r} must be a whole number of boxes, at least 1")
            object.__setattr__(self, name, plain)

    @property
    def num_boxes(self) -> int:
        return self.rows * self.cols

    @property
    def num_horizontal(self) -> int:
        return (self.rows + 1) * self.cols

    @property
    def num_edges(self) -> int:
        """Number of edges: the number of actions, and of plies in every game."""
        return self.num_horizontal + self.rows * (self.cols + 1)

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols}"


class State(NamedTuple):
    """One game in play. Vectorise with `jax.vmap`."""

    drawn: jax.Array  # [A] bool, edges on the board
    margin: jax.Array  # [] int32, boxes of the side to move minus the opponent's
    player: jax.Array  # [] int32, side to move, 0 or 1


def initial_state(board: DotsAndBoxes) -> State:
    """Return the empty board with the first player to move."""
    zero = jnp.zeros((), jnp.int32)
    return State(drawn=jnp.zeros(board.num_edges, bool), margin=zero, player=zero)


def initial_states(board: DotsAndBoxes, games: int) -> State:
    """Return `games` empty boards: State [B]."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (games, *x.shape)), initial_state(board))


def split_edges(board: DotsAndBoxes, values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Split one value per edge into horizontals [rows + 1, cols] and verticals [rows, cols + 1]."""
    chex.assert_shape(values, (board.num_edges,), custom_message="values")
    horizontal = values[: board.num_horizontal].reshape(board.rows + 1, board.cols)
    vertical = values[board.num_horizontal :].reshape(board.rows, board.cols + 1)
    return horizontal, vertical


def sides_of_boxes(board: DotsAndBoxes, edges: jax.Array) -> tuple[jax.Array, ...]:
    """Return the values of the edges [A] above, below, left and right of boxes: [rows, cols]."""
    horizontal, vertical = split_edges(board, edges)
    return horizontal[:-1], horizontal[1:], vertical[:, :-1], vertical[:, 1:]


def box_sides(board: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Count the drawn sides of every box: [rows, cols] int32, 0 to 4."""
    # Slices instead of a lookup table: XLA fuses slices, but not a gather.
    return sum(sides_of_boxes(board, drawn.astype(jnp.int32)))


def boxes_closed(board: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Count the closed boxes on the board: [] int32."""
    return jnp.sum(box_sides(board, drawn) == 4, dtype=jnp.int32)


def legal_edges(state: State) -> jax.Array:
    """Return which edges may be drawn: [A] bool."""
    return ~state.drawn


def is_over(state: State) -> jax.Array:
    """Return whether every edge is drawn: [] bool."""
    return jnp.all(state.drawn, axis=-1)


def step(board: DotsAndBoxes, state: State, edge: jax.Array) -> tuple[State, jax.Array]:
    """Draw `edge` ([] int) and return the next state and whether the same side moves again.

    Callers mask drawn edges: drawing one again closes nothing and passes the turn. After the last
    edge the side that drew it stays the side to move.
    """
    chex.assert_shape(state.drawn, (board.num_edges,), custom_message="state.drawn")
    chex.assert_shape(edge, (), custom_message="edge")
    chex.assert_type(edge, int, custom_message="edge")
    # A comparison instead of a scatter, for the same reason as in `box_sides`.
    drawn = state.drawn | (jnp.arange(board.num_edges, dtype=jnp.int32) == edge)
    closed = boxes_closed(board, drawn) - boxes_closed(board, state.drawn)
    again = closed > 0
    margin = state.margin + closed
    return State(
        drawn=drawn,
        margin=jnp.where(again, margin, -margin),
        player=jnp.where(again, state.player, 1 - state.player),
    ), again


def random_edge(key: jax.Array, state: State) -> jax.Array:
    """Draw a legal edge uniformly, in one game: [] int32."""
    logits = jnp.where(legal_edges(state), jnp.float32(0), -jnp.inf)
    return jax.random.categorical(key, logits).astype(jnp.int32)


def boxes_gained(state: State, next_state: State, again: jax.Array) -> jax.Array:
    """Return how many boxes a move closed, given the results of `step`: [] int32, 0 to 2."""
    return jnp.where(again, next_state.margin - state.margin, 0)


def discount(next_state: State, again: jax.Array) -> jax.Array:
    """Return the factor from the value of the next position to this one: [] float32.

    Each value is for the side to move there: +1 when the same side moves again, -1 when the turn
    passes, 0 when the game is over. The only sign flip in the plain game. In the quiet game it is
    `search/quiet_game.outcome`, because captures decide who moves next.
    """
    sign = jnp.where(again, jnp.float32(1), -1)
    return jnp.where(is_over(next_state), 0.0, sign)


def most_sides_beside(board: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return for every edge, drawn or not, the drawn sides of its fullest open box: [A] int32.

    3: drawing the edge closes a box; 2: it gives a box away; less: it is safe.
    """
    sides = box_sides(board, drawn)
    return highest_beside(jnp.where(sides == 4, 0, sides))


def highest_beside(boxes: jax.Array) -> jax.Array:
    """Return for every edge the higher value of its two boxes: [rows, cols] to [A]; outside 0."""
    return _beside(jnp.maximum, boxes)


def lowest_beside(boxes: jax.Array) -> jax.Array:
    """Return for every edge the lower value of its two boxes: [rows, cols] to [A]; outside 0."""
    return _beside(jnp.minimum, boxes)


def _beside(choose: Callable, boxes: jax.Array) -> jax.Array:
    padded = jnp.pad(boxes, 1)
    rows, cols = padded[:, 1:-1], padded[1:-1]
    horizontal = choose(rows[:-1], rows[1:])
    vertical = choose(cols[:, :-1], cols[:, 1:])
    return jnp.concatenate([horizontal.ravel(), vertical.ravel()])
