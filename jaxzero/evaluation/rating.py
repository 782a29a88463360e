"""Elo ratings from matches, and which matches to play for them.

The model is Bradley & Terry's (1952): first scores expit(r_first - r_second) points a game, a draw
counting as half a win and half a loss. Inside, r is in log-odds; outside, in Elo.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain, combinations, product
from typing import NamedTuple
from zlib import crc32

import numpy as np
from scipy.optimize import root
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from jaxzero.agent.players import Player
from jaxzero.errors import InputError, nearest
from jaxzero.evaluation.arena import Z_95, MatchResult, play_match
from jaxzero.game import DotsAndBoxes

ELO_PER_LOG_ODDS = 400 / math.log(10)


class Match(NamedTuple):
    """Two players by name and the result from the first one's side."""

    first: str
    second: str
    result: MatchResult


class Rating(NamedTuple):
    """The strength of a player in Elo, with a 95 % interval of its distance to the anchor."""

    name: str
    elo: float
    low: float
    high: float
    games: int


def elo_ratings(
    matches: Iterable[Match],
    anchor: str | None = None,
    anchor_elo: float = 0.0,
    prior_draws: float = 1.0,
) -> list[Rating]:
    """Return the most likely ratings, the players in the order in which they appear.

    The anchor (by default the first player) has `anchor_elo` exactly. Every pairing that was
    played gets `prior_draws` virtual draws, a prior as in BayesElo (Coulom) that keeps perfect
    scores finite; in a pairing of n games it shortens small distances by the share
    prior_draws / n or so. Intervals are normal, from the inverse Fisher information, and take
    games for independent and decided: draws make them too wide. Games that repeat others of their
    match do not count.
    Raises: InputError for players without a path of matches to the anchor, an unknown anchor, a
    match of a player against itself, and without a prior for scores that no rating explains.
    """
    matches = list(matches)
    names = list(dict.fromkeys(name for match in matches for name in match[:2]))
    anchor = names[0] if anchor is None and names else anchor
    _check(matches, names, anchor, prior_draws)
    points = _points(matches, names)
    played = points + points.T
    _refuse_unconnected(played, names, anchor)
    points += prior_draws / 2 * (played > 0)
    _refuse_unbounded(points, names)
    strength, covariance = _fit(points, names.index(anchor))
    elo = anchor_elo + ELO_PER_LOG_ODDS * strength
    spread = ELO_PER_LOG_ODDS * Z_95 * np.sqrt(np.diag(covariance))
    columns = (elo, elo - spread, elo + spread, played.sum(axis=1).round().astype(int))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Rating(name, *row) for name, row in zip(names, rows, strict=True)]


def _check(matches: list[Match], names: list[str], anchor: str | None, prior_draws: float) -> None:
    if not matches:
        raise InputError("matches: there are none to rate players by")
    for first, second, _ in matches:
        if first == second:
            raise InputError(f"matches: {first!r} against itself says nothing of its strength")
    if anchor not in names:
        raise InputError(f"anchor: {anchor!r} has no match{nearest(str(anchor), names)}")
    if not (math.isfinite(prior_draws) and prior_draws >= 0):
        raise InputError(f"prior_draws: {prior_draws} must be a number of at least 0")


def _points(matches: list[Match], names: list[str]) -> np.ndarray:
    """Return the points of the player of the row against that of the column: [P, P]."""
    number = {name: i for i, name in enumerate(names)}
    points = np.zeros((len(names), len(names)))
    for first, second, result in matches:
        weight = result.distinct / max(1, result.games)
        points[number[first], number[second]] += weight * (result.wins + result.draws / 2)
        points[number[second], number[first]] += weight * (result.losses + result.draws / 2)
    return points


def _refuse_unconnected(played: np.ndarray, names: list[str], anchor: str) -> None:
    _, group = connected_components(played > 0, directed=False)
    own = group[names.index(anchor)]
    apart = [name for name, other in zip(names, group, strict=True) if other != own]
    if apart:
        raise InputError(f"matches: none connect {', '.join(apart)} to the anchor {anchor}")


def _refuse_unbounded(points: np.ndarray, names: list[str]) -> None:
    """Refuse groups that took all or no points of the others: no finite maximum (Ford 1957)."""
    _, group = connected_components(points > 0, connection="strong")
    if group.max() > 0:
        groups = (
            " ".join(name for name, other in zip(names, group, strict=True) if other == own)
            for own in range(group.max() + 1)
        )
        raise InputError(
            f"prior_draws: 0 leaves no finite ratings, as one of these groups won or lost "
            f"everything against the others: {'; '.join(groups)}"
        )


