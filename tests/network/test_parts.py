"""Test parts of a batch: each used place gets its own result; parts are as small as possible."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.network.parts import in_parts, part_sizes

# number of used places of 16: sizes of the parts that compute them
PARTS = {0: [], 1: [1], 2: [2], 3: [4], 5: [8], 8: [8], 9: [8, 1], 11: [8, 4], 16: [8, 8]}


def test_what_is_used_is_computed_in_the_smallest_part_that_takes_it():
    sizes = []

    def square(numbers: jax.Array) -> tuple[jax.Array, jax.Array]:
        jax.debug.callback(lambda count: sizes.append(int(count)), len(numbers))
        return numbers**2, jnp.stack([numbers, -numbers], axis=-1)

    run = jax.jit(lambda numbers, used: in_parts((1, 2, 4, 8), square, (numbers,), used))
    numbers, rng = np.arange(16) + 3, np.random.default_rng(0)
    for count, parts in PARTS.items():
        used = np.zeros(16, bool)
        used[rng.permutation(16)[:count]] = True
        squares, both = jax.block_until_ready(run(numbers, used))
        jax.effects_barrier()
        np.testing.assert_array_equal(squares[used], numbers[used] ** 2)
        np.testing.assert_array_equal(both[used], np.stack([numbers, -numbers], axis=-1)[used])
        assert (len(squares), sizes) == (16, parts)
        sizes.clear()


@pytest.mark.parametrize("size", [5, 20])
def test_one_size_takes_all_in_order(size):
    used = np.arange(16) % 2 == 1
    (found,) = jax.jit(lambda x: in_parts((size,), lambda x: (x + 1,), (x,), used))(np.arange(16))
    np.testing.assert_array_equal(found[used], np.arange(16)[used] + 1)


@pytest.mark.parametrize("cores", [24, 132])
def test_a_part_fills_the_cores_of_a_gpu(cores):
    for size in part_sizes("gpu", cores, rows=36):
        tiles = size * 36 / 128
        assert 0.97 < tiles / cores / round(tiles / cores) <= 1
