"""Matches between two players; all games advance together, ply by ply."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.agent.players import Player, seeds
from jaxzero.config.ranges import PositiveInt, check_number
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, State, initial_states, is_over, replay, step

MOST_AT_ONCE = 8192  # games, so that memory does not grow with a match
TRIES = 32  # draws of an opening before a repeated one is accepted
Z_95 = 1.959964  # two-sided 95 % quantile of the normal distribution


class Shares(NamedTuple):
    """How several processes share out a piece of work with numbered rows; all call both alike."""

    own: Callable[[int], np.ndarray]  # of so many rows, the numbers [K] that this process does
    join: Callable[[np.ndarray, int], np.ndarray]  # its rows [K, ...] to those of all, in order


ALONE = Shares(np.arange, lambda rows, _count: rows)


@dataclass(frozen=True)
class MatchResult:
    """A match from one player's side: the number of games by final margin, in boxes."""

    first: dict[int, int]  # {final margin: games} with the player in the first seat
    second: dict[int, int]  # the same in the second seat
    repeats: int = 0  # games with the same moves as an earlier game in the same seat

    @classmethod
    def of(cls, margins: np.ndarray, repeats: int = 0) -> MatchResult:
        """Count the final margins [B] of a match in which the seats alternate."""
        first, second = (dict(Counter(seat.tolist())) for seat in (margins[0::2], margins[1::2]))
        return cls(first, second, repeats)

    def mirrored(self) -> MatchResult:
        """Return the match from the other player's side."""
        return MatchResult(
            *({-m: n for m, n in seat.items()} for seat in (self.second, self.first)),
            repeats=self.repeats,
        )

    @property
    def both(self) -> Counter:
        """The number of games by final margin, over both seats."""
        return Counter(self.first) + Counter(self.second)

    @property
    def wins(self) -> int:
        return sum(games for margin, games in self.both.items() if margin > 0)

    @property
    def draws(self) -> int:
        return self.both[0]

    @property
    def losses(self) -> int:
        return self.games - self.wins - self.draws

    @property
    def games(self) -> int:
        return self.both.total()

    @property
    def margin(self) -> float:
        """Mean boxes ahead at the end."""
        return _mean(self.both)

    @property
    def points(self) -> float:
        """Wins plus half the draws, as a share of the games."""
        return (self.wins + self.draws / 2) / self.games

    @property
    def distinct(self) -> int:
        """Games that differ; a repeated game adds no information."""
        return self.games - self.repeats

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the points, from the games that differ."""
        return wilson_interval(self.points, self.distinct)

    def to_dict(self) -> dict:
        """Return the result as JSON.

        Keys: points, low, high, games, distinct (games that differ), margin, wins, draws, losses,
        and margins (the number of games by seat and final margin).
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
            "margins": {
                seat: {f"{margin:+d}": games for margin, games in sorted(counts.items())}
                for seat, counts in (("first", self.first), ("second", self.second))
            },
        }

    def __str__(self) -> str:
        low, high = self.interval
        differ = f", {self.distinct} games differ" if self.repeats else ""
        return (
            f"{self.points:6.1%} [{low:.1%}, {high:.1%}]  "
            f"{self.wins} won {self.draws} drawn {self.losses} lost  margin {self.margin:+.2f} "
            f"({_mean(self.first):+.2f} moving first, {_mean(self.second):+.2f} second){differ}"
        )


def _mean(seat: Mapping[int, int]) -> float:
    return sum(m * games for m, games in seat.items()) / max(1, sum(seat.values()))


