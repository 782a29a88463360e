"""Ratings: the planted ones come back, whatever the order, the seats and the anchor."""

from __future__ import annotations

import math
import random
import re
from itertools import combinations

import numpy as np
import pytest

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.measure.arena import MatchResult
from jaxzero.measure.rating import (
    Match,
    Rating,
    elo_ratings,
    format_ratings,
    ladder_pairs,
    pair_seed,
    play_pairs,
)
from jaxzero.players.players import Player, make_player

GAME = DotsAndBoxes(2, 2)
RANDOM, GREEDY = (make_player(name, GAME) for name in ("random", "greedy"))
PLANTED = {"a": 0.0, "b": 80.0, "c": 150.0, "d": -120.0, "e": 300.0}


def match(first: str, second: str, wins: int, draws: int, losses: int) -> Match:
    return Match(first, second, MatchResult({1: wins, 0: draws, -1: losses}, {}))


def simulate(rng: np.random.Generator, games: int, drawn: float) -> list[Match]:
    """Draw results of all pairs of PLANTED; draws are the share `drawn` of the most possible."""
    matches = []
    for one, other in combinations(PLANTED, 2):
        points = 1 / (1 + 10 ** ((PLANTED[other] - PLANTED[one]) / 400))
        draw = drawn * 2 * min(points, 1 - points)
        shares = (points - draw / 2, draw, 1 - points - draw / 2)
        matches.append(match(one, other, *rng.multinomial(games, shares).tolist()))
    return matches


TOURNAMENT = simulate(np.random.default_rng(1), games=60, drawn=0.3)


def by_name(ratings: list[Rating]) -> dict[str, Rating]:
    return {rating.name: rating for rating in ratings}


def assert_same(ratings: list[Rating], others: list[Rating]) -> None:
    ratings, others = by_name(ratings), by_name(others)
    assert ratings.keys() == others.keys()
    for name, (_, *numbers, games) in ratings.items():
        assert numbers == pytest.approx(others[name][1:4], abs=1e-5)
        assert games == others[name].games


def coverage(drawn: float) -> tuple[float, float]:
    """Return how often the intervals hold the truth and the largest mean error in Elo."""
    rng = np.random.default_rng(0)
    held, errors = [], []
    for _ in range(200):
        ratings = elo_ratings(simulate(rng, games=100, drawn=drawn), anchor="a")[1:]
        held += [rating.low <= PLANTED[rating.name] <= rating.high for rating in ratings]
        errors.append([rating.elo - PLANTED[rating.name] for rating in ratings])
    return float(np.mean(held)), float(np.abs(np.mean(errors, axis=0)).max())


def test_intervals_hold_planted_ratings_as_often_as_they_say():
    share, error = coverage(drawn=0.0)
    assert 0.92 < share < 0.98
    assert error < 6


def test_draws_make_intervals_too_wide_not_too_narrow():
    share, error = coverage(drawn=0.6)
    assert share > 0.97
    assert error < 6


@pytest.mark.parametrize(("wins", "draws", "losses"), [(75, 0, 25), (10, 30, 20), (1, 0, 999)])
def test_two_players_in_closed_form(wins, draws, losses):
    """Elo is 400 log10(p / (1 - p)); the interval follows from n p (1 - p)."""
    games = wins + draws + losses
    points = (wins + draws / 2) / games
    _, second = elo_ratings([match("one", "two", wins, draws, losses)], prior_draws=0)
    assert second.elo == pytest.approx(-400 * math.log10(points / (1 - points)), abs=1e-6)
    error = 400 / math.log(10) / math.sqrt(games * points * (1 - points))
    assert second.high - second.elo == pytest.approx(1.959964 * error)
    assert second.elo - second.low == pytest.approx(1.959964 * error)


