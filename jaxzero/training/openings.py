"""Random openings of the quiet game: where self-play begins when it does not begin at the start.

What a move is worth shows in the results of games only as far back from their end as both sides
play well. Games that begin late are shorter, so there are more of them, and all they teach is near
the end.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import SelfplayConfig
from jaxzero.game import DotsAndBoxes, State, boxes_closed, initial_states
from jaxzero.game.board import box_centres, edge_centres
from jaxzero.game.quiet import draw_quiet, fewest_decisions, most_decisions, quiet_moves, settle
from jaxzero.game.rules import highest_beside
from jaxzero.game.structure import Structure, structure

STEEPEST = 4.0  # nats a box: there a board fills row by row
FARTHEST = 2.0  # boards: from so far away circles are lines


class Opening(NamedTuple):
    """Games in their opening."""

    goes_on: jax.Array  # [B] bool, the last move was no further than it may go, as far as is known
    kept: State  # [B], before the last move, once that is not known to be too far after it
    facing: State  # [B], after the last move, with free boxes or without


class Manner(NamedTuple):
    """How the opening of one game goes."""

    careful: jax.Array  # [] bool, safe moves as long as there are any
    center: jax.Array  # [2] float32, row and column in boxes: the board fills to or from there
    slope: jax.Array  # [] float32, by how much the logit of a move rises a box from there
    closed: jax.Array  # [] int32, boxes closed before the first move
    length: jax.Array  # [] int32, moves of the quiet game


def first_ply(settings: SelfplayConfig, fraction: chex.Numeric) -> chex.Numeric:
    """Return the random moves before self-play at `fraction` [] of the run, 0 to 1: []."""
    if not settings.late_start_until:
        return settings.late_start_moves
    left = 1 - jnp.minimum(1.0, fraction / settings.late_start_until)
    return jnp.round(settings.late_start_moves * left).astype(jnp.int32)


def open_games(
    game: DotsAndBoxes, key: jax.Array, games: int, plies: chex.Numeric, above: int = 0
) -> State:
    """Play `plies` [] or more random moves of the quiet game in each of `games` games.

    None at all where `plies` is 0 and not traced. Half of the games go on, until as late as one
    move before the least number there is. In three of four they are safe moves as long as there are
    any, as between players who give nothing away; else any moves. Free boxes are all taken. Half of
    the boards fill evenly, the others to or from a random point. Every other game that has random
    moves begins with any number of boxes closed in the same order, so that what is open is a board
    of its own, of any form and size: the moves count as if played. No opening goes so far that
    `above` or fewer edges are undrawn once the free boxes are taken.
    """
    start = initial_states(game, games)
    if isinstance(plies, int) and not plies:
        return start
    manner_key, close_key, move_key = jax.random.split(key, 3)
    manner = _manners(game, manner_key, games, plies)
    keys = jax.random.split(close_key, games)
    facing = jax.vmap(partial(_close, game, above))(keys, manner, start)
    play = jax.vmap(partial(_ply, game, above))

    def ply(number: jax.Array, opening: Opening) -> Opening:
        keys = jax.random.split(jax.random.fold_in(move_key, number), games)
        return play(keys, manner, opening)

    # No opening is longer, so the loop need not ask. The last turn moves in vain: it takes over
    # what the one before has played.
    first = Opening(jnp.ones(games, bool), facing, facing)
    return jax.lax.fori_loop(0, most_decisions(game) + 1, ply, first).kept


def _manners(game: DotsAndBoxes, key: jax.Array, games: int, plies: chex.Numeric) -> Manner:
    """Draw how each game opens: Manner [B]."""
    center_key, slope_key, sign_key, closed_key, depth_key = jax.random.split(key, 5)
    number = jnp.arange(games)
    most = fewest_decisions(game) - 1
    size = jnp.array([game.rows, game.cols])
    center = jax.random.uniform(center_key, (games, 2), minval=-FARTHEST, maxval=1 + FARTHEST)
    slope = jax.random.uniform(slope_key, (games,), minval=-STEEPEST, maxval=STEEPEST)
    closed = jax.random.randint(closed_key, (games,), 0, game.num_boxes)
    length = jax.random.randint(depth_key, (games,), 2 * plies - most, most + 1)
    length = jnp.maximum(plies, length)
    return Manner(
        careful=number % 4 < 3,
        center=center * size[None, :],
        slope=jnp.maximum(slope, 0) * jax.random.rademacher(sign_key, (games,)),
        closed=jnp.where((number % 2 == 1) & (length > 0), closed, 0),
        length=length,
    )


def _moves(game: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return how many moves of the quiet game lie behind one position, by what is drawn: [] int32.

    Every other edge closed a box, as far as no two were closed by one.
    """
    return jnp.sum(drawn, dtype=jnp.int32) - boxes_closed(game, drawn)


def _logits(manner: Manner, places: jax.Array) -> jax.Array:
    """Return the logits of places [N, 2] of one game: [N]."""
    return manner.slope * jnp.linalg.norm(places - manner.center[None, :], axis=-1)


def _leaves_enough(above: int, found: Structure) -> jax.Array:
    """Return whether more than `above` edges are undrawn once one game's free boxes are taken."""
    return jnp.sum(~found.quiet) > above


def _close(game: DotsAndBoxes, above: int, key: jax.Array, manner: Manner, start: State) -> State:
    """Close the first boxes of one game, unless that leaves no move."""
    logits = _logits(manner, jnp.asarray(box_centres(game)))
    noisy = logits + jax.random.gumbel(key, logits.shape)
    rank = jnp.sum(noisy[None, :] > noisy[:, None], axis=1)
    closed = (rank < manner.closed).reshape(game.rows, game.cols)
    drawn = highest_beside(closed.astype(jnp.int32)) > 0
    drawn = drawn & (_moves(game, drawn) < fewest_decisions(game))
    if above:
        drawn = drawn & _leaves_enough(above, structure(game, drawn))
    return State(drawn, boxes_closed(game, drawn) % 2, start.player)


def _ply(
    game: DotsAndBoxes, above: int, key: jax.Array, manner: Manner, opening: Opening
) -> Opening:
    """Take the free boxes of one game and play a random move, unless its opening is over."""
    goes_on, kept, facing = opening
    # The only structure in the loop, which is dear to compile: of what was played last.
    found = structure(game, facing.drawn)
    if above:
        goes_on = goes_on & _leaves_enough(above, found)
    kept = jax.tree.map(partial(jnp.where, goes_on), facing, kept)
    goes_on = goes_on & (_moves(game, facing.drawn) < manner.length)
    moves = quiet_moves(game, found)
    safe = moves & found.safe
    allowed = jnp.where(manner.careful & jnp.any(safe), safe, moves)
    logits = _logits(manner, jnp.asarray(edge_centres(game)))
    edge = jax.random.categorical(key, jnp.where(allowed, logits, -jnp.inf)).astype(jnp.int32)
    moved = draw_quiet(game, settle(facing, found, jnp.zeros((), bool)), edge)
    return Opening(goes_on, kept, jax.tree.map(partial(jnp.where, goes_on), moved, facing))
