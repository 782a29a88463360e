"""Timed calls of the parts of an iteration, each at the batch it has there.

Each part is its own compiled program. It repeats its work in a scan whose next input depends on all
of the last output, so the compiler can leave nothing out and move nothing out of the loop.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxzero.config import Config, SearchConfig
from jaxzero.game import DotsAndBoxes, State, automorphisms, initial_states, is_over
from jaxzero.game.structure import Structure
from jaxzero.host.status import doing
from jaxzero.network.network import IMPOSSIBLE, Network, inference_copy
from jaxzero.search.search import Evaluate, Evaluation, game_of, network_evaluator, search
from jaxzero.training.games import begin_play
from jaxzero.training.learner import Learner, augment, learn, mean_gradient
from jaxzero.training.optimizer import make_optimizer
from jaxzero.training.replay import Replay, add, empty_replay, sample
from jaxzero.training.selfplay import play_games, play_step
from jaxzero.training.targets import Positions

UNREACHED = 1e30  # no output is as large, but the compiler does not know
RING_BYTES = 2**28  # a ring beyond every cache is as slow as a larger one
STAGES = 4  # of the game, from which the timed searches start

Call = Callable[[], chex.ArrayTree]


class Part(NamedTuple):
    """A timed call and its share in an iteration on one device."""

    call: Call
    items: int = 1  # evaluations, moves, positions or samples of one call
    total: int = 1  # of one iteration


class Workload(NamedTuple):
    """What one of `devices` devices does in an iteration of `config`."""

    config: Config
    network: Network
    learner: Learner  # on the first device
    prepared: chex.ArrayTree  # its weights as self-play uses them
    games: int  # at once: one in every lane
    samples: int  # of one update
    devices: int

    @property
    def evaluations(self) -> int:
        """Network evaluations of self-play."""
        return self.config.evaluations_per_iteration // self.devices

    @property
    def positions(self) -> int:
        """New positions for the replay."""
        return self.config.positions_per_iteration // self.devices

    @property
    def learned(self) -> int:
        """Samples of all updates."""
        learner = self.config.learner
        return learner.updates_per_iteration * learner.batch_size // self.devices


def make_workload(config: Config, learner: Learner, devices: int = 1) -> Workload:
    """Return the work of one of `devices` devices."""
    network = Network(config.game.board, config.network)
    games = config.lanes(config.selfplay.games // devices)
    samples = config.learner.batch_size // devices
    prepared = jax.jit(partial(inference_copy, network, batch=games))(learner.params)
    return Workload(config, network, learner, prepared, games, samples, devices)


def seconds_per_call(*calls: Call, rounds: int = 3) -> list[float]:
    """Time calls by turns and return the median of each, in seconds.

    Other work on the machine comes and goes; by turns it slows all of them alike.
    """
    seconds = [[] for _ in calls]
    for round_ in range(rounds + 1):
        for call, times in zip(calls, seconds, strict=True):
            begin = time.perf_counter()
            jax.block_until_ready(call())
            if round_:  # the first round warms up
                times.append(time.perf_counter() - begin)
    return [statistics.median(times) for times in seconds]


def time_parts(parts: dict[str, Part], rounds: int) -> dict[str, float]:
    """Time parts by turns and return the seconds of each in one iteration."""
    calls = (_named(name, part.call) for name, part in parts.items())
    seconds = seconds_per_call(*calls, rounds=rounds)
    return {
        name: time * part.total / part.items
        for (name, part), time in zip(parts.items(), seconds, strict=True)
    }


def _named(name: str, call: Call) -> Call:
    """Return a call that is named where it takes long."""
    return doing(f"measuring {name.replace('_', ' ')}")(call)


def repeated(step: Callable, start: chex.ArrayTree, repeats: int, *given: chex.ArrayTree) -> Call:
    """Return a call that runs `step` (given, carry -> carry) `repeats` times from `start`."""

    @jax.jit
    def run(given: tuple, start: chex.ArrayTree) -> chex.ArrayTree:
        return jax.lax.scan(lambda c, _: (step(*given, c), None), start, None, length=repeats)[0]

    return partial(run, given, start)


# Self-play


def random_states(game: DotsAndBoxes, count: int) -> State:
    """Return `count` random positions, spread over the stages of the game: State [B]."""
    plies = jnp.arange(count) % STAGES * game.num_edges // STAGES
    start = initial_states(game, count)
    order = jnp.argsort(jax.random.uniform(jax.random.key(0), start.drawn.shape))
    return start._replace(drawn=jnp.argsort(order) < plies[:, None])


def searched_states(
    game: DotsAndBoxes, settings: SearchConfig, count: int
) -> tuple[State, Structure | None]:
    """Return `count` positions as a search meets them, and their structure where rules find it."""
    state, rules = random_states(game, count), game_of(settings)
    view = jax.jit(jax.vmap(partial(rules.view, game)))(state.drawn)
    return jax.vmap(rules.searched)(state, view), jax.vmap(rules.structure_of_searched)(view)


def network_call(
    network: Network, settings: SearchConfig, params: chex.ArrayTree, batch: int, repeats: int
) -> Call:
    """Return a call that evaluates `repeats` batches one after the other on one device.

    As in a search, the network is given the structure of a position where the rules find it.
    """

    def evaluate(prepared: chex.ArrayTree, found: Structure | None, drawn: jax.Array) -> jax.Array:
        prediction = network.apply(prepared, drawn, found)
        total = prediction.policy_logits + prediction.margin_logits.sum(-1, keepdims=True)
        return drawn ^ (total > UNREACHED)

    state, found = searched_states(network.game, settings, batch)
    prepared = jax.jit(partial(inference_copy, network, batch=batch))(params)
    return repeated(evaluate, state.drawn, repeats, prepared, found)


def network_part(work: Workload, repeats: int) -> Part:
    """Return the evaluations of the network alone."""
    search, params = work.config.search, work.learner.params
    call = network_call(work.network, search, params, work.games, repeats)
    return Part(call, work.games * repeats, work.evaluations)


def search_part(work: Workload, repeats: int) -> Part:
    """Return searches from positions of all stages of the game."""
    game, settings = work.network.game, work.config.search
    evaluate = network_evaluator(work.network, settings)
    state, _ = searched_states(game, settings, work.games)

    def one_search(prepared: chex.ArrayTree, state: State, key: jax.Array) -> jax.Array:
        found = search(game, settings, evaluate, prepared, key, state)
        return jax.random.fold_in(key, found.edge.sum() + jnp.int32(found.policy.sum() > UNREACHED))

    call = repeated(one_search, jax.random.key(0), repeats, work.prepared, state)
    return Part(call, work.games * (settings.simulations + 1) * repeats, work.evaluations)


def rules_part(work: Workload, repeats: int) -> Part:
    """Return one move in every game as the search plays it."""
    game, settings = work.network.game, work.config.search
    rules = game_of(settings)
    expand = jax.vmap(partial(rules.expand, game))

    def move(carry: tuple[chex.ArrayTree, jax.Array]) -> tuple[chex.ArrayTree, jax.Array]:
        node, total = carry
        numbers = jnp.arange(len(total), dtype=jnp.int32)
        node, _ = expand(node, (jnp.abs(node.state.margin) + numbers) % game.num_edges)
        reward, discount = jax.vmap(partial(rules.outcome, game))(node, total / UNREACHED)
        return node, total + reward * discount

    state = random_states(game, work.games)
    root = jax.vmap(rules.root)(state, jax.vmap(partial(rules.view, game))(state.drawn))
    call = repeated(move, (root, jnp.zeros(work.games)), repeats)
    return Part(call, work.games * repeats, work.evaluations)


def selfplay_part(work: Workload, moves: int = 0, free: bool = False) -> Part:
    """Return whole games, or with `moves` the start of games.

    With `free` the evaluator costs next to nothing, which leaves the tree, the rules and the moves.
    """
    game, config = work.network.game, work.config
    games = work.games * (config.selfplay.games // config.lanes(config.selfplay.games))
    evaluate = free_evaluator(game) if free else network_evaluator(work.network, config.search)

    @jax.jit
    def play(params: chex.ArrayTree, key: jax.Array) -> chex.ArrayTree:
        if not moves:
            return play_games(config, evaluate, params, key, games)
        start = begin_play(config, key, work.games)
        step = partial(play_step, config, evaluate, params, key)
        return jax.lax.fori_loop(0, moves, lambda _, play: step(play), start).decisions

    decisions = work.games * (moves or config.decisions_per_lane)
    items = decisions * (config.search.simulations + 1)
    return Part(partial(play, work.prepared, jax.random.key(0)), items, work.evaluations)


def free_evaluator(game: DotsAndBoxes) -> Evaluate:
    """Return an evaluator with flat priors and values hashed from the edges, for bushy trees."""
    waves = np.random.default_rng(0).uniform(0, 2 * np.pi, game.num_edges).astype(np.float32)

    def evaluate(_params, state: State, _found) -> Evaluation:
        hashed = 0.5 * jnp.sin(state.drawn.astype(jnp.float32) @ waves)
        priors = jnp.where(state.drawn, IMPOSSIBLE, 0.0)
        return Evaluation(priors, jnp.where(is_over(state), 0.0, hashed))

    return evaluate


# Replay and learning


def random_positions(network: Network, count: int) -> Positions:
    """Return positions that a network can learn from."""
    game = network.game
    drawn = random_states(game, count).drawn
    legal = jnp.where(drawn, 0.0, 1.0)
    policy = legal / jnp.maximum(legal.sum(-1, keepdims=True), 1.0)
    whole, yes = jnp.zeros(count, jnp.int32), jnp.ones(count, bool)
    safe_end = whole if network.config.safe_end else ()
    return Positions(drawn, policy, whole, yes, ~yes, safe_end=safe_end)


def full_ring(work: Workload) -> Replay:
    """Return a full replay of the run's size, or of `RING_BYTES` where that is less."""
    edges, block = work.network.game.num_edges, work.positions
    safe_end = work.config.network.safe_end
    fields = jax.eval_shape(lambda: empty_replay(block, edges, safe_end))
    block_bytes = sum(field.size * field.dtype.itemsize for field in jax.tree.leaves(fields))
    blocks = min(work.config.iterations_kept, max(1, RING_BYTES // block_bytes))
    ring = empty_replay(blocks * block, edges, safe_end)
    return ring._replace(size=jnp.asarray(blocks * block, jnp.int32))


def write_part(work: Workload) -> Part:
    """Return the write of one iteration's positions into the replay, in place."""
    positions = random_positions(work.network, work.positions)
    write = jax.jit(lambda ring, positions: add(ring, positions), donate_argnums=0)
    ring = [full_ring(work)]

    def call() -> Replay:
        ring[0] = write(ring[0], positions)
        return ring[0]

    return Part(call)


def sample_part(work: Workload, repeats: int) -> Part:
    """Return the sampling of batches from the replay, with augmentation by symmetries."""
    permutations = jnp.asarray(automorphisms(work.network.game))

    def one_batch(ring: Replay, key: jax.Array) -> jax.Array:
        sample_key, symmetry_key = jax.random.split(key)
        batch = sample(ring, sample_key, work.samples)
        if work.config.learner.augmentation:
            batch = augment(permutations, symmetry_key, batch)
        batch = jax.lax.optimization_barrier(batch)
        return jax.random.fold_in(
            key, sum(leaf.astype(jnp.int32).sum() for leaf in jax.tree.leaves(batch))
        )

    call = repeated(one_batch, jax.random.key(0), repeats, full_ring(work))
    return Part(call, work.samples * repeats, work.learned)


def gradient_part(work: Workload, repeats: int) -> Part:
    """Return the loss of a batch, its gradient and the gradient's norm."""
    gradient_of = partial(mean_gradient, work.network)

    def one_gradient(params: chex.ArrayTree, batch: Positions) -> Positions:
        gradient, metrics = jax.lax.optimization_barrier(gradient_of(params, batch))
        flip = optax.tree.norm(gradient) + metrics["margin_error"] > UNREACHED
        return batch._replace(drawn=batch.drawn ^ flip)

    batch = random_positions(work.network, work.samples)
    call = repeated(one_gradient, batch, repeats, work.learner.params)
    return Part(call, work.samples * repeats, work.learned)


def optimiser_part(work: Workload, repeats: int) -> Part:
    """Return the update of weights and optimiser state by a gradient."""
    optimizer = make_optimizer(work.config.learner)

    def one_update(weights: tuple) -> tuple:
        params, opt_state = weights
        # The weights stand in for a gradient: a constant one would leave the loop.
        updates, opt_state = optimizer.update(params, opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    learner = work.learner
    weights = jax.tree.map(jnp.copy, (learner.params, learner.opt_state))
    return Part(repeated(one_update, weights, repeats), work.samples * repeats, work.learned)


def learning_part(work: Workload, updates: int) -> Part:
    """Return `updates` whole updates: sampling, gradient and optimiser."""
    settings = replace(work.config.learner, updates_per_iteration=updates)
    config = replace(work.config, learner=settings)

    @jax.jit
    def run(learner: Learner, ring: Replay, key: jax.Array) -> tuple:
        return learn(work.network, config, learner, ring, key, work.samples)

    call = partial(run, work.learner, full_ring(work), jax.random.key(0))
    return Part(call, work.samples * updates, work.learned)


# Ceilings of one device

MATMUL_SIZES, COPY_MEBIBYTES = (1536, 8192), (128, 1024)  # on a CPU, on a GPU


def ceiling_parts(dtype: jnp.dtype) -> dict[str, Part]:
    """Return the ceilings of a device as parts that take turns with the work."""
    return {"matmul": matmul_part(dtype), "copy": copy_part()}


def matmul_part(dtype: jnp.dtype) -> Part:
    """Return a chain of square matrix products in `dtype`; counts 2 size^3 FLOP a product."""
    on_gpu = jax.default_backend() != "cpu"
    size, repeats = MATMUL_SIZES[on_gpu], 16 if on_gpu else 4
    # An orthogonal matrix of +-1 / sqrt(size): the chain of products stays within range.
    left = jax.random.rademacher(jax.random.key(0), (size, size), dtype) * size**-0.5
    left = left.astype(dtype)
    call = repeated(lambda left, x: (left @ x).astype(dtype), left, repeats, left)
    return Part(call, repeats * 2 * size**3)


def copy_part() -> Part:
    """Return passes over an array, read once and written once; counts the bytes."""
    array = jnp.zeros(COPY_MEBIBYTES[jax.default_backend() != "cpu"] * 2**18, jnp.float32)
    # In place within a loop: a fresh output would have its pages made first.
    return Part(repeated(lambda x: x + 1, array, 8), 8 * 2 * array.nbytes)
