"""Rate players in Elo, and play the matches for the ratings.

The model is Bradley & Terry's (1952): the first player scores expit(r_first - r_second) points a
game, and a draw counts as half a win and half a loss. Here r is in log-odds; results are in Elo.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import root
from scipy.sparse.csgraph import connected_components
from scipy.special import expit
from tabulate import tabulate

from jaxzero.errors import InputError, nearest
from jaxzero.game import DotsAndBoxes
from jaxzero.host.files import save_figure
from jaxzero.host.status import doing
from jaxzero.measure.arena import Z_95, MatchResult, play_match
from jaxzero.players.players import Player

ELO_PER_LOG_ODDS = 400 / math.log(10)
NEIGHBOURS = 2  # later checkpoints that a checkpoint plays against
PRIOR_DRAWS = 1.0  # virtual draws for each pairing


class Match(NamedTuple):
    """The names of two players and the result for the first."""

    first: str
    second: str
    result: MatchResult


class Rating(NamedTuple):
    """The rating of a player in Elo, with a 95 % interval of its distance to the anchor."""

    name: str
    elo: float
    low: float
    high: float
    games: int


def ladder_pairs(
    checkpoints: Sequence[Player], anchors: Sequence[Player] = ()
) -> list[tuple[Player, Player]]:
    """Pair every checkpoint of a run with the next NEIGHBOURS checkpoints and with the anchors.

    The cost is linear in the number of checkpoints. Checkpoints made by
    `dataclasses.replace(player, name=..., params=...)` share their compiled matches.
    """
    near = [
        (one, other)
        for number, one in enumerate(checkpoints)
        for other in checkpoints[number + 1 : number + 1 + NEIGHBOURS]
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

    Different players must have different names.
    """
    matches = []
    for number, (first, second) in enumerate(pairs, start=1):
        with doing(f"match {number} of {len(pairs)}: {first.name} against {second.name}"):
            own_seed = pair_seed(seed, first, second)
            result = play_match(game, first, second, games, opening_plies, own_seed)
        matches.append(Match(first.name, second.name, result))
    return matches


def pair_seed(seed: int, first: Player, second: Player) -> int:
    """Return the seed of a pairing, from `seed` and the two names in any order.

    With the same openings, pairings would have dependent results and too narrow intervals.
    """
    names = sorted((first.name, second.name))
    return crc32(repr((seed, names)).encode()) >> 1  # 31 bits


def elo_ratings(matches: Sequence[Match], anchor: str) -> list[Rating]:
    """Return the most likely ratings, in the order in which the players appear.

    The anchor has 0 Elo. Every pairing gets PRIOR_DRAWS virtual draws: this prior, as in BayesElo
    (Coulom), keeps ratings finite after perfect scores. In a pairing of n games it shortens small
    distances by a share of about PRIOR_DRAWS / n.
    Intervals are normal, from the inverse Fisher information. They assume independent games without
    draws, so draws make them too wide. Repeated games of a match do not count.
    Raises: InputError for an unknown anchor or a player without a path of matches to the anchor.
    """
    names = list(dict.fromkeys(name for match in matches for name in match[:2]))
    if anchor not in names:
        raise InputError(f"anchor: {anchor!r} has no match{nearest(anchor, names)}")
    points = _points(matches, names)
    played = points + points.T
    _, group = connected_components(played > 0, directed=False)
    own = group[names.index(anchor)]
    apart = [name for name, other in zip(names, group, strict=True) if other != own]
    if apart:
        raise InputError(f"matches: none connect {', '.join(apart)} to the anchor {anchor}")
    points += PRIOR_DRAWS / 2 * (played > 0)
    strength, covariance = _fit(points, names.index(anchor))
    elo = ELO_PER_LOG_ODDS * strength
    spread = ELO_PER_LOG_ODDS * Z_95 * np.sqrt(np.diag(covariance))
    columns = (elo, elo - spread, elo + spread, played.sum(axis=1).round().astype(int))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Rating(name, *row) for name, row in zip(names, rows, strict=True)]


def _points(matches: list[Match], names: list[str]) -> np.ndarray:
    """Return the points of each player (row) against each other player (column): [P, P]."""
    number = {name: i for i, name in enumerate(names)}
    points = np.zeros((len(names), len(names)))
    for first, second, result in matches:
        weight = result.distinct / max(1, result.games)
        points[number[first], number[second]] += weight * (result.wins + result.draws / 2)
        points[number[second], number[first]] += weight * (result.losses + result.draws / 2)
    return points


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

    # At the maximum of the likelihood the expected points of every player are the actual points.
    # Solving this equation is more precise than comparing log-likelihoods of many games.
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
    """Return a plain-text table with the strongest player first."""
    rows = [
        (name, f"{elo:.0f}", f"[{low:.0f}, {high:.0f}]", games)
        for name, elo, low, high, games in sorted(ratings, key=lambda r: (-r.elo, r.name))
    ]
    heads = ("player", "Elo", "95 % interval", "games")
    return tabulate(rows, heads, "plain", stralign="right", colalign=("left",))


def draw_ladder(path: Path, ladder: list[dict]) -> None:
    """Draw the Elo of a run over its iterations, with intervals, into a PNG.

    `ladder` holds the fields of a Rating and its `iteration`, None for a fixed opponent.
    """
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    steps = [rung for rung in ladder if rung["iteration"] is not None]
    elo = [rung["elo"] for rung in steps]
    spread = [
        [rung["elo"] - rung["low"] for rung in steps],
        [rung["high"] - rung["elo"] for rung in steps],
    ]
    axis.errorbar([rung["iteration"] for rung in steps], elo, yerr=spread, marker="o", capsize=3)
    for rung in ladder:
        if rung["iteration"] is None:
            axis.axhline(rung["elo"], linestyle="--", linewidth=0.8, color="grey")
            axis.annotate(rung["name"], (0, rung["elo"]), fontsize=8)
    axis.set_xlabel("iteration")
    axis.set_ylabel("Elo, 95 % intervals")
    axis.grid(alpha=0.3)
    save_figure(path, figure)
