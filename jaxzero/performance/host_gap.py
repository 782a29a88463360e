"""Whole iterations: how long they take to compile, what they hold, how long they wait for the host.

The wait is the difference between iterations as the trainer runs them (start, read the scalars,
write a line) and the same iterations started back to back, read only at the end.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jax.experimental.compilation_cache import compilation_cache

from jaxzero.agent.network import Network
from jaxzero.config import Config
from jaxzero.files import temporary_folder
from jaxzero.training.learner import Learner
from jaxzero.training.memory import abstract_inputs, compile_iteration, peak_memory_bytes
from jaxzero.training.metrics import MetricsWriter
from jaxzero.training.parallel import replicate
from jaxzero.training.progress import begin, run_iteration
from jaxzero.training.report import headline

PER_CALL = 2  # iterations; at least two, or nothing could overlap


def timed_compilation(
    config: Config, network: Network, device: jax.Device
) -> tuple[jax.stages.Compiled, float]:
    """Compile the iteration of one device, past the compilation cache. Runs nothing.

    Returns the program and the seconds that took.
    """
    inputs = abstract_inputs(config, network, 1)
    with _without_compilation_cache():
        begin = time.perf_counter()
        compiled = compile_iteration(config, network, [device], inputs)
        return compiled, time.perf_counter() - begin


@contextlib.contextmanager
def _without_compilation_cache() -> Iterator[None]:
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    # Whether there is a cache is asked once and remembered.
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


class Iterations:
    """A run of a compiled iteration on one device that goes on at every call."""

    def __init__(
        self,
        config: Config,
        compiled: jax.stages.Compiled,
        learner: Learner,
        device: jax.Device,
        writer: MetricsWriter,
    ):
        self._config, self._compiled = config, compiled
        self._device, self._writer = device, writer
        self._run_key = replicate(jax.random.key(config.seed), [device])
        # A copy: the iteration consumes what it is given.
        learner = jax.jit(lambda tree: jax.tree.map(jnp.copy, tree))(learner)
        self._progress = begin(config, learner, [device])

    def back_to_back(self) -> Learner:
        """Start `PER_CALL` iterations one after the other, without reading anything."""
        learner, actor = self._progress.learner, self._progress.actor
        for _ in range(PER_CALL):
            learner, actor, _ = self._compiled(learner, actor, self._run_key)
        self._progress = self._progress._replace(learner=learner, actor=actor)
        return learner

    def as_trained(self) -> Learner:
        """Run `PER_CALL` iterations as the trainer does: read the scalars, write a line."""
        for done in range(PER_CALL):
            self._progress, metrics = run_iteration(
                self._config, self._compiled, self._run_key, self._progress
            )
            metrics["memory/peak_bytes"] = peak_memory_bytes(self._device)
            self._writer.write(done + 1, metrics, headline(metrics))
        return self._progress.learner


def gap_seconds(trained: float, back_to_back: float) -> float:
    """Return what the device waits for the host after an iteration, from the times of two calls."""
    # `PER_CALL` iterations back to back end with one wait, too. Noise can make the difference
    # negative or longer than an iteration; a wait can be neither.
    wait = (trained - back_to_back) / (PER_CALL - 1)
    return min(max(0.0, wait), trained / PER_CALL)


@contextlib.contextmanager
def quiet_writer(config: Config) -> Iterator[MetricsWriter]:
    """Give a writer that does all its work, to files that go and a terminal that nobody sees."""
    with temporary_folder() as folder, contextlib.redirect_stdout(io.StringIO()):
        writer = MetricsWriter(folder, 0, config.iterations)
        yield writer
        writer.close()
