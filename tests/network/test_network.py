"""Shapes, masks and forms of the network."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import any_params, apply

from jaxzero.config import NetworkConfig
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, State
from jaxzero.heads import HEADS
from jaxzero.network.layers import Conv3x3, add_bias, convolution_form, pooled, relu
from jaxzero.network.network import (
    IMPOSSIBLE,
    Network,
    expected_margin,
    for_learning,
    inference_copy,
    init_params,
    margin_probabilities,
)
from jaxzero.search.search import network_evaluator

BOARD = DotsAndBoxes(2, 3)
RAW = {"features": "raw"}  # compiles faster where the inputs do not matter
FORMS = {
    "dense": {"trunk": "dense"},
    "conv": {"trunk": "conv", "blocks": 3},
    "attention": {"trunk": "conv", "attention_heads": 2, **RAW},
    "safe end": {"trunk": "conv", "safe_end": True, **RAW},
    "bfloat16": {"trunk": "conv", "compute_dtype": "bfloat16", **RAW},
}


def small(platform: str = "cpu", **settings) -> Network:
    return Network(BOARD, NetworkConfig(**{"channels": 8, "blocks": 1, **settings}), platform)


def boards(count: int) -> np.ndarray:
    share = np.linspace(0, 1, count)[:, None]
    return np.random.default_rng(0).random((count, BOARD.num_edges)) < share


@pytest.mark.parametrize(("form", "count"), [*((form, 9) for form in FORMS), ("attention", 40)])
def test_shapes_types_masks_and_the_copy_for_inference(form, count):
    """A batch of 40 convolves by Winograd's form."""
    network, drawn = small(**FORMS[form]), boards(count)
    params = any_params(network)
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
    out = apply(network)(params, drawn)
    chex.assert_shape(out.policy_logits, (count, 17))
    expected = {"margin": (count, 13)} | ({"safe_end": (count, 10)} if form == "safe end" else {})
    assert {name: logits.shape for name, logits in out.head_logits.items()} == expected
    chex.assert_type([out.policy_logits, *out.head_logits.values()], jnp.float32)
    chex.assert_tree_all_finite(out)
    np.testing.assert_array_equal(out.policy_logits == IMPOSSIBLE, drawn)
    assert np.asarray(expected_margin(BOARD, out))[-1] == 0  # a full board has nothing left

    @jax.jit
    def run_copy(params, drawn):
        return network.apply(inference_copy(network, params, len(drawn)), drawn)

    same = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4)
    jax.tree.map(same, run_copy(params, drawn), out)


def test_margins_that_cannot_be_have_no_probability():
    network, drawn = small(trunk="dense", features="raw"), np.zeros((9, 17), bool)
    drawn[0, [0, 3, 9, 10]] = True  # one box closed
    out = apply(network)(any_params(network), drawn)
    possible = np.flatnonzero(margin_probabilities(out)[0] > 0) - BOARD.num_boxes
    assert possible.tolist() == [-5, -3, -1, 1, 3, 5]


@pytest.mark.parametrize("height, width", [(2, 3), (4, 4), (6, 6), (7, 5), (13, 2)])
def test_all_forms_of_the_convolution_equal_the_library(height, width):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(3, height, width, 8)).astype(np.float32)
    kernel = draw.normal(size=(3, 3, 8, 5)).astype(np.float32)
    params = {"params": {"kernel": kernel, "bias": np.zeros(5, np.float32)}}

    @jax.jit
    def all_forms(x, params):
        names, dtype = ("direct", "shifted", "winograd"), jnp.dtype("float32")
        found = [Conv3x3(5, name, dtype).apply(params, x) for name in names]
        return found, jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    forms, expected = all_forms(x, params)
    for found in forms:
        np.testing.assert_allclose(found, expected, atol=2e-3)


def test_the_platform_chooses_the_form_of_convolutions_and_the_number_format():
    for platform, name, forms in (
        ("gpu", "bfloat16", {"direct"}),
        ("cpu", "float32", {"direct", "winograd"}),
    ):
        dtype = small(platform).dtype
        assert dtype == jnp.dtype(name)
        assert {convolution_form(platform, dtype, batch) for batch in (4, 400)} == forms
    assert convolution_form("cpu", jnp.dtype("bfloat16"), 400) == "shifted"
    assert small("gpu", compute_dtype="float32").dtype == jnp.dtype("float32")


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ("9.0", "bfloat16"),
        ("8.0", "bfloat16"),
        ("7.5", "float16"),
        ("7.0", "float16"),
        ("6.1", "float32"),
        ("12.0", "bfloat16"),
        ("gfx90a", "bfloat16"),
    ],
)
def test_the_number_format_is_what_the_gpu_computes_fast(monkeypatch, capability, name):
    device = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(jax, "devices", lambda: [device])
    network = small("gpu")
    assert network.dtype == jnp.dtype(name)
    learnt = for_learning(network)
    assert learnt.dtype == jnp.dtype("float32" if name == "float16" else name)
    assert (learnt is network) == (name != "float16")


def test_a_head_that_is_added_later_belongs_to_other_networks(monkeypatch):
    """Programs are kept by their network, so an earlier one must not equal a later one."""
    before, key = small(**RAW), jax.random.key(0)
    assert "mine" not in init_params(before, key)["params"]
    monkeypatch.setitem(HEADS, "mine", HEADS["margin"])
    after = small(**RAW)
    assert after != before and "mine" in init_params(after, key)["params"]
    assert "mine" not in before.heads


@pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint8])
def test_the_type_of_a_head_must_hold_its_labels(dtype, monkeypatch):
    head = replace(HEADS["margin"], size=lambda board: board.num_edges + 1, dtype=dtype)
    monkeypatch.setitem(HEADS, "mine", head)
    small, large = DotsAndBoxes(5, 5), DotsAndBoxes(8, 8)
    for board in {large} if dtype == jnp.int8 else {small, large}:
        with pytest.raises(InputError, match=r"^head mine: "):
            Network(board, NetworkConfig())
    monkeypatch.setitem(HEADS, "mine", replace(head, dtype=jnp.int16))
    assert "mine" in Network(large, NetworkConfig()).heads


def test_the_inference_copy_holds_what_evaluation_wants():
    def copied(network: Network):
        return jax.eval_shape(partial(inference_copy, network, batch=40), any_params(network))

    copy = copied(small())
    assert {leaf.shape[:2] for leaf in jax.tree.leaves(copy["prepared"])} == {(5, 6)}
    copy = copied(small("gpu"))
    # All matrices are bfloat16, except for the last layers of the heads.
    heads = [copy["params"].pop(name)["kernel"].dtype for name in ("policy", "margin")]
    wide = [leaf.dtype for leaf in jax.tree.leaves(copy) if leaf.ndim > 1]
    assert set(wide) == {jnp.dtype("bfloat16")} and set(heads) == {jnp.dtype("float32")}


@pytest.mark.parametrize("trunk", ["conv", "dense"])
def test_a_fresh_block_has_a_kernel_of_zeros(trunk):
    """The zeros make the block start as the identity."""
    network = small(trunk=trunk, features="raw")
    params = init_params(network, jax.random.key(0))["params"]
    blocks = [params[name] for name in params if name.startswith("block")]
    assert len(blocks) == 1
    kernels = [np.asarray(leaf) for leaf in jax.tree.leaves(blocks) if leaf.ndim > 1]
    assert {kernel.any() for kernel in kernels} == {True, False}


@pytest.mark.parametrize("option", [{"attention_heads": 2}, {"safe_end": True}])
def test_a_trunk_refuses_options_that_it_does_not_take(option):
    with pytest.raises(InputError, match=rf"^network\.{next(iter(option))}: "):
        small(trunk="dense", **option)


@pytest.mark.parametrize("drawn", [np.zeros((2, 12), bool), np.zeros((2, 17), np.int32)])
def test_wrong_shapes_fail_at_trace_time_with_the_name(drawn):
    network = small(trunk="dense")
    with pytest.raises(AssertionError, match="drawn"):
        jax.eval_shape(network.apply, any_params(network), drawn)


def test_searches_value_a_position_by_its_share_of_the_boxes():
    network, drawn = small(trunk="dense", features="raw"), boards(9)
    params, nothing = any_params(network), jnp.zeros(9, jnp.int32)
    state = State(drawn, nothing + 1, nothing)

    @jax.jit
    def evaluate(params, state):
        return network_evaluator(network, params).evaluate(state, None)

    evaluation = evaluate(params, state)
    out = apply(network)(params, drawn)
    np.testing.assert_allclose(evaluation.prior_logits, out.policy_logits, rtol=1e-5)
    margin = expected_margin(BOARD, out)
    expected = jnp.where(jnp.all(drawn, axis=1), 0.0, margin / BOARD.num_boxes)
    np.testing.assert_allclose(evaluation.value, expected, rtol=1e-4, atol=1e-6)
    assert float(jnp.abs(evaluation.value).max()) > 0.01


def test_a_summary_has_mean_and_maximum_and_a_finite_gradient():
    x = np.random.default_rng(0).integers(0, 3, (4, 2, 3, 6)).astype(np.float32)
    weights = (1 + np.arange(48.0)).reshape(4, 12).astype(np.float32)
    forms = pooled, lambda x: jnp.concatenate([x.mean((1, 2)), x.max((1, 2))], axis=-1)
    np.testing.assert_allclose(forms[0](x), forms[1](x), rtol=1e-6)
    slopes = [jax.grad(lambda x, of=of: (weights * of(x)).sum()) for of in forms]
    np.testing.assert_allclose(slopes[0](x), slopes[1](x), rtol=1e-6)
    x[0, :, :, 0] = np.nan  # equals nothing, like a maximum that is rounded in two ways
    assert np.isfinite(slopes[0](x)).all() and np.isnan(slopes[1](x)).any()


def test_gradients_of_layers_are_those_of_jax():
    """In bfloat16; the gradient of the bias is a sum in float32."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(64, 6, 6, 8)), jnp.bfloat16)
    bias = jnp.asarray(rng.normal(size=8), jnp.float32)
    weights = jnp.arange(8, dtype=jnp.bfloat16)[None, None, None]

    def ours(x, bias):
        return jnp.sum(relu(add_bias(x, bias)) * weights)

    def of_jax(x, bias):
        return jnp.sum(jax.nn.relu(x + bias.astype(x.dtype)[None, None, None]) * weights)

    slope, of_bias = jax.grad(ours, argnums=(0, 1))(x, bias)
    np.testing.assert_array_equal(slope, jax.grad(of_jax)(x, bias))
    np.testing.assert_array_equal(of_bias, slope.astype(jnp.float32).sum((0, 1, 2)))
