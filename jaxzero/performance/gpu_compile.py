"""Compile programs for a GPU that is not there: launches, loops of unknown length, memory.

The CUDA build of jax compiles from a description of a GPU. So a machine without a GPU can predict
whether a config fits and how many kernels it launches. Nothing is run.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from jaxzero.config import Config
from jaxzero.errors import InputError, nearest, shortened
from jaxzero.game import initial_states
from jaxzero.game.structure import structure
from jaxzero.host.environment import NEEDS_CUDA_BUILD, has_cuda_build
from jaxzero.host.status import doing
from jaxzero.network.network import Network, inference_copy
from jaxzero.performance.hlo import Loop, count_launches, read_program
from jaxzero.performance.report import WIDTH, Result, table
from jaxzero.performance.timing import random_positions
from jaxzero.runs.memory import mebibytes, predicted_bytes
from jaxzero.search.search import network_evaluator, search
from jaxzero.training.iteration import input_shapes, lower_and_compile
from jaxzero.training.learner import init_learner, update

PARTS = ("structure", "network", "search", "update", "iteration")

INNER_ROUNDS = 3  # assumed for a loop of unknown length in a search: about the depth of a tree
NO_LIMIT = 10**9  # positions in one call of the network

# Limits by compute capability: shared memory per core, the most per block, threads per core.
CORES = {"8.9": (102400, 101376, 1536), "9.0": (233472, 232448, 2048)}
DESCRIPTION = """
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {shared}
  threads_per_core_limit: {threads}
  core_count: {cores}
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {bandwidth}
  l2_cache_size: {l2}
  clock_rate_ghz: {clock}
  device_memory_size: {memory}
  shared_memory_per_block_optin: {shared_of_block}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 12 }}
