"""The compiled iteration of a run, refused where the memory of its devices is too small."""

from typing import NamedTuple

import jax

from jaxzero.config import Config, plan
from jaxzero.errors import InputError
from jaxzero.host.progress import working
from jaxzero.network.network import Network
from jaxzero.runs.memory import (
    DoesNotFit,
    mebibytes,
    memory_limit_bytes,
    predicted_bytes,
    tree_bytes,
)
from jaxzero.training.devices import compile_shapes, own_devices, parallelize
from jaxzero.training.iteration import Shapes, input_shapes, make_iteration

MAX_INDEX = 2**31 - 1


class Program(NamedTuple):
    """The compiled iteration and the memory it holds on one device, in bytes."""

    compiled: jax.stages.Compiled  # takes `Shapes`, returns learner, actor, metrics
    predicted: int | None  # None: XLA does not report it
    replay: int

    @property
    def memory(self) -> str:
        """The memory in words."""
        predicted, replay = mebibytes(self.predicted), mebibytes(self.replay)
        return f"{predicted} predicted per device, {replay} of it replay"


def compile_iteration(config: Config, network: Network, devices: list[jax.Device]) -> Program:
    """Compile the iteration that runs on `devices`, from shapes alone.

    Raises: DoesNotFit, before anything is allocated, where the memory is too small; InputError for
    more positions than 32-bit indices can number.
    """
    sizes = plan(config, len(devices))
    if (capacity := sizes.positions * sizes.iterations_kept) > MAX_INDEX:
        raise InputError(
            f"replay.capacity: {capacity:,} positions per device, whole iterations, "
            f"must be at most {MAX_INDEX:,}"
        )
    shapes = input_shapes(config, network, len(devices))
    compiled = lower_and_compile(config, network, devices, shapes)
    predicted, limit = predicted_bytes(compiled), memory_limit_bytes(own_devices(devices))
    if limit is not None and predicted is not None and predicted > limit:
        raise DoesNotFit(config, predicted, limit)
    return Program(compiled, predicted, tree_bytes(shapes.actor.replay) // len(devices))


def lower_and_compile(
    config: Config, network: Network, devices: list[jax.Device], shapes: Shapes
) -> jax.stages.Compiled:
    """Compile the iteration for inputs of these shapes, whatever memory it needs."""
    iteration = make_iteration(config, network, len(devices))
    with working("preparing the program of an iteration"):
        return compile_shapes(parallelize(iteration, devices), shapes)
