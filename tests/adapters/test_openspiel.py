"""Test the bot for OpenSpiel: legal moves in both seats, and no mistake on 2x2."""

from __future__ import annotations

import numpy as np
import pyspiel
import pytest
from compiled import any_params
from referee import exact_values

import jaxzero
from jaxzero.adapters.openspiel import EngineBot
from jaxzero.api import Engine
from jaxzero.config import NetworkConfig, SearchConfig
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.network.network import Agent, Network


def spiel(rows: int, cols: int) -> pyspiel.Game:
    """Return the OpenSpiel game; its result is the difference in boxes."""
    return pyspiel.load_game(f"dots_and_boxes(num_rows={rows},num_cols={cols},utility_margin=true)")


def after(game: pyspiel.Game, *edges: int) -> pyspiel.State:
    """Return the state after the moves `edges`."""
    state = game.new_initial_state()
    for edge in edges:
        state.apply_action(edge)
    return state


@pytest.fixture(scope="module")
def bot() -> EngineBot:
    return EngineBot(jaxzero.load("2x2"), simulations=8)


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("seed", range(2))
def test_it_plays_whole_games_without_a_mistake(bot, seat, seed):
    game, solve = spiel(2, 2), exact_values(DotsAndBoxes(2, 2))
    state, bots = game.new_initial_state(), [pyspiel.make_uniform_random_bot(1 - seat, seed)]
    bots.insert(seat, bot)
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


def test_its_policy_is_the_edge_it_draws(bot):
    state = after(spiel(2, 2), 3)
    policy, action = bot.step_with_policy(state)
    assert bot.provides_policy() and policy == bot.get_policy(state)
    assert action == bot.step(state)
    assert [edge for edge, _ in policy] == state.legal_actions()
    assert [edge for edge, share in policy if share] == [action]


def test_it_starts_anywhere(bot):
    state = after(spiel(2, 2), 0, 2, 6)
    bot.restart_at(state)
    assert bot.step(state) == 7, "the edge that takes a box"


def test_it_plays_other_boards():
    config = NetworkConfig(trunk="conv", channels=8, blocks=1, features="raw")
    network = Network(DotsAndBoxes(2, 2), config)
    agent = Agent(network, any_params(network), SearchConfig(nodes="all"))
    engine = Engine(agent).on_board(1, 3)
    state, bot = after(spiel(1, 3)), EngineBot(engine, simulations=0)
    pyspiel.evaluate_bots(state, [bot, bot], 0)
    assert sorted(state.history()) == [*range(10)]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (pyspiel.load_game("tic_tac_toe").new_initial_state(), "^game: tic_tac_toe "),
        (after(spiel(2, 3)), "^state: a board of 2x3, .* 2x2"),
        (after(spiel(2, 2), *range(12)), "^position: "),
    ],
)
def test_what_it_cannot_play_is_named(bot, state, message):
    with pytest.raises(InputError, match=message):
        bot.step(state)


@pytest.mark.slow
def test_a_hundred_games_against_long_search():
    """The opponent is OpenSpiel's search: 10,000 simulations with one random rollout each."""
    game, points = spiel(5, 5), []
    for number in range(100):
        rollouts = pyspiel.RandomRolloutEvaluator(1, number)
        search = pyspiel.MCTSBot(game, rollouts, 2.0, 10_000, 1000, True, number, False)
        seat, bots = number % 2, [search]
        bots.insert(seat, EngineBot(jaxzero.load("5x5")))
        margin = pyspiel.evaluate_bots(game.new_initial_state(), bots, number)[seat]
        points.append((1 + np.sign(margin)) / 2)
    print(f"{np.mean(points):.1%} of the points")
    assert np.mean(points) >= 0.95
