"""One iteration of AlphaZero as one program: self-play, replay, learning, metrics."""

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config, plan
from jaxzero.host.progress import working
from jaxzero.network.heads import heads_of
from jaxzero.network.network import Network, inference_copy
from jaxzero.runs.memory import (
    LEARNING,
    PLAYING,
    DoesNotFit,
    least_bytes,
    mebibytes,
    memory_limit_bytes,
    predicted_bytes,
    refuse_least,
    tree_bytes,
)
from jaxzero.search.search import network_evaluator
from jaxzero.training.devices import DEVICE_AXIS, compile_shapes, own_devices, parallelize
from jaxzero.training.learner import Learner, init_learner, learn
from jaxzero.training.replay import Replay, add, empty_replay
from jaxzero.training.selfplay import play_block


class Actor(NamedTuple):
    """State of one device that no other device shares."""

    replay: Replay


Metrics = dict[str, jax.Array]
# Metrics that are sums over all devices; the others are means.
COUNTS = tuple(f"selfplay/{name}" for name in ("games", "moves", "evaluations", "new_positions"))
Iteration = Callable[..., tuple[Learner, Actor, Metrics]]  # see `make_iteration`


def init_actor(config: Config, devices: int) -> Actor:
    """Return the initial state of one of `devices` devices: an empty replay."""
    sizes = plan(config, config.selfplay.games_per_iteration // devices)
    edges, heads = config.game.board.num_edges, heads_of(config.network)
    return Actor(empty_replay(sizes.positions * sizes.iterations_kept, edges, heads))


def make_iteration(config: Config, network: Network, devices: int) -> Iteration:
    """Return the program of one device, to be mapped over `DEVICE_AXIS` of size `devices`.

    It takes the learner, the actor, the weights that play (None: the newest), the key of the run
    and the span [2] float32 of this iteration: the fraction of the run that is done before and
    after it. Keys derive from (seed, iteration, device), so a resumed run needs no saved key and
    equals a run that never stopped.
    """
    config.check_devices(devices)
    evaluator = network_evaluator(network)
    games = config.selfplay.games_per_iteration // devices
    sizes = plan(config, games)
    batch_size = config.learner.batch_size // devices

    def iteration(
        learner: Learner,
        actor: Actor,
        playing: chex.ArrayTree | None,
        run_key: jax.Array,
        span: jax.Array,
    ) -> tuple[Learner, Actor, Metrics]:
        chex.assert_shape([learner.iteration, span], [(), (2,)])
        key = jax.random.fold_in(run_key, learner.iteration)
        key = jax.random.fold_in(key, jax.lax.axis_index(DEVICE_AXIS))
        play_key, learn_key = jax.random.split(key)
        params = learner.params if playing is None else playing
        params = inference_copy(network, params, sizes.lanes)
        positions, played = play_block(config, evaluator, params, play_key, games, span[0])
        chex.assert_tree_shape_prefix(positions, (sizes.positions,))
        replay = add(actor.replay, positions)
        learner, learnt = learn(
            network, config, learner, replay, learn_key, batch_size, DEVICE_AXIS, span
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
    playing: chex.ArrayTree | None
    run_key: jax.ShapeDtypeStruct
    span: jax.ShapeDtypeStruct  # [2] float32


def input_shapes(config: Config, network: Network, devices: int) -> Shapes:
    """Return the shapes of the inputs of a run on `devices` devices."""
    learner, actor, run_key = jax.eval_shape(
        lambda: (init_learner(network, config), init_actor(config, devices), jax.random.key(0))
    )
    per_device = jax.tree.map(lambda x: jax.ShapeDtypeStruct((devices, *x.shape), x.dtype), actor)
    playing = learner.params if config.evaluation.gate_threshold else None
    return Shapes(learner, per_device, playing, run_key, jax.ShapeDtypeStruct((2,), jnp.float32))


class Program(NamedTuple):
    """The compiled iteration and the memory it holds on one device, in bytes."""

    compiled: jax.stages.Compiled  # takes `Shapes`, returns learner, actor, metrics
    predicted: int | None  # None: XLA does not report it
    replay: int

    @property
    def memory(self) -> str:
        """The memory in words."""
        predicted, replay = mebibytes(self.predicted), mebibytes(self.replay)
        return f"{predicted} predicted per device, {replay} of it replay"


def compile_iteration(config: Config, network: Network, devices: list[jax.Device]) -> Program:
    """Compile the iteration that runs on `devices`, from shapes alone.

    Raises: DoesNotFit, before anything is allocated, where the memory is too small.
    """
    shapes = input_shapes(config, network, len(devices))
    limit = memory_limit_bytes(own_devices(devices))
    parts = least_bytes(config, (shapes.learner, shapes.playing), shapes.actor, len(devices))
    # Refuse before compiling: the compiler itself processes large constants.
    refuse_least(config, parts, limit, len(devices))
    compiled = lower_and_compile(config, network, devices, shapes)
    predicted = predicted_bytes(compiled)
    if limit is not None and predicted is not None and predicted > limit:
        parts[PLAYING + LEARNING] = compiled.memory_analysis().temp_size_in_bytes
        raise DoesNotFit(config, predicted, limit, parts)
    return Program(compiled, predicted, tree_bytes(shapes.actor.replay) // len(devices))


def lower_and_compile(
    config: Config, network: Network, devices: list[jax.Device], shapes: Shapes
) -> jax.stages.Compiled:
    """Compile the iteration for inputs of these shapes, whatever memory it needs."""
    iteration = make_iteration(config, network, len(devices))
    with working("preparing the program of an iteration"):
        return compile_shapes(parallelize(iteration, devices), shapes)
