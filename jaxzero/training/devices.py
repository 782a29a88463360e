"""Several devices, of one process or many. Only this file uses pmap.

The learner is the same on every device; the actor differs. Programs take and return the learner
without a device axis and the actor with a leading axis D. D counts the devices of all processes, in
the order of the processes; each process holds the slices of its own devices.

Totals over all devices: selfplay.games_per_iteration, learner.batch_size, replay.capacity, devices,
and every metric of games and positions. Per device: memory. Times are those of the first process.
"""

import zlib
from collections.abc import Callable

import chex
import jax
import numpy as np

from jaxzero.errors import InputError
from jaxzero.host.programs import compiled_ahead
from jaxzero.training.iteration import DEVICE_AXIS
from jaxzero.training.processes import gather


def choose_devices(count: int) -> list[jax.Device]:
    """Return `count` devices, or all for 0: equally many per process, in process order.

    Raises: InputError for more devices than exist, or if they do not divide evenly.
    """
    processes = jax.process_count()
    present = [jax.local_devices(process) for process in range(processes)]
    sizes = sorted({len(own) for own in present})
    total = sum(map(len, present))
    if len(sizes) > 1:
        raise InputError(f"devices: every process must have as many, not {sizes[0]} or {sizes[-1]}")
    if count > total:
        raise InputError(f"devices: {count} asked for, {total} present")
    if count % processes:
        raise InputError(f"devices: {count} is not divisible by {processes} processes")
    each = (count or total) // processes
    return [device for own in present for device in own[:each]]


def own_devices(devices: list[jax.Device]) -> list[jax.Device]:
    """Return the devices of this process."""
    return [device for device in devices if device.process_index == jax.process_index()]


def parallelize(iteration: Callable, devices: list[jax.Device]) -> Callable:
    """Map an iteration over the devices, donating learner and actor.

    Its arguments are those of `make_iteration`, the actor with an axis D: [D, ...].
    """
    # `out_axes=None` takes the learner of one device and does not check that the others agree.
    # `assert_replicated` checks it at every checkpoint.
    axes = {"in_axes": (None, 0, None, None), "out_axes": (None, 0, None)}
    if jax.config.jax_disable_jit:  # pmap would compile: one device does the work of all
        return jax.vmap(iteration, axis_name=DEVICE_AXIS, axis_size=len(devices), **axes)
    return jax.pmap(
        iteration, axis_name=DEVICE_AXIS, donate_argnums=(0, 1), devices=devices, **axes
    )


def compile_shapes(mapped: Callable, shapes: tuple) -> jax.stages.Compiled:
    """Compile the result of `parallelize` for inputs of these shapes.

    The program takes and returns arrays that span all processes; see the functions below.
    """
    if jax.process_count() > 1:
        # With several processes pmap accepts arrays, or ShapedArray, which it leaves unchanged.
        shapes = jax.tree.map(lambda leaf: jax.core.ShapedArray(leaf.shape, leaf.dtype), shapes)
    return compiled_ahead(mapped, *shapes)


def replicate(tree: chex.ArrayTree, devices: list[jax.Device]) -> chex.ArrayTree:
    """Copy a tree, the same in every process, to every device, without a device axis."""
    return place(tree, _sharding(devices, jax.sharding.PartitionSpec()))


def shard(tree: chex.ArrayTree, devices: list[jax.Device]) -> chex.ArrayTree:
    """Give each device its slice of the leading axis D; each process has the whole tree."""
    return place(tree, _sharding(devices, jax.sharding.PartitionSpec(DEVICE_AXIS)))


def place(tree: chex.ArrayTree, sharding: jax.sharding.Sharding) -> chex.ArrayTree:
    """Copy a tree that each process has to the devices of a sharding."""
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)
    # Not device_put, which would compare every array between the processes.
    return jax.tree.map(
        lambda leaf: jax.make_array_from_callback(leaf.shape, sharding, leaf.__getitem__), tree
    )


def shard_actor(make: Callable[[], chex.ArrayTree], devices: list[jax.Device]) -> chex.ArrayTree:
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
    # Not `copy`, which compiles a program for every shape.
    return jax.tree.map(
        lambda leaf: jax.device_put(leaf.addressable_data(0), may_alias=False), tree
    )


def assert_replicated(tree: chex.ArrayTree) -> None:
    """Raise a RuntimeError unless every device holds bit for bit the same tree."""
    sums = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        copies = [np.asarray(shard.data).tobytes() for shard in leaf.addressable_shards]
        name = jax.tree_util.keystr(path)
        if any(copies[0] != other for other in copies[1:]):
            raise RuntimeError(f"devices disagree about {name}: the learner is not replicated")
        sums[name] = zlib.crc32(copies[0])
    rows = gather(list(sums.values()))
    for name, column in zip(sums, rows.T, strict=True):
        if (column != column[0]).any():
            raise RuntimeError(f"processes disagree about {name}: the learner is not replicated")
