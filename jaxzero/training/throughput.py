"""How fast the parts of a run are."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import chex
import jax
import jax.numpy as jnp

from jaxzero.agent.network import Network, inference_copy
from jaxzero.agent.search import network_evaluator
from jaxzero.config import Config
from jaxzero.training.selfplay import play_games


def seconds_per_call(*calls: Callable[[], chex.ArrayTree], rounds: int = 3) -> list[float]:
    """Time compiled calls by turns and return the median of each, in seconds.

    By turns, because other work on the machine comes and goes: it then hits all of them alike.
    """
    seconds = [[] for _ in calls]
    for round_ in range(rounds + 1):
        for call, times in zip(calls, seconds, strict=True):
            begin = time.perf_counter()
            jax.block_until_ready(call())
            if round_:  # the first round warms up
                times.append(time.perf_counter() - begin)
    return [statistics.median(times) for times in seconds]


def network_call(
    network: Network, params: chex.ArrayTree, batch: int, repeats: int
) -> Callable[[], chex.ArrayTree]:
    """Return a call that evaluates `repeats` batches one after the other on one device."""

    def evaluate(drawn: jax.Array, _) -> tuple[jax.Array, jax.Array]:
        prediction = network.apply(variables, drawn)
        # The next input depends on this output, so nothing can be left out or done ahead.
        flip = prediction.policy_logits + prediction.margin_logits.sum(-1, keepdims=True) > 1e30
        return drawn ^ flip, prediction.margin_logits[0, 0]

    drawn = jax.random.bernoulli(jax.random.key(0), 0.5, (batch, network.game.num_edges))
    variables = jax.jit(partial(inference_copy, network, batch=batch))(params)
    run = jax.jit(lambda drawn: jax.lax.scan(evaluate, drawn, None, length=repeats))
    return partial(run, drawn)


def selfplay_call(
    config: Config, network: Network, params: chex.ArrayTree, games: int, plies: int = 0
) -> Callable[[], chex.ArrayTree]:
    """Return a call that plays `games` games on one device, or with `plies` the start of them."""
    evaluate = network_evaluator(network, config.search)

    @jax.jit
    def run(params: chex.ArrayTree, key: jax.Array) -> jax.Array:
        positions, _ = play_games(network.game, config, evaluate, params, key, games, plies)
        return jnp.sum(positions.margin)

    # Prepared ahead, as an iteration does once: a part of a game would otherwise pay for a whole.
    params = jax.jit(partial(inference_copy, network, batch=games))(params)
    return partial(run, params, jax.random.key(0))


def evaluations_per_second(
    config: Config, network: Network, params: chex.ArrayTree, games: int
) -> dict[str, float]:
    """Measure `network` alone and `selfplay` alone at the same batch on one device."""
    evaluations = games * config.positions_per_game * (config.search.simulations + 1)
    repeats = max(1, evaluations // games // 4)
    alone, selfplay = seconds_per_call(
        network_call(network, params, games, repeats), selfplay_call(config, network, params, games)
    )
    return {"network": games * repeats / alone, "selfplay": evaluations / selfplay}