def _fit(points: np.ndarray, anchor: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-odds [P] and their covariance [P, P], both 0 for the anchor."""
    games = points + points.T
    free = np.delete(np.arange(len(points)), anchor)

    def expected(strength: np.ndarray) -> np.ndarray:
        full = np.insert(strength, anchor, 0.0)
        return expit(full[:, None] - full)

    def surplus(strength: np.ndarray) -> np.ndarray:
        return (games * expected(strength) - points).sum(axis=1)[free]

    def information(strength: np.ndarray) -> np.ndarray:
        share = expected(strength)
        weight = games * share * share.T
        return (np.diag(weight.sum(axis=1)) - weight)[np.ix_(free, free)]

    # The likelihood is greatest where everybody's expected points are the actual ones. Solving
    # for that keeps digits that comparing log-likelihoods of many games would lose.
    start = np.zeros(len(free))
    options = {"xtol": 1e-12, "ftol": 1e-12}
    solution = root(surplus, start, jac=information, method="lm", options=options).x
    worst = np.abs(surplus(solution)).max()
    if not worst <= 1e-6 * max(1.0, games.max()):
        raise RuntimeError(f"the ratings did not converge: {worst} points off")
    covariance = np.zeros_like(points)
    covariance[np.ix_(free, free)] = np.linalg.inv(information(solution))
    return np.insert(solution, anchor, 0.0), covariance


def format_ratings(ratings: Iterable[Rating]) -> str:
    """Return a table in plain text, the strongest player first."""
    ordered = sorted(ratings, key=lambda rating: (-rating.elo, rating.name))
    width = max([len("player"), *(len(rating.name) for rating in ordered)])
    lines = [f"{'player':<{width}}  {'Elo':>7}  {'95 % interval':>18}  {'games':>7}"]
    for name, elo, low, high, games in ordered:
        interval = f"[{low:.0f}, {high:.0f}]"
        lines.append(f"{name:<{width}}  {elo:7.0f}  {interval:>18}  {games:7d}")
    return "\n".join(lines)


def round_robin(
    game: DotsAndBoxes, players: Sequence[Player], games: int, opening_plies: int, seed: int
) -> list[Match]:
    """Play a match of `games` (even) games between every two players."""
    return play_pairs(game, list(combinations(players, 2)), games, opening_plies, seed)


def ladder_pairs(
    checkpoints: Sequence[Player], anchors: Sequence[Player] = (), neighbours: int = 2
) -> list[tuple[Player, Player]]:
    """Pair every checkpoint of a run with the next few and with the anchors.

    The cost grows with the number of checkpoints, not with its square. Checkpoints made by
    `dataclasses.replace(player, name=..., params=...)` share their compiled matches.
    """
    if neighbours < 1:
        raise InputError(f"neighbours: {neighbours} must be at least 1")
    near = [
        (one, other)
        for number, one in enumerate(checkpoints)
        for other in checkpoints[number + 1 : number + 1 + neighbours]
    ]
    return near + list(product(checkpoints, anchors))


def play_pairs(
    game: DotsAndBoxes,
    pairs: Sequence[tuple[Player, Player]],
    games: int,
    opening_plies: int,
    seed: int,
) -> list[Match]:
    """Play a match of `games` (even) games between the two players of each pair.

    Raises: InputError for a name that stands for two players, or a player paired with itself.
    """
    known: dict[str, Player] = {}
    for player in chain.from_iterable(pairs):
        if known.setdefault(player.name, player) is not player:
            raise InputError(f"players: two are called {player.name!r}")
    for first, second in pairs:
        if first is second:
            raise InputError(f"players: {first.name!r} is paired with itself")
    return [
        Match(
            first.name,
            second.name,
            play_match(game, first, second, games, opening_plies, pair_seed(seed, first, second)),
        )
        for first, second in pairs
    ]


def pair_seed(seed: int, first: Player, second: Player) -> int:
    """Return the seed of a pairing, whatever its order and whoever else plays.

    Openings shared between pairings would make their results dependent and intervals too narrow.
    """
    names = sorted((first.name, second.name))
    return crc32(repr((seed, names)).encode()) >> 1  # 31 bits
