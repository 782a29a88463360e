"""Self-play: targets by hand, whole games that obey the rules."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from referee import Referee

from jaxzero.cli import load_config
from jaxzero.game import DotsAndBoxes, State
from jaxzero.search.search import Evaluation
from jaxzero.training.selfplay import play_games

GAMES = 32


@pytest.fixture(scope="module")
def played():
    """Positions [T, B, ...] of games with a flat evaluator, and the metrics."""
    config = load_config(
        "configs/tiny.yaml", "--search.simulations=4", "--selfplay.random_opening_moves=3"
    )

    def flat(_params, state: State, _found) -> Evaluation:
        return Evaluation(jnp.where(state.drawn, -1e9, 0.0), jnp.zeros(len(state.margin)))

    run = jax.jit(partial(play_games, config, flat, games=GAMES))
    positions, metrics = run((), jax.random.key(7))
    assert len(positions.margin) == GAMES * config.positions_per_game
    by_ply = jax.tree.map(lambda x: np.asarray(x).reshape(-1, GAMES, *x.shape[1:]), positions)
    return config, by_ply, metrics


def test_games_obey_the_rules_and_targets_are_what_was_won(played):
    config, positions, metrics = played
    game: DotsAndBoxes = config.game.board
    margins = []
    for number in range(GAMES):
        referee, boards = Referee(game), positions.drawn[:, number]
        movers, scores = [], []
        for ply in range(game.num_edges):
            assert set(np.flatnonzero(boards[ply])) == referee.drawn
            movers.append(referee.player)
            scores.append(referee.scores[0] - referee.scores[1])
            after = boards[ply + 1] if ply + 1 < game.num_edges else np.ones(game.num_edges, bool)
            (edge,) = np.flatnonzero(after & ~boards[ply])
            referee.play(int(edge))
        final = referee.scores[0] - referee.scores[1]
        margins.append(final)
        still = [(final - s) * (1 - 2 * p) for s, p in zip(scores, movers, strict=True)]
        assert positions.margin[:, number].tolist() == still
    assert float(metrics["selfplay/first_margin"]) == pytest.approx(np.mean(margins))
    assert float(metrics["selfplay/first_wins"]) == pytest.approx(np.mean(np.array(margins) > 0))


def test_openings_are_random_and_of_every_length(played):
    config, positions, _ = played
    lengths = (~positions.margin_known).sum(0)
    assert set(lengths.tolist()) == set(range(config.selfplay.random_opening_moves + 1))
    # What is unknown comes first.
    np.testing.assert_array_equal(positions.margin_known, np.sort(positions.margin_known, axis=0))
    assert len({tuple(board) for board in positions.drawn[3]}) > GAMES / 2


def test_policies_lie_on_legal_edges(played):
    _, positions, _ = played
    np.testing.assert_allclose(positions.policy.sum(-1), 1, rtol=1e-5)
    assert positions.policy[positions.drawn].max() < 1e-6
