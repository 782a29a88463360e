"""Self-play games before a decision: how games begin and which positions are searched.

A lane is one place in the batch of parallel games; it holds one game at a time.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config, SelfplayConfig
from jaxzero.game import State
from jaxzero.network.heads import Decisions
from jaxzero.search.search import game_of
from jaxzero.training.openings import first_ply, open_games


class RandomMoves(NamedTuple):
    """When games play uniformly random moves instead of the moves of the search."""

    opening: jax.Array  # [B] int32, random moves at the start
    deviation: jax.Array  # [B] int32, number of a later random move; -1: none

    def at(self, number: jax.Array) -> jax.Array:
        """Return whether move `number` ([] or [B]) is random in each game: [B] bool."""
        return (number < self.opening) | (number == self.deviation)


class Games(NamedTuple):
    """Games before a decision: B in the lanes, or N in a queue."""

    number: jax.Array  # [B] int32, number of the game
    ply: jax.Array  # [B] int32, decisions of this game so far
    state: State  # [B], before its free boxes are taken
    view: chex.ArrayTree  # [B, ...], what the rules compute from the state
    random: RandomMoves  # [B]


class Play(NamedTuple):
    """All lanes between two decisions."""

    step: jax.Array  # [] int32, decisions in every lane so far
    games: Games  # [B], in the lanes
    decisions: Decisions


def new_games(config: Config, key: jax.Array, count: int, fraction: chex.Numeric = 0.0) -> Games:
    """Return `count` games before their first decision, at `fraction` [] of the run."""
    game, settings = config.game.board, config.selfplay
    open_key, random_key = jax.random.split(key)
    plies = first_ply(settings, fraction)
    state = open_games(game, open_key, count, plies)
    moves = config.shortest_whole_game - plies
    return Games(
        number=jnp.arange(count, dtype=jnp.int32),
        ply=jnp.zeros(count, jnp.int32),
        state=state,
        view=jax.vmap(partial(game_of(config.search).view, game))(state.drawn),
        random=draw_random_moves(settings, random_key, count, moves),
    )


def draw_random_moves(
    settings: SelfplayConfig, key: jax.Array, games: int, moves: chex.Numeric
) -> RandomMoves:
    """Choose the random moves of `games` games that have `moves` [] moves each."""
    uniform = jax.random.uniform(key, (3, games), jnp.float32)  # one draw: each compiles slowly
    longest = jnp.minimum(settings.random_opening_moves, moves)
    opening = jnp.floor(uniform[0] * (longest + 1)).astype(jnp.int32)
    deviates = uniform[1] < settings.random_move_fraction
    later = opening + jnp.floor(uniform[2] * (moves - opening)).astype(jnp.int32)
    return RandomMoves(opening, jnp.where(deviates, later, -1))


def start_lanes(config: Config, games: Games) -> Play:
    """Return lanes with these games [B] before their first decision."""
    steps, edges = (config.lane_steps, len(games.ply)), config.game.board.num_edges
    decisions = Decisions(
        drawn=jnp.zeros((*steps, edges), bool),
        policy=jnp.zeros((*steps, edges), jnp.float32),
        player=jnp.zeros(steps, jnp.int32),
        ahead=jnp.zeros(steps, jnp.int32),
        entropy=jnp.zeros(steps, jnp.float32),
        surprise=jnp.zeros(steps, jnp.float32),
        random=jnp.zeros(steps, bool),
        played=jnp.zeros(steps, bool),
        game=jnp.broadcast_to(games.number, steps),
        simulations=jnp.zeros(steps, jnp.int32),
        value=jnp.zeros(steps, jnp.float32),
    )
    return Play(jnp.zeros((), jnp.int32), games, decisions)


def positions_to_search(config: Config, games: Games) -> State:
    """Return the positions [B] that are searched next."""
    return jax.vmap(game_of(config.search).searched)(games.state, games.view)


def has_ended(position: State) -> jax.Array:
    """Return whether games [B] are over at the positions that are searched next: [B] bool."""
    return jnp.all(position.drawn, axis=-1)


def first_player_margin(state: State) -> jax.Array:
    """Return the boxes of the first player minus those of the second."""
    return jnp.where(state.player == 0, state.margin, -state.margin)
