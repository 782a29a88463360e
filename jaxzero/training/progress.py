"""Where a run stands: how it begins, takes up again, goes on by an iteration and is saved."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, NamedTuple

import chex
import jax

from jaxzero.agent.network import Network
from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.training.checkpoint import Checkpoints
from jaxzero.training.iteration import Actor, init_actor
from jaxzero.training.learner import Learner, init_learner
from jaxzero.training.parallel import assert_replicated, replicate, spread, spread_actor
from jaxzero.training.transfer import begin_with, transfer


class Progress(NamedTuple):
    """Where a run stands."""

    learner: Learner
    actor: Actor
    minutes: float  # spent so far, resumed parts included
    games: int  # played so far


def first_learner(config: Config, network: Network, weights: chex.ArrayTree | None) -> Learner:
    """Return a learner with fresh weights, or with all of `weights` that fits its network.

    Raises: InputError when nothing does.
    """
    learner = init_learner(network, config)
    if weights is None:
        return learner
    found = transfer(weights, learner.params)
    if not found.taken:
        raise InputError("weights: no array of theirs fits this network")
    print(f"weights       {found.taken} of {found.arrays} arrays taken over, the others are fresh")
    return begin_with(learner, found.params)


def start(
    config: Config,
    learner: Learner,
    devices: list[jax.Device],
    checkpoints: Checkpoints,
    resume: bool,
) -> Progress:
    """Return `learner` and an empty replay, or those of the newest good checkpoint."""
    actor = spread_actor(lambda: init_actor(config, len(devices)), devices)
    if resume and not checkpoints.iterations():
        print("The run has no checkpoint yet: it starts from the beginning.")
        resume = False
    if not resume:
        return Progress(replicate(learner, devices), actor, 0.0, 0)
    restored = checkpoints.restore_newest(learner, actor.replay)
    if restored.replay is not None:
        actor = Actor(spread(restored.replay, devices))
    elif config.save_replay:
        print("The replay of this checkpoint is missing or of another size: it starts empty.")
    return Progress(
        replicate(restored.learner, devices),
        actor,
        restored.record["minutes"],
        restored.record["games"],
    )


def run_iteration(
    config: Config, compiled, run_key: jax.Array, progress: Progress
) -> tuple[Progress, dict[str, Any]]:
    """Run one iteration and read its scalars, the only wait for the device."""
    begin = time.perf_counter()
    learner, actor, metrics = compiled(progress.learner, progress.actor, run_key)
    values = jax.device_get(metrics)
    seconds = time.perf_counter() - begin
    games = config.selfplay.games
    progress = Progress(learner, actor, progress.minutes + seconds / 60, progress.games + games)
    return progress, {name: float(value) for name, value in values.items()} | {
        "speed/seconds": seconds,
        "speed/games_per_second": games / seconds,
        "speed/evaluations_per_second": config.evaluations_per_iteration / seconds,
        "speed/games": progress.games,
        "speed/minutes": progress.minutes,
    }


def save(config: Config, checkpoints: Checkpoints, progress: Progress) -> None:
    """Start an asynchronous save of where the run stands."""
    assert_replicated(progress.learner)
    record = {"config": asdict(config), "minutes": progress.minutes, "games": progress.games}
    replay = progress.actor.replay if config.save_replay else None
    checkpoints.save(progress.learner, replay, record)
