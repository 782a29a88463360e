"""Test that the replay keeps the newest blocks unchanged and samples uniformly."""

from __future__ import annotations

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.config import NetworkConfig
from jaxzero.heads import heads_of
from jaxzero.training import replay as replay_module
from jaxzero.training.replay import Replay, empty_replay, relayout
from jaxzero.training.targets import Positions

EDGES, BLOCK, CAPACITY = 12, 8, 24
HEADS = heads_of(NetworkConfig(safe_end=True))
new_ring = partial(empty_replay, num_edges=EDGES, heads=HEADS)
add = jax.jit(replay_module.add)
sample = jax.jit(replay_module.sample, static_argnums=2)


def block_of(first: int) -> Positions:
    """Return a block whose entries carry their number in every field."""
    number = np.arange(first, first + BLOCK, dtype=np.int32)
    bits = (number[:, None] >> np.arange(EDGES)) & 1 > 0
    labels = {"margin": number, "safe_end": number % 7 - 1}
    return Positions(bits, bits.astype(np.float32), labels)


def numbers(positions: Positions) -> np.ndarray:
    """Read the number of every entry, after checking that all fields agree on it."""
    number = np.asarray(positions.labels["margin"])
    weights = 2 ** np.arange(EDGES)
    np.testing.assert_array_equal(np.asarray(positions.drawn) @ weights, number)
    np.testing.assert_array_equal(np.asarray(positions.policy) @ weights, number)
    np.testing.assert_array_equal(positions.labels["safe_end"], number % 7 - 1)
    return number


def test_entries_survive_and_the_oldest_go_on_wrap_around():
    replay = new_ring(CAPACITY)
    for count in range(1, 8):
        replay = add(replay, block_of(BLOCK * (count - 1)))
        seen = set(numbers(sample(replay, jax.random.key(count), 2000)).tolist())
        kept = min(count, CAPACITY // BLOCK) * BLOCK
        assert seen == set(range(BLOCK * count - kept, BLOCK * count))
        assert int(replay.size) == kept


def test_draws_are_uniform():
    replay = new_ring(CAPACITY)
    for first in (0, 8):
        replay = add(replay, block_of(first))
    count = 16_000
    tally = np.bincount(numbers(sample(replay, jax.random.key(0), count)), minlength=16)
    expected = count / 16
    chi_square = ((tally - expected) ** 2 / expected).sum()
    assert chi_square < 37.7  # the 0.1 % point at 15 degrees of freedom


def test_formats_are_narrow_and_stay():
    replay = new_ring(CAPACITY)
    chex.assert_shape(replay.drawn, (CAPACITY, 2))
    assert {name: ring.dtype for name, ring in replay.labels.items()} == {
        name: head.dtype for name, head in HEADS.items()
    }
    chex.assert_trees_all_equal_shapes_and_dtypes(replay, jax.eval_shape(add, replay, block_of(0)))


def test_writes_are_in_place():
    """A donated replay is updated in place: the program needs no second replay."""
    replay = new_ring(80_000)
    program = jax.jit(replay_module.add, donate_argnums=0).lower(replay, block_of(0)).compile()
    plan = program.memory_analysis()
    ring = sum(leaf.nbytes for leaf in jax.tree.leaves(replay))
    assert plan.alias_size_in_bytes >= ring
    assert plan.temp_size_in_bytes < ring / 10


def test_misfits_are_refused_by_name():
    with pytest.raises(ValueError, match="8 positions does not divide the capacity 20"):
        add(new_ring(20), block_of(0))
    with pytest.raises(AssertionError, match=r"positions\.policy"):
        jax.eval_shape(add, empty_replay(CAPACITY, 17, HEADS), block_of(0))


def rings(devices: int, capacity: int, blocks: int) -> Replay:
    """Return the replays of `devices` devices [D, ...]; every device has different numbers."""
    replays = []
    for device in range(devices):
        replay = new_ring(capacity)
        for count in range(blocks):
            replay = add(replay, block_of(BLOCK * (devices * count + device)))
        replays.append(replay)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *replays)


@pytest.mark.parametrize("blocks", [2, 5])
@pytest.mark.parametrize(("devices", "block"), [(1, 2 * BLOCK), (4, BLOCK // 2), (1, 3 * BLOCK)])
def test_rings_move_to_other_devices_and_keep_the_newest(blocks, devices, block):
    before = rings(2, CAPACITY, blocks)
    capacity = 2 * CAPACITY // devices
    shapes = jax.tree.map(lambda leaf: leaf[None].repeat(devices, 0), new_ring(capacity))
    after = relayout(before, shapes, block)
    kept = []
    for device in range(devices):
        rows = (device, slice(int(after.size[device])))
        held = jax.tree.map(lambda ring, rows=rows: ring[rows], after._replace(size=(), cursor=()))
        drawn = np.unpackbits(held.drawn, axis=-1, count=EDGES)
        kept.append(numbers(Positions(drawn, held.policy, held.labels)))
    # Both devices wrote at the same time, so the row of a position gives its age.
    number = np.arange(2 * BLOCK * blocks)
    age = np.argsort(number // (2 * BLOCK) * BLOCK + number % BLOCK, kind="stable")
    there = min(len(number), 2 * CAPACITY) // (devices * block) * devices * block
    assert sorted(np.concatenate(kept)) == sorted(number[age][len(number) - there :])
    # The next block overwrites the oldest block on every device.
    assert after.cursor.tolist() == [there // devices % capacity] * devices
    more = add(jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), after), blocks_of(block))
    assert int(more.size) == min(there // devices + block, capacity)


def blocks_of(count: int) -> Positions:
    one = block_of(0)
    return jax.tree.map(lambda leaf: jnp.resize(leaf, (count, *leaf.shape[1:])), one)


def test_rings_that_fit_stay_as_they_are():
    before = rings(2, CAPACITY, 5)
    assert relayout(before, before, BLOCK) is before
