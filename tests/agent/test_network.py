"""Shapes, masks and forms of the network."""

from __future__ import annotations

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.agent.network import (
    IMPOSSIBLE,
    Network,
    expected_margin,
    inference_copy,
    init_params,
    margin_probabilities,
    win_balance,
)
from jaxzero.config import NetworkConfig
from jaxzero.game import DotsAndBoxes

GAME = DotsAndBoxes(2, 3)
FORMS = {
    "dense": {"trunk": "dense"},
    "conv": {"trunk": "conv", "pooling_every": 1},
    "conv without pooling": {"trunk": "conv", "pooling_every": 0},
    "attention": {"trunk": "conv", "attention_heads": 2},
    "squeeze-excitation": {"trunk": "conv", "squeeze_excitation": True},
    "bfloat16": {"trunk": "conv", "compute_dtype": "bfloat16"},
}


def small(**settings) -> Network:
    return Network(GAME, NetworkConfig(channels=8, blocks=2, **settings))


def boards(count: int) -> jax.Array:
    share = jnp.linspace(0, 1, count)[:, None]
    return jax.random.uniform(jax.random.key(0), (count, GAME.num_edges)) < share


@pytest.mark.parametrize("form", FORMS)
def test_shapes_types_and_masks(form):
    network, drawn = small(**FORMS[form]), boards(9)
    params = init_params(network, jax.random.key(1))
    chex.assert_tree_shape_prefix(params, ())
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
    out = jax.jit(network.apply)(params, drawn)
    chex.assert_shape(out.policy_logits, (9, 17))
    chex.assert_shape(out.margin_logits, (9, 13))
    chex.assert_type([out.policy_logits, out.margin_logits], jnp.float32)
    chex.assert_tree_all_finite(out)
    np.testing.assert_array_equal(out.policy_logits == IMPOSSIBLE, drawn)
    assert np.asarray(expected_margin(GAME, out))[-1] == 0  # a full board has nothing left


def test_margins_that_cannot_be_have_no_probability():
    network = small(trunk="dense")
    drawn = jnp.zeros((1, 17), bool).at[0, jnp.array([0, 3, 9, 10])].set(True)  # one box closed
    out = network.apply(init_params(network, jax.random.key(0)), drawn)
    possible = np.flatnonzero(margin_probabilities(out)[0] > 0) - GAME.num_boxes
    assert possible.tolist() == [-5, -3, -1, 1, 3, 5]


def unlike_zero(params):
    """Move parameters off their zero initialisation, which would hide a lot."""
    return jax.tree.map(lambda x: x + 0.1, params)


@pytest.mark.parametrize("form", ["shifted", "winograd"])
def test_all_forms_of_the_convolution_are_equal(form):
    direct, other = (small(convolution=name) for name in ("direct", form))
    params = unlike_zero(init_params(direct, jax.random.key(0)))
    for a, b in zip(direct.apply(params, boards(5)), other.apply(params, boards(5)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("form", [*FORMS, "winograd"])
def test_the_inference_copy_evaluates_alike(form):
    network = small(**FORMS.get(form, {"convolution": "winograd"}))
    params, drawn = unlike_zero(init_params(network, jax.random.key(0))), boards(5)
    copy = jax.jit(partial(inference_copy, network, batch=len(drawn)))(params)
    ours, theirs = network.apply(copy, drawn), network.apply(params, drawn)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_the_inference_copy_holds_what_evaluation_wants():
    winograd = small(convolution="winograd")
    copy = inference_copy(winograd, init_params(winograd, jax.random.key(0)), 4)
    assert {leaf.shape[:2] for leaf in jax.tree.leaves(copy["prepared"])} == {(5, 6)}
    half = small(compute_dtype="bfloat16")
    copy = inference_copy(half, init_params(half, jax.random.key(0)), 4)
    wide = [leaf.dtype for leaf in jax.tree.leaves(copy) if leaf.ndim > 1]
    assert set(wide) == {jnp.dtype("bfloat16")}


def test_win_balance_counts_the_margin_so_far():
    network = small(trunk="dense")
    drawn = jnp.ones((3, 17), bool)  # nothing left: the margin decides
    out = network.apply(init_params(network, jax.random.key(0)), drawn)
    np.testing.assert_allclose(win_balance(GAME, out, jnp.array([2, 0, -4])), [1, 0, -1])


def test_wrong_shapes_fail_at_trace_time_with_the_name():
    network = small(trunk="dense")
    params = init_params(network, jax.random.key(0))
    with pytest.raises(AssertionError, match="drawn"):
        jax.eval_shape(network.apply, params, jnp.zeros((2, 12), bool))
    with pytest.raises(AssertionError, match="drawn"):
        jax.eval_shape(network.apply, params, jnp.zeros((2, 17), jnp.int32))
