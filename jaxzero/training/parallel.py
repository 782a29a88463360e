"""Several devices, in one process or many. Only this file uses pmap and jax.distributed.

The learner is the same on every device; the actor differs. Programs take and return the learner
without a device axis and the actor with a leading axis D. D counts the devices of all processes, in
the order of the processes; each process holds the slices of its own devices.

Totals over all devices: selfplay.games_per_iteration, learner.batch_size, replay.capacity, devices,
and every metric of games and positions. Per device: memory. Times are those of the first process.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import chex
import jax
import numpy as np
from jax.experimental import multihost_utils

from jaxzero.errors import InputError, RunError
from jaxzero.host.interrupts import end_now
from jaxzero.host.programs import check_devices, compiled_ahead
from jaxzero.host.progress import mute
from jaxzero.runs.run_dir import CHECKPOINTS, finished_checkpoints

DEVICE_AXIS = "device"
HEARTBEAT_SECONDS = 60  # after which a silent process ends the job
JOIN_SECONDS = 300  # within which all processes must come
ALL_HERE, REPLACED = b"all here", b"replaced"  # what the first process answers to the others
MESSAGE_BYTES = 400
SEEN_SECONDS = 60  # within which a shared file system shows a new folder to all machines


# Processes


def join(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    join_seconds: float = JOIN_SECONDS,
) -> None:
    """Join a job as one process; SLURM, Open MPI or Kubernetes provide missing arguments.

    Call it before anything uses a device. It ends the process, with exit code 1, unless all come
    within `join_seconds`. Only the first process prints to standard output.
    Raises: InputError if neither arguments nor environment identify this process; as `meet`.
    """
    address = coordinator_address or "the address that the scheduler gives"

    def give_up() -> None:
        words = f"the processes of the job did not meet within {join_seconds} s at {address}"
        print(f"error: {words}", file=sys.stderr)
        end_now(1)

    limit = threading.Timer(join_seconds, give_up)
    limit.daemon = True
    limit.start()
    # The handler of this service would catch the SIGTERM that asks a run to save and stop.
    jax.config.update("jax_enable_preemption_service", False)
    seconds = max(1, round(heartbeat_seconds))
    try:
        if None not in (coordinator_address, num_processes, process_id):
            meet(coordinator_address, num_processes, process_id)
        jax.distributed.initialize(
            coordinator_address,
            num_processes,
            process_id,
            initialization_timeout=10**6,  # after it jax aborts the process; `limit` ends before
            heartbeat_timeout_seconds=seconds,
            shutdown_timeout_seconds=seconds,
        )
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(f"distributed: {' '.join(str(error).split())}") from error
    except jax.errors.JaxRuntimeError as error:
        raise RunError(f"the processes of the job did not meet: {_first_line(error)}") from error
    finally:
        limit.cancel()
    check_devices()
    if jax.process_index():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, for as long as the process lives
        mute()
    # On CPUs the first collective waits only 30 seconds for all processes; later ones wait on.
    gather([0.0])


def meet(address: str, processes: int, number: int) -> None:
    """Wait until all processes of a job have come to `address`, each with another number.

    Without it, jax.distributed aborts if the port is taken or a number comes twice. Raises:
    InputError if the address cannot be used or another process comes with the number of this one.
    """
    print(f"waiting for {processes} processes at {address}", file=sys.stderr, flush=True)
    host, _, port = address.rpartition(":")
    host = host.strip("[]")  # of an IPv6 address
    try:
        socket.getaddrinfo(host, port)
        if number == 0:
            return _await_others(int(port), processes)
    except (OSError, UnicodeError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).partition(" (")[0]
        raise InputError(f"coordinator_address: {address} cannot be used ({reason})") from error
    answer = b""
    while answer not in (ALL_HERE, REPLACED):  # the first process may come later
        with suppress(OSError), socket.create_connection((host, port)) as line:
            line.sendall(b"%d of %d" % (number, processes))
            answer = line.recv(len(ALL_HERE))
        time.sleep(0.2)
    if answer == REPLACED:
        raise InputError(f"process_id: {number} is the number of another process too")


def _await_others(port: int, processes: int) -> None:
    """Wait as the first process for the others. Raises: OSError if the port is taken."""
    awaited = [b"%d of %d" % (number, processes) for number in range(1, processes)]
    lines: dict[bytes, socket.socket] = {}
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    with socket.create_server(("", port), family=family, dualstack_ipv6=dual) as server:
        while len(lines) < len(awaited):
            line, _ = server.accept()
            line.settimeout(5)
            with suppress(OSError):
                name = line.recv(100)
                if name in awaited:  # not a stranger
                    earlier, lines[name] = lines.get(name), line
                    if earlier:
                        earlier.sendall(REPLACED)
        for line in lines.values():
            with suppress(OSError), line:
                line.sendall(ALL_HERE)


def is_first() -> bool:
    """Return whether this is the process that writes metrics, figures and logs."""
    return jax.process_index() == 0


def gather(values: list[float]) -> np.ndarray:
    """Return the values of every process: [P, K] float64. All processes must call it."""
    row = np.asarray(values, np.float64)
    if jax.process_count() == 1:
        return row[None]
    # Sent as uint32 words, because jax would round a float64.
    return multihost_utils.process_allgather(row.view(np.uint32)).view(np.float64)


def on_first(action: Callable[[], object]) -> None:
    """Call `action` in the first process; raise its InputError in all processes."""
    message = ""
    if is_first():
        try:
            action()
        except InputError as error:
            if jax.process_count() == 1:
                raise
            message = str(error)
    if jax.process_count() > 1:
        letters = message.encode()[:MESSAGE_BYTES].ljust(MESSAGE_BYTES)
        said = gather([float(letter) for letter in letters])[0].astype(np.uint8).tobytes()
        if said.strip():
            raise InputError(said.decode(errors="replace").strip())


@contextmanager
def ends_together(resume_command: str) -> Iterator[None]:
    """End this process at once if a block fails here alone or because another process is gone.

    The processes wait for each other, so no collective and no save of a checkpoint would return.
    The other processes end as soon as they miss this one.
    """
    try:
        yield
    except Exception as error:
        if jax.process_count() == 1:
            raise
        if isinstance(error, (InputError, RunError)):  # perhaps in this process alone
            print(f"error: {error}", file=sys.stderr)
            end_now(2 if isinstance(error, InputError) else 1)
        if not isinstance(error, (jax.errors.JaxRuntimeError, OSError)):
            traceback.print_exc()
        print(
            f"error: process {jax.process_index()} of {jax.process_count()} ends, and the job with "
            f"it: {_first_line(error)}. To go on from the last checkpoint: {resume_command}",
            file=sys.stderr,
        )
        end_now(1)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]


# Devices


def refuse_separate(run_dir: Path) -> None:
    """Raise an InputError unless every process sees the run folder of the first process."""
    for _ in range(SEEN_SECONDS):
        saved = finished_checkpoints(run_dir / CHECKPOINTS)
        seen = gather([run_dir.is_dir(), len(saved), max(saved, default=0)])
        if (seen == seen[0]).all():
            return
        time.sleep(1)
    raise InputError(
        f"run_dir: {run_dir} is not the same folder in every process: name one that all share"
    )


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

    Takes (learner, actor [D, ...], run key, span [2]), returns (learner, actor [D, ...], metrics).
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


# Arrays


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


def shard_own(tree: chex.ArrayTree, devices: list[jax.Device]) -> chex.ArrayTree:
    """Give each device its slice; each process has the NumPy slices of its own devices only."""
    sharding = _sharding(devices, jax.sharding.PartitionSpec(DEVICE_AXIS))
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)
    return jax.tree.map(
        lambda leaf: jax.make_array_from_process_local_data(
            sharding, leaf, (len(devices), *leaf.shape[1:])
        ),
        tree,
    )


def own_slices(array: jax.Array) -> np.ndarray:
    """Copy the slices [D of this process, ...] of an array [D, ...] to the host."""
    shards = sorted(array.addressable_shards, key=lambda shard: shard.index[0].start or 0)
    return np.concatenate([np.array(jax.device_get(shard.data)) for shard in shards])


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
