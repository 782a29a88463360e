"""Test that ratings recover planted ratings for any order, seats and anchor."""

from __future__ import annotations

import math
import random
import re
from itertools import combinations

import numpy as np
import pytest
from compiled import tiny_agent

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.measure import strength
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
AGENT = tiny_agent(GAME, nodes="quiet")
PLANTED = {"a": 0.0, "b": 80.0, "c": 150.0, "d": -120.0, "e": 300.0}


def match(first: str, second: str, wins: int, draws: int, losses: int) -> Match:
    return Match(first, second, MatchResult({1: wins, 0: draws, -1: losses}, {}))


def simulate(rng: np.random.Generator, games: int, drawn: float) -> list[Match]:
    """Sample results of all pairs of PLANTED; `drawn` is a fraction of the most possible draws."""
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


@pytest.mark.parametrize(("drawn", "least", "most"), [(0.0, 0.92, 0.98), (0.6, 0.97, 1.0)])
def test_intervals_hold_planted_ratings_as_often_as_they_say(drawn, least, most):
    """Draws make the intervals too wide, not too narrow."""
    rng = np.random.default_rng(0)
    held, errors = [], []
    for _ in range(200):
        ratings = elo_ratings(simulate(rng, games=100, drawn=drawn), anchor="a")[1:]
        held += [rating.low <= PLANTED[rating.name] <= rating.high for rating in ratings]
        errors.append([rating.elo - PLANTED[rating.name] for rating in ratings])
    assert least < np.mean(held) <= most
    assert np.abs(np.mean(errors, axis=0)).max() < 6


@pytest.mark.parametrize(("wins", "draws", "losses"), [(75, 0, 25), (10, 30, 20), (1, 0, 999)])
def test_two_players_in_closed_form(wins, draws, losses):
    """Elo is 400 log10(p / (1 - p)), with one virtual draw; the interval is from n p (1 - p)."""
    games = wins + draws + losses + 1
    points = (wins + (draws + 1) / 2) / games
    _, second = elo_ratings([match("one", "two", wins, draws, losses)], "one")
    assert second.elo == pytest.approx(-400 * math.log10(points / (1 - points)), abs=1e-6)
    error = 400 / math.log(10) / math.sqrt(games * points * (1 - points))
    assert second.high - second.elo == pytest.approx(1.959964 * error)
    assert second.elo - second.low == pytest.approx(1.959964 * error)
    assert second.games == games - 1


def test_games_that_repeat_others_do_not_count():
    once, often = MatchResult({1: 12, -1: 4}, {}), MatchResult({1: 48, -1: 16}, {}, repeats=48)
    ratings = [elo_ratings([Match("a", "b", result)], "a") for result in (once, often)]
    assert ratings[0] == ratings[1]


def test_the_anchor_shifts_all_ratings():
    ratings, other = (by_name(elo_ratings(TOURNAMENT, anchor)) for anchor in "ac")
    assert ratings["a"] == Rating("a", 0.0, 0.0, 0.0, games=240)
    for name, rating in ratings.items():
        assert other[name].elo == pytest.approx(rating.elo - ratings["c"].elo, abs=1e-5)
    assert other["a"].high == pytest.approx(-ratings["c"].low, abs=1e-5)


def test_order_and_seats_and_parts_of_a_pairing_do_not_matter():
    first, *_ = TOURNAMENT
    wins, draws, losses = first.result.wins, first.result.draws, first.result.losses
    parts = [match(*first[:2], wins, 0, 0), match(first.second, first.first, losses, draws, 0)]
    shuffled = random.Random(0).sample(TOURNAMENT, len(TOURNAMENT))
    expected = by_name(elo_ratings(TOURNAMENT, "c"))
    for matches in (shuffled, [*TOURNAMENT[1:], *parts]):
        for name, rating in by_name(elo_ratings(matches, "c")).items():
            assert rating[1:] == pytest.approx(expected[name][1:], abs=1e-5)


def test_perfect_scores_stay_finite():
    """Each of fifty players wins all of 1000 games against the player before."""
    matches = [match(str(i + 1), str(i), 1000, 0, 0) for i in range(50)]
    step = 400 * math.log10(1000.5 / 0.5)
    for rating in elo_ratings(matches, anchor="0"):
        assert rating.elo == pytest.approx(int(rating.name) * step, rel=1e-6)
        assert np.isfinite(rating[1:4]).all()


def test_bad_input_is_refused():
    apart = [*TOURNAMENT, match("x", "y", 1, 1, 1), match("a", "x", 0, 0, 0)]
    for matches, anchor, message in (
        ([], "a", "anchor: 'a' has no match"),
        (TOURNAMENT, "aa", "anchor: 'aa' has no match, did you mean a"),
        (apart, "a", "none connect x, y to the anchor a$"),
        (apart, "y", "none connect a, b, c, d, e to the anchor y$"),
    ):
        with pytest.raises(InputError, match=message):
            elo_ratings(matches, anchor)


def test_the_table_starts_with_the_strongest():
    table = format_ratings([Rating("weak", -10, -20.4, 0, 8), Rating("strong one", 5, 1, 9, 12)])
    # The number of spaces between columns depends on tabulate.
    assert [re.split(r" {2,}", line.strip()) for line in table.splitlines()] == [
        ["player", "Elo", "95 % interval", "games"],
        ["strong one", "5", "[1, 9]", "12"],
        ["weak", "-10", "[-20, 0]", "8"],
    ]


def test_a_pairing_has_its_own_games_whoever_else_plays():
    other = Player("other", RANDOM.act)
    pairs = [(RANDOM, GREEDY), (RANDOM, other), (GREEDY, other)]
    matches = play_pairs(GAME, pairs, 64, 2, 0)
    assert [one[:2] for one in matches] == [(one.name, two.name) for one, two in pairs]
    assert all(one.result.games == 64 for one in matches)
    assert by_name(elo_ratings(matches, anchor="random"))["greedy"].low > 0
    assert play_pairs(GAME, pairs[2:], 64, 2, 0) == matches[2:]
    assert play_pairs(GAME, pairs[2:], 64, 2, 1) != matches[2:]
    assert pair_seed(0, GREEDY, other) == pair_seed(0, other, GREEDY) != pair_seed(0, *pairs[0])


def test_a_ladder_costs_neighbours_and_anchors_for_each_checkpoint():
    checkpoints = [Player(str(number), RANDOM.act) for number in range(5)]
    pairs = [(one.name, other.name) for one, other in ladder_pairs(checkpoints, [RANDOM, GREEDY])]
    near = [tuple(pair) for pair in "01 02 12 13 23 24 34".split()]
    assert pairs == near + [(str(i), name) for i in range(5) for name in ("random", "greedy")]


def test_the_players_of_every_network_meet_all_others():
    names, networks = ["greedy", "perfect", "policy"], dict.fromkeys(("one", "other"), AGENT)
    found = strength.rate_players(networks, names, games=16, opening_plies=4, seed=0)
    rated, matches = found["ladder"], found["matches"]
    assert len(matches) == 6 and {one["result"]["games"] for one in matches} == {16}
    ratings = {one["name"]: one for one in rated}
    assert [*ratings] == ["greedy", "perfect", "policy of one", "policy of other"]
    assert ratings["greedy"]["elo"] == 0 < ratings["perfect"]["elo"]
    assert all(one["games"] <= 3 * 16 for one in rated)