runtime_version {{ major: 13 minor: 0 patch: 0 }}
device_description_str: "NVIDIA {name}"
"""


class Gpu(NamedTuple):
    """The data sheet of a GPU."""

    name: str
    memory_mib: int
    capability: str
    cores: int  # streaming multiprocessors
    clock_ghz: float
    bandwidth_gb: int
    l2_mib: int

    def description(self) -> str:
        """Return the description that XLA needs, its GpuTargetConfig."""
        major, minor = self.capability.split(".")
        shared, shared_of_block, threads = CORES[self.capability]
        return DESCRIPTION.format(
            name=self.name,
            cores=self.cores,
            clock=self.clock_ghz,
            bandwidth=self.bandwidth_gb * 10**9,
            l2=self.l2_mib * 2**20,
            memory=self.memory_mib * 2**20,
            major=major,
            minor=minor,
            shared=shared,
            shared_of_block=shared_of_block,
            threads=threads,
        )


# From NVIDIA's data sheets; nothing here is measured by this project.
GPUS = (
    Gpu("RTX 4060", 8188, "8.9", cores=24, clock_ghz=2.46, bandwidth_gb=272, l2_mib=24),
    Gpu("RTX 4090", 24564, "8.9", cores=128, clock_ghz=2.52, bandwidth_gb=1008, l2_mib=72),
    Gpu("H100", 81559, "9.0", cores=132, clock_ghz=1.98, bandwidth_gb=3350, l2_mib=50),
    Gpu("H200", 143771, "9.0", cores=132, clock_ghz=1.98, bandwidth_gb=4800, l2_mib=60),
)


def gpu_named(name: str) -> Gpu:
    """Return a known GPU. Raises: InputError naming the known GPUs."""
    key = name.lower().replace(" ", "").removeprefix("nvidia")
    for gpu in GPUS:
        if gpu.name.lower().replace(" ", "") == key:
            return gpu
    known = [gpu.name for gpu in GPUS]
    said = f"target: {shortened(repr(name))}{nearest(name, known)} is not a known GPU: "
    raise InputError(said + ", ".join(known))


def device_of(gpu: Gpu) -> jax.Device:
    """Return a device to compile for, from the description of a GPU.

    Keep this process off a real GPU, so that the result is the same on every machine.
    Raises: InputError without the CUDA build of jax.
    """
    if not has_cuda_build():
        raise InputError(f"target: {gpu.name} {NEEDS_CUDA_BUILD}")
    from jax.experimental import topologies

    jax.config.update("jax_platforms", "cpu")
    described = topologies.get_topology_desc(
        platform="cuda", topology="1x1x1", target_config=gpu.description()
    )
    return described.devices[0]


def as_on_gpu(config: Config) -> Config:
    """Return a config with its automatic settings resolved as on a GPU."""
    network, search = config.network, config.search
    form = "direct" if network.convolution == "auto" else network.convolution
    dtype = "bfloat16" if network.compute_dtype == "auto" else network.compute_dtype
    batch = search.evaluation_batch or NO_LIMIT
    return replace(
        config,
        network=replace(network, convolution=form, compute_dtype=dtype),
        search=replace(search, evaluation_batch=batch),
    )


# Compiling


def compile_part(config: Config, part: str, device: jax.Device) -> jax.stages.Compiled:
    """Compile one of `PARTS` of a config, at the batch that it has in an iteration."""
    config = as_on_gpu(config)
    network = Network(config.game.board, config.network)
    if part == "iteration":
        shapes = input_shapes(config, network, 1)
        return lower_and_compile(config, network, [device], shapes)
    program, inputs = part_program(config, network, part)
    mesh = jax.sharding.Mesh(np.array([device]), ("device",))
    there = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    donated = (0,) if part == "update" else ()
    jitted = jax.jit(program, in_shardings=there, out_shardings=there, donate_argnums=donated)
    return jitted.lower(*inputs).compile()


def part_program(config: Config, network: Network, part: str) -> tuple[Callable, tuple]:
    """Return the program of one of `PARTS`, not the iteration, and the shapes of its inputs."""
    games = config.lanes(config.selfplay.games_per_iteration)
    state = jax.eval_shape(lambda: initial_states(network.game, games))
    if part == "structure":
        return jax.vmap(partial(structure, network.game)), (state.drawn,)
    learner = jax.eval_shape(lambda: init_learner(network, config))
    if part == "update":
        samples = partial(random_positions, network, config.learner.batch_size)
        return partial(update, network, config), (learner, jax.eval_shape(samples))
    prepared = jax.eval_shape(partial(inference_copy, network, batch=games), learner.params)
    if part == "network":
        return network.apply, (prepared, state.drawn)
    evaluate = network_evaluator(network, config.search)
    key = jax.eval_shape(lambda: jax.random.key(0))
    return partial(search, network.game, config.search, evaluate), (prepared, key, state)


# Counting


def count_part(config: Config, part: str, device: jax.Device) -> Result:
    """Compile one part; return its launches, loops of unknown length and memory."""
    with doing(f"preparing and counting {part}"):
        compiled = compile_part(config, part, device)
        program = read_program(compiled.as_text())
    launches = count_launches(program, partial(trip_count, config))
    return {
        "launches": round(launches.total),
        "launches_of_products": round(launches.products),
        "loops_of_unknown_length": [loop.source for loop in program.unknown],
        "reads_back": round(launches.reads_back),
        "memory_bytes": predicted_bytes(compiled),  # at once
    }


def trip_count(config: Config, loop: Loop) -> int:
    """Guess the rounds of a loop of unknown length.

    A loop that evaluates the network is self-play: one round for each decision of the longest game.
    Other loops are inside a search and climb or descend a tree.
    """
    plays = any(kernel.of_network for inner in loop.walk() for kernel in inner.kernels)
    return config.longest_game if plays else INNER_ROUNDS


def compile_result(config: Config, gpu: Gpu, parts: dict[str, Result]) -> Result:
    """Return the counts of all parts as a result."""
    return {"target": gpu._asdict(), "config": asdict(config), "parts": parts}


def report(result: Result) -> str:
    """Format the counts of all parts."""
    config, gpu = result["config"], result["target"]
    network, search = config["network"], config["search"]
    heading = (
        f"compiled for {gpu['name']} ({gpu['memory_mib']:,} MiB), nothing was run: "
        f"{network['channels']} x {network['blocks']}, "
        f"{config['selfplay']['games_per_iteration']} games, "
        f"{search['simulations']} simulations, engine {search['engine']}"
    )
    rows = [
        [
            name,
            f"{part['launches']:,}",
            f"{part['launches_of_products']:,}",
            len(part["loops_of_unknown_length"]),
            f"{part['reads_back']:,}",
            mebibytes(part["memory_bytes"]),
        ]
        for name, part in result["parts"].items()
    ]
    headings = ("", "launches", "of products", "unknown loops", "reads back", "memory")
    lines = [textwrap.fill(heading, WIDTH), table(headings, rows, "lrrrrr")]
    if part := result["parts"].get("iteration"):
        # Without XLA_CLIENT_MEM_FRACTION jax reserves three quarters.
        fits = part["memory_bytes"] <= 0.75 * gpu["memory_mib"] * 2**20
        words = "fits" if fits else "does NOT fit"
        lines.append(f"an iteration {words} into the 75 % of the memory that jax reserves")
    return "\n".join(lines)
