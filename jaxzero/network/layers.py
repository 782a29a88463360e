"""Layers and residual blocks of the network, with one implementation per platform.

No layer looks at other positions of the batch, so there are no batch statistics to synchronise, and
convolution, bias and activation stay adjacent so that XLA can fuse them. Every block starts as the
identity: its last layer is initialised to zero (Zhang et al. 2019, Fixup).

A 3x3 convolution has three forms. XLA's own is the fastest to compile and the fastest on a GPU; on
a CPU it suits a few positions. Nine shifted slices and one matrix product have the fastest gradient
on a CPU. Winograd's minimal filtering halves the time to evaluate many positions on a CPU.
"""

from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxzero.config import NetworkConfig
from jaxzero.network.winograd import transform_kernel, winograd_convolve

# Smallest batch for Winograd: below it, transforming the kernels costs more than it saves.
WINOGRAD_BATCH = 32
# Variables that are derived from the parameters once, not at every call of inference.
PREPARED = "prepared"
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
            bias = nn.Dense(channels, dtype=self.dtype, name="pooled")(pooled(nn.relu(y)))
            y = y + bias[:, None, None]
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
            "places", nn.initializers.normal(0.02), (1, height * width, channels), jnp.float32
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
    maximum = x.max(axis=axes, keepdims=True)
    is_maximum = (x == maximum).astype(x.dtype)
    count = jnp.maximum(is_maximum.sum(axis=axes), 1)
    return maximum.squeeze(axes), (change * is_maximum).sum(axis=axes) / count


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
        shape = (3, 3, inputs, self.channels)
        kernel = self.param("kernel", self.kernel_init, shape, jnp.float32)
        kernel = jnp.pad(kernel, ((0, 0), (0, 0), (0, x.shape[-1] - inputs), (0, 0)))
        bias = self.param("bias", nn.initializers.zeros, (self.channels,), jnp.float32)
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
