"""Where a run stands: how it begins, takes up again, goes on by an iteration and is saved."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import numpy as np

from jaxzero.agent.network import Network
from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.training.checkpoint import Checkpoints, as_wanted
from jaxzero.training.iteration import Actor, init_actor
from jaxzero.training.learner import Learner, init_learner
from jaxzero.training.memory import abstract_inputs
from jaxzero.training.parallel import assert_replicated, replicate, spread, spread_actor
from jaxzero.training.replay import Replay, relayout
from jaxzero.training.transfer import begin_with, transfer


class Progress(NamedTuple):
    """Where a run stands."""

    learner: Learner
    actor: Actor
    minutes: float  # of self-play and learning so far, resumed parts included
    games: int  # played so far, whatever the settings were then
    evaluations: int  # of the network in these games


def refuse_misfit(config: Config, network: Network, weights: chex.ArrayTree) -> None:
    """Raise an InputError when no array of `weights` fits the network. Computes nothing."""
    like = jax.eval_shape(partial(init_learner, network, config)).params
    if not transfer(weights, like).taken:
        raise InputError("weights: no array of theirs fits this network")


def first_learner(config: Config, network: Network, weights: chex.ArrayTree | None) -> Learner:
    """Return a learner with fresh weights, or with all of `weights` that fits its network."""
    learner = init_learner(network, config)
    if weights is None:
        return learner
    found = transfer(weights, learner.params)
    print(f"weights       {found.taken} of {found.arrays} arrays taken over, the others are fresh")
    return begin_with(learner, found.params)


def begin(config: Config, learner: Learner, devices: list[jax.Device]) -> Progress:
    """Return a run that begins with `learner` and an empty replay."""
    actor = spread_actor(lambda: init_actor(config, len(devices)), devices)
    return Progress(replicate(learner, devices), actor, 0.0, 0, 0)


def take_up(
    config: Config, network: Network, devices: list[jax.Device], checkpoints: Checkpoints
) -> Progress:
    """Return a run as its newest good checkpoint left it. Raises: InputError.

    On other devices, or with games of another number, the replay is laid out anew.
    """
    inputs = abstract_inputs(config, network, len(devices))
    restored = checkpoints.restore_newest(inputs.learner, inputs.actor.replay)
    saved, record = restored.replay, restored.record
    learner = as_wanted(restored.learner, inputs.learner)
    checkpoints.set_aside(after=int(learner.iteration))
    if saved is None:
        if config.save_replay:
            print("The replay of this checkpoint is missing or cannot be read: it starts empty.")
        actor = spread_actor(lambda: init_actor(config, len(devices)), devices)
    else:
        block = config.positions_per_iteration // len(devices)
        replay = relayout(saved, inputs.actor.replay, block)
        _say_what_was_kept(saved, replay)
        actor = Actor(spread(replay, devices))
    # Older checkpoints do not say how many evaluations went into them.
    per_game = config.evaluations_per_iteration // config.selfplay.games
    return Progress(
        replicate(learner, devices),
        actor,
        record["minutes"],
        record["games"],
        record.get("evaluations", record["games"] * per_game),
    )


def _say_what_was_kept(saved: Replay, replay: Replay) -> None:
    before, after = (int(np.sum(ring.size)) for ring in (saved, replay))
    if replay is not saved:
        print(
            f"replay        {after:,} of {before:,} saved positions kept, from "
            f"{len(saved.size)} to {len(replay.size)} devices"
        )


def run_iteration(
    config: Config, compiled, run_key: jax.Array, progress: Progress
) -> tuple[Progress, dict[str, Any]]:
    """Run one iteration and read its scalars, the only wait for the device.

    Raises: FloatingPointError when one of them is not finite.
    """
    begin = time.perf_counter()
    learner, actor, metrics = compiled(progress.learner, progress.actor, run_key)
    values = jax.device_get(metrics)
    seconds = time.perf_counter() - begin
    metrics = {name: float(value) for name, value in values.items()}
    wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
    if wrong:
        raise FloatingPointError(f"{wrong[0]} is {metrics[wrong[0]]}")
    games, evaluations = config.selfplay.games, config.evaluations_per_iteration
    progress = Progress(
        learner,
        actor,
        progress.minutes + seconds / 60,
        progress.games + games,
        progress.evaluations + evaluations,
    )
    return progress, metrics | {
        "speed/seconds": seconds,
        "speed/games_per_second": games / seconds,
        "speed/evaluations_per_second": evaluations / seconds,
        "speed/games": progress.games,
        "speed/minutes": progress.minutes,
    }


def save(config: Config, checkpoints: Checkpoints, progress: Progress) -> None:
    """Start an asynchronous save. Raises: FloatingPointError where numbers are not finite."""
    assert_replicated(progress.learner)
    record = {
        "config": asdict(config),
        "minutes": progress.minutes,
        "games": progress.games,
        "evaluations": progress.evaluations,
    }
    replay = progress.actor.replay if config.save_replay else None
    checkpoints.save(progress.learner, replay, record)
