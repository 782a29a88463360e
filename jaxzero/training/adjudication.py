"""Adjudication: games stop where the exact solver can say how they end, as with chess tablebases.

The device plays on while the cores of the host solve. Iteration i hands over the positions at which
its games stopped. They are solved during iteration i + 1, and iteration i + 2 takes the answers. It
writes the margins of iteration i into the replay, where its positions stand with margins unknown,
and adds the solved positions themselves, with the best moves as policy.

Answers are lost where a run stops and resumes: margins of its last two iterations stay unknown.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import Config
from jaxzero.game import DotsAndBoxes, State, boxes_closed, fullest_beside
from jaxzero.game.board import box_sides_table
from jaxzero.game.quiet import FreeBoxes, declines, free_boxes, whole_value
from jaxzero.solver.endgame import TranspositionTable, new_table, solve_many
from jaxzero.training import targets
from jaxzero.training.games import Games, first_player_margin
from jaxzero.training.parallel import own_devices, own_slices, spread_own
from jaxzero.training.replay import Replay, add, relabel
from jaxzero.training.targets import (
    Decisions,
    Positions,
    possible_margin,
    resample,
    result_metrics,
    safe_ends,
    totals,
)

# Of one position, about 40 ms. Nearly all with 22 undrawn edges need a quarter of it at most.
NODE_LIMIT = 2**16
CHUNK = 64  # games that a thread takes at a time, with one transposition table
TABLE_ENTRIES = 2**16
OF_ENDS = tuple(
    f"selfplay/{name}"
    for name in ("first_margin", "first_wins", "draws", "adjudicated", "unsolved")
)
NICENESS = 10  # of the solving threads: the device comes first where it is the host


class Stops(NamedTuple):
    """The ends of N games: where they stopped, before free boxes are taken or declined."""

    drawn: jax.Array  # [N, A] bool, edges once all free boxes are taken; all: over or never begun
    ahead: jax.Array  # [N] int32, boxes of the first player minus those of the second
    player: jax.Array  # [N] int32, side to move
    free: FreeBoxes  # [N]


class Postponed(NamedTuple):
    """What the margins of P stored positions will be: slope * result of the game + offset."""

    game: jax.Array  # [P] int32
    slope: jax.Array  # [P] float32, 0 where searches alone say it
    offset: jax.Array  # [P] float32
    known: jax.Array  # [P] bool, as soon as the result is
    left: jax.Array  # [P] int32, boxes not closed yet


# The first player's final margins [N] int32 of games that are played out, else `Stops`.
Ends = jax.Array | Stops


class Waiting(NamedTuple):
    """What one iteration waits for."""

    postponed: Postponed | None  # [P]; None: results are known at once
    ends: Ends  # [N]
    begun: jax.Array  # [N] bool, the game was played


class Answers(NamedTuple):
    """What the solver says about N games: K positions of each, the one it stopped at first."""

    drawn: jax.Array  # [N, K, A] bool, quiet positions
    best: jax.Array  # [N, K, A] bool, all moves that keep the value
    value: jax.Array  # [N, K] int32, margin of the side to move, in boxes
    solved: jax.Array  # [N, K] bool, within the limit of nodes


class Adjudication(NamedTuple):
    """Games of one device that wait for the solver; the host puts the answers here."""

    older: Waiting  # of two iterations ago, which the answers are for
    newer: Waiting  # of the last iteration
    answers: Answers


def ends_of(config: Config, position: State, games: Games) -> Ends:
    """Return how games [B] end at the positions that are searched next."""
    if not config.selfplay.adjudicate_below:
        return first_player_margin(position)
    ahead = first_player_margin(games.state)
    return Stops(position.drawn, ahead, games.state.player, free_boxes(games.view))


def no_ends(config: Config, games: int) -> Ends:
    """Return the ends of so many games of which none has begun."""
    zeros = jnp.zeros(games, jnp.int32)
    if not config.selfplay.adjudicate_below:
        return zeros
    drawn = jnp.ones((games, config.game.board.num_edges), bool)
    return Stops(drawn, zeros, zeros, FreeBoxes(zeros, zeros))


def label(
    config: Config, decisions: Decisions, ends: Ends, begun: jax.Array, key: jax.Array
) -> tuple[tuple[Positions, Postponed | None], dict[str, jax.Array]]:
    """Return all decisions [T * B] as positions, what their margins wait for, and metrics."""
    if config.selfplay.adjudicate_below:
        return postpone(config, decisions, len(begun)), {}
    metrics = result_metrics(ends, begun, jnp.sum(begun))
    return (targets.label(config, decisions, ends, key), None), metrics


def init_adjudication(config: Config, games: int) -> Adjudication | None:
    """Return the state of a device of `games` games that waits for nothing."""
    if not config.selfplay.adjudicate_below:
        return None
    count = config.positions_per_game * games
    whole, real = jnp.zeros(count, jnp.int32), jnp.zeros(count, jnp.float32)
    postponed = Postponed(whole, real, real, jnp.zeros(count, bool), whole)
    waiting = Waiting(postponed, no_ends(config, games), jnp.zeros(games, bool))
    answers = jax.tree.map(jnp.asarray, no_answers(config, games))
    return Adjudication(waiting, waiting, answers)


def no_answers(config: Config, games: int) -> Answers:
    """Return NumPy answers about `games` games of which none is solved."""
    rows, edges = (games, config.solved_per_game), config.game.board.num_edges
    boards = np.zeros((2, *rows, edges), bool)
    return Answers(*boards, np.zeros(rows, np.int32), np.zeros(rows, bool))


def postpone(config: Config, decisions: Decisions, games: int) -> tuple[Positions, Postponed]:
    """Return all decisions [T * B] as positions without margins, and what these will be."""
    # The target is the result, or a mean of it and of searches: two results give all the others.
    two = jnp.array([[0], [1]]).repeat(games, axis=1)
    target, known = jax.vmap(partial(totals, config.selfplay, decisions))(two)
    sign = jnp.where(decisions.player == 0, 1.0, -1.0)
    closed = jax.vmap(jax.vmap(partial(boxes_closed, config.game.board)))(decisions.drawn)
    postponed = Postponed(
        game=decisions.game,
        slope=sign * (target[1] - target[0]),
        offset=sign * (target[0] - decisions.ahead),
        known=known[0],
        left=config.game.board.num_boxes - closed,
    )
    nothing = jnp.zeros(decisions.game.shape, jnp.int32)
    no, safe_end = nothing > 0, safe_ends(config, decisions)
    positions = Positions(decisions.drawn, decisions.policy, nothing, no, no, safe_end)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (positions, postponed))


def store(
    config: Config,
    replay: Replay,
    state: Adjudication | None,
    positions: Positions,
    waiting: Waiting,
    key: jax.Array,
) -> tuple[Replay, Adjudication | None, dict[str, jax.Array]]:
    """Add the positions of an iteration to the ring; return ring, state and metrics.

    Take the answers about the games of two iterations ago too: the ring gets their margins and
    solved positions [N * K].
    """
    if state is None:
        return add(replay, positions), None, {}
    uniform_key, offset_key = jax.random.split(jax.random.fold_in(key, 2))
    newer, (waiting, stops, begun), answers = waiting, state.older, state.answers
    result, known = results(stops, answers), answers.solved[:, 0]
    uniform = jax.random.uniform(uniform_key, waiting.left.shape)
    to_come = waiting.slope * result[waiting.game] + waiting.offset
    replay = relabel(
        replay,
        2 * config.positions_per_iteration * len(begun) // config.selfplay.games,
        possible_margin(to_come, waiting.left, uniform),
        waiting.known & (known[waiting.game] | (waiting.slope == 0)),
    )
    stopped = begun & ~jnp.all(stops.drawn, axis=-1)
    count = jnp.maximum(1, jnp.sum(begun))
    counted = begun & known
    metrics = result_metrics(result, counted, jnp.maximum(1, jnp.sum(counted))) | {
        "selfplay/adjudicated": jnp.sum(stopped & known) / count,
        "selfplay/unsolved": jnp.sum(stopped & ~known) / count,
        "selfplay/solved": jnp.sum(_usable(answers)),
    }
    solved = solved_positions(config, answers, jax.random.uniform(offset_key))
    positions = jax.tree.map(lambda *x: jnp.concatenate(x), positions, solved)
    return add(replay, positions), state._replace(older=state.newer, newer=newer), metrics


def results(stops: Stops, answers: Answers) -> jax.Array:
    """Return the first player's final margins [N] int32, where the first positions are solved."""
    value = answers.value[:, 0]
    to_come = whole_value(stops.free, value, declines(stops.free, value))
    return stops.ahead + jnp.where(stops.player == 0, to_come, -to_come)


