"""The baseline timed: several processes, each with a network and games of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import statistics
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from multiprocessing import resource_tracker
from typing import Any, NamedTuple

import chex
import jax
import numpy as np

from jaxzero.agent.forms import convolution_form
from jaxzero.agent.network import Network, expected_margin, init_params
from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.interrupts import end_with_parent
from jaxzero.performance.baseline import Evaluate, play_game
from jaxzero.performance.torch_network import torch_evaluate

START_SECONDS = 600  # that processes may take until all of them can start together
LEAST_SECONDS = 1  # that each plays in one turn, for small boards


class Played(NamedTuple):
    """What one process did in one turn, while the others played too."""

    games: int
    evaluations: int
    seconds: float


class Baseline:
    """Processes that wait for their turns. Make it before the device is in use, in a `with`.

    Each of `counts` is a number of processes to measure, with at least `games` games a process.
    `network` is "compiled", ours in its fastest form, or "torch", as the replaced systems ran it.
    """

    def __init__(self, config: Config, counts: list[int], games: int, network: str = "compiled"):
        _start_tracker()
        context = multiprocessing.get_context("spawn")
        barriers = {count: context.Barrier(count) for count in counts}
        self._pool = ProcessPoolExecutor(
            max(counts), mp_context=context, initializer=_set_up, initargs=(barriers,)
        )
        self._config, self._games = config, games
        self._network = network
        # One process alone decides, before others disturb it.
        if network == "torch":
            self._form = "torch"
        else:
            self._form = self._submit(fastest_form, config).result()
        self._turns: dict[int, list[list[Played]]] = {count: [] for count in counts}

    def __enter__(self) -> Baseline:
        return self

    def __exit__(self, *_) -> None:
        self._pool.shutdown(cancel_futures=True)

    def turns(self) -> list[Callable[[], None]]:
        """Return one call per number of processes; each plays, and the first time warms up."""
        return [partial(self._play_together, count) for count in self._turns]

    def _play_together(self, count: int) -> None:
        job = (self._config, self._form, self._games, count)
        waiting = [self._submit(_play, *job, worker) for worker in range(count)]
        self._turns[count].append([one.result() for one in waiting])

    def _submit(self, job: Callable, *arguments: Any) -> Future:
        """Submit a job; a process that starts for it does not notice Ctrl-C, but ends with this."""
        # Processes inherit what is blocked here. Other threads of this process get its signals.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            return self._pool.submit(job, *arguments)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def summary(self, games_per_second: float) -> dict[str, Any]:
        """Return medians over the turns, and how many times faster `games_per_second` is."""
        measured = []
        for count, turns in self._turns.items():
            # Sums of rates: a process that ends before the others does not count as idle.
            games = [sum(p.games / p.seconds for p in turn) for turn in turns[1:]]
            evaluations = [sum(p.evaluations / p.seconds for p in turn) for turn in turns[1:]]
            measured.append(
                {
                    "processes": count,
                    "games": sum(p.games for turn in turns[1:] for p in turn),
                    "games_per_second": statistics.median(games),
                    "evaluations_per_second": statistics.median(evaluations),
                    "ratio": games_per_second / statistics.median(games),
                }
            )
        best = max(measured, key=lambda one: one["games_per_second"])
        names = ("games_per_second", "ratio", "processes")
        return {name: best[name] for name in names} | {
            "network": self._network,
            "convolution": self._form or None,
            "by_processes": measured,
        }


def parse_counts(text: str) -> list[int]:
    """Read numbers of processes such as `1,4`. Raises: InputError for anything else."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) for word in words):
        raise InputError(f"baseline_processes: {text!r} must be positive numbers, such as 1,4")
    return sorted({int(word) for word in words})


@cache
def network_evaluate(config: Config, form: str) -> Evaluate:
    """Return the network of the config as a function of one board, for batches of one.

    `form` is that of its convolutions, or "torch" for PyTorch instead of a compiled program.
    """
    if form == "torch":
        return torch_evaluate(config)
    game = config.game.board
    network = Network(game, replace(config.network, convolution=form or "auto"))
    params = init_params(network, jax.random.key(config.seed))

    @jax.jit
    def predict(params: chex.ArrayTree, drawn: jax.Array) -> tuple[jax.Array, jax.Array]:
        prediction = network.apply(params, drawn[None])
        value = expected_margin(game, prediction) / game.num_boxes
        return jax.nn.softmax(prediction.policy_logits)[0], value[0]

    def evaluate(drawn: list[bool]) -> tuple[list[float], float]:
        priors, value = jax.device_get(predict(params, np.array(drawn)))
        return priors.tolist(), float(value)

    return evaluate


def fastest_form(config: Config) -> str:
    """Return the form of the convolution that is faster at batch one; "" without convolutions."""
    if not config.network.convolutional:
        return ""
    if jax.default_backend() != "cpu":
        return convolution_form(config.network, 1)
    return min(("direct", "shifted"), key=lambda form: _seconds(config, form))


def _seconds(config: Config, form: str, calls: int = 20) -> float:
    evaluate, drawn = network_evaluate(config, form), [False] * config.game.board.num_edges
    evaluate(drawn)  # compiles
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        evaluate(drawn)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


_barriers = {}  # of this process, by the number of those that start together


def _start_tracker() -> None:
    """Start the process that removes the semaphores of processes that were ended, unheard."""
    # Otherwise it writes warnings about them when Ctrl-C ends this process.
    errors = os.dup(2)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        resource_tracker.ensure_running()
    finally:
        os.dup2(errors, 2)
        os.close(errors)


def _set_up(barriers: dict) -> None:
    end_with_parent(multiprocessing.parent_process().sentinel)
    _barriers.update(barriers)
    # Before this process touches a device: by default the first one would take most of its memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def _play(config: Config, form: str, games: int, count: int, worker: int) -> Played:
    """Play games in one process of the pool, from when all `count` are ready."""
    try:
        evaluate = network_evaluate(config, form)
        evaluate([False] * config.game.board.num_edges)  # compiles, the first time
    except BaseException:
        _barriers[count].abort()  # or the others would wait for this one
        raise
    rng = np.random.default_rng((config.seed, worker))
    evaluations = 0

    def counted(drawn: list[bool]) -> tuple[list[float], float]:
        nonlocal evaluations
        evaluations += 1
        return evaluate(drawn)

    _barriers[count].wait(START_SECONDS)
    begin, seconds, played = time.perf_counter(), 0.0, 0
    while played < games or seconds < LEAST_SECONDS:
        simulations, sampled = config.search.simulations, config.selfplay.sampled_plies
        play_game(config.game.board, counted, simulations, sampled, rng)
        played, seconds = played + 1, time.perf_counter() - begin
    return Played(played, evaluations, seconds)
