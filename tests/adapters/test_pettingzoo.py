"""The environment of PettingZoo passes the test of PettingZoo; its games are the referee's."""

from __future__ import annotations

import numpy as np
import pytest
from referee import Referee

pytest.importorskip("pettingzoo", reason="needs the extra jaxzero[adapters]")

from pettingzoo.test import api_test

import jaxzero
from jaxzero.adapters.pettingzoo import env, raw_env
from jaxzero.errors import InputError


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


@pytest.mark.parametrize("action", [-1, 4, 99, None, 1.0, "0", 0])
def test_a_wrong_action_is_never_a_move(action):
    raw, wrapped = raw_env(1, 1), env(1, 1)
    with pytest.raises(InputError):
        raw.step(1)  # before a game begins
    for game in (raw, wrapped):
        game.reset()
        game.step(0)
    with pytest.raises(InputError, match=r"^action: "):
        raw.step(action)
    assert raw.game.position.drawn.sum() == 1 and raw.agent_selection == "player_1"
    if action != 0:  # one that is drawn already loses
        with pytest.raises(AssertionError, match="not in action space"):
            wrapped.step(action)
    for edge in (1, 2, 3):
        raw.step(edge)
    with pytest.raises(ValueError, match="dead"):
        raw.step(1)
    for _ in range(2):
        raw.step(None)
    with pytest.raises(InputError):
        raw.step(1)


@pytest.mark.parametrize("mode", ["human", "rgb_array", ""])
def test_an_unknown_mode_of_rendering_is_named(mode):
    for make in (env, raw_env):
        with pytest.raises(InputError, match=r"^render_mode: "):
            make(1, 1, render_mode=mode)


def test_an_engine_is_asked_with_a_mask():
    engine, game = jaxzero.load("2x2"), env(2, 2)
    game.reset()
    for edge in (0, 2, 6):
        game.step(edge)
    seen = game.last()[0]
    assert engine.best_move(seen["action_mask"] == 0, 8) == 7, "the edge that takes a box"
    with pytest.raises(InputError, match=r"^position: "):
        engine.best_move(seen["action_mask"], 8)


def test_the_board_is_rendered_with_owners():
    game = raw_env(1, 1, render_mode="ansi")
    game.reset()
    for edge in range(4):
        game.step(edge)
    assert game.render().split() == ["+-------+", "|", "|", "|", "1", "|", "|", "|", "+-------+"]
    assert env(1, 1).unwrapped.render() is None
