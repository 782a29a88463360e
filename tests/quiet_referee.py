"""Replay games of the quiet game on 3x3 edge by edge with the plain-Python referee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from referee import Referee

from jaxzero.config import Config, Plan, plan
from jaxzero.game import DotsAndBoxes, State
from jaxzero.game.quiet import closing_edge, quiet_moves
from jaxzero.game.structure import find_structure
from jaxzero.heads import Decisions
from jaxzero.search.interface import Evaluation, PositionEvaluator
from jaxzero.training import selfplay
from jaxzero.training.targets import Positions

BOARD = DotsAndBoxes(3, 3)


@jax.jit
def openings(drawn: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the moves [A] of a quiet position and the quiet position after each move [A, A]."""
    after = drawn[None, :] | jnp.eye(BOARD.num_edges, dtype=bool)
    behind = jax.vmap(lambda drawn: find_structure(BOARD, drawn))(after).quiet
    return quiet_moves(BOARD, find_structure(BOARD, drawn)), behind


@jax.jit
def close(drawn: jax.Array, decline: jax.Array) -> jax.Array:
    return closing_edge(BOARD, drawn, find_structure(BOARD, drawn), decline)


def board(referee: Referee) -> np.ndarray:
    drawn = np.zeros(referee.num_edges, bool)
    drawn[list(referee.drawn)] = True
    return drawn


def play_to(referee: Referee, quiet: np.ndarray, player: int) -> bool:
    """Play on to `quiet` with `player` to move; return whether the opponent declined boxes."""
    new = np.flatnonzero(quiet & ~board(referee))
    if len(new) == 1:  # a move of the plain game, or a safe one
        referee.play(int(new[0]))
        return False
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


def steps_of(decisions: Decisions, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps and lanes of the decisions of game `number`, in order."""
    return np.nonzero(decisions.played & (decisions.game == number))


def replay(decisions: Decisions, number: int) -> tuple[Referee, int]:
    """Replay a game up to its last decision; return the referee and the number of declines."""
    where, referee, declined = steps_of(decisions, number), Referee(BOARD), 0
    boards, players, leads = (
        x[where] for x in (decisions.drawn, decisions.player, decisions.ahead)
    )
    referee.drawn = set(np.flatnonzero(boards[0]).tolist())
    referee.player, referee.scores = int(players[0]), [int(leads[0]), 0]
    for quiet, player, lead in zip(boards[1:], players[1:], leads[1:], strict=True):
        declined += play_to(referee, quiet, player)
        assert set(np.flatnonzero(quiet)) == referee.drawn
        assert (player, lead) == (referee.player, referee.scores[0] - referee.scores[1])
    return referee, declined


class Played(NamedTuple):
    """Self-play and the samples made from it: N games in B lanes of T steps."""

    decisions: Decisions  # [T, B]
    results: np.ndarray  # [N]
    positions: Positions  # [T * B], of all decisions
    stored: Positions
    metrics: dict[str, np.ndarray]
    longest: np.ndarray | None  # [N], largest number of decisions of each game of a queue


def sizes_of(config: Config, games: int) -> Plan:
    """Return the sizes of an iteration of `games` games."""
    selfplay = replace(config.selfplay, games_per_iteration=games)
    return plan(replace(config, selfplay=selfplay))


def play_program(config: Config, evaluator: PositionEvaluator, games: int) -> Callable[..., Played]:
    """Return a compiled function from a key and the progress of the run to an iteration's games."""
    functions = (selfplay.play_to_the_end, selfplay.label, selfplay.longest_first)
    sizes, seen = sizes_of(config, games), {}

    def noted(function):
        return lambda *inputs: seen.setdefault(function.__name__, function(*inputs))

    def run(key: jax.Array, progress: chex.Numeric = 0.0) -> Played:
        with pytest.MonkeyPatch.context() as patch:
            for function in functions:
                patch.setattr(selfplay, function.__name__, noted(function))
            stored, metrics = selfplay.play_block(config, sizes, evaluator, key, progress)
        _, longest = seen.get("longest_first", (None, None))
        return Played(*seen["play_to_the_end"], seen["label"], stored, metrics, longest)

    program = jax.jit(run)
    return lambda *inputs: jax.device_get(program(*inputs))


def hashed(state: State, _structure) -> Evaluation:
    """Evaluate with uniform priors and erratic values, so that boxes are declined and taken."""
    waves = np.random.default_rng(0).uniform(0, 6, BOARD.num_edges).astype(np.float32)
    value = jnp.sin(state.drawn.astype(jnp.float32) @ waves)
    value = jnp.where(state.drawn.all(-1), 0.0, value)
    return Evaluation(jnp.where(state.drawn, -1e9, 0.0), value)


HASHED = PositionEvaluator(hashed, "cpu")
