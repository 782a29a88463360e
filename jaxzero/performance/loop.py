"""The iteration as the trainer runs it, with a stopwatch on the host's part."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp

from jaxzero.agent.network import Network
from jaxzero.config import Config
from jaxzero.files import temporary_folder
from jaxzero.training.learner import init_learner
from jaxzero.training.memory import abstract_inputs, compile_iteration
from jaxzero.training.metrics import MetricsWriter
from jaxzero.training.parallel import parallelize, replicate
from jaxzero.training.progress import begin, run_iteration
from jaxzero.training.report import headline


class Loop:
    """A run in progress: the compiled iteration, its state, and where its metrics go."""

    def __init__(self, config: Config, network: Network, devices: list[jax.Device], folder: Path):
        """Build and compile an iteration; metrics go to `folder`."""
        self.config, self.devices = config, devices
        self.progress = begin(config, init_learner(network, config), devices)
        self.run_key = replicate(jax.random.key(config.seed), devices)
        shapes = abstract_inputs(config, network, len(devices))
        self.compiled = compile_iteration(config, network, devices, shapes)
        self._launch = parallelize(_nothing, devices).lower(*self.arguments).compile()
        with _silence():  # not a terminal, so no progress bar either
            self._writer = MetricsWriter(folder, 0, config.iterations)
        self._ready = 0.0
        self.host_seconds: list[float] = []  # of each iteration, after the device had finished

    @property
    def arguments(self) -> tuple:
        """What the compiled iteration takes; it consumes learner and actor."""
        return self.progress.learner, self.progress.actor, self.run_key

    def iterate(self) -> dict[str, Any]:
        """Run one iteration: compute, read the scalars, write them down. Returns the metrics."""
        self.progress, metrics = run_iteration(
            self.config, self._timed, self.run_key, self.progress
        )
        with _silence():
            self._writer.write(len(self.host_seconds) + 1, metrics, headline(metrics))
        self.host_seconds.append(time.perf_counter() - self._ready)
        return metrics

    def launch(self) -> chex.ArrayTree:
        """Call a program that takes and returns the same as an iteration, but does nothing."""
        learner, actor, _ = self._launch(*self.arguments)
        self.progress = self.progress._replace(learner=learner, actor=actor)
        return learner, actor

    def close(self) -> None:
        self._writer.close()

    def _timed(self, *arguments: chex.ArrayTree) -> tuple:
        done = jax.block_until_ready(self.compiled(*arguments))
        self._ready = time.perf_counter()
        return done


def _silence() -> redirect_stdout:
    return redirect_stdout(io.StringIO())


def _nothing(learner: chex.ArrayTree, actor: chex.ArrayTree, _: jax.Array) -> tuple:
    # The counters go through the device, or there would be no call at all; the arrays stay where
    # they are, for a copy of the ring is no part of a launch.
    def through(leaf: jax.Array) -> jax.Array:
        return leaf if leaf.ndim else jnp.maximum(leaf, 0)

    return *jax.tree.map(through, (learner, actor)), {}


@contextmanager
def running_loop(config: Config, network: Network, devices: list[jax.Device]) -> Iterator[Loop]:
    """Provide a Loop whose metrics go to a folder that lasts as long as the context."""
    with temporary_folder() as folder:
        loop = Loop(config, network, devices, folder)
        try:
            yield loop
        finally:
            loop.close()