def test_in_a_chain_distances_and_variances_add():
    """Without other matches, what is known of c from a is the sum of the two links."""
    first, second = match("a", "b", 30, 0, 70), match("b", "c", 45, 0, 55)
    _, link = elo_ratings([first], prior_draws=0)
    _, other = elo_ratings([second], prior_draws=0)
    end = by_name(elo_ratings([first, second], prior_draws=0))["c"]
    assert end.elo == pytest.approx(link.elo + other.elo)
    assert end.high - end.elo == pytest.approx(
        math.hypot(link.high - link.elo, other.high - other.elo)
    )


def test_a_prior_of_draws_is_draws():
    """Virtual draws count once per pairing that was played, and not as games."""
    halves = [match("a", "b", 10, 0, 3), match("b", "a", 1, 2, 8)]
    whole = [match("a", "b", 18, 2, 4)]
    with_draws = by_name(elo_ratings([match("a", "b", 18, 5, 4)], prior_draws=0))["b"]
    assert_same(elo_ratings(halves, prior_draws=3), elo_ratings(whole, prior_draws=3))
    rating = by_name(elo_ratings(whole, prior_draws=3))["b"]
    assert rating[1:4] == pytest.approx(with_draws[1:4])
    assert (rating.games, with_draws.games) == (24, 27)


def test_games_that_repeat_others_do_not_count():
    once, often = MatchResult({1: 12, -1: 4}, {}), MatchResult({1: 48, -1: 16}, {}, repeats=48)
    ratings = [elo_ratings([Match("a", "b", result)]) for result in (once, often)]
    assert ratings[0] == ratings[1]


def test_the_anchor_shifts_all_ratings():
    """The first player is the anchor unless another is named; it is known exactly."""
    ratings = elo_ratings(TOURNAMENT)
    assert ratings[0] == Rating("a", 0.0, 0.0, 0.0, games=240)
    other = by_name(elo_ratings(TOURNAMENT, "c"))
    assert other["c"][1:4] == (0, 0, 0)
    for name, _, *_ in ratings:
        distance = by_name(ratings)[name].elo - by_name(ratings)["c"].elo
        assert other[name].elo == pytest.approx(distance, abs=1e-5)
    assert other["a"].high == pytest.approx(-by_name(ratings)["c"].low, abs=1e-5)


def test_order_and_seats_do_not_matter():
    def swapped(one: Match) -> Match:
        wins, draws, losses = one.result.wins, one.result.draws, one.result.losses
        return match(one.second, one.first, losses, draws, wins)

    ratings = elo_ratings(TOURNAMENT, "c")
    shuffled = random.Random(0).sample(TOURNAMENT, len(TOURNAMENT))
    assert_same(ratings, elo_ratings(shuffled, "c"))
    assert_same(ratings, elo_ratings([swapped(one) for one in TOURNAMENT], "c"))
    mixed = [swapped(one) if number % 2 else one for number, one in enumerate(TOURNAMENT)]
    assert_same(ratings, elo_ratings(mixed, "c"))


def test_perfect_scores_stay_finite():
    """Fifty players, each beating the one before in all of 1000 games."""
    matches = [match(str(i + 1), str(i), 1000, 0, 0) for i in range(50)]
    ratings = elo_ratings(matches, anchor="0")
    assert np.isfinite([rating[1:4] for rating in ratings]).all()
    step = 400 * math.log10(1000.5 / 0.5)
    for rating in ratings:
        assert rating.elo == pytest.approx(int(rating.name) * step, rel=1e-6)


def test_perfect_scores_are_refused_without_a_prior():
    matches = [match("a", "b", 3, 1, 3), match("b", "c", 5, 0, 0), match("a", "c", 4, 0, 0)]
    with pytest.raises(InputError, match=r"prior_draws: 0 .*(a b; c|c; a b)$"):
        elo_ratings(matches, prior_draws=0)
    elo_ratings([*matches, match("c", "a", 1, 0, 3)], prior_draws=0)


