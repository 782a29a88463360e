"""The baseline timed: several processes, each with a network and a game of its own."""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.agent.network import Network, convolution_form, expected_margin, init_params
from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.performance.baseline import Evaluate, play_game

START_SECONDS = 600  # that processes may take until all of them can start together
LEAST_SECONDS = 2  # that each plays, for small boards


class Played(NamedTuple):
    """What one process did while all of them played."""

    games: int
    evaluations: int
    seconds: float
    convolution: str


def measure_baseline(config: Config, counts: list[int], games: int) -> dict[str, Any]:
    """Measure the baseline with each number of processes, at least `games` games a process.

    Call it before the device is in use: each process takes what memory it needs.
    """
    form = ""
    measured = []
    for count in counts:
        played = _play_together(config, count, games, form)
        form = played[0].convolution
        # Sums of rates: a process that ends before the others does not count as idle.
        measured.append(
            {
                "processes": count,
                "games": sum(p.games for p in played),
                "seconds": max(p.seconds for p in played),
                "games_per_second": sum(p.games / p.seconds for p in played),
                "evaluations_per_second": sum(p.evaluations / p.seconds for p in played),
            }
        )
    best = max(measured, key=lambda one: one["games_per_second"])
    return {
        "games_per_second": best["games_per_second"],
        "processes": best["processes"],
        "convolution": form if config.network.trunk == "conv" else None,
        "by_processes": measured,
    }


def add_ratios(baseline: dict[str, Any], games_per_second: float) -> dict[str, Any]:
    """Return the baseline with how many times faster `games_per_second` is."""
    return baseline | {
        "ratio": games_per_second / baseline["games_per_second"],
        "by_processes": [
            one | {"ratio": games_per_second / one["games_per_second"]}
            for one in baseline["by_processes"]
        ],
    }


def parse_counts(text: str) -> list[int]:
    """Read numbers of processes such as `1,4`. Raises: InputError for anything else."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) for word in words):
        raise InputError(f"baseline_processes: {text!r} must be positive numbers, such as 1,4")
    return sorted({int(word) for word in words})


def network_evaluate(network: Network, params: chex.ArrayTree) -> Evaluate:
    """Return the network as a function of one board, compiled for batches of one."""

    @jax.jit
    def predict(params: chex.ArrayTree, drawn: jax.Array) -> tuple[jax.Array, jax.Array]:
        prediction = network.apply(params, drawn[None])
        value = expected_margin(network.game, prediction) / network.game.num_boxes
        return jax.nn.softmax(prediction.policy_logits)[0], value[0]

    def evaluate(drawn: list[bool]) -> tuple[list[float], float]:
        priors, value = jax.device_get(predict(params, np.array(drawn)))
        return priors.tolist(), float(value)

    return evaluate


def fastest_evaluate(config: Config, form: str = "") -> tuple[Evaluate, str]:
    """Return the network at batch one and its form of convolution: `form`, else the faster one."""
    game = config.game.board
    on_host = jax.default_backend() == "cpu"
    forms = [form] if form else [convolution_form(config.network)]
    if not form and on_host and config.network.trunk == "conv":
        forms = ["direct", "shifted"]
    best = (jnp.inf, None, "")
    for name in forms:
        network = Network(game, replace(config.network, convolution=name))
        params = init_params(network, jax.random.key(config.seed))
        evaluate = network_evaluate(network, params)
        seconds = _seconds(evaluate, [False] * game.num_edges)
        best = min(best, (seconds, evaluate, name), key=lambda one: one[0])
    return best[1], best[2]


def _seconds(evaluate: Evaluate, drawn: list[bool], calls: int = 20) -> float:
    evaluate(drawn)  # compiles
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        evaluate(drawn)
        times.append(time.perf_counter() - begin)
    return sorted(times)[calls // 2]


_barrier = None  # of this process, set when it starts


def _set_barrier(barrier) -> None:
    global _barrier
    _barrier = barrier
    # Before this process touches a device: by default the first one would take most of its memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def _play_together(config: Config, count: int, games: int, form: str) -> list[Played]:
    context = multiprocessing.get_context("spawn")
    setup = {"initializer": _set_barrier, "initargs": (context.Barrier(count),)}
    with ProcessPoolExecutor(count, mp_context=context, **setup) as pool:
        waiting = [pool.submit(_play, config, games, form, worker) for worker in range(count)]
        return [one.result() for one in waiting]


def _play(config: Config, games: int, form: str, worker: int) -> Played:
    """Play games in a process of its own, from when all the others are ready too."""
    try:
        evaluate, form = fastest_evaluate(config, form)
    except BaseException:
        _barrier.abort()  # or the others would wait for this one
        raise
    rng = np.random.default_rng((config.seed, worker))
    evaluations = 0

    def counted(drawn: list[bool]) -> tuple[list[float], float]:
        nonlocal evaluations
        evaluations += 1
        return evaluate(drawn)

    _barrier.wait(START_SECONDS)
    begin, seconds, played = time.perf_counter(), 0.0, 0
    while played < games or seconds < LEAST_SECONDS:
        simulations, sampled = config.search.simulations, config.selfplay.sampled_plies
        play_game(config.game.board, counted, simulations, sampled, rng)
        played, seconds = played + 1, time.perf_counter() - begin
    return Played(played, evaluations, seconds, form)
