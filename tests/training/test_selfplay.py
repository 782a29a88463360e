"""Self-play: games obey the rules, targets are what was won, and what is stored was played.

In three forms: each edge a decision, whole games of the quiet game, and lanes that play one late
game after another.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import analyse, table_of
from quiet_referee import GAME, Played, hashed, play_all, play_to, replay, steps_of

from jaxzero.cli import load_config
from jaxzero.game import State
from jaxzero.game.quiet import fewest_decisions, fold, most_decisions
from jaxzero.search.search import Evaluation
from jaxzero.solver.tablebase import table_value
from jaxzero.training.games import new_games, start_lanes
from jaxzero.training.selfplay import play_games, play_step
from jaxzero.training.targets import resample, sampling_weights

GAMES, KEY = {"plain": 24, "whole": 24, "late": 64}, jax.random.key(5)
SMALL = ("configs/tiny.yaml", "--game.rows=3", "--game.cols=3", "--search.simulations=4")
OPENING = ("--selfplay.random_opening_moves=3", "--selfplay.surprise_weight=1")
LATE = ("--selfplay.late_start_moves=5", "--selfplay.random_opening_moves=2")
CONFIGS = {
    "plain": load_config(*SMALL, "--search.nodes=all", "--selfplay.random_opening_moves=3"),
    "whole": load_config(*SMALL, "--search.nodes=quiet", *OPENING),
    "late": load_config(*SMALL, "--search.nodes=quiet", *LATE, "--selfplay.random_move_fraction=1"),
}
every_form = pytest.mark.parametrize("form", CONFIGS)


@cache
def played(form: str) -> Played:
    return play_all(CONFIGS[form], hashed, GAMES[form], KEY)


@every_form
def test_games_obey_the_rules_and_targets_are_what_was_won(form):
    decisions, results, positions, _, metrics, _ = played(form)
    shape = decisions.played.shape
    margins, known = (x.reshape(shape) for x in (positions.margin, positions.margin_known))
    begun, declined, calm = np.unique(decisions.game[decisions.played]), 0, 0
    for number in begun.tolist():
        where = steps, lanes = steps_of(decisions, number)
        # A game has a lane to itself from its first decision to its last.
        assert len(set(lanes)) == 1 and (np.diff(steps) == 1).all()
        if form != "late":
            first = decisions.drawn[0, number], decisions.player[0, number]
            assert not np.any(first[0]) and first[1] == 0 == steps[0] == decisions.ahead[0, number]
        referee, times = replay(decisions, number)
        declined += times
        # The last free boxes are all taken.
        play_to(referee, np.ones(GAME.num_edges, bool), 1 - referee.player)
        final = referee.scores[0] - referee.scores[1]
        assert final == results[number]
        sign = 1 - 2 * decisions.player[where]
        np.testing.assert_array_equal(margins[where], (final - decisions.ahead[where]) * sign)
        # A result speaks of what comes after the last random move, if the game came so far.
        random = decisions.random[where]
        np.testing.assert_array_equal(known[where], ~(np.cumsum(random[::-1])[::-1] > 0))
        calm += not random.any()
    assert (declined > 0) == (form != "plain")
    assert calm > 3
    for name, share in (("wins", results > 0), ("margin", results)):
        assert metrics[f"selfplay/first_{name}"] == pytest.approx(share[begun].mean(), abs=1e-5)


@every_form
def test_policies_lie_on_legal_edges_of_searched_positions(form):
    decisions = played(form).decisions
    drawn, policy = (x[decisions.played] for x in (decisions.drawn, decisions.policy))
    np.testing.assert_allclose(policy.sum(-1), 1, rtol=1e-5)
    assert policy[drawn].max() == 0
    assert form == "plain" or analyse(GAME)(drawn).taken.max() == 0


@every_form
def test_each_stored_position_was_played(form):
    decisions, _, labelled, stored, *_ = played(form)
    assert len(stored.margin) == GAMES[form] * CONFIGS[form].positions_per_game

    def rows(positions) -> set[bytes]:
        fields = [np.asarray(field) for field in jax.tree.leaves(positions)]
        return {b"".join(field[i].tobytes() for field in fields) for i in range(len(fields[0]))}

    flat = decisions.played.ravel()
    there, taken = rows(jax.tree.map(lambda x: x[flat], labelled)), rows(stored)
    assert taken <= there
    # By their surprise few positions are stored often.
    assert len(taken) > (0.3 if form == "whole" else 0.6) * len(stored.margin)


@every_form
def test_games_and_decisions_are_counted_as_played(form):
    decisions, metrics = played(form).decisions, played(form).metrics
    simulations = decisions.simulations[decisions.played]
    assert 1 <= simulations.min() < simulations.max() == CONFIGS[form].search.simulations
    expected = {
        "games": len(np.unique(decisions.game[decisions.played])),
        "moves": decisions.played.sum(),
        "simulations": simulations.mean(),
        "evaluations": (simulations + 1).sum(),
        "used": decisions.played[: int(metrics["selfplay/steps"])].mean(),
    }
    for name, value in expected.items():
        assert metrics[f"selfplay/{name}"] == pytest.approx(value), name


@every_form
def test_games_are_as_long_as_settings_say(form):
    decisions, config = played(form).decisions, CONFIGS[form]
    lengths = np.bincount(decisions.game[decisions.played], minlength=GAMES[form])
    if form == "late":
        ply = config.selfplay.late_start_moves
        assert lengths.max() <= most_decisions(GAME) - ply
        # Half of the games on the whole board begin at the ply.
        assert (lengths >= fewest_decisions(GAME) - ply).mean() >= 0.2
        assert decisions.played.shape == (2 * (most_decisions(GAME) - ply), GAMES[form] // 4)
        assert (decisions.drawn[decisions.played].sum(1) >= ply).all()
    else:
        assert lengths.min() == config.positions_per_game
        assert lengths.max() <= config.steps_per_game
        opening = config.selfplay.random_opening_moves
        assert set(decisions.random.sum(0).tolist()) == set(range(opening + 1))


def test_the_queue_begins_with_the_longest_games_and_leaves_out_only_the_shortest():
    decisions, longest = played("late").decisions, played("late").longest
    assert (np.diff(longest) <= 0).all()
    lengths = np.bincount(decisions.game[decisions.played], minlength=GAMES["late"])
    assert (lengths <= longest).all()
    left_out = lengths == 0
    assert left_out.mean() < 0.4
    assert left_out.sum() == 0 or longest[left_out].max() <= np.median(longest)
    # Whole games come first: a lane plays several.
    assert max(len(np.unique(lane)) for lane in decisions.game.T) >= 3
    assert decisions.played.mean() > 0.8


def test_a_decision_that_is_stored_twice_is_one_new_position():
    """A lane has 2 x 12 decisions in which to play 4 games, of which 7 each are stored."""
    config = CONFIGS["late"]
    assert config.positions_per_game == 7
    assert config.new_positions_per_iteration == GAMES["late"] // 4 * 24
    assert played("late").decisions.played.sum() <= config.new_positions_per_iteration
    samples = config.learner.batch_size * config.learner.updates_per_iteration
    assert config.replay_ratio == samples / config.new_positions_per_iteration
    assert config.replay_ratio > samples / config.positions_per_iteration


def test_a_falling_start_fills_the_lanes_at_both_ends_of_the_run():
    config = CONFIGS["late"]
    falls = replace(
        config.selfplay, games_per_iteration=96, late_start_moves=10, late_start_until=0.5
    )
    whole = replace(config.search, evaluation_batch=10**6)  # rounds, which compile faster
    config = replace(config, selfplay=falls, search=whole)
    play = jax.jit(lambda fraction: play_games(config, hashed, (), KEY, 96, fraction))
    (first, _), (last, _) = both = [jax.device_get(play(fraction)) for fraction in (0.0, 1.0)]
    for positions, metrics in both:
        assert len(positions.margin) == config.positions_per_iteration
        assert metrics["selfplay/used"] > 0.85
        assert metrics["selfplay/moves"] > 0.85 * config.lanes(96) * config.steps
    # Positions of the quiet game: at least a move is behind each, and each edge drawn counts once.
    assert first.drawn.sum(-1).min() >= 10
    assert (last.drawn.sum(-1) == 0).any() and (last.drawn.sum(-1) > 12).any()


@pytest.mark.parametrize("offset", [0.0, 0.6, 0.999])
@pytest.mark.parametrize(("rows", "count"), [(10, 1), (10, 7), (10, 20), (200, 3000)])
def test_picks_are_in_proportion_to_their_weights_and_in_order(rows, count, offset):
    numbers = np.arange(rows)
    uneven = np.random.default_rng(0).integers(0, 40, rows, np.int32) * (numbers % 3 > 0)
    for weights in (uneven, uneven > 0):
        picked = resample(numbers, jnp.asarray(weights), count, offset)
        assert (np.diff(picked) >= 0).all()
        times = np.bincount(picked, minlength=rows)
        assert np.abs(times - count * weights / weights.sum()).max() < 1.01
        assert times[weights == 0].max() == 0


def test_weights_of_picking_follow_the_surprise():
    decisions = played("whole").decisions
    there, surprise = decisions.played.ravel(), decisions.surprise.ravel()
    np.testing.assert_array_equal(sampling_weights(decisions, 0.0), there)
    assert surprise[there].min() > -1e-6 and surprise[there].std() > 0.01
    calm = decisions._replace(surprise=np.zeros_like(decisions.surprise))
    mixed = there * (0.75 + 0.25 * surprise / surprise[there].mean())
    for given, share, expected in ((decisions, 0.25, mixed), (calm, 1.0, there)):
        weights = np.asarray(sampling_weights(given, share), float)
        np.testing.assert_allclose(weights / weights[there].mean(), expected, atol=1e-4)


def test_what_surprises_is_stored_more_often():
    """In proportion to the surprise, where it has all of the weight."""
    decisions, stored = played("whole").decisions, played("whole").stored
    drawn, surprise = decisions.drawn[decisions.played], decisions.surprise[decisions.played]
    boards, row = np.unique(drawn, axis=0, return_inverse=True)
    total = np.bincount(row.ravel(), surprise)
    times = (boards[:, None] == stored.drawn).all(-1).sum(1)
    expected = len(stored.drawn) * total / total.sum()
    assert (np.abs(times - expected) < np.bincount(row.ravel()) + 0.01).all()


def test_the_surprise_is_the_divergence_from_the_network():
    """Its priors are flat over edges, so that those that are one move count together."""
    decisions = played("whole").decisions
    step, game = np.argwhere(decisions.played & (decisions.drawn.sum(-1) > 8))[0]
    drawn, policy = decisions.drawn[step, game], decisions.policy[step, game]
    found = jax.tree.map(lambda field: field[0], jax.device_get(analyse(GAME)(drawn[None])))
    folded = jax.jit(partial(fold, GAME, found))
    prior, moves = np.asarray(folded(~drawn / (~drawn).sum())), np.asarray(folded(policy))
    expected = sum(p * np.log(p / q) for p, q in zip(moves, prior, strict=True) if p > 1e-9)
    assert decisions.surprise[step, game] == pytest.approx(expected, abs=1e-4)


def test_the_value_of_a_decision_is_what_is_won_from_there_on():
    """Boxes, for the side to move, once free boxes are taken: the table's, if leaves are."""
    # A visit of every move is a look at all leaves.
    config = load_config(
        *("configs/tiny.yaml", "--search.simulations=12", "--search.max_considered_actions=12"),
        *("--search.nodes=quiet", "--search.value_scale_per_box=0.5"),
    )
    game = config.game.board
    values_of = jax.jit(jax.vmap(partial(table_value, table_of(game))))

    def evaluate(_params, state: State, _found) -> Evaluation:
        value = values_of(state.drawn) / game.num_boxes
        return Evaluation(jnp.where(state.drawn, -1e9, 0.0), value)

    decisions = play_all(config, evaluate, 24, KEY).decisions
    exact = values_of(decisions.drawn[decisions.played])
    assert np.ptp(exact) > 4
    np.testing.assert_allclose(decisions.value[decisions.played], exact, atol=1e-3)


@pytest.mark.parametrize("form", ["plain", "whole"])
def test_settings_state_what_is_evaluated(form):
    """Games are cut after the fewest decisions there can be: settings count no others."""
    # In whole rounds, as on a GPU: a CPU leaves out what no game uses.
    config, evaluated = CONFIGS[form], []
    config = replace(config, search=replace(config.search, evaluation_batch=10**6))

    def counted(params, state: State, _found) -> Evaluation:
        jax.debug.callback(lambda drawn: evaluated.append(len(drawn)), state.drawn)
        return hashed(params, state, _found)

    @jax.jit
    def one_step(key):
        play = start_lanes(config, new_games(config, key, config.selfplay.games_per_iteration))
        return play_step(config, counted, (), key, play)

    jax.block_until_ready(one_step(KEY))
    jax.effects_barrier()
    assert sum(evaluated) * config.positions_per_game == config.evaluations_per_iteration
