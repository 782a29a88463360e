"""Laws of random openings: they obey the rules, are of all kinds and favour no side."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.agent.search import Evaluation
from jaxzero.cli import load_config
from jaxzero.game import DotsAndBoxes, boxes_closed, is_over
from jaxzero.game.closing import settle
from jaxzero.game.geometry import edge_centres
from jaxzero.game.quiet import fewest_decisions, most_decisions
from jaxzero.training.openings import open_games
from jaxzero.training.quiet_selfplay import play_decisions

GAME, GAMES, PLIES = DotsAndBoxes(4, 4), 2048, 11
CAREFUL = np.arange(GAMES) % 2 == 0


@pytest.fixture(scope="module")
def opened():
    return jax.device_get(jax.jit(partial(open_games, GAME, games=GAMES, plies=PLIES))(KEY))


KEY = jax.random.key(2)


def test_careful_games_give_nothing_away_while_they_need_not(opened):
    free = ~opened.facing.drawn
    closed = np.asarray(jax.vmap(partial(boxes_closed, GAME))(opened.facing.drawn))
    # Eleven moves can be safe on a board of 40 edges, whatever they are.
    assert (free.sum(1)[CAREFUL] == GAME.num_edges - PLIES).all() and not closed[CAREFUL].any()
    assert (opened.found.taken[CAREFUL] == 0).all()
    assert (closed[~CAREFUL] > 0).mean() > 0.5


def test_sides_alternate_and_scores_add_up(opened):
    assert (opened.facing.player == PLIES % 2).all()
    settled = jax.vmap(settle)(opened.facing, opened.found, jnp.zeros(GAMES, bool))
    closed = np.asarray(jax.vmap(partial(boxes_closed, GAME))(settled.drawn))
    margin = np.asarray(settled.margin)
    assert (abs(margin) <= closed).all() and ((margin - closed) % 2 == 0).all()
    assert (margin > 0).any() and (margin < 0).any()


def test_boards_fill_evenly_or_from_anywhere(opened):
    drawn = opened.facing.drawn[CAREFUL].astype(np.float64)
    middle = drawn @ (edge_centres(GAME) - 2) / drawn.sum(1, keepdims=True)
    # No direction is favoured, yet single boards lean by far more than chance has it.
    np.testing.assert_allclose(middle.mean(0), 0, atol=0.08)
    by_chance = edge_centres(GAME).std(0).mean() / np.sqrt(PLIES)
    assert middle.std(0).min() > 1.2 * by_chance
    # Half fill evenly, of which chance alone keeps two in three so near to the middle.
    even = (abs(middle).max(1) < by_chance).mean()
    assert 0.25 < even < 0.55


def test_no_ply_leaves_the_start_and_many_the_end():
    start = open_games(GAME, KEY, 4, 0)
    assert not start.facing.drawn.any() and not start.facing.player.any()
    end = open_games(GAME, KEY, 4, most_decisions(GAME) + 2)
    assert end.found.quiet.all()
    settled = jax.vmap(settle)(end.facing, end.found, jnp.zeros(4, bool))
    assert jax.vmap(is_over)(settled).all()
    assert (abs(settled.margin) <= GAME.num_boxes).all()


def test_games_that_begin_late_are_shorter_by_as_much():
    config = load_config(
        "configs/tiny.yaml",
        *("--game.rows=3", "--game.cols=3", "--selfplay.start_ply=7", "--search.simulations=2"),
        *("--search.reduction=exact", "--selfplay.opening_plies=2"),
    )
    game = config.game.board

    def flat(_params, state):
        return Evaluation(jnp.where(state.drawn, -1e9, 0.0), jnp.zeros(len(state.drawn)))

    keys = jax.random.split(KEY)
    decisions, end = jax.jit(partial(play_decisions, game, config, flat, games=32))((), *keys)
    length = np.asarray(decisions.played.sum(0)) + 7
    assert fewest_decisions(game) <= length.min() and length.max() <= most_decisions(game)
    assert len(decisions.played) == most_decisions(game) - 7
    assert (np.asarray(decisions.drawn[0]).sum(1) >= 7).all()
    assert jax.vmap(is_over)(end).all()
