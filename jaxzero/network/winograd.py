"""Winograd's minimal filtering: a 3x3 convolution with few products.

Tiles of the grid and the kernel are transformed, multiplied and transformed back.
"""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

LONGEST_TILE = 6  # beyond it the transforms amplify rounding errors
POINTS = (0, 1, -1, 2, -2, 1 / 2, -1 / 2)


def transform_kernel(kernel: jax.Array, height: int, width: int) -> jax.Array:
    """Turn a kernel [3, 3, I, O] into the factors of one tile: [n_height, n_width, I, O].

    A row of m outputs takes m + 2 multiplications, not 3 m. A side of at most 6 squares is one
    tile: on the 6 x 6 dots of 5x5 a pair of channels takes 64 multiplications instead of 324. The
    float32 error is about 1e-5 of the output; in bfloat16 it would be too large.
    Source: Lavin & Gray 2016, "Fast Algorithms for Convolutional Neural Networks".
    """
    down, across = (filter_transforms(tile_length(length))[1] for length in (height, width))
    # One matrix product: two products, one along each side, take ten times as long.
    into = jnp.asarray(np.kron(down, across), kernel.dtype)
    factors = into @ kernel.reshape(9, -1)
    return factors.reshape(len(down), len(across), *kernel.shape[2:])


def winograd_convolve(x: jax.Array, factors: jax.Array) -> jax.Array:
    """Convolve [B, H, W, I], zero padded, with `factors` of `transform_kernel`: [B, H, W, O]."""
    batch, height, width, inputs = x.shape
    outputs = factors.shape[-1]
    into_rows, out_rows = side_transforms(height)
    into_cols, out_cols = side_transforms(width)
    repeats = (len(into_rows) // factors.shape[0], len(into_cols) // factors.shape[1])
    factors = jnp.tile(factors, (*repeats, 1, 1)).reshape(-1, inputs, outputs)
    # Squares first, so that every step is a matrix product without a transposition between.
    squares = x.reshape(batch, height * width, inputs).transpose(1, 0, 2)
    into = jnp.asarray(np.kron(into_rows, into_cols), x.dtype)
    products = (into @ squares.reshape(height * width, -1)).reshape(-1, batch, inputs)
    products = jax.lax.batch_matmul(products, factors)
    out = jnp.asarray(np.kron(out_rows, out_cols), x.dtype)
    squares = (out @ products.reshape(len(products), -1)).reshape(-1, batch, outputs)
    return squares.transpose(1, 0, 2).reshape(batch, height, width, outputs)


@lru_cache
def side_transforms(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (input [N, length], output [length, N]) transforms of a zero-padded side.

    N counts the products of all tiles, one tile after the other.
    """
    outputs = tile_length(length)
    tiles = -(-length // outputs)
    into, _, out = filter_transforms(outputs)
    size = outputs + 2
    padded_into = np.zeros((tiles * size, tiles * outputs + 2))
    padded_out = np.zeros((tiles * outputs, tiles * size))
    for tile in range(tiles):
        products = slice(tile * size, (tile + 1) * size)
        start = tile * outputs
        padded_into[products, start : start + size] = into
        padded_out[start : start + outputs, products] = out
    return padded_into[:, 1 : length + 1], padded_out[:length]


@lru_cache
def filter_transforms(outputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (input [n, n], kernel [n, 3], output [m, n]) transforms of a tile, n = m + 2.

    `output @ ((kernel @ g) * (input @ d))` correlates d [n] with g [3]: Toom and Cook's product
    of polynomials, evaluated at `POINTS` and at infinity, transposed.
    """
    size = outputs + 2
    points = np.array(POINTS[: size - 1], float)[:, None]

    def powers(count: int) -> np.ndarray:
        at_infinity = np.eye(count)[-1:]
        return np.concatenate([points ** np.arange(count), at_infinity])

    kernel = powers(3)
    scale = np.abs(kernel).max(axis=1, keepdims=True)  # keeps the sizes of the factors alike
    return np.linalg.inv(powers(size)).T * scale, kernel / scale, powers(outputs).T


def tile_length(length: int) -> int:
    """Return the outputs of one tile along a side of `length` squares."""
    tiles = -(-length // LONGEST_TILE)
    return -(-length // tiles)
