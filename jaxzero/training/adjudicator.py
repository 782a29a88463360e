"""The host's side of adjudication: threads that solve stopped games while the device plays on."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np

from jaxzero.config import Config
from jaxzero.game import DotsAndBoxes, fullest_beside
from jaxzero.game.board import take_free_boxes
from jaxzero.host.memory import cores
from jaxzero.solver.endgame import TranspositionTable, new_table, solve_many
from jaxzero.training.adjudication import OF_ENDS, Adjudication, Answers, no_answers
from jaxzero.training.parallel import own_devices, own_slices, shard_own

# Per position, about 40 ms. Nearly all positions with 22 undrawn edges need at most a quarter.
NODE_LIMIT = 2**16
# Largest sum of undrawn edges and safe edges of a position to solve. Nodes grow with the sum; above
# this limit hardly any position is solved within NODE_LIMIT.
MOST_TO_SOLVE = 48
CHUNK = 64  # games that a thread takes at a time, with one transposition table
TABLE_ENTRIES = 2**16
NICENESS = 10  # of the solving threads; on a CPU, self-play and learning run first


class Adjudicator:
    """Solves stopped games in threads; the compiled solver releases the GIL.

    Each process solves the games of its own devices. Without adjudication there is nothing to do.
    """

    def __init__(self, config: Config, devices: list[jax.Device]):
        self._config, self._devices = config, devices
        self._pool = ThreadPoolExecutor(cores(), "adjudicator", initializer=_give_way)
        self._batches: deque[Batch] = deque()

    def answer(self, state: Adjudication | None) -> tuple[Adjudication | None, dict[str, float]]:
        """Wait for the games of two iterations ago; return the state with answers, and metrics."""
        if len(self._batches) < 2:
            return state, {}
        begin, batch = time.perf_counter(), self._batches.popleft()
        answers = batch.finished
        seconds, solved = 0.0, 0
        for rows, future in batch.chunks:
            found, spent = future.result()
            seconds += spent
            solved += np.sum(found.solved & found.drawn.any(axis=-1))
            for whole, part in zip(answers, found, strict=True):
                whole[rows] = part
        waited = time.perf_counter() - begin
        own = len(own_devices(self._devices))
        answers = jax.tree.map(lambda x: x.reshape(own, -1, *x.shape[1:]), answers)
        return state._replace(answers=shard_own(answers, self._devices)), {
            "speed/solver_wait_seconds": waited,
            "speed/solved_per_core_second": solved / max(seconds, 1e-9),
        }

    def submit(self, state: Adjudication | None, iteration: int) -> None:
        """Begin to solve the games [D, N] of the iteration that has just ended."""
        config = self._config
        if state is None:
            return
        # A copy, because the next iteration reuses the memory.
        drawn = own_slices(state.newer.ends.drawn)
        drawn = drawn.reshape(-1, drawn.shape[-1])
        own = own_devices(self._devices)
        # Number of games in the processes before this one.
        before = len(drawn) // len(own) * self._devices.index(own[0])
        over = drawn.all(axis=1)
        finished, stored = no_answers(config, len(drawn)), config.solver_positions_per_game
        finished.solved[over, 0] = True  # no box is left: margin 0
        stopped, spare = np.flatnonzero(~over), np.flatnonzero(over)
        parts = min(len(stopped), -(-len(drawn) // CHUNK))
        near = config.selfplay.solver_depth_draws
        chunks = []
        for number in range(parts):
            rows, more = stopped[number::parts], spare[number::parts]
            seed = config.seed, iteration, before + number
            work = solve_stops, config.game.board, drawn[rows], len(more), stored, near, seed
            chunks.append((np.append(rows, more), self._pool.submit(*work)))
        self._batches.append(Batch(finished, chunks))

    def known(self, metrics: dict[str, float], waits: dict[str, float]) -> dict[str, float]:
        """Return all metrics of an iteration; drop those of game ends while they are unknown."""
        if self._config.selfplay.solver_below_edges and not waits:
            metrics = {name: value for name, value in metrics.items() if name not in OF_ENDS}
        return metrics | waits

    def close(self) -> None:
        """Cancel work that has not begun and wait for the rest, a few seconds at most."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Adjudicator:
        return self

    def __exit__(self, *_error) -> None:
        self.close()


