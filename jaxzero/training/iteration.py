"""One iteration of AlphaZero as one program: self-play, replay, learning, metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax

from jaxzero.agent.network import Network, inference_copy
from jaxzero.agent.search import network_evaluator
from jaxzero.config import Config
from jaxzero.training.learner import Learner, learn, playing_params
from jaxzero.training.replay import Replay, add, empty_replay
from jaxzero.training.selfplay import play_games

DEVICE_AXIS = "device"


class Actor(NamedTuple):
    """What each device keeps for itself."""

    replay: Replay


Metrics = dict[str, jax.Array]
Iteration = Callable[[Learner, Actor, jax.Array], tuple[Learner, Actor, Metrics]]


def init_actor(config: Config, devices: int) -> Actor:
    """Return the empty replay ring of one of `devices` devices."""
    game = config.game.board
    block = config.positions_per_iteration // devices
    return Actor(replay=empty_replay(block * config.iterations_kept, game.num_edges))


def make_iteration(config: Config, network: Network, devices: int) -> Iteration:
    """Return the program of one device, to be mapped over `DEVICE_AXIS` of size `devices`.

    It takes the learner, the actor and the key of the run. Keys derive from (seed, iteration,
    device), so a resumed run needs no saved key and repeats what would have been.
    """
    config.check_devices(devices)
    evaluate = network_evaluator(network, config.search)
    games = config.selfplay.games // devices

    def iteration(learner: Learner, actor: Actor, run_key: jax.Array):
        key = jax.random.fold_in(run_key, learner.iteration)
        key = jax.random.fold_in(key, jax.lax.axis_index(DEVICE_AXIS))
        play_key, learn_key = jax.random.split(key)
        params = inference_copy(network, playing_params(learner), games)
        positions, played = play_games(network.game, config, evaluate, params, play_key, games)
        replay = add(actor.replay, positions)
        learner, learnt = learn(
            network,
            config,
            learner,
            replay,
            learn_key,
            config.learner.batch_size // devices,
            DEVICE_AXIS,
        )
        metrics = jax.lax.pmean(played, DEVICE_AXIS) | learnt
        return learner._replace(iteration=learner.iteration + 1), Actor(replay), metrics

    return iteration
