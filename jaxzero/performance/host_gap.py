"""Whole iterations: how long they take to compile, what they hold, how long they wait for the host.

The wait is the difference between iterations as the trainer runs them (start, read the scalars,
write a line) and the same iterations started back to back, read only at the end.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import jax
from jax.experimental.compilation_cache import compilation_cache

from jaxzero.agent.network import Network
from jaxzero.config import Config
from jaxzero.training.iteration import init_actor, make_iteration
from jaxzero.training.learner import init_learner
from jaxzero.training.metrics import MetricsWriter
from jaxzero.training.parallel import parallelize, replicate, spread_actor
from jaxzero.training.report import headline
from jaxzero.training.throughput import peak_memory_bytes
from jaxzero.training.trainer import Progress, run_iteration

PER_TURN = 2  # iterations; at least two, or nothing could overlap


class Iterations(NamedTuple):
    """Medians over the turns."""

    seconds: float  # of one iteration as the trainer runs it
    gap_seconds: float  # of them the device waits for the host, at least 0


def compile_iteration(
    config: Config, network: Network, device: jax.Device
) -> tuple[jax.stages.Compiled, float]:
    """Compile the iteration of one device, past the compilation cache. Runs nothing.

    Returns the program and the seconds that took.
    """
    learner = jax.eval_shape(lambda: init_learner(network, config))
    actor = jax.eval_shape(lambda: jax.tree.map(lambda x: x[None], init_actor(config, 1)))
    key = jax.eval_shape(lambda: jax.random.key(0))
    with _without_compilation_cache():
        begin = time.perf_counter()
        compiled = parallelize(make_iteration(config, network, 1), [device])
        compiled = compiled.lower(learner, actor, key).compile()
        return compiled, time.perf_counter() - begin


@contextlib.contextmanager
def _without_compilation_cache():
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    # Whether there is a cache is asked once and remembered.
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


def run_iterations(
    config: Config,
    network: Network,
    device: jax.Device,
    compiled: jax.stages.Compiled,
    turns: int,
) -> Iterations:
    """Run iterations both ways by turns and compare them."""
    run_key = replicate(jax.random.key(config.seed), [device])
    learner = replicate(init_learner(network, config), [device])
    progress = Progress(learner, spread_actor(lambda: init_actor(config, 1), [device]), 0.0, 0)
    progress = _chained(compiled, run_key, progress)  # warms up
    read_seconds, gaps = [], []
    with _quiet_writer(config) as writer:
        for _ in range(turns):
            begin = time.perf_counter()
            progress = _chained(compiled, run_key, progress)
            between = time.perf_counter()
            progress = _read(config, compiled, run_key, progress, writer, device)
            end = time.perf_counter()
            read_seconds.append((end - between) / PER_TURN)
            gaps.append((end - between - (between - begin)) / PER_TURN)
    # Noise can make the difference negative; a wait cannot be.
    return Iterations(statistics.median(read_seconds), max(0.0, statistics.median(gaps)))


def _chained(compiled: jax.stages.Compiled, run_key: jax.Array, progress: Progress) -> Progress:
    learner, actor = progress.learner, progress.actor
    for _ in range(PER_TURN):
        learner, actor, metrics = compiled(learner, actor, run_key)
    jax.block_until_ready((learner, actor, metrics))
    return progress._replace(learner=learner, actor=actor)


def _read(
    config: Config,
    compiled: jax.stages.Compiled,
    run_key: jax.Array,
    progress: Progress,
    writer: MetricsWriter,
    device: jax.Device,
) -> Progress:
    for done in range(PER_TURN):
        progress, metrics = run_iteration(config, compiled, run_key, progress)
        metrics["memory/peak_bytes"] = peak_memory_bytes(device)
        writer.write(done + 1, metrics, headline(metrics))
    return progress


@contextlib.contextmanager
def _quiet_writer(config: Config):
    """Give a writer that does all its work, to files that go and a terminal that nobody sees."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        writer = MetricsWriter(Path(folder), 0, config.iterations)
        yield writer
        writer.close()
