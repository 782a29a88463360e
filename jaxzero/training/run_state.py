"""The state of a run: how it starts, is saved, and resumes."""

from dataclasses import asdict
from typing import NamedTuple

import jax

from jaxzero.config import Config, plan
from jaxzero.errors import InputError, RunError
from jaxzero.network.network import Network, param_shapes
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.resize import fits_all_boards, resize_params
from jaxzero.runs.weights import LoadedAgent, transfer
from jaxzero.training.devices import assert_replicated, local_copy, replicate, shard, shard_actor
from jaxzero.training.iteration import Actor, init_actor, input_shapes
from jaxzero.training.learner import Learner, Schedule, init_learner, schedule_of
from jaxzero.training.processes import gather, on_first
from jaxzero.training.replay import relayout


class RunState(NamedTuple):
    """The arrays of a run on the devices, and totals so far."""

    learner: Learner
    actor: Actor
    iteration: int = 0  # iterations so far, as in the learner; this copy needs no transfer
    minutes: float = 0.0  # of self-play and learning, earlier starts of the run included
    games: int = 0
    evaluations: int = 0  # of the network in these games

    def progress(self, config: Config) -> float:
        """Return the progress of the run: 0 at its start, 1 at its end."""
        return config.progress(self.iteration, self.minutes)

    def next_schedule(self, config: Config) -> Schedule:
        """Return the schedule of the next iteration.

        The duration of the next iteration is not known yet: the mean of the earlier ones replaces
        it. Without a time limit the progress is exact.
        """
        mean = self.minutes / self.iteration if self.iteration else 0.0
        after = config.progress(self.iteration + 1, self.minutes + mean)
        return schedule_of(config.learner, (self.progress(config), after))


def start_run(
    config: Config, network: Network, devices: list[jax.Device], initial: LoadedAgent | None
) -> RunState:
    """Return a run with an empty replay and fresh weights, or the weights of `initial` that fit."""
    learner = init_learner(network, config)
    if initial is not None:
        merged = transfer(fitted(network, initial), learner.params)
        learner = learner._replace(params=merged.params)
        print(f"weights       {merged.taken} of {merged.arrays} arrays taken over, the rest fresh")
    return RunState(replicate(learner, devices), _empty_actor(config, devices))


def refuse_misfit(network: Network, initial: LoadedAgent) -> None:
    """Raise an InputError when no array of the initial weights fits the network."""
    if not transfer(fitted(network, initial), param_shapes(network)).taken:
        raise InputError("weights: no array of theirs fits this network")


def fitted(network: Network, initial: LoadedAgent) -> dict:
    """Return the initial weights for the board of a network; empty if none has a use there."""
    source, params = initial.agent.network, initial.agent.params
    if source.config.trunk != network.config.trunk:
        return {}  # arrays of the same name and shape have another role there
    if source.board == network.board:
        return params
    if not fits_all_boards(source):
        return {}
    return resize_params(source, source.clone(board=network.board), params)


def save_run(config: Config, state: RunState, checkpoints: Checkpoints) -> None:
    """Start an asynchronous save. Raises: FloatingPointError if numbers are not finite."""
    assert_replicated(state.learner)
    record = {
        "config": asdict(config),
        "minutes": state.minutes,
        "games": state.games,
        "evaluations": state.evaluations,
    }
    replay = state.actor.replay if config.save_replay else None
    checkpoints.save(state.iteration, local_copy(state.learner), replay, record)


def resume_run(
    config: Config, network: Network, devices: list[jax.Device], checkpoints: Checkpoints
) -> RunState:
    """Return a run as its newest good checkpoint saved it. Raises: InputError, RunError.

    If the number of devices or games has changed, the replay gets a new layout.
    """
    shapes = input_shapes(config, network, len(devices))
    learner, replay, record = checkpoints.restore_newest(shapes.learner, shapes.actor.replay)
    iteration = int(learner.iteration)
    if (gather([iteration]) != iteration).any():
        raise RunError(
            f"run_dir: the processes have read different checkpoints of {checkpoints.folder}"
        )
    on_first(lambda: checkpoints.delete(after=iteration))
    checkpoints.reload()
    if replay is None:
        print("replay        not saved: it starts empty")
        actor = _empty_actor(config, devices)
    else:
        moved = relayout(replay, shapes.actor.replay, plan(config, len(devices)).positions)
        if moved is not replay:
            before, after = (int(ring.size.sum()) for ring in (replay, moved))
            print(f"replay        {after:,} of {before:,} saved positions kept")
        actor = Actor(shard(moved, devices))
    totals = (record[name] for name in ("minutes", "games", "evaluations"))
    return RunState(replicate(learner, devices), actor, iteration, *totals)


def _empty_actor(config: Config, devices: list[jax.Device]) -> Actor:
    return shard_actor(lambda: init_actor(config, len(devices)), devices)
