"""Test random moves in self-play: when they occur, and that they are played."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.cli import load_config
from jaxzero.config import SelfplayConfig, plan
from jaxzero.search import plain_game
from jaxzero.search.interface import SearchResult
from jaxzero.training import selfplay
from jaxzero.training.selfplay import RandomMoves, draw_random_moves, new_games, start_lanes

GAMES, MOVES = 4096, 12


def drawn(**settings) -> np.ndarray:
    """Return which moves [T, B] are random."""
    moves = draw_random_moves(SelfplayConfig(**settings), jax.random.key(3), GAMES, MOVES)
    return np.stack([np.asarray(moves.at(jnp.int32(number))) for number in range(MOVES)])


def test_openings_have_every_length_and_nothing_after():
    random = drawn(random_opening_moves=5)
    assert set(random.sum(0).tolist()) == set(range(6))
    np.testing.assert_array_equal(~random, np.sort(~random, axis=0))


def test_the_asked_share_of_games_deviates_once_at_any_point_after_the_opening():
    random = drawn(random_opening_moves=0, random_move_fraction=0.25)
    assert set(random.sum(0).tolist()) == {0, 1}
    assert random.any(0).mean() == pytest.approx(0.25, abs=0.03)
    assert (random.mean(1) == pytest.approx(0.25 / MOVES, abs=0.012)) and random.any(1).all()
    opening = drawn(random_opening_moves=6)
    both = drawn(random_opening_moves=6, random_move_fraction=1.0)
    assert ((both & ~opening).sum(0) == 1).all() and not (opening & ~both).any()


def test_moves_are_random_sampled_or_best_when_it_is_their_turn(monkeypatch):
    """A fake search has the first legal move as best and the last legal move as policy."""

    def search(board, _settings, _evaluator, _key, state, structure):
        legal = jax.vmap(partial(plain_game.legal, board))(state.drawn, structure)
        last = legal.shape[1] - 1 - jnp.argmax(legal[:, ::-1], axis=1)
        policy, nothing = jax.nn.one_hot(last, legal.shape[1]), jnp.zeros(len(legal))
        visits = jnp.zeros(legal.shape, jnp.int32)
        return SearchResult(
            action=jnp.argmax(legal, axis=1),
            policy=policy,
            value=nothing,
            visits=visits,
            prior=policy,
            qvalues=policy,
            evaluations=visits[:, 0],
        )

    config = load_config("configs/tiny.yaml", "--search.nodes=all", "--selfplay.sampled_moves=2")
    odd = jnp.arange(GAMES) % 2 > 0
    flags = RandomMoves(jnp.zeros(GAMES, jnp.int32), jnp.where(odd, 3, -1))
    monkeypatch.setattr(selfplay, "search", search)
    games = new_games(config, jax.random.key(0), GAMES)
    play = start_lanes(config, plan(config), games)
    play = play._replace(games=play.games._replace(random=flags))
    step = jax.jit(partial(selfplay.play_step, config, None, jax.random.key(1)))
    boards = [np.asarray(play.games.state.drawn)]
    for _ in range(4):
        play = step(play)
        boards.append(np.asarray(play.games.state.drawn))
    drawn = [np.argmax(after & ~before, axis=1) for before, after in pairwise(boards)]
    edges = config.game.board.num_edges
    for move, edge in enumerate((edges - 1, edges - 2, 0)):
        assert (drawn[move] == edge).all()
    assert (drawn[3][::2] == 1).all()
    # All edges that are left are equally likely.
    left, counts = np.unique(drawn[3][1::2], return_counts=True)
    assert left.tolist() == list(range(1, edges - 2))
    assert counts.min() > 0.7 * counts.mean()
    assert np.asarray(play.decisions.random[3]).tolist() == [False, True] * (GAMES // 2)
