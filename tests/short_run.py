"""Runs of six iterations for tests, and their checkpoints."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import jax
from script_runner import BASE

from jaxzero.cli import load_config
from jaxzero.network.network import Network
from jaxzero.runs.checkpoint import Checkpoints, Restored
from jaxzero.training.iteration import init_actor
from jaxzero.training.learner import init_learner, saved_shapes
from jaxzero.training.parallel import replicate, shard_actor
from jaxzero.training.progress import Progress

SHORT = (
    "--devices=1",
    *BASE,
    "--checkpoint_every=2",
    "--iterations=6",
)


def short_config(*options: str):
    """Return settings of six iterations."""
    return load_config("configs/tiny.yaml", *SHORT, *options)


def saved(config, run_dir: Path, iteration: int) -> Restored:
    """Read one checkpoint with its replay."""
    network = Network(config.game.board, config.network)
    actor = jax.tree.map(lambda leaf: leaf[None], init_actor(config, 1))
    with Checkpoints(run_dir) as checkpoints:
        return checkpoints.restore(
            iteration, partial(saved_shapes, init_learner(network, config)), actor.replay
        )


def beginning(config, devices: list[jax.Device]) -> tuple[Progress, jax.Array]:
    """Return the state of a run before its first iteration, and its key, on the devices."""
    network = Network(config.game.board, config.network)
    learner = replicate(init_learner(network, config), devices)
    actor = shard_actor(lambda: init_actor(config, len(devices)), devices)
    return Progress(learner, actor), replicate(jax.random.key(config.seed), devices)
