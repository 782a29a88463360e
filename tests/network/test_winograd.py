"""Winograd's convolution is the convolution, on sides of every length."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.network.layers import (
    filter_transforms,
    tile_length,
    transform_kernel,
    winograd_convolve,
)


@pytest.mark.parametrize("outputs", range(1, 7))
def test_a_tile_correlates_exactly(outputs):
    into, kernel, out = filter_transforms(outputs)
    draw = np.random.default_rng(0)
    signal, weights = draw.normal(size=outputs + 2), draw.normal(size=3)
    expected = np.correlate(signal, weights, "valid")
    np.testing.assert_allclose(out @ ((kernel @ weights) * (into @ signal)), expected, atol=1e-12)


@pytest.mark.parametrize("height, width", [(2, 3), (4, 4), (6, 6), (7, 5), (13, 2)])
def test_equals_the_library(height, width):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(3, height, width, 8)).astype(np.float32)
    kernel = draw.normal(size=(3, 3, 8, 5)).astype(np.float32)

    @jax.jit
    def both(x, kernel):
        found = winograd_convolve(x, transform_kernel(kernel, height, width))
        return found, jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    np.testing.assert_allclose(*both(x, kernel), atol=2e-3)


def test_tiles_cover_a_side_without_a_useless_one():
    for length in range(1, 22):
        tile = tile_length(length)
        assert tile <= 6
        assert (-(-length // tile) - 1) * tile < length


def test_kernel_gradient_equals_the_library():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(2, 6, 6, 4)).astype(np.float32)
    kernel = draw.normal(size=(3, 3, 4, 4)).astype(np.float32)
    layout = ("NHWC", "HWIO", "NHWC")

    def direct(kernel):
        y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout)
        return jnp.sum(jnp.sin(y))

    def fast(kernel):
        return jnp.sum(jnp.sin(winograd_convolve(x, transform_kernel(kernel, 6, 6))))

    np.testing.assert_allclose(
        jax.jit(jax.grad(fast))(kernel), jax.jit(jax.grad(direct))(kernel), atol=1e-2
    )
