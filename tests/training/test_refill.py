"""Lanes that play one late game after another: rules, results, labels and what is stored."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from quiet_referee import GAME, hashed, play_all, play_to
from referee import Referee

from jaxzero.cli import load_config
from jaxzero.game.quiet import fewest_decisions, most_decisions
from jaxzero.training.selfplay import play_games

GAMES, KEY = 64, jax.random.key(5)
CONFIG = load_config(
    "configs/tiny.yaml",
    *("--game.rows=3", "--game.cols=3", "--search.nodes=quiet", "--search.simulations=4"),
    *(
        "--selfplay.late_start_moves=5",
        "--selfplay.random_opening_moves=2",
        "--selfplay.random_move_fraction=1",
    ),
)


@pytest.fixture(scope="module")
def played():
    return play_all(CONFIG, hashed, GAMES, KEY)


def steps_of(decisions, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps and lanes of a game, in order."""
    return np.nonzero(decisions.played & (decisions.game == number))


def test_every_game_has_a_lane_to_itself_from_its_first_decision_to_its_last(played):
    decisions = played.decisions
    begun = np.unique(decisions.game[decisions.played])
    assert decisions.played.shape == (CONFIG.steps, GAMES // 4)
    assert len(begun) > 0.8 * GAMES
    for number in begun:
        steps, lanes = steps_of(decisions, number)
        assert len(set(lanes)) == 1
        np.testing.assert_array_equal(steps, np.arange(steps[0], steps[0] + len(steps)))
    # Whole games come first: a lane plays several.
    assert max(len(np.unique(lane)) for lane in decisions.game.T) >= 3


def test_every_game_that_begins_is_played_to_its_end_by_the_rules(played):
    decisions, results, positions, *_ = played
    margin = positions.margin.reshape(decisions.played.shape)
    declined = 0
    for number in np.unique(decisions.game[decisions.played]):
        where = steps_of(decisions, number)
        referee = Referee(GAME)
        referee.drawn = set(np.flatnonzero(decisions.drawn[where][0]).tolist())
        referee.player = int(decisions.player[where][0])
        referee.scores = [int(decisions.ahead[where][0]), 0]
        ahead, movers = [], []
        for step, (quiet, player) in enumerate(
            zip(decisions.drawn[where], decisions.player[where], strict=True)
        ):
            if step:
                declined += play_to(referee, quiet, player)
            assert set(np.flatnonzero(quiet)) == referee.drawn and player == referee.player
            ahead.append(referee.scores[0] - referee.scores[1])
            movers.append(referee.player)
        play_to(referee, np.ones(GAME.num_edges, bool), 1 - referee.player)
        final = referee.scores[0] - referee.scores[1]
        assert decisions.ahead[where].tolist() == ahead and final == results[number]
        still = [(final - a) * (1 - 2 * p) for a, p in zip(ahead, movers, strict=True)]
        assert margin[where].tolist() == still
    assert declined > 0


def test_the_queue_begins_with_the_longest_games_and_leaves_out_only_the_shortest(played):
    decisions, longest = played.decisions, played.longest
    assert (np.diff(longest) <= 0).all()
    lengths = np.bincount(decisions.game[decisions.played], minlength=GAMES)
    assert (lengths <= longest).all()
    left_out = lengths == 0
    assert left_out.sum() == 0 or longest[left_out].max() <= np.median(longest)


def test_each_stored_position_was_played(played):
    decisions, _, labelled, positions, *_ = played
    assert len(positions.margin) == GAMES * CONFIG.positions_per_game
    flat = decisions.played.ravel()

    def rows(positions) -> list[bytes]:
        fields = jax.tree.leaves(positions)
        parts = [np.asarray(field).reshape(len(field), -1) for field in fields]
        return [b"".join(part[i].tobytes() for part in parts) for i in range(len(parts[0]))]

    there = set(rows(jax.tree.map(lambda x: x[flat], labelled)))
    taken = set(rows(positions))
    assert taken <= there and len(taken) > 0.6 * len(positions.margin)


def test_games_and_decisions_are_counted_as_played(played):
    decisions, results, _, _, metrics, _ = played
    begun = np.unique(decisions.game[decisions.played])
    assert metrics["selfplay/games"] == len(begun)
    assert metrics["selfplay/moves"] == decisions.played.sum()
    simulations = decisions.simulations[decisions.played]
    assert metrics["selfplay/simulations"] == pytest.approx(simulations.mean())
    assert 1 <= simulations.min() < simulations.max() == CONFIG.search.simulations
    assert metrics["selfplay/evaluations"] == (simulations + 1).sum()
    assert metrics["selfplay/used"] == pytest.approx(decisions.played.mean())
    assert metrics["selfplay/first_margin"] == pytest.approx(results[begun].mean(), abs=1e-5)
    assert decisions.played.mean() > 0.7


def test_a_decision_that_is_stored_twice_is_one_new_position(played):
    """A lane has 2 x 12 decisions in which to play 4 games, of which 7 each are stored."""
    decisions = played.decisions
    assert CONFIG.positions_per_game == 7
    assert decisions.played.sum() <= CONFIG.new_positions_per_iteration == GAMES // 4 * 24
    samples = CONFIG.learner.batch_size * CONFIG.learner.updates_per_iteration
    assert CONFIG.replay_ratio == samples / CONFIG.new_positions_per_iteration
    assert CONFIG.replay_ratio > samples / CONFIG.positions_per_iteration


def test_games_that_begin_late_are_shorter_by_as_much(played):
    decisions, ply = played.decisions, CONFIG.selfplay.late_start_moves
    length = np.bincount(decisions.game[decisions.played], minlength=GAMES)
    assert length.max() <= most_decisions(GAME) - ply
    # Half of the games on the whole board begin at the ply.
    assert (length >= fewest_decisions(GAME) - ply).mean() >= 0.2
    assert decisions.played.shape == (2 * (most_decisions(GAME) - ply), GAMES // 4)
    assert (decisions.drawn[decisions.played].sum(1) >= ply).all()


def test_a_deviation_past_the_end_of_a_game_does_not_hide_its_result(played):
    decisions, calm = played.decisions, 0
    known = played.positions.margin_known.reshape(decisions.played.shape)
    for number in range(GAMES):
        where = steps_of(decisions, number)
        random = decisions.random[where]
        random_later = np.cumsum(random[::-1])[::-1] > 0
        np.testing.assert_array_equal(known[where], ~random_later)
        calm += len(random) > 0 and not random.any()
    # Some games end before their deviation, and all of their results are known.
    assert calm > 3


def test_a_falling_start_fills_the_lanes_at_both_ends_of_the_run():
    falls = replace(
        CONFIG.selfplay, games_per_iteration=96, late_start_moves=10, late_start_until=0.5
    )
    whole = replace(CONFIG.search, evaluation_batch=10**6)  # rounds, which compile faster
    config = replace(CONFIG, selfplay=falls, search=whole)
    play = jax.jit(lambda fraction: play_games(config, hashed, (), KEY, 96, fraction))
    (first, _), (last, _) = both = [jax.device_get(play(fraction)) for fraction in (0.0, 1.0)]
    for positions, metrics in both:
        assert len(positions.margin) == config.positions_per_iteration
        assert metrics["selfplay/used"] > 0.85
        assert metrics["selfplay/moves"] > 0.85 * config.lanes(96) * config.steps
    # Positions of the quiet game: at least a move is behind each, and each edge drawn counts once.
    assert first.drawn.sum(-1).min() >= 10
    assert (last.drawn.sum(-1) == 0).any() and (last.drawn.sum(-1) > 12).any()