def test_players_without_a_path_to_the_anchor_are_refused_by_name():
    apart = [match("x", "y", 1, 1, 1), match("a", "x", 0, 0, 0)]
    with pytest.raises(InputError, match=r"none connect x, y to the anchor a$"):
        elo_ratings([*TOURNAMENT, *apart])
    with pytest.raises(InputError, match=r"none connect a, b, c, d, e to the anchor y$"):
        elo_ratings([*TOURNAMENT, *apart], anchor="y")


def test_bad_input_is_refused():
    for matches, settings, message in (
        ([], {}, "matches: there are none"),
        ([match("a", "a", 1, 0, 1)], {}, "'a' against itself"),
        (TOURNAMENT, {"anchor": "aa"}, "anchor: 'aa' has no match, did you mean a"),
        (TOURNAMENT, {"prior_draws": -1}, "prior_draws: -1"),
        (TOURNAMENT, {"prior_draws": math.nan}, "prior_draws: nan"),
    ):
        with pytest.raises(InputError, match=message):
            elo_ratings(matches, **settings)


def test_the_table_starts_with_the_strongest():
    table = format_ratings([Rating("weak", -10, -20.4, 0, 8), Rating("strong one", 5, 1, 9, 12)])
    # How many spaces stand between two columns is up to tabulate.
    assert [re.split(r" {2,}", line.strip()) for line in table.splitlines()] == [
        ["player", "Elo", "95 % interval", "games"],
        ["strong one", "5", "[1, 9]", "12"],
        ["weak", "-10", "[-20, 0]", "8"],
    ]


def test_a_round_robin_plays_every_pair_and_ranks_greedy_above_random():
    other = Player("also random", RANDOM.act)
    pairs = list(combinations([RANDOM, GREEDY, other], 2))
    matches = play_pairs(GAME, pairs, games=64, opening_plies=2, seed=0)
    pairs = [("random", "greedy"), ("random", "also random"), ("greedy", "also random")]
    assert [one[:2] for one in matches] == pairs
    assert all(one.result.games == 64 for one in matches)
    ratings = by_name(elo_ratings(matches, anchor="random"))
    assert ratings["greedy"].low > 0
    assert ratings["greedy"].elo > ratings["also random"].elo


def test_a_pairing_has_its_own_games_whoever_else_plays():
    one, other = Player("one", RANDOM.act), Player("other", RANDOM.act)
    first, second, third = play_pairs(
        GAME, [(one, RANDOM), (other, RANDOM), (one, other)], 64, 2, 0
    )
    assert first.result != second.result
    assert play_pairs(GAME, [(one, other)], 64, 2, 0) == [third]
    assert play_pairs(GAME, [(one, other)], 64, 2, 1) != [third]
    assert pair_seed(0, one, other) == pair_seed(0, other, one) != pair_seed(0, one, RANDOM)


def test_a_ladder_costs_neighbours_and_anchors_for_each_checkpoint():
    checkpoints = [Player(str(number), RANDOM.act) for number in range(5)]
    pairs = [(one.name, other.name) for one, other in ladder_pairs(checkpoints, [RANDOM, GREEDY])]
    near = "01 02 12 13 23 24 34".split()
    assert pairs[: len(near)] == [tuple(pair) for pair in near]
    anchored = [(str(i), name) for i in range(5) for name in ("random", "greedy")]
    assert pairs[len(near) :] == anchored
    assert len(ladder_pairs(checkpoints, neighbours=1)) == 4
    with pytest.raises(InputError, match="neighbours: 0"):
        ladder_pairs(checkpoints, neighbours=0)


def test_names_must_tell_players_apart():
    with pytest.raises(InputError, match="two are called 'random'"):
        play_pairs(GAME, [(RANDOM, GREEDY), (Player("random", GREEDY.act), GREEDY)], 2, 0, 0)
    with pytest.raises(InputError, match="'random' is paired with itself"):
        play_pairs(GAME, [(RANDOM, RANDOM)], 2, 0, 0)
