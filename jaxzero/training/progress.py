"""Progress of a run: how it starts, resumes, advances by an iteration, and is saved."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import numpy as np

from jaxzero.config import Config
from jaxzero.errors import InputError, RunError
from jaxzero.host.interrupts import Stop
from jaxzero.network.network import Network
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.resize import fits_all_boards, resize_params
from jaxzero.runs.weights import InitialWeights, param_shapes, transfer
from jaxzero.training import learner as learners
from jaxzero.training.iteration import Actor, init_actor, input_shapes
from jaxzero.training.learner import Learner, accept_candidate, init_learner, start_from
from jaxzero.training.parallel import (
    assert_replicated,
    gather,
    local_copy,
    on_first,
    place,
    replicate,
    shard,
    shard_actor,
)
from jaxzero.training.replay import Replay, relayout

# Last updates of an iteration without a finite loss and gradient, before the run gives up.
MAX_SKIPPED = 20


class Progress(NamedTuple):
    """State of a run and totals so far."""

    learner: Learner
    actor: Actor
    iteration: int = 0  # iterations so far, as in the learner; this copy needs no transfer
    minutes: float = 0.0  # of self-play and learning, earlier starts of the run included
    games: int = 0
    evaluations: int = 0  # of the network in these games

    def fraction_done(self, config: Config) -> float:
        """Return the fraction of the run that is done, 0 to 1."""
        return config.fraction_done(self.iteration, self.minutes)


def refuse_misfit(network: Network, initial: InitialWeights) -> None:
    """Raise an InputError when no array of the initial weights fits the network."""
    if not transfer(fitted(network, initial), param_shapes(network)).taken:
        raise InputError("weights: no array of theirs fits this network")


def fitted(network: Network, initial: InitialWeights) -> chex.ArrayTree:
    """Return the initial weights for the board of a network; empty if none has a use there."""
    source, params = initial.network, initial.params
    if source.config.trunk != network.config.trunk:
        return {}  # arrays of the same name and shape have another role there
    if source.game == network.game:
        return params
    if not fits_all_boards(source):
        return {}
    return resize_params(source, Network(network.game, source.config), params)


def start(
    config: Config, network: Network, devices: list[jax.Device], initial: InitialWeights | None
) -> Progress:
    """Return a run with an empty replay and fresh weights, or the weights of `initial` that fit."""
    learner = first_learner(config, network, initial)
    return Progress(replicate(learner, devices), _empty_actor(config, devices))


def first_learner(config: Config, network: Network, initial: InitialWeights | None) -> Learner:
    """Return a learner with fresh weights, or the weights of `initial` that fit its network."""
    learner = init_learner(network, config)
    if initial is None:
        return learner
    found = transfer(fitted(network, initial), learner.params)
    print(f"weights       {found.taken} of {found.arrays} arrays taken over, the rest is fresh")
    return start_from(learner, found.params)


def resume(
    config: Config, network: Network, devices: list[jax.Device], checkpoints: Checkpoints
) -> Progress:
    """Return a run as its newest good checkpoint saved it. Raises: InputError, RunError.

    If the number of devices or games has changed, the replay gets a new layout.
    """
    shapes = input_shapes(config, network, len(devices))
    restored = checkpoints.restore_newest(
        partial(learners.saved_shapes, shapes.learner), shapes.actor.replay
    )
    learner = learners.adapt(restored.learner, shapes.learner, config.learner)
    read = gather([int(learner.iteration), restored.replay is None])
    if (read != read[0]).any():
        raise RunError(
            f"run_dir: the processes have read different checkpoints of {checkpoints.folder}"
        )
    on_first(lambda: checkpoints.set_aside(after=int(learner.iteration)))
    checkpoints.reload()
    if restored.replay is None:
        if config.save_replay:
            print("The replay of this checkpoint is missing or of no use: it starts empty.")
        actor = _empty_actor(config, devices)
    else:
        block = config.positions_per_iteration // len(devices)
        replay = relayout(restored.replay, shapes.actor.replay, block)
        if replay is not restored.replay:
            _say_what_was_kept(restored.replay, replay)
        actor = Actor(shard(replay, devices))
    record = restored.record
    totals = (record[name] for name in ("minutes", "games", "evaluations"))
    return Progress(replicate(learner, devices), actor, int(learner.iteration), *totals)


def _empty_actor(config: Config, devices: list[jax.Device]) -> Actor:
    return shard_actor(lambda: init_actor(config, len(devices)), devices)


def _say_what_was_kept(saved: Replay, replay: Replay) -> None:
    before, after = (int(np.sum(ring.size)) for ring in (saved, replay))
    devices = [len(ring.size) for ring in (saved, replay)]
    moved = f", from {devices[0]} to {devices[1]} devices" if devices[0] != devices[1] else ""
    print(f"replay        {after:,} of {before:,} saved positions kept{moved}")


def next_span(config: Config, progress: Progress) -> np.ndarray:
    """Return the fraction of the run that is done before and after the next iteration: [2] float32.

    The duration of the next iteration is not known yet: the mean of the earlier ones replaces it.
    Without a time limit the fractions are exact.
    """
    iteration, minutes = progress.iteration, progress.minutes
    mean = minutes / iteration if iteration else 0.0
    ends = (iteration, minutes), (iteration + 1, minutes + mean)
    return np.array([config.fraction_done(*end) for end in ends], np.float32)


def run_iteration(
    config: Config,
    compiled: jax.stages.Compiled,
    run_key: jax.Array,
    progress: Progress,
) -> tuple[Progress, dict[str, Any]]:
    """Run one iteration and read its scalars, the only wait for the device.

    Raises: FloatingPointError when a metric is not finite, or when too many updates at the end were
    skipped because their loss or gradient was not finite.
    """
    begin = time.perf_counter()
    span = place(next_span(config, progress), run_key.sharding)
    learner, actor, metrics = compiled(progress.learner, progress.actor, run_key, span)
    values = jax.device_get(metrics)
    seconds = time.perf_counter() - begin
    metrics = {name: float(value) for name, value in values.items()}
    wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
    if wrong:
        raise FloatingPointError(f"{wrong[0]} is {metrics[wrong[0]]}")
    # Weights that lost their gradient for good skip all updates from then on.
    skipped = metrics.get("learn/skipped_at_end", 0.0)
    if 0 < min(MAX_SKIPPED, config.learner.updates_per_iteration) <= skipped:
        raise FloatingPointError(f"the last {skipped:.0f} updates had no finite gradient")
    games = round(metrics["selfplay/games"])
    # Evaluations that searches asked for; a device may compute more to fill its batches.
    evaluations = round(metrics["selfplay/evaluations"])
    progress = Progress(
        learner,
        actor,
        progress.iteration + 1,
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


def save(config: Config, progress: Progress, checkpoints: Checkpoints) -> None:
    """Start an asynchronous save. Raises: FloatingPointError if numbers are not finite."""
    assert_replicated(progress.learner)
    record = {
        "config": asdict(config),
        "minutes": progress.minutes,
        "games": progress.games,
        "evaluations": progress.evaluations,
    }
    replay = progress.actor.replay if config.save_replay else None
    checkpoints.save(progress.iteration, local_copy(progress.learner), replay, record)


def agree(progress: Progress, stop: Stop, metrics: dict[str, float]) -> tuple[Progress, bool]:
    """Make all processes go on or stop together, with the clock and the gate of the first one.

    A signal or a time limit in any process stops all of them.
    """
    own = [progress.minutes, metrics.get("gate/accepted", 0.0), stop.iteration_done()]
    everywhere = gather([*own, stop.signal or 0])
    minutes, accepted = everywhere[0, :2]
    progress = progress._replace(minutes=float(minutes))
    if accepted:
        progress = progress._replace(learner=accept_candidate(progress.learner))
    stop.take_over(int(everywhere[:, 3].max()))
    return progress, bool(everywhere[:, 2].any())