class Batch(NamedTuple):
    """The games of one iteration on their way through the solver."""

    finished: Answers  # NumPy [D * N, ...]; games that were over are filled in
    chunks: list[tuple[np.ndarray, Future]]  # rows [P] and their answers [P, ...]


def solve_stops(
    game: DotsAndBoxes, drawn: np.ndarray, more: int, count: int, nearness: int, seed: tuple
) -> tuple[Answers, float]:
    """Solve quiet positions [P, A] and later positions; return answers [P + more, K] and seconds.

    K is `count`; `nearness` is as in `play_on`. The last `more` rows belong to games that were over
    or never began. They get additional later positions of stopped games, chosen at random.
    """
    begin, table = time.perf_counter(), new_table(TABLE_ENTRIES)
    rng = np.random.default_rng(seed)
    found = _solved(game, drawn, table)
    source = np.append(np.arange(len(drawn)), rng.integers(len(drawn), size=more))
    best = (found.best & found.solved[:, None])[source]
    later = [
        _solved(game, play_on(game, drawn[source], best, nearness, rng), table)
        for _ in range(count - 1)
    ]
    over = Answers(*(np.zeros((more, *x.shape[1:]), x.dtype) for x in found))
    over.solved[:] = True
    answers = Answers(
        *(
            np.stack((np.concatenate((stops, ended)), *after), axis=1)
            for stops, ended, *after in zip(found, over, *later, strict=True)
        )
    )
    return answers, time.perf_counter() - begin


def _solved(game: DotsAndBoxes, drawn: np.ndarray, table: TranspositionTable) -> Answers:
    """Return the answers of the solver for quiet positions [P, A]: fields [P, ...]."""
    undrawn, safe = ~drawn, ~drawn & (fullest_beside(game, drawn) < 2)
    tried = undrawn.sum(axis=1) + safe.sum(axis=1) <= MOST_TO_SOLVE
    # A full board, which needs no search, replaces each position that is not tried.
    full = drawn | ~tried[:, None]
    value, best, solved = solve_many(game, full, NODE_LIMIT, table=table)
    return Answers(drawn, best, value, solved & tried)


def play_on(
    game: DotsAndBoxes,
    drawn: np.ndarray,
    best: np.ndarray,
    nearness: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return a later quiet position of each of P games, before the end of the game.

    The first move from `drawn` [P, A] is one of the `best` [P, A], if there are any. Other moves
    are random; with probability 3/4 a game plays safe moves as long as there are any. Draw
    `nearness` depths uniformly and keep the one nearest to `drawn`, because positions there are
    harder. All free boxes are taken.
    """
    position, moves = drawn.copy(), np.where(best.any(axis=1, keepdims=True), best, ~drawn)
    left = np.maximum(2, (~drawn).sum(axis=1))
    nearest = rng.random(len(drawn)) ** (1 / nearness)  # distributed as the largest of `nearness`
    fewest = np.minimum(1 + (nearest * (left - 1)).astype(int), left - 1)
    going, careful = np.ones(len(drawn), bool), rng.random((len(drawn), 1)) < 0.75
    for _ in range(game.num_edges):
        going &= (~position).sum(axis=1) > fewest
        if not going.any():
            break
        edge = np.argmax(rng.random(moves.shape) * moves, axis=1)
        moved = take_free_boxes(game, position | (np.arange(game.num_edges) == edge[:, None]))
        going &= ~moved.all(axis=1)
        position[going] = moved[going]
        safe = ~position & (fullest_beside(game, position) < 2)
        moves = np.where(careful & safe.any(axis=1, keepdims=True), safe, ~position)
    return position


def _give_way() -> None:
    """Lower the priority of this thread, on systems where each thread has its own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
