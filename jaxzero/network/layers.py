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
import numpy as np
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
            bias = nn.Dense(channels, dtype=self.dtype, name="pooled")(pooled(relu(y)))
            y = y + bias[:, None, None]
        zeros = nn.initializers.zeros
        y = Conv3x3(channels, self.form, self.dtype, zeros, name="conv_b")(relu(y))
        return relu(x + y)


class DenseBlock(nn.Module):
    """Normalise, apply two dense layers, add the result to the input: [B, C] to the same."""

    channels: int
    dtype: Dtype

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        dense = partial(nn.Dense, self.channels, dtype=self.dtype)
        y = nn.LayerNorm(dtype=self.dtype, name="norm")(x)
        y = relu(dense(name="dense_a")(y))
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


@jax.custom_vjp
def relu(x: jax.Array) -> jax.Array:
    """Return the positive part. Its gradient needs the result alone, so learning drops x."""
    return jnp.maximum(x, 0)


def _relu_forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    y = relu(x)
    return y, y


def _relu_backward(y: jax.Array, change: jax.Array) -> tuple[jax.Array]:
    # Without the barrier XLA compares x instead, and stores it.
    return (jnp.where(jax.lax.optimization_barrier(y) > 0, change, 0),)


relu.defvjp(_relu_forward, _relu_backward)


@jax.custom_vjp
def pooled(x: jax.Array) -> jax.Array:
    """Summarise squares [B, H, W, C] by mean and maximum: [B, 2 C].

    Equal maxima share a gradient. The gradient of `jnp.max` compares x with its maximum. If a
    compiler computes x twice with different rounding, nothing equals the maximum, and the gradient
    is 0 / 0. Here x is computed once.
    """
    wide = x.astype(jnp.float32)  # one pass over x gives both

    def both(a: tuple, b: tuple) -> tuple:
        return a[0] + b[0], jnp.maximum(a[1], b[1])

    total, maximum = jax.lax.reduce(
        (wide, wide), (np.float32(0), -np.float32(np.inf)), both, (1, 2)
    )
    squares = x.shape[1] * x.shape[2]
    return jnp.concatenate([total / squares, maximum], axis=-1).astype(x.dtype)


def _pooled_forward(x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    x = jax.lax.optimization_barrier(x)
    summary = pooled(x)
    return summary, (x, summary)


def _pooled_backward(kept: tuple[jax.Array, jax.Array], change: jax.Array) -> tuple[jax.Array]:
    x, summary = kept
    _, maximum = jnp.split(summary[:, None, None], 2, axis=-1)
    of_mean, of_maximum = jnp.split(change[:, None, None], 2, axis=-1)
    is_maximum = x == maximum
    count = is_maximum.sum(axis=(1, 2), keepdims=True, dtype=x.dtype)
    squares = x.shape[1] * x.shape[2]
    return (of_mean / squares + jnp.where(is_maximum, of_maximum / count, 0),)


pooled.defvjp(_pooled_forward, _pooled_backward)


@jax.custom_vjp
def add_bias(x: jax.Array, bias: jax.Array) -> jax.Array:
    """Add a bias [C] to [B, H, W, C] in the format of x; its gradient is a sum in float32."""
    return x + bias.astype(x.dtype)[None, None, None]


def _bias_backward(_: None, change: jax.Array) -> tuple[jax.Array, jax.Array]:
    return change, change.sum(axis=(0, 1, 2), dtype=jnp.float32)


add_bias.defvjp(lambda x, bias: (add_bias(x, bias), None), _bias_backward)


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
        kernel = kernel.astype(self.dtype)
        if self.form == "winograd":
            y = winograd_convolve(x, self._factors(kernel, *x.shape[1:3]))
        else:
            y = _shifted(x, kernel) if self.form == "shifted" else _direct(x, kernel)
        return add_bias(y, bias)

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
