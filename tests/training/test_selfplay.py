"""Test self-play: games obey the rules, targets are the results, stored positions were played.

There are four forms: each edge is a decision; whole games of the quiet game; late games, several
one after the other in each lane, at the start and at the end of a run.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import analyse, planted
from quiet_referee import (
    BOARD,
    HASHED,
    Played,
    play_program,
    play_to,
    replay,
    sizes_of,
    steps_of,
)
from tablebase import build_table, table_value

from jaxzero.cli import load_config
from jaxzero.config import longest_game, plan
from jaxzero.game.quiet import fold, max_decisions, min_decisions
from jaxzero.training.targets import resample, sampling_weights

GAMES, KEY = {"plain": 24, "whole": 24, "late": 144}, jax.random.key(5)
SMALL = ("configs/tiny.yaml", "--game.rows=3", "--game.cols=3", "--search.simulations=4")
CONFIGS = {
    "plain": load_config(*SMALL, "--search.nodes=all", "--selfplay.random_opening_moves=3"),
    "whole": load_config(
        *(*SMALL, "--search.nodes=quiet", "--selfplay.random_opening_moves=3"),
        "--selfplay.surprise_weight=1",
    ),
    "late": load_config(
        *(*SMALL, "--search.nodes=quiet", "--selfplay.late_start_moves=10"),
        *("--selfplay.late_start_until=0.5", "--selfplay.random_opening_moves=2"),
        *("--selfplay.random_move_fraction=1", "--selfplay.games_per_iteration=144"),
    ),
}
# `fallen` is `late` at the end of the run, when games start at the first move.
FORMS = {"plain": ("plain", 0.0), "whole": ("whole", 0.0), "late": ("late", 0.0)}
FORMS["fallen"] = ("late", 1.0)
every_form = pytest.mark.parametrize("form", FORMS)
refilled = pytest.mark.parametrize("form", ["late", "fallen"])


@cache
def program(kind: str):
    return play_program(CONFIGS[kind], HASHED, GAMES[kind])


@cache
def played(form: str) -> Played:
    kind, progress = FORMS[form]
    return program(kind)(KEY, progress)


@every_form
def test_games_obey_the_rules_and_targets_are_what_was_won(form):
    decisions, results, positions, _, metrics, _ = played(form)
    bins = positions.labels["margin"].reshape(decisions.played.shape)
    begun, declined, calm = np.unique(decisions.game[decisions.played]), 0, 0
    for number in begun.tolist():
        where = steps, lanes = steps_of(decisions, number)
        # A game occupies one lane without gaps from its first to its last decision.
        assert len(set(lanes)) == 1 and (np.diff(steps) == 1).all()
        if form in ("plain", "whole"):
            assert steps[0] == 0 and not decisions.drawn[0, number].any()
            assert decisions.player[0, number] == decisions.ahead[0, number] == 0
        referee, times = replay(decisions, number)
        declined += times
        # All of the last free boxes are taken.
        play_to(referee, np.ones(BOARD.num_edges, bool), 1 - referee.player)
        final = referee.scores[0] - referee.scores[1]
        assert final == results[number]
        margin = (final - decisions.ahead[where]) * (1 - 2 * decisions.player[where])
        # A margin is known if neither its move nor a later move of the game is random.
        random = decisions.random[where]
        known = ~(np.cumsum(random[::-1])[::-1] > 0)
        np.testing.assert_array_equal(bins[where], np.where(known, margin + BOARD.num_boxes, -1))
        calm += not random.any()
    assert (declined > 0) == (form != "plain")
    assert calm > 1
    for name, share in (("wins", results > 0), ("margin", results)):
        assert metrics[f"selfplay/first_{name}"] == pytest.approx(share[begun].mean(), abs=1e-5)


@every_form
def test_policies_lie_on_legal_edges_of_searched_positions(form):
    decisions = played(form).decisions
    drawn, policy = (x[decisions.played] for x in (decisions.drawn, decisions.policy))
    np.testing.assert_allclose(policy.sum(-1), 1, rtol=1e-5)
    assert policy[drawn].max() == 0
    assert form == "plain" or analyse(BOARD)(drawn).taken.max() == 0


@every_form
def test_each_stored_position_was_played(form):
    decisions, _, labelled, stored, *_ = played(form)
    kind, _ = FORMS[form]
    assert len(stored.drawn) == sizes_of(CONFIGS[kind], GAMES[kind]).positions

    def rows(positions) -> set[bytes]:
        fields = [np.asarray(field) for field in jax.tree.leaves(positions)]
        return {b"".join(field[i].tobytes() for field in fields) for i in range(len(fields[0]))}

    flat = decisions.played.ravel()
    there, taken = rows(jax.tree.map(lambda x: x[flat], labelled)), rows(stored)
    assert taken <= there
    # If surprise weights the samples, few positions are stored many times.
    assert len(taken) > (0.3 if form == "whole" else 0.6) * len(stored.drawn)


@every_form
def test_games_and_decisions_are_counted_as_played(form):
    decisions, metrics = played(form).decisions, played(form).metrics
    simulations = decisions.simulations[decisions.played]
    assert 1 <= simulations.min() <= simulations.max() == 4
    assert (simulations.min() == 4) == (form == "plain")  # mctx makes all; rounds may need fewer
    expected = {
        "games": len(np.unique(decisions.game[decisions.played])),
        "moves": decisions.played.sum(),
        "simulations": simulations.mean(),
        "evaluations": decisions.evaluations[decisions.played].sum(),
        "used": decisions.played[: int(metrics["selfplay/steps"])].mean(),
    }
    for name, value in expected.items():
        assert metrics[f"selfplay/{name}"] == pytest.approx(value), name
    # The last searches of a game end in finished games.
    assert decisions.played.sum() < expected["evaluations"] < (simulations + 1).sum()


@pytest.mark.parametrize("form", ["plain", "whole"])
def test_games_are_as_long_as_settings_say(form):
    decisions, config = played(form).decisions, CONFIGS[form]
    lengths = decisions.played.sum(0)
    assert lengths.min() == sizes_of(config, 1).positions
    assert lengths.max() <= longest_game(config)
    opening = config.selfplay.random_opening_moves
    assert set(decisions.random.sum(0).tolist()) == set(range(opening + 1))


@refilled
def test_lanes_are_full_of_games_from_the_ply_on_the_longest_first(form):
    decisions, longest = played(form).decisions, played(form).longest
    config, ply = CONFIGS["late"], {"late": 10, "fallen": 0}[form]
    lengths = np.bincount(decisions.game[decisions.played], minlength=144)
    assert lengths.max() <= max_decisions(BOARD) - ply
    # Half of the games on the whole board begin at the ply.
    assert (lengths[lengths > 0] >= min_decisions(BOARD) - ply).mean() >= 0.2
    # Positions of the quiet game: at least a move is behind each, and each edge drawn counts once.
    drawn = decisions.drawn[decisions.played].sum(1)
    assert drawn.min() >= ply and drawn.max() > 12
    assert decisions.played.shape == (plan(config).steps, plan(config).lanes)
    assert decisions.played.mean() > 0.85
    games = max(len(np.unique(lane)) for lane in decisions.game.T)
    assert games >= {"late": 3, "fallen": 2}[form]
    # The queue leaves out only the shortest games.
    assert (np.diff(longest) <= 0).all() and (lengths <= longest).all()
    left_out = lengths == 0
    assert left_out.sum() == 0 or longest[left_out].max() <= np.median(longest)


@pytest.mark.parametrize("path", sorted(Path("configs").glob("*.yaml")), ids=lambda path: path.stem)
def test_lanes_have_room_for_the_positions_that_are_stored(path):
    config = load_config(path)
    sizes = plan(config)
    assert 0.6 * sizes.decisions <= sizes.positions <= sizes.decisions
    samples = config.learner.batch_size * config.learner.updates_per_iteration
    assert config.replay_ratio == samples / sizes.positions


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
    """With a surprise weight of 1, positions are stored in proportion to their surprise."""
    decisions, stored = played("whole").decisions, played("whole").stored
    drawn, surprise = decisions.drawn[decisions.played], decisions.surprise[decisions.played]
    boards, row = np.unique(drawn, axis=0, return_inverse=True)
    total = np.bincount(row.ravel(), surprise)
    times = (boards[:, None] == stored.drawn).all(-1).sum(1)
    expected = len(stored.drawn) * total / total.sum()
    assert (np.abs(times - expected) < np.bincount(row.ravel()) + 0.01).all()


def test_the_surprise_is_the_divergence_from_the_network():
    """The network's priors are uniform over edges; edges of one move count together."""
    decisions = played("whole").decisions
    step, game = np.argwhere(decisions.played & (decisions.drawn.sum(-1) > 8))[0]
    drawn, policy = decisions.drawn[step, game], decisions.policy[step, game]
    found = jax.tree.map(lambda field: field[0], jax.device_get(analyse(BOARD)(drawn[None])))
    folded = jax.jit(partial(fold, BOARD, found))
    prior, moves = np.asarray(folded(~drawn / (~drawn).sum())), np.asarray(folded(policy))
    expected = sum(p * np.log(p / q) for p, q in zip(moves, prior, strict=True) if p > 1e-9)
    assert decisions.surprise[step, game] == pytest.approx(expected, abs=1e-4)


def test_the_value_of_a_decision_is_what_is_won_from_there_on():
    """With exact leaves, the value equals the table: boxes for the side to move from here on."""
    # One visit of every move evaluates all leaves.
    config = load_config(
        *("configs/tiny.yaml", "--search.simulations=12", "--search.max_considered_actions=12"),
        *("--search.nodes=quiet", "--search.value_scale_per_box=0.5"),
    )
    board = config.game.board
    values_of = jax.jit(jax.vmap(partial(table_value, build_table(board))))
    decisions = play_program(config, planted(board, 0.0), 24)(KEY).decisions
    exact = values_of(decisions.drawn[decisions.played])
    assert np.ptp(exact) > 4
    np.testing.assert_allclose(decisions.value[decisions.played], exact, atol=1e-3)
