"""Test the levels: their share of random moves, their strength and their ratings."""

from itertools import pairwise

import jax
import numpy as np
import pytest

import jaxzero
from jaxzero.game import initial_states
from jaxzero.measure.arena import play_match
from jaxzero.players.players import LEVELS, make_player

AGENT = jaxzero.load("2x2").agent
BOARD = AGENT.network.board
GAMES = 64  # at once, so that all tests share the programs
KEYS = jax.random.split(jax.random.key(0), GAMES)
# Edge 7 closes the first box.
FREE_BOX = initial_states(BOARD, GAMES)._replace(
    drawn=np.tile(np.isin(np.arange(BOARD.num_edges), [0, 2, 6]), (GAMES, 1))
)


def test_ratings_rise():
    assert all(lower.rating < higher.rating for lower, higher in pairwise(LEVELS))


@pytest.mark.parametrize("name", ["level:1", "level:casual", "level:3", "level:6"])
def test_a_level_plays_games_to_the_end(name):
    player, random = make_player(name, BOARD, AGENT), make_player("random", BOARD)
    result = play_match(BOARD, player, random, 128, 2, 0)
    assert result.games == 128 and result.points > 0.6


@pytest.mark.parametrize("level", LEVELS[:5], ids=lambda level: level.name)
def test_a_share_of_the_moves_is_random(level):
    """All other moves take the free box; a random move takes it with probability 1/9."""
    player = make_player(f"level:{level.name}", BOARD, AGENT)
    keys = jax.random.split(jax.random.key(1), (6, GAMES))
    missed = np.mean([player.decide(some, FREE_BOX).edge != 7 for some in keys])
    assert missed == pytest.approx(level.random_share * 8 / 9, abs=0.06)
    assert (missed > 0) == (level.random_share > 0)


@pytest.mark.parametrize("name", ["level:0", "level:3", "level:6"])
def test_a_single_game_is_played_as_one_of_many(name):
    player = make_player(name, BOARD, AGENT)
    many = player.decide(KEYS, initial_states(BOARD, GAMES)).edge[:20]
    state = initial_states(BOARD, 1)
    alone = [player.decide(KEYS[i : i + 1], state).edge[0] for i in range(20)]
    assert many.tolist() == alone
    assert (len(set(alone)) > 1) == (name != "level:6")
