"""Runs of six iterations for tests, and their checkpoints."""

from __future__ import annotations

from pathlib import Path

import jax
from script_runner import BASE

from jaxzero.cli import load_config
from jaxzero.config import Config
from jaxzero.measure.evaluator import Evaluator
from jaxzero.network.network import Network
from jaxzero.runs.checkpoint import Checkpoints, Restored
from jaxzero.training import trainer
from jaxzero.training.devices import replicate, shard_actor
from jaxzero.training.iteration import init_actor
from jaxzero.training.learner import init_learner
from jaxzero.training.run_state import RunState

SHORT = (
    "--devices=1",
    *BASE,
    "--checkpoint_every=2",
    "--iterations=6",
)


def short_config(*options: str):
    """Return settings of six iterations."""
    return load_config("configs/tiny.yaml", *SHORT, *options)


def train(config: Config, run_dir: Path, resume: bool = False, **options) -> bool:
    """Train in a folder with the evaluator of the scripts; return whether the run is complete."""
    return trainer.train(config, run_dir, Evaluator(config), resume=resume, **options).complete


def saved(config, run_dir: Path, iteration: int) -> Restored:
    """Read one checkpoint with its replay."""
    network = Network(config.game.board, config.network)
    actor = jax.tree.map(lambda leaf: leaf[None], init_actor(config, 1))
    with Checkpoints(run_dir) as checkpoints:
        return checkpoints.restore(iteration, init_learner(network, config), actor.replay)


def beginning(config, devices: list[jax.Device]) -> tuple[RunState, jax.Array]:
    """Return the state of a run before its first iteration, and its key, on the devices."""
    network = Network(config.game.board, config.network)
    learner = replicate(init_learner(network, config), devices)
    actor = shard_actor(lambda: init_actor(config, len(devices)), devices)
    return RunState(learner, actor), replicate(jax.random.key(config.seed), devices)
