"""Play matches between two players; the games of a match advance in batches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, State, play_moves, step
from jaxzero.players.network_player import Choice
from jaxzero.players.players import Player
from jaxzero.search import quiet_game

MAX_AT_ONCE = 8192  # games, to bound the memory of a match
TRIES = 32  # samples of an opening before a repeated opening is accepted
Z_95 = 1.959964  # two-sided 95 % quantile of the normal distribution


@dataclass(frozen=True)
class MatchResult:
    """The result of a match for one player: the number of games by final margin, in boxes."""

    first: dict[int, int]  # {final margin: games} with the player in the first seat
    second: dict[int, int]  # the same with the player in the second seat
    repeats: int = 0  # games with the same moves as an earlier game in the same seat
    # [games, A] int32, openings included; the player has the first seat in games 0, 2, 4, ...
    moves: np.ndarray | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls, margins: np.ndarray, repeats: int = 0, moves: np.ndarray | None = None
    ) -> MatchResult:
        """Make the result from final margins [B] of games in which the seats alternate."""
        first, second = (dict(Counter(seat.tolist())) for seat in (margins[0::2], margins[1::2]))
        return cls(first, second, repeats, moves)

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
        """The number of different games; a repeated game adds no information."""
        return self.games - self.repeats

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the points, from the number of different games."""
        return wilson_interval(self.points, self.distinct)

    def to_dict(self) -> dict:
        """Return the result as JSON."""
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

    The interval assumes that every game is won or lost, so draws make it too wide.
    """
    z = Z_95
    centre = share + z * z / (2 * games)
    spread = z * math.sqrt(share * (1 - share) / games + z * z / (4 * games * games))
    scale = 1 + z * z / games
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def play_match(
    board: DotsAndBoxes,
    first: Player,
    second: Player,
    games: int,
    opening_plies: int,
    seed: int,
) -> MatchResult:
    """Play `games` (even) games in pairs with swapped seats from the same random opening.

    An opening has 0 to `opening_plies` uniformly random moves. Up to `MAX_AT_ONCE` games advance
    together. The result does not depend on how many do, except that the table of `perfect` outlives
    a game and can help where its solver runs out of nodes.
    Raises: InputError for an odd number of games or none, for a player of another board, and for
    an illegal edge.
    """
    if games < 2 or games % 2:
        raise InputError(f"games: {games} must be even (pairs with swapped seats)")
    for player in (first, second):
        if player.board not in (None, board):
            raise InputError(f"player: {player.name} plays {player.board}, not {board}")
    players = first, second
    openings = draw_openings(board, games // 2, opening_plies, seed)
    positions = after_openings(board, openings)
    play_key = jax.random.key(seed)
    parts = [
        play_games(board, players, positions, play_key, np.arange(begin, end))
        for begin, end in pairwise((*range(0, games, MAX_AT_ONCE), games))
    ]
    margins, moves = (np.concatenate(x) for x in zip(*parts, strict=True))
    seats = np.arange(games) % 2
    played = np.concatenate([seats[:, None], np.repeat(positions.drawn, 2, axis=0), moves], axis=1)
    repeats = games - len(np.unique(played, axis=0))
    whole = [[*openings[number // 2], *row[row >= 0]] for number, row in enumerate(moves)]
    return MatchResult.of(margins, repeats, np.array(whole, np.int32))


def play_games(
    board: DotsAndBoxes,
    players: tuple[Player, Player],
    openings: State,
    key: jax.Array,
    numbers: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Play the games `numbers` [B] from the `openings` [P] of their pairs to the end.

    Returns the final margins of `players[0]` [B] and the edges of every ply [B, A], -1 after the
    end. `players[0]` is side 0 in even games, side 1 in odd ones. Raises: InputError for an
    illegal move.

    In each step, the player that more games wait for decides in up to half of the games. So every
    searched move is played, and every batch is full until the first game ends.
    """
    state = State(*(leaf[numbers // 2] for leaf in openings))
    seat, opening = numbers % 2, state.drawn.sum(axis=1)
    moves = np.full(state.drawn.shape, -1, np.int32)
    # The decision of the side to move: a move, whether it belongs to the quiet position, and the
    # value of that, which guides the captures before the move.
    move, value = np.zeros(len(numbers), np.int32), np.zeros(len(numbers), np.float32)
    quiet, decided = np.zeros((2, len(numbers)), bool)
    size = -(-len(numbers) // 2)
    while not (over := state.drawn.all(axis=1)).all():
        ply, mover = state.drawn.sum(axis=1) - opening, (state.player != seat).astype(int)
        waiting = [np.flatnonzero(~over & ~decided & (mover == number)) for number in (0, 1)]
        number = int(len(waiting[1]) > len(waiting[0]))
        draws = decided.any() and len(waiting[number]) < size
        rows = np.flatnonzero(decided) if draws else waiting[number]
        # The games with the fewest plies go first, so that all games end together.
        rows = rows[np.argsort(ply[rows], kind="stable")][:size]
        batch, count = np.resize(rows, size), len(rows)  # padded with copies
        part = State(*(leaf[batch] for leaf in state))
        if not draws:
            part.drawn[count:] = True  # the rest counts as finished games, which take no time
            choice = players[number].decide(_keys(key, numbers[batch], ply[batch]), part)
            quiet[rows], decided[rows] = choice.quiet is not None, True
            if choice.quiet:
                choice = choice.quiet
                value[rows] = choice.value[:count]
            move[rows] = choice.edge[:count]
            continue
        decision = Choice(move[batch], value[batch])
        drawn = _draw(board, bool(quiet.any()), part, decision, quiet[batch])
        edge, after, lasts = jax.device_get(drawn)
        moves[rows, ply[rows]] = edge[:count]
        decided[rows] = (lasts & ~after.drawn.all(axis=1))[:count]
        for old, new in zip(state, after, strict=True):
            old[rows] = new[:count]
    return np.where(state.player == seat, state.margin, -state.margin), moves


def draw_openings(board: DotsAndBoxes, pairs: int, longest: int, seed: int) -> list[np.ndarray]:
    """Sample an opening of 0 to `longest` random moves for each pair of games.

    An opening that an earlier pair has is sampled again, up to TRIES samples, because deterministic
    players would repeat games. The opening of a pair does not depend on later pairs.
    """
    seen, openings = set(), []
    for pair in range(pairs):
        rng = np.random.default_rng((seed, pair))
        for _ in range(TRIES):
            moves = rng.permutation(board.num_edges)[: rng.integers(longest + 1)]
            position = frozenset(moves.tolist())
            if position not in seen:
                break
        seen.add(position)
        openings.append(moves)
    return openings


def after_openings(board: DotsAndBoxes, openings: list[np.ndarray]) -> State:
    """Return the position after each of P openings: NumPy State [P]."""
    drawn = np.zeros((len(openings), board.num_edges), bool)
    margin, player = np.zeros((2, len(openings)), np.int32)
    for number, moves in enumerate(openings):
        players, owners = play_moves(board, (), moves)
        drawn[number, moves], player[number] = True, players[-1]
        margin[number] = sum(1 if owner == players[-1] else -1 for owner in owners.values())
    return State(drawn, margin, player)


@partial(jax.jit, static_argnums=(0, 1))
def _draw(
    board: DotsAndBoxes, captures: bool, state: State, decision: Choice, quiet: jax.Array
) -> tuple[jax.Array, State, jax.Array]:
    """Draw the next edge of a decision in every game; with `captures` they precede `quiet` moves.

    Return, [B] each: edges, states, and whether the decision also gives the next edge.
    """
    edge = decision.edge
    if captures:
        structure = jax.vmap(partial(quiet_game.find_structure, board))(state.drawn)
        following = jax.vmap(partial(quiet_game.edge_to_draw, board))
        edge = jnp.where(quiet, following(state.drawn, structure, decision.value, edge), edge)
    after, again = jax.vmap(partial(step, board))(state, edge)
    # A decision ends with its move, or with the turn.
    return edge, after, again & (edge != decision.edge)


@jax.jit
def _keys(key: jax.Array, numbers: jax.Array, plies: jax.Array) -> jax.Array:
    fold_in = jax.random.fold_in
    return jax.vmap(lambda number, ply: fold_in(fold_in(key, number), ply))(numbers, plies)
