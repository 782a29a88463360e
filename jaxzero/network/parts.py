"""Apply a function to the used rows of a batch, in fixed-size chunks.

The number of parts depends on the data. On a GPU the host reads it back for each part, some 20 us,
so a part there is at least half a millisecond of work.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

LOOP = "loop over parts"  # its name in a traced program


class Sizes(NamedTuple):
    """The sizes of parts. Each size compiles the layers once more, 0.3 s for 128 x 10."""

    sizes: tuple[int, ...]
    above: tuple[int, ...]  # a part has the next size if more entries than this are left


# A CPU, for the rounds of one search: two cores take 4.4 ms for 2 positions of 5x5, 11 ms for 8.
# A GPU, for the rounds of thousands: a large part uses it better, a small one wastes less.
SIZES = {
    "cpu": Sizes((2, 8, 16), above=(2, 8)),
    "gpu": Sizes((1024, 4096), above=(3072,)),
}


def worth_dividing(platform: str, count: int) -> bool:
    """Return whether the network takes a batch of `count` positions in parts, by `SIZES`.

    The search on a CPU has divided large batches before (`rounds.expand_in_parts`). On a GPU a
    batch of one part is evaluated whole.
    """
    sizes = SIZES[platform].sizes
    return count <= max(sizes) if platform == "cpu" else count > min(sizes)


def in_parts(
    sizes: Sizes, function: Callable, inputs: tuple[chex.ArrayTree, ...], used: jax.Array
) -> chex.ArrayTree:
    """Return `function(*inputs)` of a batch [B], computed where it is `used` [B] bool.

    Used entries go through `function` in parts. Unused entries get the result of another entry,
    or 0. Each size is compiled once.
    """
    largest = max(sizes.sizes)
    count = jnp.sum(used, dtype=jnp.int32)
    room = len(used) + largest
    order = jnp.nonzero(used, size=room, fill_value=0)[0].astype(jnp.int32)

    def part(size: int, begin: jax.Array) -> chex.ArrayTree:
        rows = jax.lax.dynamic_slice_in_dim(order, begin, size)
        done = function(*jax.tree.map(lambda field: field[rows], inputs))
        # All sizes return equally many rows; the next part overwrites the padding.
        return jax.tree.map(
            lambda field: jnp.pad(field, [(0, largest - size), *[(0, 0)] * (field.ndim - 1)]),
            done,
        )

    def add(carry: tuple[jax.Array, chex.ArrayTree]) -> tuple[jax.Array, chex.ArrayTree]:
        begin, done = carry
        number = jnp.sum(count - begin > jnp.array(sizes.above, jnp.int32), dtype=jnp.int32)
        new = jax.lax.switch(number, [partial(part, size) for size in sizes.sizes], begin)
        put = partial(jax.lax.dynamic_update_slice_in_dim, start_index=begin, axis=0)
        return begin + jnp.array(sizes.sizes, jnp.int32)[number], jax.tree.map(put, done, new)

    shapes = jax.eval_shape(partial(part, largest), jnp.int32(0))
    done = jax.tree.map(lambda x: jnp.zeros((room, *x.shape[1:]), x.dtype), shapes)
    with jax.named_scope(LOOP):
        _, done = jax.lax.while_loop(lambda carry: carry[0] < count, add, (jnp.int32(0), done))
    back = jnp.maximum(jnp.cumsum(used, dtype=jnp.int32) - 1, 0)
    return jax.tree.map(lambda field: field[back], done)
