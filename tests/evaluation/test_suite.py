"""Suites hold exact values; scores are what they say."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from compiled import analyse

from jaxzero.agent.network import Network, init_params
from jaxzero.agent.players import Agent, make_player
from jaxzero.config import NetworkConfig, SearchConfig
from jaxzero.errors import InputError
from jaxzero.evaluation.make_suite import Games, collect, self_play, solve_all
from jaxzero.evaluation.scoring import Answers, agent_answers, calibration, player_answers, score
from jaxzero.evaluation.suite import (
    BANDS,
    Suite,
    berlekamp_suite,
    load_suite,
    read_suite,
    suite_names,
    table_suite,
    write_suite,
)
from jaxzero.game import DotsAndBoxes
from jaxzero.solver.endgame import solve_many
from jaxzero.solver.tablebase import ILLEGAL

STORED = [name for name in suite_names() if "x" in name]
SMALL = DotsAndBoxes(2, 2)


def board_of(name: str) -> DotsAndBoxes:
    return DotsAndBoxes(*map(int, name.split("x")))


@pytest.fixture(scope="module")
def small() -> Suite:
    return table_suite(SMALL, positions=240)


def test_scores_by_hand():
    drawn = np.array([[True, False, False, False], [True, True, False, False]])
    moves = np.array([[ILLEGAL, 3, 1, -1], [ILLEGAL, ILLEGAL, -2, -2]], np.int8)
    suite = Suite("hand", DotsAndBoxes(1, 1), drawn, moves, np.array(["a", "b"]))
    answers = Answers(np.array([3, 2]), value=np.array([1.0, -2.5]), win=np.array([0.7, 0.1]))
    scores = score(suite, answers)
    assert scores["all"] == {
        "positions": 2,
        "optimal_share": 0.5,
        "decisive_optimal_share": 0.0,
        "boxes_lost": 2.0,
        "wins_lost_share": 1.0,
        "value_error": 1.25,
        "sign_accuracy": 1.0,
    }
    assert scores["by_origin"]["b"]["optimal_share"] == 1.0
    assert scores["by_undrawn"]["1-7"]["positions"] == 2
    assert [part["positions"] for part in calibration(suite, answers)] == [1, 1]


def test_a_sample_holds_every_ply_alike(small):
    """Positions lie in the order of their plies, so every second one would be of even plies."""
    sample = small.sample(120)
    assert len(sample) == 120
    np.testing.assert_array_equal(sample.drawn, small.sample(120).drawn)
    odd = sample.undrawn % 2 == 1
    assert 0.3 < odd.mean() < 0.7
    rows = {
        (drawn.tobytes(), moves.tobytes())
        for drawn, moves in zip(small.drawn, small.moves, strict=True)
    }
    assert all(
        (d.tobytes(), m.tobytes()) in rows for d, m in zip(sample.drawn, sample.moves, strict=True)
    )
    np.testing.assert_array_equal(small.sample(1000).drawn, small.drawn)


def test_choosing_a_drawn_edge_is_an_error(small):
    with pytest.raises(ValueError, match="drawn"):
        score(small, Answers(np.argmax(small.drawn, axis=1)))


def test_perfect_play_scores_perfectly_and_random_does_not(small):
    perfect = score(small, player_answers(small, make_player("perfect", SMALL)))["all"]
    assert perfect["optimal_share"] == perfect["decisive_optimal_share"] == 1
    assert perfect["boxes_lost"] == perfect["wins_lost_share"] == 0
    random = score(small, player_answers(small, make_player("random", SMALL)))["all"]
    assert random["optimal_share"] < 0.8
    assert random["boxes_lost"] > 0.3


def test_an_agent_answers_every_position(small):
    network = Network(SMALL, NetworkConfig(trunk="dense", channels=16, blocks=1, features="raw"))
    agent = Agent(network, init_params(network, jax.random.key(0)), SearchConfig())
    for simulations in (0, 8):
        answers = agent_answers(small, agent, simulations)
        scores = score(small, answers)["all"]
        assert scores["positions"] == 240
        assert 0 <= scores["value_error"] < SMALL.num_boxes
        assert (answers.win is None) == bool(simulations)
        if answers.win is not None:
            assert ((answers.win >= 0) & (answers.win <= 1)).all()


@pytest.mark.parametrize("name", STORED)
def test_stored_suites_are_exact_and_full(name):
    suite = load_suite(name, board_of(name))
    assert (suite.moves == ILLEGAL).sum() == suite.drawn.sum()
    assert len({board.tobytes() for board in suite.drawn}) == len(suite)
    sample = np.random.default_rng(0).choice(np.flatnonzero(suite.undrawn <= 30), 200)
    values, best, solved = solve_many(suite.game, suite.drawn[sample])
    assert solved.all()
    np.testing.assert_array_equal(values, suite.values[sample])
    expected = suite.moves[sample] == suite.values[sample][:, None]
    np.testing.assert_array_equal(best, expected)


def test_the_5x5_suite_covers_its_strata():
    suite = load_suite("5x5", DotsAndBoxes(5, 5))
    assert len(suite) >= 3000
    for origin in ("random", "greedy", "search:16", "perfect:0.15"):
        for low, high in BANDS[1:-1]:
            if origin == "search:16" and low > 28:
                continue  # too few could be solved: see the README beside the data
            inside = (suite.undrawn >= low) & (suite.undrawn <= high) & (suite.origin == origin)
            assert inside.sum() >= 190, (origin, low)


def test_the_problems_of_the_book():
    assert [len(berlekamp_suite(DotsAndBoxes(*b))) for b in ((3, 3), (3, 5), (5, 5))] == [7, 3, 4]
    with pytest.raises(InputError, match="no problem on a 2x2 board"):
        load_suite("berlekamp", SMALL)


def test_wrong_suites_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"'5x6' does not exist, did you mean 5x5"):
        load_suite("5x6", SMALL)
    with pytest.raises(InputError, match="5x5 is of a 5x5 board, not 2x2"):
        load_suite("5x5", SMALL)
    (tmp_path / "bad.npz").write_text("not a suite")
    with pytest.raises(InputError, match="cannot be read"):
        read_suite(tmp_path / "bad.npz", "bad", SMALL)
    with pytest.raises(InputError, match="table holds at most 31"):
        load_suite("table", DotsAndBoxes(4, 4))


def test_suites_are_collected_solved_and_stored(tmp_path):
    game = DotsAndBoxes(3, 3)
    players = {name: make_player(name, game) for name in ("random", "greedy")}
    drawn, origin = collect(game, players, per_stratum=20, undrawn=(8, 16), seed=0)
    left = (~drawn).sum(axis=1)
    assert left.min() >= 8 and left.max() <= 16
    assert len(drawn) == 80 and set(origin) == set(players)
    moves, solved = solve_all(game, drawn, 10**6, print)
    suite = Suite("new", game, drawn[solved], moves[solved], np.array(origin)[solved])
    write_suite(suite, tmp_path / "new.npz")
    again = read_suite(tmp_path / "new.npz", "new", game)
    np.testing.assert_array_equal(again.moves, suite.moves)
    np.testing.assert_array_equal(again.origin, suite.origin)


def test_quiet_positions_of_games_with_random_moves_can_be_collected():
    game = DotsAndBoxes(3, 3)
    players = {"greedy": make_player("greedy", game)}
    games = Games(count=64, noise=0.3, quiet=True)
    drawn, _ = collect(game, players, per_stratum=30, undrawn=(4, 16), seed=0, games=games)
    assert len(drawn) > 60 and not drawn.all(axis=1).any()
    quiet = analyse(game)(drawn).quiet
    np.testing.assert_array_equal(drawn, quiet)


def test_random_moves_come_on_top_of_the_opening():
    game = DotsAndBoxes(2, 2)
    quiet, noisy = (self_play(game, make_player("greedy", game), 8, 0, share) for share in (0, 1))
    opening = 8 * (game.num_edges // 6 + 1)  # positions until the first move after it
    np.testing.assert_array_equal(quiet[:opening], noisy[:opening])
    assert (quiet != noisy).any()
