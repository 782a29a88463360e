"""Test random openings: they obey the rules, are of all kinds and favour no side."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import analyse

from jaxzero.config import SelfplayConfig
from jaxzero.game import DotsAndBoxes, State, boxes_closed
from jaxzero.game.board import edge_centres
from jaxzero.game.quiet import min_decisions, settle
from jaxzero.game.structure import Structure
from jaxzero.training.openings import first_ply, open_games

BOARD, GAMES, PLIES = DotsAndBoxes(4, 4), 2048, 11
CAREFUL, WHOLE = np.arange(GAMES) % 4 < 3, np.arange(GAMES) % 2 == 0
KEY = jax.random.key(2)
count_closed = jax.jit(jax.vmap(partial(boxes_closed, BOARD)))


@jax.jit
def games_at(plies: jax.Array) -> State:
    return open_games(BOARD, KEY, GAMES, plies)


@pytest.fixture(scope="module")
def opened() -> tuple[State, Structure, np.ndarray]:
    """Return games after their opening, the structure of their positions, and the boxes closed."""
    state = games_at(PLIES)
    return jax.device_get((state, analyse(BOARD)(state.drawn), count_closed(state.drawn)))


def test_careful_games_give_nothing_away_while_they_need_not(opened):
    state, found, closed = opened
    given = (closed > 0) | (found.taken > 0)
    could = found.safe.any(axis=1)  # an edge that is safe now was always safe
    assert (CAREFUL & WHOLE & could).sum() > GAMES / 4
    assert not given[CAREFUL & WHOLE & could].any()
    careless = ~CAREFUL & could & (state.drawn.sum(axis=1) - closed > PLIES)
    assert given[careless].mean() > 0.5


def test_half_of_the_games_begin_at_the_ply_and_half_at_any_later(opened):
    state, *_ = opened
    # On a board of 40 edges, the first eleven moves can always be safe.
    plies = state.drawn.sum(axis=1)[CAREFUL & WHOLE]
    assert plies.min() == PLIES
    assert (plies == PLIES).mean() == pytest.approx(0.5 + 0.5 / 14, abs=0.05)
    assert set(range(PLIES, PLIES + 8)) <= set(plies.tolist())


def test_every_other_game_is_played_on_what_closed_boxes_leave(opened):
    state, found, closed = opened
    # First 0 to 15 of the 16 boxes are closed, uniformly, unless too few moves would be left.
    played = state.drawn.sum(axis=1) - closed
    assert played.min() >= PLIES - 1  # a closed loop counts as one move less
    open_boxes = 16 - closed[~WHOLE]
    assert set(range(1, 17)) <= set(open_boxes.tolist())
    # Small open boards without moves: no careful game on the whole board leads there.
    fresh = found.safe.sum(axis=1) >= 8
    assert (fresh & (closed >= 8))[~WHOLE].mean() > 0.05
    assert not (fresh & (closed >= 8))[CAREFUL & WHOLE].any()


def test_sides_alternate_and_scores_add_up(opened):
    state, found, _ = opened
    calm = CAREFUL & WHOLE & found.safe.any(axis=1)  # in these games every edge was a move
    assert (state.player == state.drawn.sum(axis=1) % 2)[calm].all()
    assert set(state.player[calm].tolist()) == {0, 1}
    settled = jax.jit(jax.vmap(settle))(state, found, jnp.zeros(GAMES, bool))
    behind = np.asarray(count_closed(settled.drawn))
    margin = np.asarray(settled.margin)
    assert (abs(margin) <= behind).all() and ((margin - behind) % 2 == 0).all()
    assert (margin > 0).any() and (margin < 0).any()


def test_boards_fill_evenly_or_from_anywhere(opened):
    state, *_ = opened
    drawn = state.drawn[CAREFUL & WHOLE].astype(np.float64)
    drawn = drawn[drawn.sum(axis=1) == PLIES]
    middle = drawn @ (edge_centres(BOARD) - 2) / PLIES
    # No direction is favoured on average, but single boards lean more than by chance.
    np.testing.assert_allclose(middle.mean(0), 0, atol=0.1)
    by_chance = edge_centres(BOARD).std(0).mean() / np.sqrt(PLIES)
    assert middle.std(0).min() > 1.2 * by_chance
    # Half of the boards fill evenly; by chance, two in three of these stay so near to the middle.
    even = (abs(middle).max(1) < by_chance).mean()
    assert 0.25 < even < 0.55


def test_no_ply_leaves_the_start_and_the_last_leaves_a_move():
    start = open_games(BOARD, KEY, games=4, plies=0)
    assert not start.drawn.any() and not start.player.any()
    end = analyse(BOARD)(games_at(min_decisions(BOARD) - 1).drawn)
    assert (~end.quiet).any(axis=1).all()


def test_the_start_falls_to_the_first_move_and_stays_there():
    falls = SelfplayConfig(late_start_moves=20, late_start_until=0.5)
    plies = [int(first_ply(falls, jnp.float32(fraction))) for fraction in (0, 0.25, 0.49, 0.5, 1)]
    assert plies == [20, 10, 0, 0, 0]
    assert first_ply(replace(falls, late_start_until=0.0), jnp.float32(0.9)) == 20


def test_a_start_that_has_fallen_is_the_start_of_the_game_for_half_of_the_games():
    state = games_at(0)
    plies = np.asarray(state.drawn.sum(1))
    assert 0.45 < (plies == 0).mean() < 0.6
    late = analyse(BOARD)(state.drawn)
    assert (~late.quiet).any(axis=1).all() and plies.max() > 20
