"""Search with exact values planted in place of the network plays perfectly."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from referee import exact_values

from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State
from jaxzero.search import plain_game
from jaxzero.search.search import Evaluation, search

GAME = DotsAndBoxes(2, 2)
BITS = 2 ** np.arange(GAME.num_edges)


def move_from(game: DotsAndBoxes, state: State, edge) -> plain_game.Node:
    start = plain_game.root(state, state.drawn)
    return plain_game.expand(game, start, edge)[0]


@pytest.fixture(scope="module")
def truth():
    """Exact value [4096] and best moves [4096, A] of every position, indexed by the edge set."""
    solve = exact_values(GAME)
    values = np.zeros(2**GAME.num_edges, np.float32)
    best = np.zeros((2**GAME.num_edges, GAME.num_edges), bool)
    for code in range(2**GAME.num_edges):
        value, moves = solve(frozenset(np.flatnonzero(code & BITS).tolist()))
        values[code] = value
        best[code, [edge for edge, worth in moves.items() if worth == value]] = True
    return values, best


def positions(margins: int = 0) -> State:
    """Return every position of the board with a move left: [4095]."""
    codes = np.arange(2**GAME.num_edges - 1)
    drawn = jnp.asarray((codes[:, None] & BITS) > 0)
    filled = jnp.full(len(codes), margins, jnp.int32)
    return State(drawn, filled, jnp.zeros_like(filled))


def planted(truth, prior_weight: float):
    """Return an evaluator that knows every value, and every best move with this logit."""
    values, best = (jnp.asarray(table) for table in truth)

    def evaluate(_params, state: State, _found) -> Evaluation:
        code = state.drawn.astype(jnp.int32) @ jnp.asarray(BITS, jnp.int32)
        logits = jnp.where(state.drawn, -1e9, prior_weight * best[code])
        return Evaluation(logits, values[code] / GAME.num_boxes)

    return evaluate


def share_wrong(truth, settings: SearchConfig, prior_weight: float) -> float:
    """Return the share of positions in which the search chooses a losing edge."""
    run = jax.jit(partial(search, GAME, settings, planted(truth, prior_weight), gumbel_scale=0.0))
    chosen = np.asarray(run((), jax.random.key(0), positions()).edge)
    return 1 - truth[1][np.arange(len(chosen)), chosen].mean()


# A visit of every edge and nothing deeper is one look ahead: exact when the signs are.
LOOK_AHEAD = SearchConfig(
    nodes="all", simulations=12, max_considered_actions=12, value_scale_per_box=0.5
)


def test_every_move_is_optimal_on_every_position(truth):
    assert share_wrong(truth, SearchConfig(nodes="all", simulations=24), prior_weight=8.0) == 0
    assert share_wrong(truth, LOOK_AHEAD, prior_weight=0.0) == 0


def test_a_hard_coded_sign_is_wrong(truth, monkeypatch):
    monkeypatch.setattr(plain_game, "discount", lambda _state, _again: -1.0)
    assert share_wrong(truth, LOOK_AHEAD, prior_weight=0.0) > 0.05


def test_capturing_keeps_the_turn_and_the_sign():
    game = DotsAndBoxes(1, 2)
    three_sides = jnp.zeros(7, bool).at[jnp.array([0, 2, 4])].set(True)
    state = State(three_sides, jnp.int32(0), jnp.int32(0))
    closing = move_from(game, state, jnp.int32(5))
    passing = move_from(game, state, jnp.int32(1))
    assert (closing.reward, closing.discount) == (0.5, 1.0)
    assert (passing.reward, passing.discount) == (0.0, -1.0)


def test_nothing_follows_the_end():
    game = DotsAndBoxes(1, 1)
    last = State(jnp.array([True, True, True, False]), jnp.int32(0), jnp.int32(0))
    end = move_from(game, last, jnp.int32(3))
    assert (end.reward, end.discount) == (1.0, 0.0)
    past = move_from(game, end.state, jnp.int32(3))
    assert (past.reward, past.discount) == (0.0, 0.0)


def test_policies_are_distributions_over_legal_edges(truth):
    run = jax.jit(
        partial(search, GAME, SearchConfig(nodes="all", simulations=8), planted(truth, 1.0))
    )
    found = run((), jax.random.key(3), positions())
    drawn = positions().drawn
    np.testing.assert_allclose(found.policy.sum(-1), 1, rtol=1e-5)
    assert float(jnp.where(drawn, found.policy, 0).max()) < 1e-6
    assert not bool(drawn[jnp.arange(len(drawn)), found.edge].any())
    assert int(jnp.where(drawn, found.visits, 0).max()) == 0
    # A round visits each of 8 moves once; where there are fewer, there are no more rounds.
    np.testing.assert_array_equal(found.visits.sum(-1), np.minimum(8, (~drawn).sum(-1)))


def test_wrong_shapes_fail_at_trace_time_with_the_name(truth):
    bad = State(jnp.zeros((3, 7), bool), jnp.zeros(3, jnp.int32), jnp.zeros(3, jnp.int32))
    with pytest.raises(AssertionError, match=r"state\.drawn"):
        jax.eval_shape(
            partial(search, GAME, LOOK_AHEAD, planted(truth, 0.0)), (), jax.random.key(0), bad
        )
