"""Adjudicated games: results, stored margins and solved positions equal plain minimax."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quiet_referee import GAME, board, hashed, openings, replay
from referee import exact_values
from short_run import beginning

from jaxzero.cli import load_config
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, box_sides_table, boxes_closed
from jaxzero.host.interrupts import Stop
from jaxzero.network.network import Network
from jaxzero.runs.metrics import read_metrics
from jaxzero.solver.endgame import solve
from jaxzero.training import adjudicator
from jaxzero.training.adjudication import OF_ENDS, has_ended, postpone, results
from jaxzero.training.adjudicator import Adjudicator, solve_stops
from jaxzero.training.games import Games, new_games, positions_to_search
from jaxzero.training.iteration import compile_iteration
from jaxzero.training.parallel import choose_devices
from jaxzero.training.progress import run_iteration
from jaxzero.training.queue import make_queue
from jaxzero.training.replay import add, empty_replay, relabel
from jaxzero.training.selfplay import play_to_the_end
from jaxzero.training.targets import Positions, label, possible_margin
from jaxzero.training.trainer import train

GAMES, BELOW, SOLVED, KEY = 64, 8, 3, jax.random.key(5)
QUIET = (
    *("configs/tiny.yaml", "--game.rows=3", "--game.cols=3", "--search.nodes=quiet"),
    *("--selfplay.late_start_moves=5", "--selfplay.random_opening_moves=2"),
    f"--selfplay.solver_below_edges={BELOW}",
    f"--selfplay.solver_positions_per_game={SOLVED}",
    "--search.evaluation_batch=1000000",  # rounds, as on a GPU: they compile faster
    "--replay.capacity=3000",
)
CONFIG = load_config(*QUIET, "--search.simulations=4", "--selfplay.random_move_fraction=0.5")
LEARNING = load_config(
    *QUIET,
    *("--network.features=raw", "--network.channels=16", "--search.simulations=2"),
    *("--selfplay.games_per_iteration=32", "--learner.batch_size=16"),
    *("--learner.updates_per_iteration=2", "--evaluation.opponents=random"),
    *("--evaluation.suite=none", "--evaluation.simulations=0", "--evaluation.final_games=8"),
    *("--evaluation.evaluate_every=0", "--checkpoint_every=2", "--iterations=9"),
)
minimax = exact_values(GAME)
closed_of = jax.jit(jax.vmap(partial(boxes_closed, GAME)))


def is_exact(drawn: np.ndarray, best: np.ndarray, value: int) -> bool:
    """Return whether a value and a set of best moves are those of minimax."""
    exact, margins = minimax(np.flatnonzero(drawn))
    moves = [edge for edge, margin in margins.items() if margin == exact]
    return value == exact and moves == np.flatnonzero(best).tolist()


@pytest.fixture(scope="module")
def played():
    """Return decisions [T, B], stops [N], answers [N, K], and postponed margins [T * B]."""

    def play(random_key: jax.Array, play_key: jax.Array) -> tuple:
        begin = new_games(CONFIG, random_key, GAMES)
        decisions, stops = play_to_the_end(CONFIG, hashed, (), play_key, begin)
        postponed = postpone(CONFIG, decisions, GAMES)[1]
        return decisions, stops, postponed, has_ended(CONFIG, positions_to_search(CONFIG, begin))

    decisions, stops, postponed, over = jax.device_get(jax.jit(play)(*jax.random.split(KEY)))
    answers, _ = solve_stops(GAME, stops.drawn, 0, SOLVED, 2, (0, 0))
    answers.solved[stops.drawn.all(1), 0] = True
    assert not over.any()  # no opening reaches a stop
    return decisions, stops, answers, postponed


def final_margin(decisions, stops, number: int) -> int | None:
    """Return the final margin of a game by referee and minimax; None if minimax takes long."""
    referee, _ = replay(decisions, number)
    # Any move that leads to the stop will do, because minimax plays on from that move.
    moves, behind = jax.device_get(openings(board(referee)))
    (edge, *_) = np.flatnonzero(moves & (behind == stops.drawn[number]).all(axis=1))
    referee.play(int(edge))
    if GAME.num_edges - len(referee.drawn) > 12:
        return None
    value = minimax(np.flatnonzero(board(referee)))[0]
    return referee.scores[0] - referee.scores[1] + (-value if referee.player else value)


def test_results_are_those_of_perfect_play_from_the_stop_on(played):
    decisions, stops, answers, _ = played
    told = np.asarray(results(stops, answers))
    left = (~stops.drawn).sum(1)
    begun = np.unique(decisions.game[decisions.played])
    finals = {number: final_margin(decisions, stops, number) for number in begun.tolist()}
    finals = {number: final for number, final in finals.items() if final is not None}
    assert len(finals) > 0.6 * GAMES and (left[begun] > 0).mean() > 0.8
    assert ((stops.free.declined > 0) & (left > 0))[list(finals)].any()
    for number, final in finals.items():
        assert told[number] == final
    # Decisions lie above the limit of undrawn edges, stops do not.
    undrawn = (~decisions.drawn).sum(-1)[decisions.played]
    assert undrawn.min() > BELOW >= left[begun].max()


def test_no_game_is_cut_where_its_opening_stopped_early():
    options = ("--selfplay.late_start_moves=11", "--selfplay.solver_below_edges=12")
    config = load_config(*QUIET, "--search.simulations=2", *options)

    random_key, play_key = jax.random.split(KEY)
    begin = jax.jit(lambda: new_games(config, random_key, 256))()

    @jax.jit
    def play(games: Games) -> tuple:
        return make_queue(config, games), play_to_the_end(config, hashed, (), play_key, games)

    queue, (decisions, stops) = jax.device_get(play(begin))
    assert queue.longest.max() > config.lane_steps  # some openings leave too many moves
    begun = np.unique(decisions.game[decisions.played])
    assert len(begun) > 20 and (queue.longest[begun] <= config.lane_steps).all()
    left = (~stops.drawn).sum(1)[begun]
    # The margin of nine boxes is odd. A game without an end has margin 0.
    assert (left <= 12).all() and (stops.ahead[begun][left == 0] % 2 == 1).all()
    # If all games are too long, some are cut. They count as not played.
    longest = jax.tree.map(lambda x: np.broadcast_to(x[:1], x.shape), queue.games)
    _, (decisions, stops) = jax.device_get(play(longest))
    begun = np.unique(decisions.game[decisions.played])
    over = stops.drawn[begun].all(1)
    assert (stops.ahead[begun][over] % 2 == 1).all()


def test_a_position_beyond_the_limit_of_nodes_is_not_tried(monkeypatch):
    game = DotsAndBoxes(3, 4)
    monkeypatch.setattr(adjudicator, "NODE_LIMIT", 2**30)  # enough for any search
    drawn = np.zeros((2, game.num_edges), bool)
    drawn[1, :13] = True  # from the top: 18 edges are undrawn, 6 of them safe
    answers, _ = solve_stops(game, drawn, 0, 1, 2, (0, 0))
    assert answers.solved[:, 0].tolist() == [False, True]
    assert not answers.best[0].any() and answers.value[1, 0] == solve(game, drawn[1]).value


def test_margins_that_were_postponed_are_those_of_labels(played):
    decisions, stops, answers, postponed = played
    told = results(stops, answers)
    for options in ({}, {"td_lambda": 0.7, "td_above_edges": 10}):
        config = replace(CONFIG, selfplay=replace(CONFIG.selfplay, **options))
        expected = jax.jit(partial(label, config))(decisions, told, KEY)
        _, waits = jax.jit(partial(postpone, config, games=GAMES))(decisions)
        there = decisions.played.ravel()
        np.testing.assert_array_equal(waits.known[there], expected.margin_known[there])
        to_come = np.asarray(waits.slope * told[waits.game] + waits.offset)[there]
        margin = np.asarray(expected.margin)[there]
        uniform = jax.random.uniform(KEY, decisions.played.shape).ravel()[there]
        same = np.asarray(possible_margin(to_come, waits.left[there], uniform)) == margin
        whole = abs(np.asarray(waits.slope))[there] == 1
        assert whole.all() == (not options) and whole.mean() > 0.1
        assert same[whole].all() and same.mean() > 0.99  # floats may round differently
    assert 0.3 < np.asarray(postponed.known)[decisions.played.ravel()].mean() < 0.95


def test_solved_positions_are_quiet_and_lie_on_the_way_to_the_end(played):
    _, stops, answers, _ = played
    open_games = ~stops.drawn.all(1)
    assert answers.solved.all()
    first, *others = np.swapaxes(answers.drawn, 0, 1)
    for later in others:
        assert (first <= later).all() and not later[open_games].all(1).any()
        assert (first < later)[open_games].any(1).mean() > 0.5
    for drawn, best, value in zip(
        *(x[open_games].reshape(-1, *x.shape[2:]) for x in answers[:3]), strict=True
    ):
        assert is_exact(drawn, best, value)
        assert (drawn[box_sides_table(GAME)].sum(-1) != 3).all()


def test_games_that_never_began_hold_later_positions_of_others(played):
    _, stops, _, _ = played
    drawn = stops.drawn[~stops.drawn.all(1)][:8]
    answers, _ = solve_stops(GAME, drawn, 40, SOLVED, 2, (1, 2))
    assert answers.drawn.shape == (48, SOLVED, GAME.num_edges)
    assert (answers.drawn[:, 1] != answers.drawn[:, 2]).any()  # each is played on separately
    assert answers.solved.all() and not answers.best[8:, 0].any() and not answers.value[8:, 0].any()
    later = answers.drawn[8:, 1]
    from_whom = (drawn[None] <= later[:, None]).all(-1)
    assert from_whom.any(1).all() and from_whom.any(0).all() and len(np.unique(later, axis=0)) > 8
    for position, value in zip(later, answers.value[8:, 1], strict=True):
        assert value == minimax(np.flatnonzero(position))[0]


def test_careful_games_go_on_with_safe_moves():
    start = np.zeros((300, GAME.num_edges), bool)
    later = adjudicator.play_on(GAME, start, start, 2, np.random.default_rng(3))
    # Eight safe moves always exist. With random moves, half of these positions would be careful.
    early = later[(later.sum(1) >= 7) & (later.sum(1) <= 8)]
    careful = (early[:, box_sides_table(GAME)].sum(-1) <= 2).all(1)
    assert len(early) > 20 and 0.75 < careful.mean() < 1


def test_the_nearer_to_the_stop_the_more_edges_are_undrawn():
    start, rng = np.zeros((3000, GAME.num_edges), bool), np.random.default_rng(4)
    undrawn = [
        GAME.num_edges - adjudicator.play_on(GAME, start, start, near, rng).sum(1).mean()
        for near in (1, 2, 4, 16)
    ]
    # The mean depths are 12, 15.7, 18.7 and 22.2. The last move may draw more edges.
    assert np.allclose(undrawn, [11.8, 15.5, 18.5, 22], atol=0.7)


def test_margins_are_written_into_the_block_they_are_for():
    block, numbers = 4, jnp.arange(4)
    replay = empty_replay(16, 12)
    for _ in range(7):
        edges, first = jnp.ones((4, 12), bool), numbers < 1
        replay = add(replay, Positions(edges, edges.astype(float), numbers * 0, first, first))
    known = numbers[:3] > 0
    after = relabel(replay, 2 * block, 7 + numbers[:3], known)
    # Block 7 (counted from 0) comes next, at place 3 of 4, so block 5 is at place 1.
    assert after.margin.tolist() == [0] * 4 + [0, 8, 9, 0] + [0] * 8
    assert after.margin_known.tolist() == [1, 0, 0, 0, 1, 1, 1, 0] + [1, 0, 0, 0] * 2


class CheckedAdjudicator(Adjudicator):
    """Check that answers belong to the games that wait for them."""

    def answer(self, state):
        state, metrics = super().answer(state)
        if metrics:
            stops = jax.device_get(state.older.ends.drawn)
            asked = ~stops.all(-1)
            assert asked.any()
            first = jax.device_get(state.answers.drawn)[:, :, 0]
            np.testing.assert_array_equal(first[asked], stops[asked])
        return state, metrics


@pytest.fixture(scope="module")
def ran(alike_runs_share_a_program):
    """Run five iterations on two devices, twice; return each replay [D, C, ...] and its metrics.

    The first run has the usual node limit, the second run a limit of one node.
    """
    devices, history = choose_devices(2), []
    compiled = compile_iteration(LEARNING, Network(GAME, LEARNING.network), devices).compiled
    with pytest.MonkeyPatch.context() as patch:
        for limit in (adjudicator.NODE_LIMIT, 1):
            patch.setattr(adjudicator, "NODE_LIMIT", limit)
            progress, run_key = beginning(LEARNING, devices)
            lines = []
            with CheckedAdjudicator(LEARNING, devices) as solver, jax.transfer_guard("disallow"):
                for _ in range(5):
                    progress, metrics = run_iteration(LEARNING, compiled, run_key, progress, solver)
                    lines.append(metrics)
            history.append((jax.device_get(progress.actor.replay), lines))
    return history


def by_block(ring) -> tuple[jax.Array, ...]:
    """Return drawn, policy, margin, known of self-play and of solved positions: [D, 5, P, ...]."""
    drawn = np.unpackbits(ring.drawn, axis=-1, count=GAME.num_edges).astype(bool)
    shape = 2, -1, LEARNING.positions_per_iteration // 2
    fields = [x.reshape(*shape, *x.shape[2:])[:, :5] for x in (drawn, *ring[1:4])]
    own = LEARNING.positions_per_game * LEARNING.selfplay.games_per_iteration // 2
    return [x[:, :, :own] for x in fields], [x[:, :, own:] for x in fields]


def test_an_iteration_counts_what_it_plays_and_learns_from(ran):
    (ring, lines), _ = ran
    config, games = LEARNING, LEARNING.selfplay.games_per_iteration
    assert ring.size.tolist() == [5 * config.positions_per_iteration // 2] * 2
    for line in lines:
        assert np.isfinite(list(line.values())).all()
        assert 0 < line["selfplay/games"] <= games
        new, own = line["selfplay/new_positions"], games * config.positions_per_game
        assert new - line["selfplay/solved"] == min(line["selfplay/moves"], own)
        samples = config.learner.updates_per_iteration * config.learner.batch_size
        assert line["learn/replay_ratio"] == pytest.approx(samples / new)
        assert line["learn/replay_ratio"] >= config.replay_ratio - 1e-5


def test_the_replay_holds_exact_values_of_solved_positions(ran):
    (ring, lines), _ = ran
    _, (drawn, policy, margin, known) = by_block(ring)
    assert not known[:, :2].any() and known[:, 2:].all() and not policy[:, :2].any()
    is_set = by_block(ring._replace(margin=ring.policy_is_set))[1][2]
    np.testing.assert_array_equal(is_set, (policy > 0).sum(axis=-1) > 1)
    assert is_set.any()
    flat = (x[:, 2:].reshape(-1, *x.shape[3:]) for x in (drawn, policy, margin))
    for position, target, value in zip(*flat, strict=True):
        assert is_exact(position, target, value) and set(target.tolist()) <= {0.0, 1.0}
    for line in lines[2:]:
        assert line["selfplay/adjudicated"] > 0.5 and line["selfplay/unsolved"] == 0
        assert line["speed/solver_wait_seconds"] >= 0 < line["speed/solved_per_core_second"]


def test_margins_of_self_play_become_known_two_iterations_later(ran):
    (ring, _), _ = ran
    (drawn, _, margin, known), _ = by_block(ring)
    assert not known[:, 3:].any() and known[:, :3].mean() > 0.5
    left = GAME.num_boxes - np.asarray(closed_of(drawn.reshape(-1, GAME.num_edges)))
    left, margin = left[known.ravel()], margin[known]
    assert ((margin - left) % 2 == 0).all() and (abs(margin) <= left).all()


def test_what_is_beyond_the_limit_of_nodes_stays_unknown_and_is_counted(ran):
    _, (ring, lines) = ran
    (*_, own_known), (drawn, _, margin, known) = by_block(ring)
    assert [line["selfplay/unsolved"] > 0.5 for line in lines[2:]] == [True] * 3
    assert [line["selfplay/adjudicated"] < 0.3 for line in lines[2:]] == [True] * 3
    assert not any(name in line for name in OF_ENDS for line in lines[:2]), "nothing is known yet"
    assert own_known.mean() < 0.3
    # A position that needs no search may be solved.
    for position, value in zip(drawn[known], margin[known], strict=True):
        assert value == minimax(np.flatnonzero(position))[0]


def test_a_run_stops_and_resumes_without_what_it_waited_for(ran, tmp_path):
    for resume in (False, True):
        assert not train(LEARNING, tmp_path / "run", resume, Stop(max_iterations=3))
    told = [line.get("selfplay/adjudicated", 0) > 0 for line in read_metrics(tmp_path / "run")]
    assert told == [False, False, True, False, False, True]
    assert not [one for one in threading.enumerate() if "adjudicator" in one.name]


@pytest.mark.parametrize(
    ("below", "options"),
    [
        (8, ["--search.nodes=all", "--selfplay.late_start_moves=0"]),
        (20, []),  # nothing is left to play after late starts
        (8, ["--game.rows=8", "--game.cols=8"]),
        (8, ["--replay.capacity=100"]),  # answers come two iterations later
    ],
)
def test_games_that_cannot_be_adjudicated_are_refused(below, options):
    with pytest.raises(InputError, match=rf"^selfplay\.solver_below_edges: {below} "):
        load_config(*QUIET, f"--selfplay.solver_below_edges={below}", *options)
