"""The replay ring: recent positions, kept on the device in narrow formats.

One iteration of self-play is one block of the ring, and the ring is a whole number of blocks, so
a write is one contiguous update in place: O(block), not O(capacity).
"""

from collections.abc import Mapping
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.heads import Head
from jaxzero.training.targets import Positions


class Replay(NamedTuple):
    """Ring buffer of C positions on one device."""

    drawn: jax.Array  # [C, ceil(A / 8)] uint8, edges on the board, one bit each
    policy: jax.Array  # [C, A] float16, improved search policy
    labels: dict[str, jax.Array]  # [C] for each head, in its format; -1: unknown
    size: jax.Array  # [] int32, positions held
    cursor: jax.Array  # [] int32, where the next block goes


def empty_replay(capacity: int, num_edges: int, heads: Mapping[str, Head]) -> Replay:
    """Return an empty ring for `capacity` positions of `num_edges` edges."""
    return Replay(
        drawn=jnp.zeros((capacity, -(-num_edges // 8)), jnp.uint8),
        policy=jnp.zeros((capacity, num_edges), jnp.float16),
        labels={name: jnp.zeros(capacity, head.dtype) for name, head in heads.items()},
        size=jnp.zeros((), jnp.int32),
        cursor=jnp.zeros((), jnp.int32),
    )


def add(replay: Replay, positions: Positions) -> Replay:
    """Write one block of P positions over the oldest ones. P must divide the capacity."""
    capacity, block = replay.policy.shape[0], positions.policy.shape[0]
    edges = (block, replay.policy.shape[1])
    chex.assert_shape(positions.policy, edges, custom_message="positions.policy")
    chex.assert_shape(positions.drawn, edges, custom_message="positions.drawn")
    if capacity % block:
        raise ValueError(f"a block of {block} positions does not divide the capacity {capacity}")
    packed = {
        "drawn": jnp.packbits(positions.drawn, axis=-1),
        "policy": positions.policy,
        "labels": positions.labels,
    }
    rings = {name: getattr(replay, name) for name in packed}
    written = jax.tree.map(lambda ring, new: _write(ring, new, replay.cursor), rings, packed)
    return replay._replace(
        **written,
        size=jnp.minimum(replay.size + block, capacity),
        cursor=(replay.cursor + block) % capacity,
    )


def _write(ring: jax.Array, block: jax.Array, cursor: jax.Array) -> jax.Array:
    return jax.lax.dynamic_update_slice_in_dim(ring, block.astype(ring.dtype), cursor, axis=0)


def relayout(saved: Replay, like: Replay, block: int) -> Replay:
    """Move saved rings, on the host, to another number of devices or to rings of another size.

    `saved` [D, C, ...] are NumPy arrays, `like` [D', C', ...] are shapes. Each new ring has blocks
    of `block` positions. It keeps the newest positions that fill whole blocks.
    """
    if saved.policy.shape == like.policy.shape and saved.cursor[0] % block == 0:
        return saved
    devices, capacity = like.policy.shape[:2]
    size, cursor = int(saved.size[0]), int(saved.cursor[0])
    first = cursor if size == saved.policy.shape[1] else 0  # the oldest
    held = min(size * saved.policy.shape[0] // (devices * block) * block, capacity)

    def move(ring: np.ndarray, like: jax.Array) -> np.ndarray:
        oldest_first = np.roll(ring, -first, axis=1)[:, :size]
        # All devices play at the same time, so their positions alternate in one history.
        history = np.swapaxes(oldest_first, 0, 1).reshape(-1, *ring.shape[2:])
        newest = history[len(history) - devices * held :]
        shares = np.swapaxes(newest.reshape(held, devices, *ring.shape[2:]), 0, 1)
        moved = np.zeros(like.shape, like.dtype)
        moved[:, :held] = shares
        return moved

    counts = {"size": None, "cursor": None}
    rings = jax.tree.map(move, saved._replace(**counts), like._replace(**counts))
    return rings._replace(
        size=np.full(devices, held, np.int32),
        cursor=np.full(devices, held % capacity, np.int32),
    )


def sample(replay: Replay, key: jax.Array, count: int) -> Positions:
    """Sample `count` positions uniformly, with replacement. The ring must not be empty."""
    # `jax.random.randint` takes four times the kernels; the bias here is at most 2^-32 a position.
    rows = jax.random.bits(key, (count,), jnp.uint32) % replay.size.astype(jnp.uint32)
    num_edges = replay.policy.shape[1]
    return Positions(
        drawn=jnp.unpackbits(replay.drawn[rows], axis=-1, count=num_edges).astype(bool),
        policy=replay.policy[rows].astype(jnp.float32),
        labels={name: ring[rows].astype(jnp.int32) for name, ring in replay.labels.items()},
    )
