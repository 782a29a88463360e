"""Test that suites hold exact values and that scores are correct."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from compiled import tiny_agent
from script_runner import run_here

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, automorphisms, edge_permutations
from jaxzero.measure.make_suite import is_quiet
from jaxzero.measure.scoring import (
    Answers,
    compare,
    paired_difference,
    player_answers,
    score,
    score_suite,
    scored_players,
)
from jaxzero.measure.suite import (
    BANDS,
    DATA,
    Suite,
    choose_suite,
    load_suite,
    suite_names,
    table_suite,
)
from jaxzero.players.players import make_player
from jaxzero.solver.endgame import ILLEGAL, solve_many

STORED = [name for name in suite_names() if "x" in name]
SMALL = DotsAndBoxes(2, 2)
AGENT = tiny_agent(SMALL, nodes="all")


def board_of(name: str) -> DotsAndBoxes:
    return DotsAndBoxes(*map(int, name.partition("_")[0].split("x")))


@pytest.fixture(scope="module")
def small() -> Suite:
    return table_suite(SMALL, positions=240)


def test_scores_by_hand():
    drawn = np.array([[True, False, False, False], [True, True, False, False]])
    moves = np.array([[ILLEGAL, 3, 1, -1], [ILLEGAL, ILLEGAL, -2, -2]], np.int8)
    suite = Suite("hand", DotsAndBoxes(1, 1), drawn, moves)
    answers = Answers(np.array([3, 2]), value=np.array([1.0, -2.5]))
    scores = score(suite, answers)
    assert scores["all"] == {
        "positions": 2,
        "optimal_share": 0.5,
        "decisive": 1,
        "wrong_share": 1.0,
        "wrong_interval": [0.20655, 1.0],
        "boxes_lost": 2.0,
        "thrown_share": 1.0,
        "thrown_interval": [0.20655, 1.0],
        "value_error": 1.25,
        "sign_accuracy": 1.0,
    }
    assert scores["by_undrawn"]["1-8"]["positions"] == 2


@pytest.mark.parametrize(
    ("best", "chosen", "thrown"),
    [(3, 1, 0.0), (3, 0, 1.0), (0, -2, 1.0), (0, 0, 0.0), (-1, -3, None)],
)
def test_a_result_is_thrown_away_where_there_is_one(best, chosen, thrown):
    drawn = np.array([[True, True, False, False]])
    moves = np.array([[ILLEGAL, ILLEGAL, best, chosen]], np.int8)
    suite = Suite("hand", DotsAndBoxes(1, 1), drawn, moves)
    assert score(suite, Answers(np.array([3])))["all"]["thrown_share"] == thrown


def test_perfect_play_scores_perfectly_and_random_does_not(small):
    players = [make_player(name, SMALL) for name in ("perfect", "random")]
    perfect, random = (player_answers(small, player) for player in players)
    best, worse = (score(small, answers)["all"] for answers in (perfect, random))
    assert best["optimal_share"] == 1
    assert best["boxes_lost"] == best["wrong_share"] == best["thrown_share"] == 0
    assert worse["optimal_share"] < 0.8 and worse["boxes_lost"] > 0.3
    found = compare(small, random, perfect)["all"]
    assert found["second_only"] == 0 and found["interval"][0] > 0
    assert found["positions"] == small.decisive.sum()
    assert found["difference"] == pytest.approx(worse["wrong_share"], abs=1e-5)
    with pytest.raises(ValueError, match="drawn"):
        score(small, Answers(np.argmax(small.drawn, axis=1)))


@pytest.mark.parametrize("name", ["random", "greedy"])
def test_moves_drawn_uniformly_are_scored_by_their_exact_expectation(small, name):
    player = make_player(name, SMALL)
    exact = score(small, player_answers(small, player, seed=5))["all"]
    drawing = replace(player, candidates=None)
    draws = [score(small, player_answers(small, drawing, seed))["all"] for seed in range(40)]
    for key in ("optimal_share", "wrong_share", "boxes_lost", "thrown_share"):
        found = [one[key] for one in draws]
        error = np.std(found) / len(found) ** 0.5
        assert abs(exact[key] - np.mean(found)) < 4 * error, key
    assert exact["wrong_interval"] is None and draws[0]["wrong_interval"]
    # Half of the moves of level 0 are uniformly random: `candidates` are not all it draws.
    assert make_player("level:0", SMALL, tiny_agent(SMALL)).candidates is None


def test_an_agent_answers_every_position(small):
    for name in ("policy", "search:2"):
        player = make_player(name, SMALL, AGENT)
        scores = score(small, player_answers(small, player))["all"]
        assert scores["positions"] == 240 and 0 <= scores["value_error"] < SMALL.num_boxes


def test_the_table_is_one_suite_for_all_and_holds_every_ply_alike():
    """Positions cycle through the plies, so every second position would have an even ply."""
    suite = load_suite("table", SMALL)
    assert len(suite) == 2048 and choose_suite("auto", SMALL) is suite
    assert 0.45 < (suite.undrawn % 2 == 1).mean() < 0.55


def test_a_difference_by_hand():
    """10 positions wrong for the first alone, 2 for the second, 8 for both, 100 in all."""
    wrong = np.arange(100) < 18
    wrong2 = (np.arange(100) >= 10) & (np.arange(100) < 20)
    found = paired_difference(wrong, wrong2)
    assert found["first_only"] == 10 and found["second_only"] == 2
    assert found["difference"] == 0.08
    assert found["interval"] == pytest.approx([0.0108, 0.1460], abs=1e-4)
    back = paired_difference(wrong2, wrong)
    assert back["difference"] == -0.08
    assert back["interval"] == [-limit for limit in reversed(found["interval"])]


@pytest.mark.parametrize("name", STORED)
def test_stored_suites_hold_exact_decisions_without_a_free_box(name):
    suite = load_suite(name, board_of(name))
    assert is_quiet(suite.board, suite.drawn).all() and suite.decisive.all()
    held = {low: inside.sum() for (low, _), inside in zip(BANDS, suite.bands.values(), strict=True)}
    others = (9, 29, 300) if suite.board.num_boxes == 16 else (13, 37, 300)
    first, last, least = (37, 41, 170) if name == "5x5_early" else others
    lows = [low for low, count in held.items() if count]
    assert lows == list(range(first, last + 1, 4)) and min(held[low] for low in lows[:-1]) >= least
    assert (suite.moves == ILLEGAL).sum() == suite.drawn.sum()
    assert len({board.tobytes() for board in suite.drawn}) == len(suite)
    easy = np.flatnonzero(suite.undrawn <= max(30, first))
    count = 2 if name == "5x5_early" else 40  # its positions take a second each
    sample = np.random.default_rng(0).choice(easy, count)
    values, best, solved = solve_many(suite.board, suite.drawn[sample])
    assert solved.all()
    np.testing.assert_array_equal(values, suite.values[sample])
    expected = suite.moves[sample] == suite.values[sample][:, None]
    np.testing.assert_array_equal(best, expected)


def test_the_suites_share_only_the_positions_that_the_docs_count():
    """Symmetries of the board are none of them; swaps of a corner's outer edges are some."""

    def images(name: str, permutations: Callable) -> np.ndarray:
        suite = load_suite(name, board_of(name))
        bits = 1 << np.arange(suite.board.num_edges)
        return (suite.drawn[:, permutations(suite.board)] @ bits).min(axis=1)

    counts = {"4x4_test": (21, 0), "5x5_test": (1, 0), "5x5_final": (1, 1), "5x5_early": (0, 0)}
    for name, shared in counts.items():
        for permutations, count in zip((automorphisms, edge_permutations), shared, strict=True):
            tuning = images(f"{name.partition('_')[0]}_tuning", permutations)
            assert np.isin(images(name, permutations), tuning).sum() == count


