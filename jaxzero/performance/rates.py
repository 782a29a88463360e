"""How fast the parts of an iteration are on one device, each alone, measured by turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.agent.network import Network, inference_copy
from jaxzero.agent.search import network_evaluator, search
from jaxzero.config import Config, ReplayConfig
from jaxzero.game import DotsAndBoxes, State, initial_state, random_edge, step
from jaxzero.game.structure import structure
from jaxzero.performance.host_gap import PER_CALL, Iterations, gap_seconds
from jaxzero.performance.inputs import random_positions
from jaxzero.performance.plan import Plan, Speed
from jaxzero.training.iteration import init_actor
from jaxzero.training.learner import Learner, learn
from jaxzero.training.replay import add
from jaxzero.training.throughput import network_call, seconds_per_call, selfplay_call

PROBE_SECONDS = 0.05
STAGES = 4  # of the game, from which the search measured starts


class Rates(NamedTuple):
    """Work done in a second by one device, and seconds of what has no rate."""

    network: float  # evaluations, the network alone
    search: float  # evaluations, within searches
    selfplay: float  # evaluations, within self-play
    samples: float  # of learning
    write_seconds: float  # to put the positions of one iteration into the replay
    iteration_seconds: float  # of one iteration of the plan, as the trainer runs it
    gap_seconds: float  # of them the device waits for the host


def probe(config: Config, network: Network, learner: Learner) -> Speed:
    """Find out roughly how fast this device is, to plan the measurement."""
    on_host = jax.default_backend() == "cpu"
    games = min(config.selfplay.games, 64 if on_host else config.selfplay.games)
    samples = min(config.learner.batch_size, 32 if on_host else config.learner.batch_size)
    return Speed(
        evaluations=_probe(partial(network_call, network, learner.params, games), games),
        samples=_probe(partial(learn_call, config, network, learner, samples), samples),
    )


def _probe(call_of: Callable[[int], Callable[[], chex.ArrayTree]], batch: int) -> float:
    repeats = 2
    (seconds,) = seconds_per_call(call_of(repeats), rounds=1)
    if seconds < PROBE_SECONDS:  # then most of it may be the start of the call
        repeats = min(1000, int(repeats * PROBE_SECONDS / seconds))
        (seconds,) = seconds_per_call(call_of(repeats), rounds=1)
    return repeats * batch / seconds


def measure_rates(
    config: Config,
    network: Network,
    learner: Learner,
    plan: Plan,
    iterations: Iterations,
    others: Sequence[Callable[[], object]] = (),
) -> Rates:
    """Measure all parts by turns and take the medians.

    `others` take their turns too, so that what they measure compares with the rates.
    """
    params, games = learner.params, plan.games
    alone, searched, played, learnt, chained, trained, *_ = seconds_per_call(
        network_call(network, params, games, plan.network_batches),
        search_call(config, network, params, games, plan.searches),
        # The whole of a game goes to its end, which in the quiet game is not the same for all.
        selfplay_call(config, network, params, games, plan.plies % config.positions_per_game),
        learn_call(config, network, learner, plan.samples, plan.updates),
        iterations.back_to_back,
        iterations.as_trained,
        *others,
        rounds=plan.rounds,
    )
    # Apart from the rest: it holds a ring of its own, and takes no time beside the others.
    (written,) = seconds_per_call(write_call(config), rounds=plan.rounds)
    per_search = games * (config.search.simulations + 1)
    return Rates(
        network=games * plan.network_batches / alone,
        search=per_search * plan.searches / searched,
        selfplay=per_search * plan.plies / played,
        samples=plan.samples * plan.updates / learnt,
        write_seconds=written,
        iteration_seconds=trained / PER_CALL,
        gap_seconds=gap_seconds(trained, chained),
    )


def search_call(
    config: Config, network: Network, params: chex.ArrayTree, games: int, searches: int
) -> Callable[[], chex.ArrayTree]:
    """Return a call that searches `games` positions `searches` times, one after the other.

    The positions are of several stages of random games.
    """
    evaluate = network_evaluator(network, config.search)

    @jax.jit
    def run(params: chex.ArrayTree, state: State, key: jax.Array) -> jax.Array:
        def one_search(key: jax.Array, _) -> tuple[jax.Array, jax.Array]:
            found = search(network.game, config.search, evaluate, params, key, state)
            # The next key depends on this result, so nothing can be left out or done ahead.
            return jax.random.fold_in(key, found.edge.sum()), found.policy.sum()

        return jax.lax.scan(one_search, key, None, length=searches)[1]

    # Prepared ahead: a whole game, which searches more often, does it once.
    params = jax.jit(partial(inference_copy, network, batch=games))(params)
    state = staged_positions(network.game, games)
    if config.search.reduction == "exact":
        found = jax.jit(jax.vmap(partial(structure, network.game)))(state.drawn)
        state = state._replace(drawn=found.quiet)
    return partial(run, params, state, jax.random.key(0))


def staged_positions(game: DotsAndBoxes, count: int) -> State:
    """Return `count` positions of random games, spread over the stages: State [B]."""
    plies = [stage * game.num_edges // STAGES for stage in range(STAGES)]
    wanted = jnp.asarray(plies)[jnp.arange(count) % STAGES]

    def one_position(key: jax.Array, plies: jax.Array) -> State:
        def play(ply: jax.Array, state: State) -> State:
            moved, _ = step(game, state, random_edge(jax.random.fold_in(key, ply), state))
            return jax.tree.map(lambda new, old: jnp.where(ply < plies, new, old), moved, state)

        return jax.lax.fori_loop(0, game.num_edges, play, initial_state(game))

    return jax.jit(jax.vmap(one_position))(jax.random.split(jax.random.key(0), count), wanted)


def learn_call(
    config: Config, network: Network, learner: Learner, samples: int, updates: int
) -> Callable[[], chex.ArrayTree]:
    """Return a call that takes `updates` steps on `samples` positions each from a full replay."""
    config = replace(config, learner=replace(config.learner, updates_per_iteration=updates))
    # One block of empty boards: what the positions are does not change the time.
    replay = init_actor(replace(config, replay=ReplayConfig(capacity=1)), 1).replay
    replay = replay._replace(size=jnp.int32(replay.margin.shape[0]))

    @jax.jit
    def run(learner: Learner, replay, key: jax.Array):
        return learn(network, config, learner, replay, key, samples)

    return partial(run, learner, replay, jax.random.key(0))


def write_call(config: Config) -> Callable[[], chex.ArrayTree]:
    """Return a call that writes the positions of one iteration into the replay, in place."""
    positions = random_positions(config.game.board, config.positions_per_iteration)
    write = jax.jit(add, donate_argnums=0)
    ring = [init_actor(config, 1).replay]

    def call() -> jax.Array:
        ring[0] = write(ring[0], positions)
        return ring[0].cursor

    return call