def wilson_interval(share: float, games: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share of `games` (Wilson 1927).

    With draws the interval is too wide: it assumes that every game is won or lost.
    """
    z = Z_95
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
    shares: Shares = ALONE,
) -> MatchResult:
    """Play `games` (even) games in pairs with swapped seats from the same random opening.

    An opening has 0 to `opening_plies` uniformly random moves. Pairs have different openings as far
    as there are enough. `at_once` games are played at a time, 0: all. The result does not depend on
    `at_once` and `shares`: the randomness of a game comes from its number. But where the solver of
    `perfect` runs out of nodes, its table, which outlives a game, helps it.
    Raises: InputError for an odd number of games or none, a player of another board, and one that
    draws an edge that it may not draw.
    """
    settings = games, opening_plies, seed, at_once, shares
    return play_recorded_match(game, first, second, *settings)[0]


def play_recorded_match(
    game: DotsAndBoxes,
    first: Player,
    second: Player,
    games: int,
    opening_plies: int,
    seed: int,
    at_once: int = 0,
    shares: Shares = ALONE,
) -> tuple[MatchResult, np.ndarray]:
    """Play a match as `play_match`, and return the moves of its games too: [games, A] int32.

    The moves begin with the opening. `first` moves first in even games, `second` in odd ones.
    """
    games = check_number("games", games, PositiveInt)
    if games % 2:
        raise InputError(f"games: {games} must be even (pairs with swapped seats)")
    for player in (first, second):
        if player.board not in (None, game):
            raise InputError(f"player: {player.name} plays {player.board}, not {game}")
    # Weights from a file are on the host. Copy them to the device once, not at every ply.
    players = tuple(
        player
        if player.on_host
        else replace(player, params=jax.device_put(player.params, jax.local_devices()[0]))
        for player in (first, second)
    )
    opening_moves = draw_opening_moves(game, games // 2, opening_plies, seed)
    openings = after_moves(game, opening_moves)
    play_key = jax.random.key(seed)
    at_once = min(at_once or games, MOST_AT_ONCE)
    own = shares.own(games)
    parts = [
        play_games(game, players, openings, play_key, own[begin:][:at_once])
        for begin in range(0, len(own), at_once)
    ]
    margins, moves = (shares.join(np.concatenate(x), games) for x in zip(*parts, strict=True))
    _check_legal(game, (first, second), opening_moves, moves)
    seats = np.arange(games) % 2
    played = np.concatenate([seats[:, None], np.repeat(openings.drawn, 2, axis=0), moves], axis=1)
    result = MatchResult.of(margins, repeats=games - len(np.unique(played, axis=0)))
    whole = np.concatenate([np.repeat(opening_moves.T, 2, axis=0), moves], axis=1)
    return result, whole[whole >= 0].reshape(games, game.num_edges)  # without the gaps, -1


def play_games(
    game: DotsAndBoxes,
    players: tuple[Player, Player],
    openings: State,
    key: jax.Array,
    numbers: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Play the games `numbers` [B] from the `openings` [P] of their pairs to the end.

    Returns the final margins of `players[0]` [B] and the edges of every ply [B, A], -1 after the
    end. `players[0]` is side 0 of the State in even games, side 1 in odd games.
    """
    # On the device like all later states; otherwise the first ply would compile separately.
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


def _check_legal(
    game: DotsAndBoxes, players: tuple[Player, Player], openings: np.ndarray, moves: np.ndarray
) -> None:
    """Raise an InputError naming a player that drew an edge off the board or twice.

    `openings` [T, P] and `moves` [games, A] hold -1 where nothing was drawn.
    """
    whole = np.concatenate([np.repeat(openings.T, 2, axis=0), moves], axis=1)
    complete = np.sort(whole, axis=1)[:, -game.num_edges :] == np.arange(game.num_edges)
    for number in np.flatnonzero(~complete.all(axis=1)):
        opening = openings[:, number // 2]
        drawn = opening[opening >= 0].tolist()
        for edge in moves[number].tolist():
            if edge in drawn or edge not in range(game.num_edges):
                mover = replay(game, (), drawn)[0][-1]
                name = players[(mover + number) % 2].name
                raise InputError(f"player: {name} drew edge {edge}, which it may not draw")
            drawn.append(edge)


def _ask(player: Player, keys: jax.Array, state: State, seat: jax.Array, number: int) -> jax.Array:
    """Return the edges [B] of player `number`, valid in games where it is to move."""
    if not player.on_host:
        # Does not wait for the device. jit compiles once for each function object.
        edge = jax.jit(player.act)(player.params, keys, state)
        return player.checked(edge, len(state.drawn))
    drawn, mover, seat = (np.array(part) for part in (state.drawn, state.player, seat))
    turn = ((mover == seat) == (number == 0)) & ~drawn.all(axis=1)
    edge = np.zeros(len(drawn), np.int32)
    if turn.any():
        chosen = player.act(seeds(keys)[turn], drawn[turn])
        edge[turn] = player.checked(chosen, int(turn.sum()))
    return jax.device_put(edge, jax.local_devices()[0])


def draw_openings(game: DotsAndBoxes, pairs: int, longest: int, seed: int) -> State:
    """Draw a position after 0 to `longest` random moves for each pair of games: State [P]."""
    return after_moves(game, draw_opening_moves(game, pairs, longest, seed))


def draw_opening_moves(game: DotsAndBoxes, pairs: int, longest: int, seed: int) -> np.ndarray:
    """Draw 0 to `longest` random moves for each pair of games: [T, P] int32, -1 after the last.

    An opening that an earlier pair has is drawn again, up to TRIES times: from it, players without
    randomness would repeat their games. The opening of a pair does not depend on later pairs.
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
    edges = np.full((min(longest, game.num_edges), pairs), -1, np.int32)
    for pair, moves in enumerate(sequences):
        edges[: len(moves), pair] = moves
    return edges


def after_moves(game: DotsAndBoxes, moves: np.ndarray) -> State:
    """Return the positions after moves [T, P], -1 for none: State [P]."""
    state = jax.device_get(initial_states(game, moves.shape[1]))
    for edge in moves:
        state = _replay(game, state, edge)
    return jax.device_get(state)


@partial(jax.jit, static_argnums=0)
def _replay(game: DotsAndBoxes, state: State, edge: jax.Array) -> State:
    """Play a recorded edge in every game; -1 leaves a game as it is."""
    moved, _ = jax.vmap(partial(step, game))(state, edge)
    played = jax.vmap(lambda edge, old, new: jax.tree.map(partial(jnp.where, edge >= 0), new, old))
    return played(edge, state, moved)


@partial(jax.jit, static_argnums=0)
def _advance(
    game: DotsAndBoxes, state: State, seat: jax.Array, first: jax.Array, second: jax.Array
) -> tuple[State, jax.Array]:
    """Play the edge of the player to move in every game, given the edges of both players [B].

    Returns the states and the edges played, -1 in finished games.
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
