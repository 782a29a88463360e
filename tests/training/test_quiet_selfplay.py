"""Self-play of the quiet game: edge by edge it obeys the rules, and targets are what was won."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import analyse, table_of
from quiet_referee import hashed, play_all, play_to
from referee import Referee

from jaxzero.cli import load_config
from jaxzero.game import State
from jaxzero.game.quiet import fewest_decisions, fold
from jaxzero.network.network import Network
from jaxzero.search.search import Evaluation
from jaxzero.solver.tablebase import table_value
from jaxzero.training.games import new_games, start_lanes
from jaxzero.training.iteration import init_actor, make_iteration
from jaxzero.training.learner import init_learner
from jaxzero.training.parallel import choose_devices, parallelize, replicate, spread_actor
from jaxzero.training.selfplay import play_step
from jaxzero.training.targets import Positions, sampling_weights
from jaxzero.training.targets import resample as resample_

GAMES = 24
CONFIG = load_config(
    "configs/tiny.yaml",
    "--game.rows=3",
    "--game.cols=3",
    "--search.simulations=4",
    "--search.nodes=quiet",
    "--selfplay.random_opening_moves=3",
    "--selfplay.surprise_weight=1",
)
GAME = CONFIG.game.board
resample = jax.jit(resample_, static_argnums=2)
# A visit of every move is a look at all leaves.
LOOK_AHEAD = (
    *("--search.simulations=12", "--search.max_considered_actions=12", "--search.nodes=quiet"),
    "--search.value_scale_per_box=0.5",
)


@pytest.fixture(scope="module")
def played():
    return play_all(CONFIG, hashed, GAMES, jax.random.key(7))


def test_games_expanded_into_edges_obey_the_rules(played):
    decisions, results, positions, *_ = played
    margins, declined = positions.margin.reshape(-1, GAMES), 0
    for number in range(GAMES):
        referee, steps = Referee(GAME), int(decisions.played[:, number].sum())
        assert decisions.played[:steps, number].all()
        ahead, movers = [], []
        for step in range(steps):
            quiet = decisions.drawn[step, number]
            if step:
                declined += play_to(referee, quiet, decisions.player[step, number])
            assert set(np.flatnonzero(quiet)) == referee.drawn
            assert decisions.player[step, number] == referee.player
            ahead.append(referee.scores[0] - referee.scores[1])
            movers.append(referee.player)
        # The last free boxes are all taken.
        play_to(referee, np.ones(GAME.num_edges, bool), 1 - referee.player)
        final = referee.scores[0] - referee.scores[1]
        assert decisions.ahead[:steps, number].tolist() == ahead
        assert final == results[number]
        still = [(final - a) * (1 - 2 * p) for a, p in zip(ahead, movers, strict=True)]
        assert margins[:steps, number].tolist() == still
    assert declined > 0


def test_policies_lie_on_legal_edges_of_quiet_positions(played):
    decisions = played.decisions
    drawn, policy = (x[decisions.played] for x in (decisions.drawn, decisions.policy))
    np.testing.assert_allclose(policy.sum(-1), 1, rtol=1e-5)
    assert policy[drawn].max() == 0
    found = analyse(GAME)(drawn)
    assert int(found.taken.max()) == 0


def test_openings_are_random_and_of_every_length(played):
    decisions = played.decisions
    lengths = decisions.random.sum(0)
    assert set(lengths.tolist()) == set(range(CONFIG.selfplay.random_opening_moves + 1))
    np.testing.assert_array_equal(~decisions.random, np.sort(~decisions.random, axis=0))


def test_a_block_holds_only_positions_that_were_played(played):
    stored = played.stored
    assert len(stored.margin) == GAMES * CONFIG.positions_per_game
    assert not stored.drawn.all(axis=-1).any()
    np.testing.assert_allclose(stored.policy.sum(-1), 1, rtol=1e-5)
    assert played.metrics["selfplay/decisions"] >= fewest_decisions(GAME)


@pytest.mark.parametrize("offset", [0.0, 0.999])
@pytest.mark.parametrize("count", [1, 5, 7, 20])
def test_picks_are_even_and_valid(offset, count):
    valid = np.array([True, True, False, True, False, True, True, True, True, False])
    numbers = np.arange(10)
    picked = resample(Positions(*[numbers] * 3, valid, valid), valid, count, offset)
    assert bool(picked.margin_known.all())
    times = np.bincount(picked.margin, minlength=10)[np.asarray(valid)]
    assert times.max() - times.min() <= 1
    assert (np.diff(picked.margin) >= 0).all()


@pytest.mark.parametrize("offset", [0.0, 0.6])
def test_picks_are_in_proportion_to_their_weights(offset):
    numbers, count = np.arange(200), 3000
    weights = np.random.default_rng(0).integers(0, 40, 200, np.int32) * (numbers % 3 > 0)
    positions = Positions(*[numbers] * 3, *[weights > 0] * 2)
    picked = resample(positions, weights, count, offset)
    times = np.bincount(picked.margin, minlength=200)
    expected = count * np.asarray(weights) / int(weights.sum())
    assert np.abs(times - expected).max() < 1.01
    assert times[np.asarray(weights) == 0].max() == 0


def test_weights_of_picking_follow_the_surprise(played):
    decisions = played.decisions
    there = decisions.played.ravel()
    np.testing.assert_array_equal(sampling_weights(decisions, 0.0), there)
    weights = np.asarray(sampling_weights(decisions, 0.25), float)
    surprise = decisions.surprise.ravel()
    assert surprise[there].min() > -1e-6 and surprise[there].std() > 0.01
    expected = there * (0.75 + 0.25 * surprise / surprise[there].mean())
    np.testing.assert_allclose(weights / weights[there].mean(), expected, atol=1e-4)
    calm = decisions._replace(surprise=np.zeros_like(decisions.surprise))
    even = np.asarray(sampling_weights(calm, 1.0), float)
    np.testing.assert_allclose(even / even[there].mean(), there, atol=1e-4)


def test_what_surprises_is_stored_more_often(played):
    """In proportion to the surprise, where it has all of the weight."""
    decisions, stored = played.decisions, played.stored
    drawn, surprise = decisions.drawn[decisions.played], decisions.surprise[decisions.played]
    boards, row = np.unique(drawn, axis=0, return_inverse=True)
    total = np.bincount(row.ravel(), surprise)
    same = (boards[:, None] == stored.drawn).all(-1)
    times, played_times = same.sum(1), np.bincount(row.ravel())
    assert times.sum() == len(stored.drawn)
    expected = times.sum() * total / total.sum()
    assert (np.abs(times - expected) < played_times + 0.01).all()


def test_the_value_of_a_decision_is_what_is_won_from_there_on():
    """Boxes, for the side to move, once free boxes are taken: the table's, if leaves are."""
    config = load_config("configs/tiny.yaml", *LOOK_AHEAD)
    game = config.game.board
    values_of = jax.jit(jax.vmap(partial(table_value, table_of(game))))

    def evaluate(_params, state: State, _found) -> Evaluation:
        value = values_of(state.drawn) / game.num_boxes
        return Evaluation(jnp.where(state.drawn, -1e9, 0.0), value)

    decisions = play_all(config, evaluate, GAMES, jax.random.key(3)).decisions
    exact = values_of(decisions.drawn[decisions.played])
    assert np.ptp(exact) > 4
    np.testing.assert_allclose(decisions.value[decisions.played], exact, atol=1e-3)


