"""Layers and residual blocks of the network, in the forms that suit the platform.

No layer looks at other positions of the batch, so there are no batch statistics to synchronise, and
convolution, bias and activation stay adjacent so that XLA can fuse them. Every block starts as the
identity: its last layer is initialised to zero (Zhang et al. 2019, Fixup).

A 3x3 convolution has three forms. XLA's own is the fastest to compile and the fastest on a GPU; on
a CPU it suits a few positions. Nine shifted slices and one matrix product have the fastest gradient
on a CPU. Winograd's minimal filtering halves the time to evaluate many positions on a CPU.
"""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from jaxzero.config import NetworkConfig

# Smallest batch for Winograd: below it, transforming the kernels costs more than it saves.
WINOGRAD_BATCH = 32
# Variables that are derived from the parameters once, not at every call of inference.
PREPARED = "prepared"
LONGEST_TILE = 6  # beyond it the transforms amplify rounding errors
POINTS = (0, 1, -1, 2, -2, 1 / 2, -1 / 2)
Dtype = jnp.dtype


def convolution_form(platform: str, dtype: Dtype, batch: int) -> str:
    """Return the form of the convolutions of a batch."""
    if platform != "cpu" or batch < WINOGRAD_BATCH:
        return "direct"
    return "winograd" if dtype == jnp.float32 else "shifted"


class ConvBlock(nn.Module):
    """Two convolutions around an optional summary of the whole board: [B, H, W, C] to the same."""

    config: NetworkConfig
    form: str
    dtype: Dtype
    pooling: bool  # add a function of the pooled board to every square (Wu 2019, KataGo)

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        channels = self.config.channels
        y = Conv3x3(channels, self.form, self.dtype, name="conv_a")(x)
        if self.pooling:
            board = nn.Dense(channels, dtype=self.dtype, name="pooled")(pooled(nn.relu(y)))
            y = y + board[:, None, None]
        zeros = nn.initializers.zeros
        y = Conv3x3(channels, self.form, self.dtype, zeros, name="conv_b")(nn.relu(y))
        return nn.relu(x + y)


class DenseBlock(nn.Module):
    """Normalise, apply two dense layers, add the result to the input: [B, C] to the same."""

    channels: int
    dtype: Dtype

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        dense = partial(nn.Dense, self.channels, dtype=self.dtype)
        y = nn.LayerNorm(dtype=self.dtype, name="norm")(x)
        y = nn.relu(dense(name="dense_a")(y))
        return x + dense(kernel_init=nn.initializers.zeros, name="dense_b")(y)


class AttentionBlock(nn.Module):
    """Self-attention over the squares with learnt positions: [B, H, W, C] to the same."""

    heads: int
    dtype: Dtype

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        batch, height, width, channels = x.shape
        tokens = x.reshape(batch, height * width, channels)
        places = self.param(
            "places", nn.initializers.normal(0.02), (1, height * width, channels)
        ).astype(self.dtype)
        attended = nn.MultiHeadDotProductAttention(
            num_heads=self.heads,
            dtype=self.dtype,
            out_kernel_init=nn.initializers.zeros,
            name="attend",
        )(nn.LayerNorm(dtype=self.dtype, name="norm")(tokens + places))
        return (tokens + attended).reshape(x.shape)


def pooled(x: jax.Array) -> jax.Array:
    """Summarise squares [B, H, W, C] by mean and maximum: [B, 2 C]."""
    return jnp.concatenate([x.mean(axis=(1, 2)), greatest(x, (1, 2))], axis=-1)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def greatest(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """Return the maximum over axes; equal maxima share its gradient.

    The gradient of `jnp.max` compares x with its maximum. If a compiler computes x twice with
    different rounding, nothing equals the maximum, and the gradient is 0 / 0. Here x is computed
    once.
    """
    return x.max(axis=axes)


@greatest.defjvp
def _greatest_jvp(axes: tuple[int, ...], primals: tuple, tangents: tuple) -> tuple:
    (x,), (change,) = primals, tangents
    x = jax.lax.optimization_barrier(x)
    most = x.max(axis=axes, keepdims=True)
    there = (x == most).astype(x.dtype)
    count = jnp.maximum(there.sum(axis=axes), 1)
    return most.squeeze(axes), (change * there).sum(axis=axes) / count


class Conv3x3(nn.Module):
    """Convolve [B, H, W, C] with a 3x3 kernel, zero padded. All forms compute the same."""

    channels: int
    form: str  # "direct", "shifted" or "winograd"
    dtype: Dtype
    kernel_init: nn.initializers.Initializer = nn.initializers.he_normal()
    inputs: int | None = None  # number of channels of x that are used, the rest is 0; None: all

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        inputs = self.inputs or x.shape[-1]
        kernel = self.param("kernel", self.kernel_init, (3, 3, inputs, self.channels))
        kernel = jnp.pad(kernel, ((0, 0), (0, 0), (0, x.shape[-1] - inputs), (0, 0)))
        bias = self.param("bias", nn.initializers.zeros, (self.channels,))
        kernel, bias = kernel.astype(self.dtype), bias.astype(self.dtype)
        if self.form == "winograd":
            y = winograd_convolve(x, self._factors(kernel, *x.shape[1:3]))
        else:
            y = _shifted(x, kernel) if self.form == "shifted" else _direct(x, kernel)
        return y + bias.reshape(1, 1, 1, -1)

    def _factors(self, kernel: jax.Array, height: int, width: int) -> jax.Array:
        """Return the transformed kernel: a stored one, or a new one, stored if that is allowed."""
        if self.has_variable(PREPARED, "factors"):
            return self.get_variable(PREPARED, "factors")
        factors = transform_kernel(kernel, height, width)
        if self.is_mutable_collection(PREPARED) and not self.is_initializing():
            self.put_variable(PREPARED, "factors", factors)
        return factors


def _direct(x: jax.Array, kernel: jax.Array) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout)


def _shifted(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Multiply nine shifted slices by one matrix: 9x faster in a scan's gradient on a CPU."""
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    slices = [padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return jnp.concatenate(slices, axis=-1) @ kernel.reshape(-1, kernel.shape[-1])


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
