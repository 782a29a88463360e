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

    goes_on: jax.Array  # [B] bool, the opening has not passed its limit yet
    kept: State  # [B], the last position that is accepted as a start
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

    None at all where `plies` is 0 and not traced. Half of the games get more, up to one fewer than
    the shortest quiet game has. In three of four they are safe moves as long as there are
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
    noise = jax.random.gumbel(close_key, (games, game.num_boxes))
    facing = jax.vmap(partial(_close, game, above))(noise, manner, start)
    play = jax.vmap(partial(_ply, game, above))

    def ply(number: jax.Array, opening: Opening) -> Opening:
        noise = jax.random.gumbel(jax.random.fold_in(move_key, number), start.drawn.shape)
        return play(noise, manner, opening)

    # No opening is longer, so the loop need not ask. The last turn moves in vain: it takes over
    # what the one before has played.
    first = Opening(jnp.ones(games, bool), facing, facing)
    return jax.lax.fori_loop(0, most_decisions(game) + 1, ply, first).kept


def _manners(game: DotsAndBoxes, key: jax.Array, games: int, plies: chex.Numeric) -> Manner:
    """Draw how each game opens: Manner [B]."""
    number = jnp.arange(games)
    most = fewest_decisions(game) - 1
    size = jnp.array([game.rows, game.cols])
    # One draw: each is dear to compile.
    row, col, slope, sign, closed, length = jax.random.uniform(key, (6, games))
    center = jnp.stack([row, col], axis=1) * (1 + 2 * FARTHEST) - FARTHEST
    slope = STEEPEST * jnp.maximum(2 * slope - 1, 0)
    closed = jnp.floor(closed * game.num_boxes).astype(jnp.int32)
    # As far below `plies` as above: half of the games begin there.
    length = 2 * plies - most + jnp.floor(length * (2 * (most - plies) + 1)).astype(jnp.int32)
    length = jnp.maximum(plies, length)
    return Manner(
        careful=number % 4 < 3,
        center=center * size[None, :],
        slope=jnp.where(sign < 0.5, slope, -slope),
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


def _close(game: DotsAndBoxes, above: int, noise: jax.Array, manner: Manner, start: State) -> State:
    """Close the first boxes of one game, by Gumbel noise [boxes], unless that leaves no move."""
    noisy = _logits(manner, jnp.asarray(box_centres(game))) + noise
    rank = jnp.sum(noisy[None, :] > noisy[:, None], axis=1)
    closed = (rank < manner.closed).reshape(game.rows, game.cols)
    drawn = highest_beside(closed.astype(jnp.int32)) > 0
    drawn = drawn & (_moves(game, drawn) < fewest_decisions(game))
    if above:
        drawn = drawn & _leaves_enough(above, structure(game, drawn))
    return State(drawn, boxes_closed(game, drawn) % 2, start.player)


def _ply(
    game: DotsAndBoxes, above: int, noise: jax.Array, manner: Manner, opening: Opening
) -> Opening:
    """Take the free boxes of one game and play a move at random, unless its opening is over.

    `noise` [A] is Gumbel noise.
    """
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
    noisy = _logits(manner, jnp.asarray(edge_centres(game))) + noise
    edge = jnp.argmax(jnp.where(allowed, noisy, -jnp.inf)).astype(jnp.int32)
    moved = draw_quiet(game, settle(facing, found, jnp.zeros((), bool)), edge)
    return Opening(goes_on, kept, jax.tree.map(partial(jnp.where, goes_on), moved, facing))
