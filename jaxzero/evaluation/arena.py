"""Matches between two players, all games at once on the device."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.agent.players import Act, Player, seeds
from jaxzero.game import DotsAndBoxes, State, initial_state, is_over, random_edge, step

Z_95 = 1.959964  # two-sided 95 % quantile of the normal distribution


@dataclass(frozen=True)
class MatchResult:
    """A match from one player's side: its games by their final margin, in boxes."""

    first: dict[int, int]  # final margin: games, of those in which the player had the first seat
    second: dict[int, int]  # the same of those in the second seat

    @classmethod
    def of(cls, margins: np.ndarray) -> MatchResult:
        """Count the games [B] of a match, in which the seats alternate."""
        return cls(_count(margins[0::2]), _count(margins[1::2]))

    def mirrored(self) -> MatchResult:
        """Return the match from the other player's side."""
        return MatchResult(
            *({-m: n for m, n in seat.items()} for seat in (self.second, self.first))
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
    def interval(self) -> tuple[float, float]:
        return wilson_interval(self.points, self.games)

    def to_dict(self) -> dict:
        """Return the result as JSON.

        Keys: points, low, high, games, margin, wins, draws, losses, and margins: by seat, the
        number of games that ended with each margin.
        """
        low, high = self.interval
        return {
            "points": round(self.points, 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "games": self.games,
            "margin": round(self.margin, 3),
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "margins": {"first": _by_margin(self.first), "second": _by_margin(self.second)},
        }

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.points:6.1%} [{low:.1%}, {high:.1%}]  "
            f"{self.wins} won {self.draws} drawn {self.losses} lost  margin {self.margin:+.2f} "
            f"({_mean(self.first):+.2f} moving first, {_mean(self.second):+.2f} second)"
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
    game: DotsAndBoxes, first: Player, second: Player, games: int, opening_plies: int, seed: int
) -> MatchResult:
    """Play `games` (even) games in pairs with swapped colours from the same random opening.

    An opening has 0 to `opening_plies` uniformly random moves. The result does not depend on
    how many games are played at once: the randomness of a game comes from its number.
    """
    if games % 2:
        raise ValueError(f"games: {games} must be even (colour-swapped pairs)")
    opening_plies = min(opening_plies, game.num_edges)
    key = jax.random.key(seed)
    if first.on_host or second.on_host:
        margins = _play_on_host(game, first, second, games, opening_plies, key)
    else:
        acts, params = (first.act, second.act), (first.params, second.params)
        margins = jax.device_get(_play(game, acts, games, opening_plies, params, key))
    return MatchResult.of(np.asarray(margins))


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _play(
    game: DotsAndBoxes,
    acts: tuple[Act, Act],
    games: int,
    opening_plies: int,
    params: tuple[chex.ArrayTree, chex.ArrayTree],
    key: jax.Array,
) -> jax.Array:
    """Return the final margin of the first player in every game: [B] int32."""
    start, seat, game_keys = _start(game, games, opening_plies, key)

    def play_ply(state: State, ply: jax.Array) -> tuple[State, None]:
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(game_keys, ply)
        edges = [act(own, keys, state) for act, own in zip(acts, params, strict=True)]
        return _advance(game, state, jnp.where(state.player == seat, *edges)), None

    end, _ = jax.lax.scan(play_ply, start, jnp.arange(game.num_edges))
    return jnp.where(end.player == seat, end.margin, -end.margin)


def _play_on_host(
    game: DotsAndBoxes,
    first: Player,
    second: Player,
    games: int,
    opening_plies: int,
    key: jax.Array,
) -> np.ndarray:
    """Do what `_play` does, ply by ply, for players that live on the host.

    A player on the host is asked only about the games in which it is to move.
    """
    state, seat, game_keys = jax.jit(_start, static_argnums=(0, 1, 2))(
        game, games, opening_plies, key
    )
    advance = jax.jit(partial(_advance, game))
    fold = jax.jit(jax.vmap(jax.random.fold_in, in_axes=(0, None)))
    for ply in range(game.num_edges):
        drawn, mine = np.asarray(state.drawn), np.asarray(state.player == seat)
        keys, going = fold(game_keys, ply), ~drawn.all(axis=1)
        edge = np.zeros(games, np.int32)
        for player, turn in ((first, mine & going), (second, ~mine & going)):
            if not turn.any():
                continue
            if player.on_host:
                edge[turn] = player.act(seeds(keys)[turn], drawn[turn])
            else:
                edge[turn] = player.choose(keys, state)[turn]
        state = advance(state, edge)
    return np.where(state.player == seat, state.margin, -state.margin)


def _start(
    game: DotsAndBoxes, games: int, opening_plies: int, key: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    """Return positions after the openings, the first player's seat and a key for every game.

    The first player is player 0 in even games and player 1 in odd ones.
    """
    number = jnp.arange(games)
    opening_key, play_key = jax.random.split(key)
    pair_keys = _fold(opening_key, number // 2)
    start = jax.vmap(partial(random_opening, game, opening_plies))(pair_keys)
    return start, number % 2, _fold(play_key, number)


def _advance(game: DotsAndBoxes, state: State, edge: jax.Array) -> State:
    """Play one edge in every game. Games with a longer opening end earlier and stand still."""
    moved, _ = jax.vmap(partial(step, game))(state, edge)
    return jax.vmap(_unless_over)(state, moved)


def _unless_over(state: State, moved: State) -> State:
    return jax.tree.map(lambda old, new: jnp.where(is_over(state), old, new), state, moved)


def _fold(key: jax.Array, numbers: jax.Array) -> jax.Array:
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers)


def random_opening(game: DotsAndBoxes, longest: int, key: jax.Array) -> State:
    """Play 0 to `longest` uniformly random moves, in one game."""
    count_key, move_key = jax.random.split(key)
    count = jax.random.randint(count_key, (), 0, longest + 1)

    def play_ply(state: State, ply: jax.Array) -> tuple[State, None]:
        edge = random_edge(jax.random.fold_in(move_key, ply), state)
        moved, _ = step(game, state, edge)
        return jax.tree.map(lambda new, old: jnp.where(ply < count, new, old), moved, state), None

    return jax.lax.scan(play_ply, initial_state(game), jnp.arange(longest))[0]
