"""Symmetries are permutations that commute with play."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.game import (
    DotsAndBoxes,
    automorphisms,
    box_sides,
    edge_permutations,
    initial_state,
    most_sides_beside,
    random_edge,
    step,
)
from jaxzero.network.features import (
    PLANES,
    board_planes,
    edges_from_planes,
    margin_mask,
    unpack_planes,
)


@pytest.mark.parametrize(("rows", "cols", "count"), [(1, 1, 8), (3, 3, 8), (2, 3, 4), (4, 1, 4)])
def test_they_form_a_group_of_permutations(rows, cols, count):
    game = DotsAndBoxes(rows, cols)
    permutations = edge_permutations(game)
    assert permutations.shape == (count, game.num_edges)
    rows_ = {tuple(row) for row in permutations}
    assert tuple(range(game.num_edges)) in rows_
    assert len(rows_) == (count if game.num_edges > 4 else len(rows_))
    for first in permutations:
        for second in permutations:
            assert tuple(first[second]) in rows_


@pytest.mark.parametrize(("rows", "cols"), [(3, 3), (2, 4), (5, 5)])
def test_symmetry_commutes_with_play(rows, cols):
    game = DotsAndBoxes(rows, cols)
    permutations = jnp.asarray(automorphisms(game))
    assert permutations.shape == (128 if rows == cols else 64, game.num_edges)
    assert len({tuple(row) for row in permutations.tolist()}) == len(permutations)

    def play(permutation, key):
        """Play one random game on a board and on its image side by side."""
        inverse = jnp.argsort(permutation)

        def ply(pair, key):
            state, image = pair
            edge = random_edge(key, state)
            state, again = step(game, state, edge)
            image, image_again = step(game, image, inverse[edge])
            return (state, image), (state, image, again, image_again)

        start = initial_state(game)
        return jax.lax.scan(ply, (start, start), jax.random.split(key, game.num_edges))[1]

    keys = jax.random.split(jax.random.key(0), len(permutations))
    state, image, again, image_again = jax.jit(jax.vmap(play))(permutations, keys)
    np.testing.assert_array_equal(again, image_again)
    np.testing.assert_array_equal(state.margin, image.margin)
    np.testing.assert_array_equal(state.player, image.player)
    seen = jax.vmap(lambda drawn, p: drawn[:, p])(state.drawn, permutations)
    np.testing.assert_array_equal(seen, image.drawn)


def planes_of(game, drawn):
    return unpack_planes(board_planes(game, drawn), len(PLANES))


def test_symmetry_commutes_with_features():
    game = DotsAndBoxes(2, 4)
    drawn = jax.random.bernoulli(jax.random.key(2), 0.6, (64, game.num_edges))
    planes = jax.jit(jax.vmap(lambda board: planes_of(game, board)))
    beside = jax.jit(jax.vmap(partial(most_sides_beside, game)))
    mask = jax.jit(jax.vmap(partial(margin_mask, game)))
    for permutation in edge_permutations(game):
        image = drawn[:, permutation]
        for pair in (slice(0, 2), slice(2, 4)):  # planes of edges
            edges = edges_from_planes(game, planes(drawn)[..., pair])
            np.testing.assert_array_equal(
                edges[:, permutation], edges_from_planes(game, planes(image)[..., pair])
            )
        np.testing.assert_array_equal(beside(drawn)[:, permutation], beside(image))
        # Boxes move about, their counts stay.
        np.testing.assert_array_equal(
            planes(drawn)[..., 4:].sum((1, 2)), planes(image)[..., 4:].sum((1, 2))
        )
        np.testing.assert_array_equal(mask(drawn), mask(image))


def test_planes_hold_what_they_say():
    game = DotsAndBoxes(2, 3)
    drawn = np.zeros(game.num_edges, bool)
    drawn[[0, 3, 9, 10]] = True  # the box in the top left corner, closed
    planes = np.asarray(planes_of(game, jnp.asarray(drawn)))
    assert planes.shape == (3, 4, 10)
    assert planes[0, 0, 0] and planes[1, 0, 0] and planes[0, 0, 1] and planes[0, 1, 1]
    assert planes[..., 0].sum() == planes[..., 1].sum() == 2
    assert planes[..., 2].sum() == 9 - 2 and planes[..., 3].sum() == 8 - 2
    assert planes[0, 0, 8] and planes[..., 8].sum() == 1
    assert planes[..., 9].sum() == 6 and not planes[2, :, 9].any() and not planes[:, 3, 9].any()
    np.testing.assert_array_equal(box_sides(game, jnp.asarray(drawn)), [[4, 1, 0], [1, 0, 0]])
