"""A queue of games that differ in length, for the lanes of self-play.

A lane is one place in the batch of parallel games; it holds one game at a time. Whole games have
similar lengths, and each has its own lane. The lengths of late games (`selfplay.late_start_moves`)
differ a lot, so each lane plays several, one after the other, the longest first. A finished lane
takes the next game that is certain to end in the remaining steps.
"""

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp


class Queue(NamedTuple):
    """All games of an iteration, longest first; those before `next` have begun or are skipped."""

    games: chex.ArrayTree  # [N, ...]
    max_decisions: jax.Array  # [N] int32, bound of the length of each game, in falling order
    next: jax.Array  # [] int32


def start_queue(
    games: chex.ArrayTree, max_decisions: jax.Array, lanes: int, steps: int
) -> tuple[chex.ArrayTree, Queue]:
    """Return the first games of all lanes, and the queue of the others.

    `games` [N, ...] are sorted by `max_decisions` [N], longest first. Games that may have more
    decisions than `steps` are skipped, unless too few others are left to fill the lanes.
    """
    queue = Queue(games, max_decisions, jnp.int32(0))
    begin = jnp.minimum(skipped(queue, steps), len(max_decisions) - lanes)
    take = partial(jax.lax.dynamic_slice_in_dim, start_index=begin, slice_size=lanes)
    return jax.tree.map(take, games), queue._replace(next=begin + lanes)


def refill(
    queue: Queue, lanes: chex.ArrayTree, finished: jax.Array, steps_left: jax.Array
) -> tuple[chex.ArrayTree, Queue]:
    """Refill `finished` [B] lanes with the next games that end within `steps_left` []."""
    chex.assert_tree_shape_prefix(lanes, finished.shape)
    chex.assert_tree_shape_prefix(queue.games, queue.max_decisions.shape)
    head = jnp.maximum(queue.next, skipped(queue, steps_left))
    place = head + jnp.cumsum(finished, dtype=jnp.int32) - 1
    begins = finished & (place < len(queue.max_decisions))
    fresh = jax.tree.map(lambda x: x[place], queue.games)  # rows beyond the end are not used
    select = jax.vmap(lambda new, a, b: jax.tree.map(partial(jnp.where, new), a, b))
    lanes = select(begins, fresh, lanes)
    return lanes, queue._replace(next=head + jnp.sum(begins, dtype=jnp.int32))


def skipped(queue: Queue, steps: chex.Numeric) -> jax.Array:
    """Return how many games, at the head of a queue, may have more decisions than `steps`: []."""
    return jnp.sum(queue.max_decisions > steps, dtype=jnp.int32)
