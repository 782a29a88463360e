"""Number formats and forms of convolution that suit the present device."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxzero.config import NetworkConfig

# Below it, transforming the kernels costs more than it saves.
WINOGRAD_BATCH = 32


def compute_dtype(config: NetworkConfig) -> jnp.dtype:
    """Return the number format of activations on the present device."""
    name = config.compute_dtype
    if name == "auto":
        name = "float32" if jax.default_backend() == "cpu" else "bfloat16"
    return jnp.dtype(name)


def convolution_form(config: NetworkConfig, batch: int) -> str:
    """Return the form of the convolutions of a batch on the present device."""
    if config.convolution != "auto":
        return config.convolution
    if jax.default_backend() != "cpu":
        return "direct"
    exact = compute_dtype(config) == jnp.float32
    return "winograd" if exact and batch >= WINOGRAD_BATCH else "shifted"
