"""The rules equal a plain-Python referee and OpenSpiel, move by move, on random games."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest
from referee import Referee

from jaxzero.game import (
    DotsAndBoxes,
    State,
    automorphisms,
    boxes_gained,
    discount,
    fullest_beside,
    initial_state,
    is_over,
    legal_edges,
    most_sides_beside,
    random_edge,
    step,
)

GAMES = 4


def random_games(board: DotsAndBoxes, games: int):
    """Play random games on the device: edges [B, T], states after each move, gains, discounts."""

    def play(key):
        def ply(state, key):
            edge = random_edge(key, state)
            after, again = step(board, state, edge)
            gained = boxes_gained(state, after, again)
            return after, (edge, after, gained, discount(after, again))

        return jax.lax.scan(ply, initial_state(board), jax.random.split(key, board.num_edges))[1]

    return jax.device_get(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(1), games)))


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (2, 3), (5, 4)])
def test_rules_equal_the_referee_and_openspiel(rows, cols):
    board = DotsAndBoxes(rows, cols)
    spiel = pyspiel.load_game(
        f"dots_and_boxes(num_rows={rows},num_cols={cols},utility_margin=true)"
    )
    edges, states, gains, discounts = random_games(board, GAMES)
    for number in range(GAMES):
        referee, other = Referee(board), spiel.new_initial_state()
        for ply, edge in enumerate(edges[number].tolist()):
            assert edge in referee.legal()
            assert referee.legal() == other.legal_actions()
            mover = referee.player
            assert other.current_player() == mover
            closed = referee.play(edge)
            other.apply_action(edge)
            over = ply == board.num_edges - 1
            assert other.is_terminal() == over
            now = jax.tree.map(lambda leaf, at=(number, ply): leaf[at], states)
            assert now.player == referee.player
            assert set(np.flatnonzero(now.drawn)) == referee.drawn
            assert np.flatnonzero(legal_edges(now)).tolist() == referee.legal()
            scores = referee.scores
            assert now.margin == scores[now.player] - scores[1 - now.player]
            assert gains[number, ply] == closed
            same = referee.player == mover
            assert discounts[number, ply] == (0 if over else 1 if same else -1)
            assert bool(is_over(now)) == over
        assert other.returns()[0] == referee.scores[0] - referee.scores[1]


@pytest.mark.parametrize(("rows", "cols"), [(3, 3), (2, 4)])
def test_symmetry_commutes_with_play(rows, cols):
    board = DotsAndBoxes(rows, cols)
    permutations = jnp.asarray(automorphisms(board))
    assert permutations.shape == (128 if rows == cols else 64, board.num_edges)
    assert len({tuple(row) for row in permutations.tolist()}) == len(permutations)

    def play(permutation, key):
        """Play one random game on a board and on its image side by side."""
        inverse = jnp.argsort(permutation)

        def ply(pair, key):
            state, image = pair
            edge = random_edge(key, state)
            state, again = step(board, state, edge)
            image, image_again = step(board, image, inverse[edge])
            return (state, image), (state, image, again, image_again)

        start = initial_state(board)
        return jax.lax.scan(ply, (start, start), jax.random.split(key, board.num_edges))[1]

    keys = jax.random.split(jax.random.key(0), len(permutations))
    state, image, again, image_again = jax.jit(jax.vmap(play))(permutations, keys)
    np.testing.assert_array_equal(again, image_again)
    np.testing.assert_array_equal(state.margin, image.margin)
    np.testing.assert_array_equal(state.player, image.player)
    seen = jax.vmap(lambda drawn, p: drawn[:, p])(state.drawn, permutations)
    np.testing.assert_array_equal(seen, image.drawn)


def test_wrong_shapes_fail_at_trace_time_and_name_the_shape():
    board, small = DotsAndBoxes(2, 3), initial_state(DotsAndBoxes(2, 2))
    with pytest.raises(AssertionError, match=r"\(12,\).*\(17\).*state\.drawn"):
        jax.eval_shape(partial(step, board), small, jnp.int32(0))
    with pytest.raises(AssertionError, match="edge"):
        jax.eval_shape(partial(step, DotsAndBoxes(2, 2)), small, jnp.zeros(2, jnp.int32))


def test_a_drawn_edge_closes_nothing_and_passes_the_turn():
    board = DotsAndBoxes(1, 1)
    state = State(jnp.ones(4, bool), jnp.int32(1), jnp.int32(0))
    after, again = step(board, state, jnp.int32(0))
    assert not again
    assert after.margin == -1


def test_the_host_counts_the_sides_beside_an_edge_as_the_device_does():
    board = DotsAndBoxes(2, 3)
    rng = np.random.default_rng(0)
    drawn = rng.random((256, board.num_edges)) < rng.random((256, 1))
    device = jax.jit(jax.vmap(partial(most_sides_beside, board)))(drawn)
    np.testing.assert_array_equal(fullest_beside(board, drawn)[~drawn], np.asarray(device)[~drawn])
    np.testing.assert_array_equal(fullest_beside(board, drawn[5]), fullest_beside(board, drawn)[5])
