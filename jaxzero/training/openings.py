"""Random openings of the quiet game: where self-play begins when it does not begin at the start.

What a move is worth shows in the results of games only as far back from their end as both sides
play well. Games that begin late are shorter, so there are more of them, and all they teach is near
the end.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.game import DotsAndBoxes, State, initial_states
from jaxzero.game.closing import open_up, settle
from jaxzero.game.geometry import edge_centres
from jaxzero.game.quiet import fewest_decisions, quiet_moves
from jaxzero.game.structure import Structure, structure

STEEPEST = 4.0  # nats a box: there a board fills row by row


class Opened(NamedTuple):
    """Games after their opening."""

    facing: State  # [B], positions with free boxes or without
    found: Structure  # [B], their structure


def open_games(game: DotsAndBoxes, key: jax.Array, games: int, plies: int) -> Opened:
    """Play `plies` or more random moves of the quiet game in each of `games` games, `plies` > 0.

    Half of the games go on, until as late as one move before the least number there is. In every
    other game they are safe moves as long as there are any, as between players who give nothing
    away; else any moves. Free boxes are all taken. Half of the boards fill evenly, the others from
    one side or corner, as each game has a slope of its own that its moves run up.
    """
    start = initial_states(game, games)
    found = jax.vmap(partial(structure, game))(start.drawn)
    careful = jnp.arange(games) % 2 == 0
    slope_key, depth_key, move_key = jax.random.split(key, 3)
    slopes = _slopes(game, slope_key, games)
    play = jax.vmap(partial(_random_move, game))

    opened = Opened(start, found)
    if not plies:
        return opened
    most = fewest_decisions(game) - 1
    length = jnp.maximum(plies, jax.random.randint(depth_key, (games,), 2 * plies - most, most + 1))

    def ply(number: jax.Array, opened: Opened) -> Opened:
        keys = jax.random.split(jax.random.fold_in(move_key, number), games)
        return play(keys, slopes, careful, number < length, opened)

    return jax.lax.fori_loop(0, most, ply, opened)


def _slopes(game: DotsAndBoxes, key: jax.Array, games: int) -> jax.Array:
    """Return logits of the edges that rise in a random direction, each game's its own: [B, A]."""
    angle_key, steepness_key = jax.random.split(key)
    angle = jax.random.uniform(angle_key, (games, 1), maxval=2 * jnp.pi)
    steepness = jax.random.uniform(steepness_key, (games, 1), minval=-STEEPEST, maxval=STEEPEST)
    row, column = jnp.asarray(edge_centres(game)).T[..., None, :]
    return jnp.maximum(steepness, 0) * (jnp.cos(angle) * row + jnp.sin(angle) * column)


def _random_move(
    game: DotsAndBoxes,
    key: jax.Array,
    slope: jax.Array,
    careful: jax.Array,
    goes_on: jax.Array,
    opened: Opened,
) -> Opened:
    """Take the free boxes of one game and play a random move, unless its opening is over."""
    facing, found = opened
    moves = quiet_moves(game, found)
    safe = moves & found.safe
    allowed = jnp.where(careful & jnp.any(safe), safe, moves)
    edge = jax.random.categorical(key, jnp.where(allowed, slope, -jnp.inf)).astype(jnp.int32)
    moved = Opened(*open_up(game, settle(facing, found, jnp.zeros((), bool)), edge))
    return jax.tree.map(partial(jnp.where, goes_on), moved, opened)
