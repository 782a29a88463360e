"""Residual blocks of the network.

Nothing here looks at other positions of the batch, so there are no batch statistics to synchronise,
and convolution, bias and activation stay adjacent so that XLA can fuse them. Every block starts as
the identity: its last layer is initialised to zero (Zhang et al. 2019, Fixup).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxzero.agent import winograd
from jaxzero.config import NetworkConfig

# Variables derived from the parameters once, so that inference need not at every call.
PREPARED = "prepared"

Dtype = jnp.dtype


class Conv3x3(nn.Module):
    """Convolve [B, H, W, C] with a 3x3 kernel, zero padded. All forms compute the same."""

    channels: int
    form: str  # "direct", "shifted" or "winograd"
    dtype: Dtype
    kernel_init: nn.initializers.Initializer = nn.initializers.he_normal()

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        inputs = x.shape[-1]
        kernel = self.param("kernel", self.kernel_init, (3, 3, inputs, self.channels))
        bias = self.param("bias", nn.initializers.zeros, (self.channels,))
        kernel, bias = kernel.astype(self.dtype), bias.astype(self.dtype)
        if self.form == "winograd":
            y = winograd.convolve(x, self._factors(kernel, *x.shape[1:3]))
        else:
            y = _shifted(x, kernel) if self.form == "shifted" else _direct(x, kernel)
        return y + bias.reshape(1, 1, 1, -1)

    def _factors(self, kernel: jax.Array, height: int, width: int) -> jax.Array:
        """Return the transformed kernel; store it when asked to, use it when it is there."""
        if self.has_variable(PREPARED, "factors"):
            return self.get_variable(PREPARED, "factors")
        factors = winograd.transform_kernel(kernel, height, width)
        if self.is_mutable_collection(PREPARED) and not self.is_initializing():
            self.put_variable(PREPARED, "factors", factors)
        return factors


def _direct(x: jax.Array, kernel: jax.Array) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout)


def _shifted(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Nine shifted slices and one matrix product: on a CPU 9x faster in the gradient of a scan."""
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    slices = [padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return jnp.concatenate(slices, axis=-1) @ kernel.reshape(-1, kernel.shape[-1])


def pooled(x: jax.Array) -> jax.Array:
    """Summarise a board [B, H, W, C] by mean and maximum over its squares: [B, 2 C]."""
    return jnp.concatenate([x.mean(axis=(1, 2)), x.max(axis=(1, 2))], axis=-1)


class ConvBlock(nn.Module):
    """Two convolutions around an optional view of the whole board: [B, H, W, C] to the same."""

    config: NetworkConfig
    form: str
    dtype: Dtype
    pooling: bool  # add a function of the pooled board to every square (Wu 2019, KataGo)

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        channels = self.config.channels
        y = Conv3x3(channels, self.form, self.dtype)(x)
        if self.pooling:
            y = y + nn.Dense(channels, dtype=self.dtype)(pooled(nn.relu(y)))[:, None, None]
        y = nn.relu(y)
        y = Conv3x3(channels, self.form, self.dtype, nn.initializers.zeros)(y)
        if self.config.squeeze_excitation:
            y = y * self._gate(y)[:, None, None]
        return nn.relu(x + y)

    def _gate(self, y: jax.Array) -> jax.Array:
        """Return a factor per channel from the pooled board (Hu et al. 2018): [B, C]."""
        hidden = nn.relu(nn.Dense(self.config.channels // 4 or 1, dtype=self.dtype)(pooled(y)))
        return nn.sigmoid(nn.Dense(self.config.channels, dtype=self.dtype)(hidden))


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
        )(nn.LayerNorm(dtype=self.dtype)(tokens + places))
        return (tokens + attended).reshape(x.shape)


class DenseBlock(nn.Module):
    """Normalise, widen the view, add: [B, C] to the same."""

    channels: int
    dtype: Dtype

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        y = nn.LayerNorm(dtype=self.dtype)(x)
        y = nn.relu(nn.Dense(self.channels, dtype=self.dtype)(y))
        return x + nn.Dense(self.channels, dtype=self.dtype, kernel_init=nn.initializers.zeros)(y)