def test_the_surprise_is_the_divergence_from_the_network(played):
    """Its priors are flat over edges, so that those that are one move count together."""
    decisions = played.decisions
    step, game = np.argwhere(decisions.played & (decisions.drawn.sum(-1) > 8))[0]
    drawn, policy = decisions.drawn[step, game], decisions.policy[step, game]
    found = jax.tree.map(lambda field: field[0], jax.device_get(analyse(GAME)(drawn[None])))
    folded = jax.jit(partial(fold, GAME, found))
    prior, moves = np.asarray(folded(~drawn / (~drawn).sum())), np.asarray(folded(policy))
    expected = sum(p * np.log(p / q) for p, q in zip(moves, prior, strict=True) if p > 1e-9)
    assert decisions.surprise[step, game] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("nodes", ["all", "quiet"])
def test_settings_state_what_is_played(nodes):
    """Games are cut after the fewest decisions there can be: settings count no others."""
    # In whole rounds, as on a GPU: a CPU leaves out what no game uses.
    whole = replace(CONFIG.search, nodes=nodes, evaluation_batch=10**6)
    config, evaluated = replace(CONFIG, search=whole), []

    def counted(params, state: State, _found) -> Evaluation:
        jax.debug.callback(lambda drawn: evaluated.append(len(drawn)), state.drawn)
        return hashed(params, state, _found)

    games, key = config.selfplay.games_per_iteration, jax.random.key(0)
    step = jax.jit(partial(play_step, config, counted))
    play = jax.jit(lambda key: start_lanes(config, new_games(config, key, games)))(key)
    for _ in range(config.positions_per_game):
        play = jax.block_until_ready(step((), key, play))
    jax.effects_barrier()
    assert sum(evaluated) == config.evaluations_per_iteration


def test_no_game_has_fewer_decisions_than_stated(played):
    decisions = played.decisions
    lengths = decisions.played.sum(0)
    assert lengths.min() == CONFIG.positions_per_game
    assert lengths.max() <= CONFIG.steps_per_game


# The iteration of test_adjudication plays the quiet game too.
@pytest.mark.slow
@pytest.mark.parametrize("late_start_moves", [0, 3])
def test_an_iteration_learns_from_the_quiet_game(late_start_moves):
    config = load_config(
        "configs/tiny.yaml",
        "--search.nodes=quiet",
        "--network.channels=16",
        "--network.features=raw",
        "--selfplay.games_per_iteration=16",
        f"--selfplay.late_start_moves={late_start_moves}",
        "--learner.updates_per_iteration=2",
    )
    devices = choose_devices(2)
    network = Network(config.game.board, config.network)
    iterate = parallelize(make_iteration(config, network, len(devices)), devices)
    learner = replicate(init_learner(network, config), devices)
    actor = spread_actor(lambda: init_actor(config, len(devices)), devices)
    run_key, span = replicate((jax.random.key(0), np.zeros(2, np.float32)), devices)
    learner, actor, metrics = iterate(learner, actor, run_key, span)
    assert actor.replay.size.tolist() == [config.positions_per_iteration // 2] * 2
    metrics = jax.device_get(metrics)
    assert all(np.isfinite(value) for value in metrics.values())
    assert metrics["selfplay/games"] <= 16 and (late_start_moves or metrics["selfplay/games"] == 16)
    new = metrics["selfplay/new_positions"]
    assert 0 < new <= min(metrics["selfplay/moves"], config.positions_per_iteration)
    assert metrics["learn/replay_ratio"] == pytest.approx(2 * config.learner.batch_size / new)
    assert metrics["learn/replay_ratio"] >= config.replay_ratio - 1e-5
