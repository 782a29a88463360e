"""Games of the quiet game on 3x3, played out edge by edge before the referee."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from referee import Referee

from jaxzero.agent.search import Evaluate, Evaluation
from jaxzero.config import Config
from jaxzero.game import DotsAndBoxes, State
from jaxzero.game.quiet import closing_edge, quiet_moves
from jaxzero.game.structure import structure
from jaxzero.training.selfplay import new_games, play_to_the_end

GAME = DotsAndBoxes(3, 3)


@jax.jit
def openings(drawn: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the moves [A] of a quiet position and the quiet positions behind each [A, A]."""
    after = drawn[None, :] | jnp.eye(GAME.num_edges, dtype=bool)
    behind = jax.vmap(lambda drawn: structure(GAME, drawn))(after).quiet
    return quiet_moves(GAME, structure(GAME, drawn)), behind


@jax.jit
def close(drawn: jax.Array, decline: jax.Array) -> jax.Array:
    return closing_edge(GAME, drawn, structure(GAME, drawn), decline)


def board(referee: Referee) -> np.ndarray:
    drawn = np.zeros(referee.num_edges, bool)
    drawn[list(referee.drawn)] = True
    return drawn


def play_to(referee: Referee, quiet: np.ndarray, player: int) -> bool:
    """Open what leads to `quiet` with `player` to move, give out the boxes; was any declined?"""
    moves, behind = jax.device_get(openings(board(referee)))
    mover = referee.player
    (edge, *_) = np.flatnonzero(moves & (behind == quiet).all(axis=1))
    referee.play(int(edge))
    declined = player == mover
    while referee.player != mover and len(referee.drawn) < quiet.sum():
        referee.play(int(close(board(referee), np.asarray(declined))))
    while len(referee.drawn) < quiet.sum():
        referee.play(int(close(board(referee), np.asarray(False))))
    return declined


def play_all(config: Config, evaluate: Evaluate, games: int, *keys: jax.Array) -> tuple:
    """Return decisions and results of games, by the keys of their openings and of their play."""

    return _played(config, evaluate, games)(*keys)


@cache
def _played(config: Config, evaluate: Evaluate, games: int):
    @jax.jit
    def run(random_key: jax.Array, play_key: jax.Array) -> tuple:
        begin = new_games(config, random_key, games)
        return play_to_the_end(config, evaluate, (), play_key, begin)

    return run


def hashed(_params, state: State, _found) -> Evaluation:
    """Evaluate with flat priors and wild values, so that boxes are declined and taken."""
    waves = np.random.default_rng(0).uniform(0, 6, GAME.num_edges).astype(np.float32)
    value = jnp.sin(state.drawn.astype(jnp.float32) @ waves)
    value = jnp.where(state.drawn.all(-1), 0.0, value)
    return Evaluation(jnp.where(state.drawn, -1e9, 0.0), value)