def test_the_problems_of_the_book():
    boards = [DotsAndBoxes(*sides) for sides in ((3, 3), (3, 5), (5, 5))]
    assert [len(load_suite("berlekamp", board)) for board in boards] == [7, 3, 4]


def test_a_suite_may_lie_in_any_folder_and_wrong_ones_are_refused(tmp_path):
    path = tmp_path / "suite_mine.npz"
    shutil.copy(DATA / "suite_4x4_test.npz", path)
    assert load_suite(str(path), DotsAndBoxes(4, 4)).name == "mine"
    (tmp_path / "bad.npz").write_text("not a suite")
    for name, message in (
        (path, "mine is of a 4x4 board, not 2x2"),
        (tmp_path / "absent.npz", r".*absent\.npz"),
        (tmp_path / "bad.npz", ".* cannot be read"),
        ("5x5_tset", "'5x5_tset' does not exist .*5x5_test"),
        ("berlekamp", "berlekamp has no problem on a 2x2 board"),
    ):
        with pytest.raises(InputError, match=f"^suite: {message}"):
            load_suite(str(name), SMALL)
    with pytest.raises(InputError, match="suite: table takes boards of at most 30"):
        load_suite("table", DotsAndBoxes(4, 4))


# Reports and matches


def test_players_are_compared_with_the_first(small, capsys):
    names = scored_players("policy, greedy,random", SMALL, AGENT, 1)
    found = score_suite({"2x2": AGENT}, small, names)
    assert list(found["suite"]) == ["policy", "greedy", "random"]
    assert list(found["differences"]) == ["greedy - policy", "random - policy"]
    wrong = {player: parts["all"]["wrong_share"] for player, parts in found["suite"].items()}
    difference = found["differences"]["random - policy"]["all"]["difference"]
    assert difference == pytest.approx(wrong["random"] - wrong["policy"], abs=1e-4)
    json.dumps(found)
    low, high = found["suite"]["policy"]["all"]["wrong_interval"]
    assert f"{wrong['policy']:.1%} [{100 * low:.1f}, {100 * high:.1f}]" in capsys.readouterr().out


