"""Random openings of the quiet game, for self-play games that begin late.

The result of a game shows what a move is worth only if both sides play well after the move. Games
that begin late are shorter, so there are more of them, and all their positions are near the end.
"""

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import SelfplayConfig
from jaxzero.game import DotsAndBoxes, State, boxes_closed, initial_states
from jaxzero.game.board import box_centres, edge_centres
from jaxzero.game.quiet import draw_quiet, max_decisions, min_decisions, quiet_moves, settle
from jaxzero.game.rules import highest_beside
from jaxzero.game.structure import find_structure

MAX_SLOPE = 4.0  # largest bias, in nats per box; fills the board row by row
MAX_DISTANCE = 2.0  # of the centre, in boards; circles around it then look like lines


class Opening(NamedTuple):
    """Games in their opening."""

    unfinished: jax.Array  # [B] bool, fewer moves than the length so far
    kept: State  # [B], the last position that is accepted as a start
    facing: State  # [B], after the last move; it may have free boxes


class OpeningStyle(NamedTuple):
    """How the opening of one game is played."""

    careful: jax.Array  # [] bool, only safe moves as long as there are any
    center: jax.Array  # [2] float32, row and column in boxes: the board fills to or from it
    slope: jax.Array  # [] float32, rise of a move's logit per box of distance from `center`
    closed: jax.Array  # [] int32, boxes closed before the first move
    length: jax.Array  # [] int32, moves of the quiet game


def first_ply(settings: SelfplayConfig, progress: chex.Numeric) -> chex.Numeric:
    """Return how many random moves precede self-play at `progress` [] of the run, 0 to 1: []."""
    if not settings.late_start_until:
        return settings.late_start_moves
    left = 1 - jnp.minimum(jnp.float32(1), progress / settings.late_start_until)
    return jnp.round(settings.late_start_moves * left).astype(jnp.int32)


def open_games(board: DotsAndBoxes, key: jax.Array, games: int, plies: chex.Numeric) -> State:
    """Play `plies` [] or more random moves of the quiet game in each of `games` games.

    If `plies` is 0 and not traced, no game has random moves. Half of the games or more get more
    than `plies`, up to one fewer than the shortest quiet game has. Three of four games play safe
    moves as long as there are any, the others any moves. All free boxes are taken. Half of the
    boards fill evenly, the others towards or away from a random point. Every other game with random
    moves begins with a random number of boxes closed in the same way, so its open part is a board
    of any shape and size. The moves that closed these boxes count as played.
    """
    start = initial_states(board, games)
    if isinstance(plies, int) and not plies:
        return start
    style_key, close_key, move_key = jax.random.split(key, 3)
    style = _draw_styles(board, style_key, games, plies)
    noise = jax.random.gumbel(close_key, (games, board.num_boxes), jnp.float32)
    facing = jax.vmap(partial(_close, board))(noise, style, start)
    play = jax.vmap(partial(_ply, board))

    def ply(number: jax.Array, opening: Opening) -> Opening:
        key = jax.random.fold_in(move_key, number)
        noise = jax.random.gumbel(key, start.drawn.shape, jnp.float32)
        return play(noise, style, opening)

    # No opening is longer, so the loop has a fixed length. The last round only accepts the move of
    # the round before; its own move is dropped.
    first = Opening(jnp.ones(games, bool), facing, facing)
    return jax.lax.fori_loop(0, max_decisions(board) + 1, ply, first).kept


def _draw_styles(
    board: DotsAndBoxes, key: jax.Array, games: int, plies: chex.Numeric
) -> OpeningStyle:
    """Draw how each game opens: OpeningStyle [B]."""
    number = jnp.arange(games, dtype=jnp.int32)
    max_moves = min_decisions(board) - 1
    sides = jnp.array([board.rows, board.cols], jnp.int32)
    # One draw, because each compiles slowly.
    row, col, slope, sign, closed, length = jax.random.uniform(key, (6, games), jnp.float32)
    center = jnp.stack([row, col], axis=1) * (1 + 2 * MAX_DISTANCE) - MAX_DISTANCE
    slope = MAX_SLOPE * jnp.maximum(2 * slope - 1, 0)
    closed = jnp.floor(closed * board.num_boxes).astype(jnp.int32)
    # Uniform from as far below `plies` as above, so half of the lengths are `plies`. Closed boxes
    # can make an opening longer.
    low, size = 2 * plies - max_moves, 2 * (max_moves - plies) + 1
    length = jnp.maximum(plies, low + jnp.floor(length * size).astype(jnp.int32))
    return OpeningStyle(
        careful=number % 4 < 3,
        center=center * sides[None, :],
        slope=jnp.where(sign < 0.5, slope, -slope),
        closed=jnp.where((number % 2 == 1) & (length > 0), closed, 0),
        length=length,
    )


def _moves(board: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return how many moves of the quiet game led to one position, given its edges: [] int32.

    It assumes that every other edge closed exactly one box.
    """
    return jnp.sum(drawn, dtype=jnp.int32) - boxes_closed(board, drawn)


def _logits(style: OpeningStyle, places: jax.Array) -> jax.Array:
    """Return the logits of places [N, 2] of one game: [N]."""
    chex.assert_shape([style.slope, style.center], [(), (2,)], custom_message="style of a game")
    return style.slope * jnp.linalg.norm(places - style.center[None, :], axis=-1)


def _close(board: DotsAndBoxes, noise: jax.Array, style: OpeningStyle, start: State) -> State:
    """Close random boxes of one game, chosen by Gumbel noise [boxes], if that leaves a move."""
    chex.assert_shape(noise, (board.num_boxes,), custom_message="noise of boxes")
    noisy = _logits(style, jnp.asarray(box_centres(board))) + noise
    rank = jnp.sum(noisy[None, :] > noisy[:, None], axis=1, dtype=jnp.int32)
    closed = (rank < style.closed).reshape(board.rows, board.cols)
    drawn = highest_beside(closed.astype(jnp.int32)) > 0
    drawn = drawn & (_moves(board, drawn) < min_decisions(board))
    return State(drawn, boxes_closed(board, drawn) % 2, start.player)


def _ply(board: DotsAndBoxes, noise: jax.Array, style: OpeningStyle, opening: Opening) -> Opening:
    """Take the free boxes of one game and play a move at random, unless its opening is over.

    `noise` [A] is Gumbel noise.
    """
    unfinished, kept, facing = opening
    chex.assert_shape([noise, facing.drawn], (board.num_edges,), custom_message="edges of a game")
    # The only call of `find_structure` in the loop, because it compiles slowly.
    structure = find_structure(board, facing.drawn)
    kept = jax.tree.map(partial(jnp.where, unfinished), facing, kept)
    unfinished = unfinished & (_moves(board, facing.drawn) < style.length)
    moves = quiet_moves(board, structure)
    safe = moves & structure.safe
    allowed = jnp.where(style.careful & jnp.any(safe), safe, moves)
    noisy = _logits(style, jnp.asarray(edge_centres(board))) + noise
    edge = jnp.argmax(jnp.where(allowed, noisy, -jnp.inf)).astype(jnp.int32)
    moved = draw_quiet(board, settle(facing, structure, jnp.zeros((), bool)), edge)
    return Opening(unfinished, kept, jax.tree.map(partial(jnp.where, unfinished), moved, facing))
