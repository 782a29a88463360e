"""Trained networks read back from run directories, ready to play."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax

from jaxzero.agent.network import Network
from jaxzero.agent.players import Agent
from jaxzero.cli import load_config
from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.training.checkpoint import Checkpoints, Say
from jaxzero.training.learner import init_learner, playing_params
from jaxzero.training.run_folder import CHECKPOINTS, CONFIG_FILE


class LoadedAgent(NamedTuple):
    """The network of a run as it stood after `iteration` iterations."""

    agent: Agent  # weights are NumPy arrays
    config: Config
    iteration: int


def load_agent(run_dir: Path, checkpoint: int | None = None, say: Say = print) -> LoadedAgent:
    """Read the network of a run from one checkpoint or, by default, the newest good one.

    `say` names checkpoints that are skipped. Raises: InputError where there is no run, no such
    checkpoint, or none that can be read.
    """
    if not (run_dir / CONFIG_FILE).is_file():
        raise InputError(f"run_dir: {run_dir} holds no run (it has no {CONFIG_FILE})")
    config = load_config(run_dir / CONFIG_FILE)
    if not (run_dir / CHECKPOINTS).is_dir():  # opening it would make it
        raise InputError(f"run_dir: {run_dir} has no checkpoint yet")
    network = Network(config.game.board, config.network)
    like = jax.eval_shape(partial(init_learner, network, config))
    with Checkpoints(run_dir, config.keep_checkpoints) as checkpoints:
        if checkpoint is None:
            learner = checkpoints.restore_newest(like, say=say).learner
        else:
            _check_there(checkpoint, checkpoints.iterations(), run_dir)
            learner = checkpoints.restore(checkpoint, like).learner
    agent = Agent(network, playing_params(learner), config.search)
    return LoadedAgent(agent, config, int(learner.iteration))


def _check_there(checkpoint: int, found: list[int], run_dir: Path) -> None:
    if checkpoint not in found:
        there = ", ".join(map(str, found)) or "none"
        raise InputError(f"checkpoint: {checkpoint} is not in {run_dir} (there are: {there})")
