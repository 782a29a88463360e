"""How fast the parts of a run are, and how shares of a limit are written."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import chex
import jax
import jax.numpy as jnp

from jaxzero.agent.network import Network, inference_copy
from jaxzero.agent.search import network_evaluator
from jaxzero.config import Config
from jaxzero.training.selfplay import play_games

# Why a share can be above its limit, where neither can really be exceeded.
ABOVE = {
    "network": "above the network alone: the two were not measured under equal load",
    "products": "above the measured ceiling: the two were not measured under equal load, or the "
    "network takes fewer operations than are counted, as Winograd's convolution does",
    "copies": "above the measured ceiling: caches serve a part of the bytes",
    "whole": "above the whole: parts and whole were not measured under equal load",
    "cores": "above all cores: the two clocks differ",
}


def share_of(limit: str, share: float, places: int = 0) -> str:
    """Write a share of a limit for a sentence; one above it says why that can be."""
    written = f"{share:.{places}%}"
    return f"{written} ({ABOVE[limit]})" if _is_above(share, places) else written


def share_cell(share: float, places: int = 0) -> str:
    """Write a share of a limit for a table; a star marks one above it, see `share_notes`."""
    return f"{share:.{places}%}{'*' * _is_above(share, places)}"


def share_notes(shares: dict[str, Iterable[float | None]], places: int = 0) -> Iterator[str]:
    """Explain the stars of a table, one line for each limit; `shares` are all by their limit."""
    for limit, printed in shares.items():
        if any(share is not None and _is_above(share, places) for share in printed):
            yield f"* {ABOVE[limit]}"


def _is_above(share: float, places: int) -> bool:
    # As it is written: 100.0 % says nothing wrong.
    return round(100 * share, places) > 100


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
