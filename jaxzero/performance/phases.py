"""The parts of one iteration, each as its own compiled program at the batch it has there.

Every program repeats its part in a scan whose next input depends on all of the last output, so
nothing can be left out, done ahead or moved out of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxzero.agent.forms import compute_dtype
from jaxzero.agent.inputs import INPUTS
from jaxzero.agent.network import IMPOSSIBLE, Network, inference_copy
from jaxzero.agent.reduction import best_reply, open_move
from jaxzero.agent.search import Evaluation, Evaluator, network_evaluator, transition
from jaxzero.config import Config
from jaxzero.game import (
    DotsAndBoxes,
    State,
    edge_permutations,
    is_over,
    margin_mask,
    random_edge,
)
from jaxzero.performance.inputs import full_ring, random_positions, random_state
from jaxzero.training.learner import Learner, loss, make_optimizer, seen_through
from jaxzero.training.positions import Positions
from jaxzero.training.replay import Replay, add, draw
from jaxzero.training.selfplay import play_games

UNREACHED = 1e30  # no output of a part is as large, but the compiler does not know


class Part(NamedTuple):
    """A part of the iteration on one device, ready to be timed."""

    call: Callable[[], chex.ArrayTree]
    repeats: int  # runs of the part in one call
    count: int  # runs of the part in one iteration
    batch: int  # positions or games in one run


def iteration_parts(
    config: Config, network: Network, learner: Learner, devices: int
) -> dict[str, Part]:
    """Return the parts of an iteration of `devices` devices; `learner` lives on the first."""
    games = config.selfplay.games // devices
    return selfplay_parts(config, network, learner.params, games) | learning_parts(
        config, network, learner, devices
    )


def selfplay_parts(
    config: Config, network: Network, params: chex.ArrayTree, games: int
) -> dict[str, Part]:
    """Return the parts of self-play with `games` games on one device, and all of it.

    `features` are a part of `evaluation`, which with `rules` and `moves` is a part of `selfplay`;
    `free_selfplay` is the same games with an evaluator that costs next to nothing.
    """
    game, plies = network.game, config.positions_per_game
    evaluations = plies * (config.search.simulations + 1)
    evaluate = network_evaluator(network, config.search)
    params = jax.jit(partial(inference_copy, network, batch=games))(params)
    state = random_state(game, games)

    def part(step: Callable, count: int, start: chex.ArrayTree, *given: chex.ArrayTree) -> Part:
        return chained(step, start, given, count, games)

    return {
        "features": part(partial(features_step, network), evaluations, state),
        "evaluation": part(partial(evaluation_step, evaluate), evaluations, state, params),
        "rules": part(partial(rules_step, config, game), evaluations, (state, jnp.zeros(games))),
        "moves": part(moves_step, plies, (state, jax.random.key(0))),
        "free_selfplay": selfplay_part(config, game, free_evaluator(game), {}, games),
        "selfplay": selfplay_part(config, game, evaluate, params, games),
    }


def learning_parts(
    config: Config, network: Network, learner: Learner, devices: int
) -> dict[str, Part]:
    """Return the parts of replay and learning on one of `devices` devices."""
    block = config.positions_per_iteration // devices
    samples = config.learner.batch_size // devices
    updates = config.learner.updates_per_iteration
    parts = {"replay_write": write_part(config, block)}
    if not updates:
        return parts
    batch = random_positions(network.game, samples)
    weights = jax.tree.map(jnp.copy, (learner.params, learner.average, learner.opt_state))
    return parts | {
        "replay_draw": draw_part(config, block, samples, updates),
        "gradient": chained(
            partial(gradient_step, network, config), batch, (learner.params,), updates, samples, 16
        ),
        "optimiser": chained(partial(optimiser_step, config), weights, (), updates, samples),
    }


def chained(
    step: Callable,
    start: chex.ArrayTree,
    given: tuple,
    count: int,
    batch: int,
    most: int = 64,
) -> Part:
    """Return a part that repeats `step`, a function of what is given and a carry to the next."""
    repeats = min(count, most)

    @jax.jit
    def run(given: tuple, start: chex.ArrayTree) -> chex.ArrayTree:
        return jax.lax.scan(lambda c, _: (step(*given, c), None), start, None, length=repeats)[0]

    return Part(partial(run, given, start), repeats, count, batch)


def features_step(network: Network, state: State) -> State:
    """Compute what the network sees and which margins are possible; batched."""
    game, config, dtype = network.game, network.config, compute_dtype(network.config)
    seen = INPUTS[config.trunk](game, config, state.drawn, dtype)
    possible = jax.vmap(partial(margin_mask, game))(state.drawn)
    # The barrier has them written out, as the first matrix product wants them.
    seen, possible = jax.lax.optimization_barrier((seen, possible))
    parts = jax.tree.leaves((seen, possible))
    total = sum(part.reshape(len(part), -1).sum(-1) for part in parts)
    return state._replace(drawn=state.drawn ^ (total > UNREACHED)[:, None])


def evaluation_step(evaluate: Evaluator, params: chex.ArrayTree, state: State) -> State:
    """Evaluate a batch as the search does."""
    there = evaluate(params, state)
    flip = there.prior_logits + there.value[:, None] > UNREACHED
    return state._replace(drawn=state.drawn ^ flip)


def rules_step(
    config: Config, game: DotsAndBoxes, carry: tuple[State, jax.Array]
) -> tuple[State, jax.Array]:
    """Play one move in every game as the search does; batched."""
    state, total = carry
    edge = (jnp.abs(state.margin) + jnp.arange(len(total), dtype=jnp.int32)) % game.num_edges
    if config.search.reduction == "exact":
        node, _ = jax.vmap(partial(open_move, game))(state, edge)
        reply = jax.vmap(partial(best_reply, game))(node, total / UNREACHED)
        return node.state, total + reply.reward * reply.discount
    moved = jax.vmap(partial(transition, game, config.search.win_weight))(state, edge)
    return moved.state, total + moved.reward * moved.discount


def moves_step(carry: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
    """Choose a random move and one from a policy in every game, as self-play does; batched."""
    state, key = carry
    random_key, sample_key = jax.random.split(key)
    at_random = jax.vmap(random_edge)(jax.random.split(random_key, len(state.drawn)), state)
    policy = jnp.where(state.drawn, 1e-3, 1.0)
    sampled = jax.random.categorical(sample_key, jnp.log(policy))
    return state, jax.random.fold_in(key, jnp.sum(at_random + sampled))


def selfplay_part(
    config: Config, game: DotsAndBoxes, evaluate: Evaluator, params: chex.ArrayTree, games: int
) -> Part:
    """Return whole games with an evaluator: root, descent, expansion, backup, rules, moves."""

    @jax.jit
    def run(params: chex.ArrayTree, key: jax.Array) -> Positions:
        return play_games(game, config, evaluate, params, key, games)[0]

    return Part(partial(run, params, jax.random.key(0)), 1, 1, games)


def free_evaluator(game: DotsAndBoxes) -> Evaluator:
    """Return an evaluator with flat priors and values hashed from the edges, for bushy trees."""
    waves = np.random.default_rng(0).uniform(0, 2 * np.pi, game.num_edges).astype(np.float32)

    def evaluate(_, state: State) -> Evaluation:
        hashed = 0.5 * jnp.sin(state.drawn.astype(jnp.float32) @ waves)
        priors = jnp.where(state.drawn, IMPOSSIBLE, 0.0)
        return Evaluation(priors, jnp.where(is_over(state), 0.0, hashed))

    return evaluate


def write_part(config: Config, block: int) -> Part:
    """Return the write of one iteration's positions into the ring, in place."""
    game = config.game.board
    positions = random_positions(game, block)
    write = jax.jit(lambda ring, positions: add(ring, positions), donate_argnums=0)
    ring = [full_ring(config, block)]

    def call() -> Replay:
        # A donated ring is written where it lies; the barrier of one call is its end.
        ring[0] = write(ring[0], positions)
        return ring[0]

    return Part(call, 1, 1, block)


