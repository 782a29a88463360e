"""One iteration of AlphaZero as one program: self-play, replay, learning, metrics."""

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config, plan
from jaxzero.heads import heads_of
from jaxzero.network.network import Network, inference_copy
from jaxzero.search.search import network_evaluator
from jaxzero.training.learner import Learner, Schedule, init_learner, learn, schedule_of
from jaxzero.training.replay import Replay, add, empty_replay
from jaxzero.training.selfplay import play_block

DEVICE_AXIS = "device"


class Actor(NamedTuple):
    """State of one device that no other device shares."""

    replay: Replay


Metrics = dict[str, jax.Array]
# Metrics that are sums over all devices; the others are means.
COUNTS = tuple(f"selfplay/{name}" for name in ("games", "moves", "evaluations", "new_positions"))
# (learner, actor, key of the run, schedule)
Iteration = Callable[[Learner, Actor, jax.Array, Schedule], tuple[Learner, Actor, Metrics]]


def init_actor(config: Config, devices: int) -> Actor:
    """Return the initial state of one of `devices` devices: an empty replay."""
    sizes = plan(config, devices)
    edges, heads = config.game.board.num_edges, heads_of(config.network)
    return Actor(empty_replay(sizes.positions * sizes.iterations_kept, edges, heads))


def make_iteration(config: Config, network: Network, devices: int) -> Iteration:
    """Return the program of one device, to be mapped over `DEVICE_AXIS` of size `devices`.

    Keys derive from (seed, iteration, device), so a resumed run needs no saved key and equals a run
    that never stopped.
    """
    config.check_devices(devices)
    sizes = plan(config, devices)
    batch_size = config.learner.batch_size // devices

    def iteration(
        learner: Learner, actor: Actor, run_key: jax.Array, schedule: Schedule
    ) -> tuple[Learner, Actor, Metrics]:
        chex.assert_shape([learner.iteration, schedule.progress], [(), (2,)])
        key = jax.random.fold_in(run_key, learner.iteration)
        key = jax.random.fold_in(key, jax.lax.axis_index(DEVICE_AXIS))
        play_key, learn_key = jax.random.split(key)
        params = inference_copy(network, learner.params, sizes.lanes)
        evaluator = network_evaluator(network, params)
        positions, played = play_block(config, sizes, evaluator, play_key, schedule.progress[0])
        chex.assert_tree_shape_prefix(positions, (sizes.positions,))
        replay = add(actor.replay, positions)
        learner, learnt = learn(
            network, config, learner, replay, learn_key, batch_size, schedule, DEVICE_AXIS
        )
        # Late starts may give fewer decisions than stored positions; then some are stored twice.
        new = jnp.minimum(played["selfplay/moves"], sizes.positions)
        played["selfplay/new_positions"] = new
        counts = {name: value for name, value in played.items() if name in COUNTS}
        played = jax.lax.pmean(played, DEVICE_AXIS) | jax.lax.psum(counts, DEVICE_AXIS)
        if learnt:
            samples = config.samples_per_iteration
            learnt["learn/replay_ratio"] = samples / played["selfplay/new_positions"]
        return (
            learner._replace(iteration=learner.iteration + 1),
            Actor(replay),
            played | learnt,
        )

    return iteration


class Shapes(NamedTuple):
    """Shapes of the inputs of an iteration; nothing is allocated."""

    learner: Learner
    actor: Actor  # fields [D, ...]
    run_key: jax.ShapeDtypeStruct
    schedule: Schedule


def input_shapes(config: Config, network: Network, devices: int) -> Shapes:
    """Return the shapes of the inputs of a run on `devices` devices."""

    def inputs() -> tuple:
        schedule = jax.tree.map(jnp.asarray, schedule_of(config.learner, (0.0, 0.0)))
        learner, actor = init_learner(network, config), init_actor(config, devices)
        return learner, actor, jax.random.key(0), schedule

    learner, actor, run_key, schedule = jax.eval_shape(inputs)
    per_device = jax.tree.map(lambda x: jax.ShapeDtypeStruct((devices, *x.shape), x.dtype), actor)
    return Shapes(learner, per_device, run_key, schedule)
