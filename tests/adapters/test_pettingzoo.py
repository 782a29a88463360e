"""The environment of PettingZoo passes the test of PettingZoo; its games are the referee's."""

from __future__ import annotations

import numpy as np
import pytest
from referee import Referee

pytest.importorskip("pettingzoo", reason="needs the extra jaxzero[adapters]")

from pettingzoo.test import api_test

from jaxzero.adapters.pettingzoo import env, raw_env


# It warns of observations with a mask of actions, which it knows only from its own games, and of an
# empty board.
@pytest.mark.filterwarnings("ignore:Observation")
def test_it_passes_the_test_of_pettingzoo():
    api_test(env(2, 3), num_cycles=100)


@pytest.mark.parametrize("seed", range(4))
def test_games_equal_the_referee(seed):
    game, chance = env(2, 3), np.random.default_rng(seed)
    game.reset()
    referee = Referee(game.unwrapped.board)
    while referee.legal():
        player, waiting = referee.player, 1 - referee.player
        assert game.agent_selection == f"player_{player}"
        seen, reward, over, cut, _ = game.last()
        assert (reward, over, cut) == (0, False, False)
        assert np.flatnonzero(seen["action_mask"]).tolist() == referee.legal()
        assert seen["observation"][..., 2].sum() == referee.scores[player]
        assert seen["observation"][..., 3].sum() == referee.scores[waiting]
        assert not game.observe(f"player_{waiting}")["action_mask"].any()
        edge = int(chance.choice(referee.legal()))
        referee.play(edge)
        game.step(edge)
    result = int(np.sign(referee.scores[0] - referee.scores[1]))
    assert game.rewards == {"player_0": result, "player_1": -result}
    assert all(game.terminations.values())
    for _ in range(2):
        game.step(None)
    assert game.agents == []


def test_an_illegal_action_ends_and_loses_the_game():
    game = env(1, 2)
    game.reset()
    game.step(0)
    game.step(0)
    assert game.rewards == {"player_0": 0, "player_1": -1}
    assert all(game.terminations.values())


def test_the_board_is_rendered_with_owners():
    game = raw_env(1, 1, render_mode="ansi")
    game.reset()
    for edge in range(4):
        game.step(edge)
    assert game.render().split() == ["+-------+", "|", "|", "|", "1", "|", "|", "|", "+-------+"]
    assert env(1, 1).unwrapped.render() is None