def draw_part(config: Config, block: int, samples: int, updates: int) -> Part:
    """Return the draw of a batch from the ring, seen through a random symmetry."""
    permutations = jnp.asarray(edge_permutations(config.game.board))

    def step(ring: Replay, key: jax.Array) -> jax.Array:
        draw_key, symmetry_key = jax.random.split(key)
        batch = draw(ring, draw_key, samples)
        if config.learner.symmetries:
            batch = seen_through(permutations, symmetry_key, batch)
        batch = jax.lax.optimization_barrier(batch)
        total = sum(leaf.astype(jnp.int32).sum() for leaf in batch)
        return jax.random.fold_in(key, total)

    return chained(step, jax.random.key(0), (full_ring(config, block),), updates, samples)


def gradient_step(
    network: Network, config: Config, params: chex.ArrayTree, batch: Positions
) -> Positions:
    """Compute the gradient of the loss on one batch and its norm."""
    gradient_of = jax.grad(partial(loss, network, config.learner), has_aux=True)
    gradient, metrics = jax.lax.optimization_barrier(gradient_of(params, batch))
    flip = optax.tree.norm(gradient) + metrics["margin_error"] > UNREACHED
    return batch._replace(drawn=batch.drawn ^ flip)


def optimiser_step(config: Config, weights: tuple) -> tuple:
    """Update weights, their average and the optimiser's state by a gradient."""
    params, average, opt_state = weights
    # The weights stand in for a gradient: a constant one would leave the loop.
    updates, opt_state = make_optimizer(config).update(params, opt_state, params)
    params = optax.apply_updates(params, updates)
    if config.learner.ema_decay:
        average = optax.incremental_update(params, average, 1 - config.learner.ema_decay)
    return params, average, opt_state
