"""Collect positions for a suite from play, and solve them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.agent.players import Player
from jaxzero.evaluation.endgame import move_bounds, new_table
from jaxzero.evaluation.suite import BANDS
from jaxzero.evaluation.values import ILLEGAL
from jaxzero.game import DotsAndBoxes, initial_state, step

GAMES = 256


def collect(
    game: DotsAndBoxes,
    players: Mapping[str, Player],
    per_stratum: int,
    undrawn: tuple[int, int],
    seed: int,
) -> tuple[np.ndarray, list[str]]:
    """Return distinct positions [P, A] bool and the player each comes from.

    A stratum is a player and a band of undrawn edges within `undrawn`; each gives `per_stratum`
    positions, or what its games held.
    """
    rng = np.random.default_rng(seed)
    fewest, most = undrawn
    drawn, origin, seen = [], [], set()
    for number, (name, player) in enumerate(players.items()):
        boards = self_play(game, player, GAMES, seed + number)
        boards = boards[rng.permutation(len(boards))]
        left = (~boards).sum(axis=1)
        for low, high in BANDS:
            inside = (left >= max(low, fewest)) & (left <= min(high, most))
            fresh = [b for b in boards[inside] if b.tobytes() not in seen]
            fresh = list({b.tobytes(): b for b in fresh}.values())[:per_stratum]
            seen |= {b.tobytes() for b in fresh}
            drawn += fresh
            origin += [name] * len(fresh)
    return np.array(drawn), origin


def self_play(game: DotsAndBoxes, player: Player, games: int, seed: int) -> np.ndarray:
    """Return every position of games that a player plays against itself: [games * T, A] bool.

    The first moves are random, so that players without randomness play different games.
    """
    opening = game.num_edges // 6
    start = initial_state(game)
    state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (games, *leaf.shape)), start)
    advance = jax.jit(jax.vmap(lambda state, edge: step(game, state, edge)[0]))
    rng = np.random.default_rng(seed)
    boards = []
    for ply in range(game.num_edges):
        drawn = np.asarray(state.drawn)
        boards.append(drawn)
        if ply < opening:
            edge = np.array([rng.choice(np.flatnonzero(~board)) for board in drawn])
        else:
            key = jax.random.fold_in(jax.random.key(seed), ply)
            edge = player.choose(jax.random.split(key, games), state)
        state = advance(state, jnp.asarray(edge, jnp.int32))
    return np.concatenate(boards)


def solve_all(
    game: DotsAndBoxes, drawn: np.ndarray, node_limit: int, say: Callable[[str], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact value of every move [P, A] int8 and which positions were solved [P]."""
    moves = np.full(drawn.shape, ILLEGAL, np.int8)
    solved = np.zeros(len(drawn), bool)
    table = new_table(2**22)
    for number, board in enumerate(drawn):
        lower, upper = move_bounds(game, board, node_limit=node_limit, table=table)
        moves[number], solved[number] = lower, (lower == upper).all()
        if (number + 1) % 500 == 0:
            say(f"{number + 1} of {len(drawn)} positions, {solved[: number + 1].sum()} solved")
    return moves, solved
