"""Apply a function to the used rows of a batch, in fixed-size chunks.

The number of parts depends on the data. On a GPU the host reads it back for each part, some 20 us,
so a part there is at least half a millisecond of work.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import chex
import jax
import jax.numpy as jnp

LOOP = "loop over parts"  # its name in a traced program
# For the rounds of one search: two cores take 4.4 ms for 2 positions of 5x5, 11 ms for 8.
CPU_SIZES = (2, 8, 16)
TILE = 128  # rows that a core of a GPU multiplies at a time
# Tiles of each core, in a small part and in a large one. Small parts waste less where few positions
# are left; large parts take fewer launches.
WAVES = (3, 18)


def part_sizes(platform: str, cores: int, rows: int) -> tuple[int, ...]:
    """Return the sizes of parts, in positions, rising; each compiles the layers once more.

    A position has `rows` rows in the matrix products of the layers. On a GPU a part gives each of
    its `cores` a whole number of tiles, because one more position costs another wave of tiles.
    """
    if platform == "cpu":
        return CPU_SIZES
    return tuple(max(1, waves * cores * TILE // rows) for waves in WAVES)


def worth_dividing(platform: str, sizes: tuple[int, ...], count: int) -> bool:
    """Return whether the network takes a batch of `count` positions in parts.

    The search on a CPU has divided large batches before (`rounds.expand_in_parts`). On a GPU a
    batch of one part is evaluated whole.
    """
    return count <= max(sizes) if platform == "cpu" else count > min(sizes)


def in_parts(
    sizes: tuple[int, ...], function: Callable, inputs: tuple[chex.ArrayTree, ...], used: jax.Array
) -> chex.ArrayTree:
    """Return `function(*inputs)` of a batch [B], computed where it is `used` [B] bool.

    Used entries go through `function` in parts of the largest of `sizes` (rising) while more are
    left than it exceeds the next smaller one by, then of that one, and so on. Unused entries get
    the result of another entry, or 0. Each size is compiled once.
    """
    count = jnp.sum(used, dtype=jnp.int32)
    room = len(used) + max(sizes)  # the next part overwrites what a part has computed too much
    order = jnp.nonzero(used, size=room, fill_value=0)[0].astype(jnp.int32)

    def part(size: int, begin: jax.Array) -> chex.ArrayTree:
        rows = jax.lax.dynamic_slice_in_dim(order, begin, size)
        return function(*jax.tree.map(lambda field: field[rows], inputs))

    def add(size: int, carry: tuple[jax.Array, chex.ArrayTree]) -> tuple[jax.Array, chex.ArrayTree]:
        begin, done = carry
        put = partial(jax.lax.dynamic_update_slice_in_dim, start_index=begin, axis=0)
        return begin + size, jax.tree.map(put, done, part(size, begin))

    def more_left(limit: int, carry: tuple[jax.Array, chex.ArrayTree]) -> jax.Array:
        return count - carry[0] > limit

    shapes = jax.eval_shape(partial(part, min(sizes)), jnp.int32(0))
    done = jax.tree.map(lambda x: jnp.zeros((room, *x.shape[1:]), x.dtype), shapes)
    carry = jnp.int32(0), done
    steps = [large - small for small, large in pairwise(sizes)]
    with jax.named_scope(LOOP):
        for size, limit in reversed(list(zip(sizes, (0, *steps), strict=True))):
            carry = jax.lax.while_loop(partial(more_left, limit), partial(add, size), carry)
    back = jnp.maximum(jnp.cumsum(used, dtype=jnp.int32) - 1, 0)
    return jax.tree.map(lambda field: field[back], carry[1])
