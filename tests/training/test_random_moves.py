"""Laws of random moves in self-play: when they come."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.config import Config, SelfplayConfig
from jaxzero.errors import InputError
from jaxzero.training.selfplay import draw_random_moves

GAMES, MOVES = 4096, 12


def drawn(**settings) -> np.ndarray:
    """Return which moves [T, B] are random."""
    moves = draw_random_moves(SelfplayConfig(**settings), jax.random.key(3), GAMES, MOVES)
    return np.stack([np.asarray(moves.at(jnp.int32(number))) for number in range(MOVES)])


def test_openings_have_every_length_and_nothing_after():
    random = drawn(opening_plies=5)
    assert set(random.sum(0).tolist()) == set(range(6))
    np.testing.assert_array_equal(~random, np.sort(~random, axis=0))


def test_the_asked_share_of_games_deviates_once_at_any_later_point():
    random = drawn(opening_plies=0, deviations=0.25)
    assert set(random.sum(0).tolist()) == {0, 1}
    assert random.any(0).mean() == pytest.approx(0.25, abs=0.03)
    assert (random.mean(1) == pytest.approx(0.25 / MOVES, abs=0.012)) and random.any(1).all()


def test_a_deviation_never_falls_into_the_opening():
    plain, deviating = drawn(opening_plies=6), drawn(opening_plies=6, deviations=1.0)
    extra = deviating & ~plain
    assert (extra.sum(0) == 1).all() and not (plain & ~deviating).any()


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_shares_that_are_none_are_refused(share):
    with pytest.raises(InputError, match=r"selfplay\.deviations"):
        replace(Config(), selfplay=SelfplayConfig(deviations=share))
