"""Collect positions for a suite from games, and solve them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.agent.players import Player
from jaxzero.evaluation.suite import BANDS
from jaxzero.game import DotsAndBoxes, initial_states, step
from jaxzero.game.structure import structure
from jaxzero.solver.endgame import move_bounds, new_table
from jaxzero.solver.tablebase import ILLEGAL

CHUNK = 1 << 16  # positions analysed in one call
REPORT_EVERY = 500  # positions between two lines of progress


@dataclass(frozen=True)
class Games:
    """Settings of the games to collect from."""

    count: int = 256  # games of each player against itself
    noise: float = 0.0  # share of random moves after the opening
    quiet: bool = False  # take all free boxes before a position is collected


DEFAULT_GAMES = Games()


def collect(
    game: DotsAndBoxes,
    players: Mapping[str, Player],
    per_stratum: int,
    undrawn: tuple[int, int],
    seed: int,
    games: Games = DEFAULT_GAMES,
) -> tuple[np.ndarray, list[str]]:
    """Return distinct positions [P, A] bool and the name of the player of each.

    A stratum is a player and a band of undrawn edges within `undrawn` (fewest, most). Each stratum
    gives `per_stratum` positions, or fewer if its games have fewer.
    """
    rng = np.random.default_rng(seed)
    fewest, most = undrawn
    drawn, origin, seen = [], [], set()
    for number, (name, player) in enumerate(players.items()):
        boards = self_play(game, player, games.count, seed + number, games.noise)
        boards = quiet_positions(game, boards) if games.quiet else boards
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


def self_play(
    game: DotsAndBoxes, player: Player, games: int, seed: int, noise: float = 0.0
) -> np.ndarray:
    """Return every position of games that a player plays against itself: [games * T, A] bool.

    The first sixth of the moves is random, so that players without randomness play different games.
    Of the later moves a share `noise` is random.
    """
    opening = game.num_edges // 6
    state = initial_states(game, games)
    advance = jax.jit(jax.vmap(lambda state, edge: step(game, state, edge)[0]))
    rng = np.random.default_rng(seed)
    boards = []
    for ply in range(game.num_edges):
        drawn = np.asarray(state.drawn)
        boards.append(drawn)
        if ply < opening:
            edge, strays = np.zeros(games, int), np.arange(games)
        else:
            key = jax.random.fold_in(jax.random.key(seed), ply)
            edge = np.array(player.choose(jax.random.split(key, games), state))
            strays = np.flatnonzero(rng.random(games) < noise)
        for stray in strays:
            edge[stray] = rng.choice(np.flatnonzero(~drawn[stray]))
        state = advance(state, jnp.asarray(edge, jnp.int32))
    return np.concatenate(boards)


def quiet_positions(game: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Take all free boxes of positions [P, A] bool and drop finished games: [Q, A] bool."""
    quiet = jax.jit(jax.vmap(lambda board: structure(game, board).quiet))
    chunks = np.array_split(drawn, -(-len(drawn) // CHUNK))
    behind = np.concatenate([np.asarray(quiet(jnp.asarray(chunk))) for chunk in chunks])
    return behind[~behind.all(axis=1)]


def solve_all(
    game: DotsAndBoxes, drawn: np.ndarray, node_limit: int, say: Callable[[str], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact value of every move [P, A] int8 and whether each position was solved [P]."""
    moves = np.full(drawn.shape, ILLEGAL, np.int8)
    solved = np.zeros(len(drawn), bool)
    table = new_table(2**22)
    began = time.monotonic()
    for number, board in enumerate(drawn):
        lower, upper = move_bounds(game, board, node_limit=node_limit, table=table)
        moves[number], solved[number] = lower, (lower == upper).all()
        done = number + 1
        if done % REPORT_EVERY == 0 or done == len(drawn):
            speed = done / (time.monotonic() - began)
            say(
                f"{done} of {len(drawn)} positions, {solved[:done].sum()} solved, "
                f"{speed:,.0f} a second"
            )
    return moves, solved
