"""Test the bot for OpenSpiel of docs/playing.md: no mistake on 2x2, from any position."""

from __future__ import annotations

import re

import numpy as np
import pyspiel
import pytest
from referee import exact_values
from script_runner import ROOT

import jaxzero
from jaxzero.game import DotsAndBoxes

(CODE,) = re.findall(
    r"```python\n([^`]*class EngineBot.*?)```", (ROOT / "docs/playing.md").read_text(), re.DOTALL
)


def spiel(rows: int, cols: int) -> pyspiel.Game:
    """Return the OpenSpiel game; its result is the difference in boxes."""
    return pyspiel.load_game(f"dots_and_boxes(num_rows={rows},num_cols={cols},utility_margin=true)")


@pytest.fixture(scope="module")
def bot_class() -> type:
    defined: dict = {}
    exec(CODE, defined)  # it also plays a game
    return defined["EngineBot"]


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("seed", range(2))
def test_it_plays_whole_games_without_a_mistake(bot_class, seat, seed):
    game, solve = spiel(2, 2), exact_values(DotsAndBoxes(2, 2))
    state, bots = game.new_initial_state(), [pyspiel.make_uniform_random_bot(1 - seat, seed)]
    bots.insert(seat, bot_class(jaxzero.load("2x2"), simulations=16))
    result = pyspiel.evaluate_bots(state, bots, seed)[seat]
    assert state.is_terminal()
    replayed, decisions = game.new_initial_state(), 0
    for edge in state.history():
        assert edge in replayed.legal_actions()
        if replayed.current_player() == seat:
            value, moves = solve(frozenset(replayed.history()))
            assert moves[edge] == value
            decisions += 1
        replayed.apply_action(edge)
    assert decisions
    value = solve(frozenset())[0]
    assert result >= (value if seat == 0 else -value)


@pytest.mark.slow
def test_a_hundred_games_against_long_search(bot_class):
    """The opponent is OpenSpiel's search: 10,000 simulations with one random rollout each."""
    game, points = spiel(5, 5), []
    for number in range(100):
        rollouts = pyspiel.RandomRolloutEvaluator(1, number)
        search = pyspiel.MCTSBot(game, rollouts, 2.0, 10_000, 1000, True, number, False)
        seat, bots = number % 2, [search]
        bots.insert(seat, bot_class(jaxzero.load("5x5")))
        margin = pyspiel.evaluate_bots(game.new_initial_state(), bots, number)[seat]
        points.append((1 + np.sign(margin)) / 2)
    print(f"{np.mean(points):.1%} of the points")
    assert np.mean(points) >= 0.95
