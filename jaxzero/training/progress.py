"""Progress of a run: how it starts, is saved, and resumes."""

from dataclasses import asdict
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import Config, plan
from jaxzero.errors import InputError, RunError
from jaxzero.network.network import Network
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.resize import fits_all_boards, resize_params
from jaxzero.runs.weights import LoadedAgent, param_shapes, transfer
from jaxzero.training.devices import assert_replicated, local_copy, replicate, shard, shard_actor
from jaxzero.training.iteration import Actor, init_actor, input_shapes
from jaxzero.training.learner import Learner, init_learner
from jaxzero.training.processes import gather, on_first
from jaxzero.training.replay import relayout


class Progress(NamedTuple):
    """State of a run and totals so far."""

    learner: Learner
    actor: Actor
    playing: chex.ArrayTree | None = None  # weights that the gate let through last; None: no gate
    iteration: int = 0  # iterations so far, as in the learner; this copy needs no transfer
    minutes: float = 0.0  # of self-play and learning, earlier starts of the run included
    games: int = 0
    evaluations: int = 0  # of the network in these games

    @property
    def playing_params(self) -> chex.ArrayTree:
        """The weights that play: without a gate the newest."""
        return self.learner.params if self.playing is None else self.playing

    def fraction_done(self, config: Config) -> float:
        """Return the fraction of the run that is done, 0 to 1."""
        return config.fraction_done(self.iteration, self.minutes)

    def next_span(self, config: Config) -> np.ndarray:
        """Return the fraction that is done before and after the next iteration: [2] float32.

        The duration of the next iteration is not known yet: the mean of the earlier ones replaces
        it. Without a time limit the fractions are exact.
        """
        mean = self.minutes / self.iteration if self.iteration else 0.0
        after = config.fraction_done(self.iteration + 1, self.minutes + mean)
        return np.array([self.fraction_done(config), after], np.float32)


def start_progress(
    config: Config, network: Network, devices: list[jax.Device], initial: LoadedAgent | None
) -> Progress:
    """Return a run with an empty replay and fresh weights, or the weights of `initial` that fit."""
    learner, playing = init_learner(network, config), None
    if initial is not None:
        found = transfer(fitted(network, initial), learner.params)
        learner = learner._replace(params=found.params)
        print(f"weights       {found.taken} of {found.arrays} arrays taken over, the rest is fresh")
    if config.evaluation.gate_threshold:
        playing = jax.tree.map(jnp.copy, learner.params)  # the learner is donated
    actor = _empty_actor(config, devices)
    return Progress(replicate(learner, devices), actor, replicate(playing, devices))


def refuse_misfit(network: Network, initial: LoadedAgent) -> None:
    """Raise an InputError when no array of the initial weights fits the network."""
    if not transfer(fitted(network, initial), param_shapes(network)).taken:
        raise InputError("weights: no array of theirs fits this network")


def fitted(network: Network, initial: LoadedAgent) -> chex.ArrayTree:
    """Return the initial weights for the board of a network; empty if none has a use there."""
    source, params = initial.agent.network, initial.agent.params
    if source.config.trunk != network.config.trunk:
        return {}  # arrays of the same name and shape have another role there
    if source.board == network.board:
        return params
    if not fits_all_boards(source):
        return {}
    return resize_params(source, source.clone(board=network.board), params)


def save_progress(config: Config, progress: Progress, checkpoints: Checkpoints) -> None:
    """Start an asynchronous save. Raises: FloatingPointError if numbers are not finite."""
    assert_replicated((progress.learner, progress.playing))
    record = {
        "config": asdict(config),
        "minutes": progress.minutes,
        "games": progress.games,
        "evaluations": progress.evaluations,
    }
    learner, playing = local_copy((progress.learner, progress.playing))
    replay = progress.actor.replay if config.save_replay else None
    checkpoints.save(progress.iteration, learner, replay, record, playing)


def resume_progress(
    config: Config, network: Network, devices: list[jax.Device], checkpoints: Checkpoints
) -> Progress:
    """Return a run as its newest good checkpoint saved it. Raises: InputError, RunError.

    If the number of devices or games has changed, the replay gets a new layout.
    """
    shapes = input_shapes(config, network, len(devices))
    learner, replay, record, playing = checkpoints.restore_newest(
        shapes.learner, shapes.actor.replay
    )
    iteration = int(learner.iteration)
    if (gather([iteration]) != iteration).any():
        raise RunError(
            f"run_dir: the processes have read different checkpoints of {checkpoints.folder}"
        )
    on_first(lambda: checkpoints.set_aside(after=iteration))
    checkpoints.reload()
    if replay is None:
        print("replay        not saved: it starts empty")
        actor = _empty_actor(config, devices)
    else:
        block = plan(config).positions // len(devices)
        moved = relayout(replay, shapes.actor.replay, block)
        if moved is not replay:
            before, after = (int(ring.size.sum()) for ring in (replay, moved))
            print(f"replay        {after:,} of {before:,} saved positions kept")
        actor = Actor(shard(moved, devices))
    if not config.evaluation.gate_threshold:
        playing = None
    elif playing is None:  # the gate is new
        playing = jax.tree.map(np.copy, learner.params)
    totals = (record[name] for name in ("minutes", "games", "evaluations"))
    learner, playing = replicate((learner, playing), devices)
    return Progress(learner, actor, playing, iteration, *totals)


def _empty_actor(config: Config, devices: list[jax.Device]) -> Actor:
    return shard_actor(lambda: init_actor(config, len(devices)), devices)