def solved_positions(config: Config, answers: Answers, offset: jax.Array) -> Positions:
    """Return answers [N, K] as positions [N * K]; those that are missing are copies of others.

    Without any answer they teach nothing: no policy and no margin.
    """
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), answers)
    usable = _usable(flat)
    best = flat.best & usable[:, None]
    several = jnp.sum(best, axis=-1) > 1
    safe_end = jnp.full_like(flat.value, -1) if config.network.safe_end else ()
    policy = best.astype(jnp.float32)
    positions = Positions(flat.drawn, policy, flat.value, usable, several, safe_end)
    return resample(positions, usable, len(usable), offset)


def _usable(answers: Answers) -> jax.Array:
    """Return which answers are about a position that is solved and not over: [..., K] bool."""
    return answers.solved & jnp.any(answers.best, axis=-1)


class Adjudicator:
    """Solves stopped games in threads: the compiled solver holds no lock of Python.

    Each process solves the games of its own devices.
    """

    def __init__(self, config: Config, devices: list[jax.Device]):
        self._config, self._devices = config, devices
        self._pool = ThreadPoolExecutor(_cores(), "adjudicator", initializer=_give_way)
        self._batches: deque[Batch] = deque()

    def answer(self, state: Adjudication) -> tuple[Adjudication, dict[str, float]]:
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
        return state._replace(answers=spread_own(answers, self._devices)), {
            "speed/solver_wait_seconds": waited,
            "speed/solved_per_core_second": solved / max(seconds, 1e-9),
        }

    def submit(self, state: Adjudication, iteration: int) -> None:
        """Begin to solve the games [D, N] of the iteration that has just ended."""
        config = self._config
        # Copied: the next iteration takes the memory.
        drawn = own_slices(state.newer.ends.drawn)
        drawn = drawn.reshape(-1, drawn.shape[-1])
        own = own_devices(self._devices)
        # Games of the processes before this one.
        before = len(drawn) // len(own) * self._devices.index(own[0])
        over = drawn.all(axis=1)
        finished, stored = no_answers(config, len(drawn)), config.solved_per_game
        finished.solved[over, 0] = True  # worth 0
        stopped, spare = np.flatnonzero(~over), np.flatnonzero(over)
        parts = min(len(stopped), -(-len(drawn) // CHUNK))
        near = config.selfplay.solved_nearness
        chunks = []
        for number in range(parts):
            rows, more = stopped[number::parts], spare[number::parts]
            seed = config.seed, iteration, before + number
            work = solve_stops, config.game.board, drawn[rows], len(more), stored, near, seed
            chunks.append((np.append(rows, more), self._pool.submit(*work)))
        self._batches.append(Batch(finished, chunks))

    def close(self) -> None:
        """Drop what has not begun and wait for the rest, some seconds at most."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Adjudicator:
        return self

    def __exit__(self, *_error) -> None:
        self.close()


class Batch(NamedTuple):
    """The games of one iteration on their way through the solver."""

    finished: Answers  # NumPy [D * N, ...]; games that were over need no solver
    chunks: list[tuple[np.ndarray, Future]]  # rows [P] and their answers [P, ...]


def solve_stops(
    game: DotsAndBoxes, drawn: np.ndarray, more: int, count: int, nearness: int, seed: tuple
) -> tuple[Answers, float]:
    """Solve quiet positions [P, A] and later ones of each: answers [P + more, K] and seconds.

    K is `count`; `nearness` is as in `play_on`. The last `more` rows are of games that were over or
    never began. They have places too, and hold other later ones of a position drawn by lot.
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
    """Return what the solver says about positions [P, A]: fields [P, ...]."""
    value, best, solved = solve_many(game, drawn, NODE_LIMIT, table=table)
    return Answers(drawn, best, value, solved)


def play_on(
    game: DotsAndBoxes,
    drawn: np.ndarray,
    best: np.ndarray,
    nearness: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return a quiet position from further on in each of P games, before their end.

    From `drawn` [P, A] the first move is one of the `best` [P, A] where there are any, the others
    are random: in three games of four safe moves as long as there are any. Of `nearness` depths
    drawn evenly the one nearest to `drawn` counts, as positions there are harder. All free boxes
    are taken.
    """
    position, moves = drawn.copy(), np.where(best.any(axis=1, keepdims=True), best, ~drawn)
    left = np.maximum(2, (~drawn).sum(axis=1))
    nearest = rng.random(len(drawn)) ** (1 / nearness)  # distributed as the largest of so many
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


def take_free_boxes(game: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return the quiet positions behind positions [P, A] whose free boxes are all taken."""
    sides, drawn = box_sides_table(game), drawn.copy()
    while True:
        row, box = np.nonzero(drawn[:, sides].sum(axis=-1) == 3)
        if not len(row):
            return drawn
        drawn[row[:, None], sides[box]] = True


def _cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _give_way() -> None:
    """Let other threads run first, where threads have a priority of their own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
