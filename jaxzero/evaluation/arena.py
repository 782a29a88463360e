"""Matches between two players, all games at once, ply by ply."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.agent.players import Player, seeds
from jaxzero.game import DotsAndBoxes, State, initial_states, is_over, step

TRIES = 32  # draws of an opening before one is repeated
Z_95 = 1.959964  # two-sided 95 % quantile of the normal distribution


@dataclass(frozen=True)
class MatchResult:
    """A match from one player's side: its games by their final margin, in boxes."""

    first: dict[int, int]  # final margin: games, of those in which the player had the first seat
    second: dict[int, int]  # the same of those in the second seat
    repeats: int = 0  # games that were, move by move, the same as an earlier one in the same seat

    @classmethod
    def of(cls, margins: np.ndarray, repeats: int = 0) -> MatchResult:
        """Count the games [B] of a match, in which the seats alternate."""
        return cls(_count(margins[0::2]), _count(margins[1::2]), repeats)

    def mirrored(self) -> MatchResult:
        """Return the match from the other player's side."""
        return MatchResult(
            *({-m: n for m, n in seat.items()} for seat in (self.second, self.first)),
            repeats=self.repeats,
        )

    @property
    def wins(self) -> int:
        return self._games(lambda margin: margin > 0)

    @property
    def draws(self) -> int:
        return self._games(lambda margin: margin == 0)

    @property
    def losses(self) -> int:
        return self._games(lambda margin: margin < 0)

    @property
    def games(self) -> int:
        return self._games(lambda margin: True)

    @property
    def margin(self) -> float:
        """Mean boxes ahead at the end."""
        return _mean(Counter(self.first) + Counter(self.second))

    def _games(self, of: Callable[[int], bool]) -> int:
        seats = (self.first, self.second)
        return sum(games for seat in seats for margin, games in seat.items() if of(margin))

    @property
    def points(self) -> float:
        """Wins plus half the draws, as a share of the games."""
        return (self.wins + self.draws / 2) / self.games

    @property
    def distinct(self) -> int:
        """Games that differ: a game that is played again says nothing new."""
        return self.games - self.repeats

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the points, from the games that differ."""
        return wilson_interval(self.points, self.distinct)

    def to_dict(self) -> dict:
        """Return the result as JSON.

        Keys: points, low, high, games, distinct (games that differ), margin, wins, draws, losses,
        and margins: by seat, the number of games that ended with each margin.
        """
        low, high = self.interval
        return {
            "points": round(self.points, 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "games": self.games,
            "distinct": self.distinct,
            "margin": round(self.margin, 3),
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "margins": {"first": _by_margin(self.first), "second": _by_margin(self.second)},
        }

    def __str__(self) -> str:
        low, high = self.interval
        differ = f", {self.distinct} games differ" if self.repeats else ""
        return (
            f"{self.points:6.1%} [{low:.1%}, {high:.1%}]  "
            f"{self.wins} won {self.draws} drawn {self.losses} lost  margin {self.margin:+.2f} "
            f"({_mean(self.first):+.2f} moving first, {_mean(self.second):+.2f} second){differ}"
        )


def _count(margins: np.ndarray) -> dict[int, int]:
    return dict(Counter(margins.tolist()))


def _mean(seat: Mapping[int, int]) -> float:
    return sum(m * games for m, games in seat.items()) / max(1, sum(seat.values()))


def _by_margin(seat: dict[int, int]) -> dict[str, int]:
    return {f"{margin:+d}": seat[margin] for margin in sorted(seat)}


def wilson_interval(share: float, games: int, z: float = Z_95) -> tuple[float, float]:
    """Return the Wilson score interval of a share of `games` (Wilson 1927).

    With draws the share is not of independent yes-or-no trials; the interval is then too wide.
    """
    centre = share + z * z / (2 * games)
    spread = z * math.sqrt(share * (1 - share) / games + z * z / (4 * games * games))
    scale = 1 + z * z / games
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def play_match(
    game: DotsAndBoxes,
    first: Player,
    second: Player,
    games: int,
    opening_plies: int,
    seed: int,
    at_once: int = 0,
) -> MatchResult:
    """Play `games` (even) games in pairs with swapped colours from the same random opening.

    An opening has 0 to `opening_plies` uniformly random moves, and no two pairs have the same as
    long as there are others. `at_once` (even) games are played at a time, 0: all. The result does
    not depend on that: the randomness of a game comes from its number.
    """
    if games % 2 or at_once % 2:
        raise ValueError(f"games: {games}, {at_once} must be even (colour-swapped pairs)")
    # Weights from a file are on the host: they go to the device once, not at every ply.
    players = tuple(
        player
        if player.on_host
        else replace(player, params=jax.device_put(player.params, jax.local_devices()[0]))
        for player in (first, second)
    )
    openings = draw_openings(game, games // 2, opening_plies, seed)
    play_key = jax.random.key(seed)
    at_once = at_once or games
    parts = [
        play_games(game, players, openings, play_key, np.arange(games)[begin:][:at_once])
        for begin in range(0, games, at_once)
    ]
    margins, moves = (np.concatenate(part) for part in zip(*parts, strict=True))
    seats = np.arange(games) % 2
    played = np.concatenate([seats[:, None], np.repeat(openings.drawn, 2, axis=0), moves], axis=1)
    return MatchResult.of(margins, repeats=games - len(np.unique(played, axis=0)))


def play_games(
    game: DotsAndBoxes,
    players: tuple[Player, Player],
    openings: State,
    key: jax.Array,
    numbers: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Play the games of these `numbers` [B] to their end; `openings` [P] are of pairs of games.

    Returns the final margins of the first player [B] and the edges of every ply [B, A], -1 where
    the game was over. The first player is player 0 in even games and player 1 in odd ones.
    """
    # Put on the device, as what comes back from it is: else the first ply compiles for itself.
    put = partial(jax.device_put, device=jax.local_devices()[0])
    state = put(jax.tree.map(lambda leaf: leaf[numbers // 2], openings))
    seat, game_keys = put((numbers % 2).astype(np.int32)), put(_fold(key, numbers))
    moves = []
    for ply in range(game.num_edges):
        keys = _fold_in(game_keys, ply)
        edges = [_ask(player, keys, state, seat, number) for number, player in enumerate(players)]
        state, edge = _advance(game, state, seat, *edges)
        moves.append(edge)
    end, seat, moves = jax.device_get((state, seat, moves))
    return np.where(end.player == seat, end.margin, -end.margin), np.stack(moves, axis=1)


def _ask(player: Player, keys: jax.Array, state: State, seat: jax.Array, number: int) -> jax.Array:
    """Return the edges [B] of player 0 or 1 of a match, where it is its turn."""
    if not player.on_host:
        # On the device, without waiting for it. Compiled once for a player that is made once.
        return jax.jit(player.act)(player.params, keys, state)
    drawn, mover, seat = (np.array(part) for part in (state.drawn, state.player, seat))
    turn = ((mover == seat) == (number == 0)) & ~drawn.all(axis=1)
    edge = np.zeros(len(drawn), np.int32)
    if turn.any():
        edge[turn] = player.act(seeds(keys)[turn], drawn[turn])
    return jax.device_put(edge, jax.local_devices()[0])


def draw_openings(game: DotsAndBoxes, pairs: int, longest: int, seed: int) -> State:
    """Draw a position after 0 to `longest` random moves for each pair of games: State [P].

    A position that an earlier pair has is drawn again, up to TRIES times: players without
    randomness would play the same games from it. Openings of earlier pairs do not depend on how
    many follow.
    """
    seen, sequences = set(), []
    for pair in range(pairs):
        rng = np.random.default_rng((seed, pair))
        for _ in range(TRIES):
            moves = rng.permutation(game.num_edges)[: rng.integers(longest + 1)]
            position = frozenset(moves.tolist())
            if position not in seen:
                break
        seen.add(position)
        sequences.append(moves)
    edges = np.full((longest, pairs), -1, np.int32)
    for pair, moves in enumerate(sequences):
        edges[: len(moves), pair] = moves
    state = jax.device_get(initial_states(game, pairs))
    for edge in edges[: game.num_edges]:
        state = _replay(game, state, edge)
    return jax.device_get(state)


@partial(jax.jit, static_argnums=0)
def _replay(game: DotsAndBoxes, state: State, edge: jax.Array) -> State:
    """Play a recorded edge in every game; in games where it is -1 nothing."""
    moved, _ = jax.vmap(partial(step, game))(state, edge)
    played = jax.vmap(lambda edge, old, new: jax.tree.map(partial(jnp.where, edge >= 0), new, old))
    return played(edge, state, moved)


@partial(jax.jit, static_argnums=0)
def _advance(
    game: DotsAndBoxes, state: State, seat: jax.Array, first: jax.Array, second: jax.Array
) -> tuple[State, jax.Array]:
    """Play the edge of the player to move in every game, given those of both players [B].

    Returns that edge too, -1 in games that are over and stand still.
    """
    edge = jnp.where(state.player == seat, first, second)
    over = jax.vmap(is_over)(state)
    moved, _ = jax.vmap(partial(step, game))(state, edge)
    return jax.vmap(_unless_over)(state, moved), jnp.where(over, -1, edge)


def _unless_over(state: State, moved: State) -> State:
    return jax.tree.map(lambda old, new: jnp.where(is_over(state), old, new), state, moved)


_fold_in = jax.jit(jax.vmap(jax.random.fold_in, in_axes=(0, None)))


@jax.jit
def _fold(key: jax.Array, numbers: jax.Array) -> jax.Array:
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers)
