"""Test players on the host: perfect play is perfect."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, initial_states, parse_edges
from jaxzero.measure.arena import play_match
from jaxzero.players.players import make_player
from jaxzero.players.preparation import simple_edges

GAME = DotsAndBoxes(2, 2)


@pytest.mark.parametrize("opponent", ["greedy", "perfect", "perfect:0.5"])
def test_perfect_never_does_worse_than_the_value(opponent):
    game = DotsAndBoxes(2, 3)
    result = play_match(game, make_player("perfect", game), make_player(opponent, game), 64, 0, 1)
    assert min(result.first) >= -2  # the first player loses 2x3 by two
    assert min(result.second) >= 2
    assert result.margin > 0.5 or opponent == "perfect"


def test_a_batch_may_have_finished_games():
    drawn = np.ones((2, GAME.num_edges), bool)
    drawn[1, 5] = False
    states = initial_states(GAME, 2)._replace(drawn=drawn)
    keys = jax.random.split(jax.random.key(0), 2)
    assert make_player("perfect", GAME).choose(keys, states)[1] == 5


def test_where_the_solver_gives_up_perfect_is_careful():
    """Above 38 undrawn edges the solver is not tried: the player takes a box or gives none away."""
    game = DotsAndBoxes(5, 5)
    free, open_ = np.zeros((2, 1000, game.num_edges), bool)
    free[:, [0, 5, 30]] = True  # three sides of the first box
    open_[:, [0, 5]] = True  # two sides of the first box
    edges = make_player("perfect", game).act(
        np.arange(2000, dtype=np.uint32), np.append(free, open_, axis=0)
    )
    assert set(edges[:1000].tolist()) == {31}
    # All edges but the drawn ones and the two that add a third side to the box.
    assert set(edges[1000:].tolist()) == set(range(game.num_edges)) - {0, 5, 30, 31}


def test_mixed_strength_lies_between():
    game = DotsAndBoxes(3, 3)
    perfect, mixed, random = (make_player(n, game) for n in ("perfect", "perfect:0.3", "random"))
    assert play_match(game, perfect, mixed, 64, 2, 0).points > 0.6
    assert play_match(game, mixed, random, 64, 2, 0).points > 0.8


@pytest.mark.parametrize("name", ["search", "search:0", "perfect:2", "perfect:x"])
def test_bad_arguments_are_refused(name):
    with pytest.raises(InputError, match=name):
        make_player(name, GAME)


def test_simple_rules_give_three_boxes_rather_than_four_of_as_many_edges():
    game = DotsAndBoxes(2, 4)
    loop, chain = "h1,0 h1,1 v0,1 v1,1", "h0,2 v0,3 h1,3 h2,3"
    drawn = np.ones(game.num_edges, bool)
    drawn[list(parse_edges(game, f"{loop} {chain}"))] = False
    assert set(simple_edges(game, drawn)) == set(parse_edges(game, chain))
