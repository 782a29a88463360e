"""Several devices. The only file that knows pmap.

The learner is the same on every device, the actor differs: programs take and return the learner
without a device axis and the actor with a leading one, D.
"""

from __future__ import annotations

from collections.abc import Callable

import chex
import jax
import numpy as np

from jaxzero.errors import InputError

DEVICE_AXIS = "device"


def choose_devices(count: int) -> list[jax.Device]:
    """Return the first `count` devices, or all for 0. Raises an InputError for more than exist."""
    present = jax.local_devices()
    if count > len(present):
        raise InputError(f"devices: {count} asked for, {len(present)} present")
    return present[: count or len(present)]


def parallelize(iteration: Callable, devices: list[jax.Device]) -> Callable:
    """Map an iteration over the devices, donating learner and actor.

    Takes (learner, actor [D, ...], run key, span [2]), returns (learner, actor [D, ...], metrics).
    """
    # `out_axes=None` takes the learner of one device and does not check that the others agree;
    # `assert_replicated` does, at every checkpoint.
    return jax.pmap(
        iteration,
        axis_name=DEVICE_AXIS,
        in_axes=(None, 0, None, None),
        out_axes=(None, 0, None),
        donate_argnums=(0, 1),
        devices=devices,
    )


def replicate(tree: chex.ArrayTree, devices: list[jax.Device]) -> chex.ArrayTree:
    """Copy a tree to every device, without a device axis."""
    return jax.device_put(tree, _sharding(devices, jax.sharding.PartitionSpec()))


def spread(tree: chex.ArrayTree, devices: list[jax.Device]) -> chex.ArrayTree:
    """Give each device its slice of the leading axis D."""
    return jax.device_put(tree, _sharding(devices, jax.sharding.PartitionSpec(DEVICE_AXIS)))


def spread_actor(make: Callable[[], chex.ArrayTree], devices: list[jax.Device]) -> chex.ArrayTree:
    """Build one actor per device, directly on that device: fields [D, ...]."""
    sharding = _sharding(devices, jax.sharding.PartitionSpec(DEVICE_AXIS))
    count = len(devices)

    def all_actors() -> chex.ArrayTree:
        return jax.tree.map(lambda x: jax.numpy.broadcast_to(x, (count, *x.shape)), make())

    return jax.jit(all_actors, out_shardings=sharding)()


def _sharding(devices: list[jax.Device], spec: jax.sharding.PartitionSpec):
    return jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), DEVICE_AXIS), spec)


def local_copy(tree: chex.ArrayTree) -> chex.ArrayTree:
    """Copy a replicated tree to arrays on the first device alone, safe from donation."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0).copy(), tree)


def assert_replicated(tree: chex.ArrayTree) -> None:
    """Raise a RuntimeError unless every device holds bit for bit the same tree."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        copies = [np.asarray(shard.data) for shard in leaf.addressable_shards]
        if any(copies[0].tobytes() != other.tobytes() for other in copies[1:]):
            name = jax.tree_util.keystr(path)
            raise RuntimeError(f"devices disagree about {name}: the learner is not replicated")
