"""How fast the parts of a run are, and what they need."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

from jaxzero.agent.network import Network
from jaxzero.agent.search import network_evaluator
from jaxzero.config import Config
from jaxzero.training.selfplay import play_games


def seconds_per_call(function: Callable, *args, at_least: float = 1.0) -> float:
    """Time a compiled function after one warm-up call, over at least two calls."""
    jax.block_until_ready(function(*args))
    calls, start = 0, time.perf_counter()
    while calls < 2 or time.perf_counter() - start < at_least:
        jax.block_until_ready(function(*args))
        calls += 1
    return (time.perf_counter() - start) / calls


def network_evaluations_per_second(
    network: Network, params: chex.ArrayTree, batch: int, repeats: int = 64
) -> float:
    """Measure the network alone on one device: `repeats` batches in one program."""

    def evaluate(drawn: jax.Array, _) -> tuple[jax.Array, jax.Array]:
        prediction = network.apply(params, drawn)
        # The next input depends on this output, so nothing can be left out or done ahead.
        flip = prediction.policy_logits + prediction.margin_logits.sum(-1, keepdims=True) > 1e30
        return drawn ^ flip, prediction.margin_logits[0, 0]

    drawn = jax.random.bernoulli(jax.random.key(0), 0.5, (batch, network.game.num_edges))
    run = jax.jit(lambda drawn: jax.lax.scan(evaluate, drawn, None, length=repeats))
    return batch * repeats / seconds_per_call(run, drawn)


def selfplay_evaluations_per_second(
    config: Config, network: Network, params: chex.ArrayTree, games: int
) -> float:
    """Measure self-play alone on one device, in network evaluations."""
    evaluate = network_evaluator(network, config.search)

    @jax.jit
    def run(params: chex.ArrayTree, key: jax.Array) -> jax.Array:
        positions, _ = play_games(network.game, config, evaluate, params, key, games)
        return jnp.sum(positions.margin)

    evaluations = games * network.game.num_edges * (config.search.simulations + 1)
    return evaluations / seconds_per_call(run, params, jax.random.key(0))


def peak_memory_bytes(device: jax.Device) -> int:
    """Return the peak memory in use: of the device, or of the process where that is the host."""
    stats = device.memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return stats["peak_bytes_in_use"]
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def predicted_memory_bytes(compiled: jax.stages.Compiled) -> int | None:
    """Return what XLA plans to hold on one device at once, or None where it does not say."""
    plan = compiled.memory_analysis()
    if plan is None:
        return None
    return (
        plan.argument_size_in_bytes
        + plan.output_size_in_bytes
        - plan.alias_size_in_bytes
        + plan.temp_size_in_bytes
        + plan.generated_code_size_in_bytes
    )


def mebibytes(count: float | None) -> str:
    """Write a number of bytes in MiB."""
    return "unknown" if count is None else f"{count / 2**20:,.0f} MiB"
