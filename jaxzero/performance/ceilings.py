"""What the device can do at best, measured: the yardsticks of every share reported."""

from __future__ import annotations

import statistics

import jax
import jax.numpy as jnp

from jaxzero.training.throughput import seconds_per_call


class Ceilings:
    """Both ceilings, as medians over the calls of `measure`, which take turns with the work."""

    def __init__(self, dtype: jnp.dtype):
        self._dtype = dtype
        self._matmul: list[float] = []  # FLOP/s
        self._copy: list[float] = []  # bytes/s

    def measure(self) -> None:
        self._matmul.append(matmul_flops_per_second(self._dtype))
        self._copy.append(copy_bytes_per_second())

    @property
    def matmul(self) -> float:
        """Matrix products, FLOP/s."""
        return statistics.median(self._matmul)

    @property
    def copy(self) -> float:
        """Passes over an array, read once and written once, bytes/s."""
        return statistics.median(self._copy)


def matmul_flops_per_second(dtype: jnp.dtype, size: int = 0) -> float:
    """Measure square matrix products of `size` in `dtype`, in FLOP/s on one device.

    Counts 2 size^3 a product. The default size takes some milliseconds on either kind of device.
    """
    on_host = jax.default_backend() == "cpu"
    size = size or (1536 if on_host else 8192)
    repeats = 4 if on_host else 16
    # An orthogonal matrix of +-1 / sqrt(size): the chain of products stays within range.
    left = jax.random.rademacher(jax.random.key(0), (size, size), dtype) * size**-0.5
    left = left.astype(dtype)

    @jax.jit
    def chain(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, repeats, lambda _, x: (left @ x).astype(dtype), x)

    (seconds,) = seconds_per_call(lambda: chain(left), rounds=5)
    return repeats * 2 * size**3 / seconds


def copy_bytes_per_second(mebibytes: int = 0) -> float:
    """Measure a pass over an array, read once and written once, in bytes/s on one device."""
    mebibytes = mebibytes or (128 if jax.default_backend() == "cpu" else 2048)
    array = jnp.zeros(mebibytes * 2**18, jnp.float32)
    # In place within a loop: a fresh output would have its pages made first.
    passes = jax.jit(lambda x: jax.lax.fori_loop(0, 8, lambda _, x: x + 1, x))
    (seconds,) = seconds_per_call(lambda: passes(array), rounds=5)
    return 8 * 2 * array.nbytes / seconds