def test_two_networks_are_compared_player_by_player(small):
    networks = {"2x2": AGENT, "other": AGENT}
    names = scored_players("policy,greedy", SMALL, AGENT, 2)
    with pytest.raises(InputError, match="players: greedy have no network"):
        scored_players("greedy", SMALL, AGENT, 2)
    found = score_suite(networks, small, names)
    (difference,) = found["differences"].values()
    assert list(found["differences"]) == ["policy of 2x2 - policy of other"]
    assert difference["all"]["first_only"] == 0
    assert set(found["suite"]) == {"policy of 2x2", "policy of other", "greedy"}


def test_two_networks_play_a_match(tmp_path):
    file = tmp_path / "match.json"
    pair = "--weights 2x2 --weights2 2x3 --rows 2 --cols 2 --opening_plies 0".split()
    words = [*"--weights 2x2 --weights2 2x2 --games 4 --opening_plies 2".split(), "--json", file]
    done = run_here("evaluate.py", *words, "--players", "policy")
    assert done.returncode == 0, done.stderr
    # The names of equal networks differ.
    name = "policy of 2x2, iteration 40"
    assert f"{name} against {name} (2)" in done.stdout
    assert json.loads(file.read_text())["match"]["policy"]["points"] == 0.5  # against itself
    for wrong, field in (
        ([*pair, "--players", "policy"], "weights2: "),  # 2x3 does not fit 2x2
        ([*words, "--players", "policy,greedy"], "players: greedy "),
        ([*words[2:], "--weights", "2x2"], "--weights2 "),
    ):
        done = run_here("evaluate.py", *wrong)
        assert done.returncode == 2 and done.stderr.startswith(f"error: {field}"), done.stderr
