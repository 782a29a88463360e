"""The usual AlphaZero on the host, to compare with: a tree in Python, one position at a time.

PUCT (Silver et al. 2018) with root noise and reuse of the subtree, over rules in plain Python, in
several processes that each have a network and games of their own. The network is that of the
package, compiled for batches of one in its fastest form. It is faster there than PyTorch's, so the
comparison is conservative.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import chex
import jax
import numpy as np

from jaxzero.config import Config
from jaxzero.game import DotsAndBoxes, box_neighbours
from jaxzero.host.interrupts import end_with_parent
from jaxzero.network.layers import convolution_form
from jaxzero.network.network import Network, expected_margin, init_params
from jaxzero.performance.timing import seconds_per_call

C_PUCT = 1.5
NOISE_ALPHA, NOISE_SHARE = 0.3, 0.25
LEAST_SECONDS = 1  # of play in one turn of a process

# From drawn edges [A] to (a prior per edge [A], value for the side to move, in boxes won: -1 to 1)
Evaluate = Callable[[list[bool]], tuple[list[float], float]]


class Board:
    """One game that can take moves back."""

    def __init__(self, game: DotsAndBoxes):
        self.beside = [
            [box for box in pair if box < game.num_boxes] for pair in box_neighbours(game).tolist()
        ]
        self.num_boxes = game.num_boxes
        self.drawn = [False] * game.num_edges
        self.sides = [0] * game.num_boxes
        self.left = game.num_edges

    def legal(self) -> list[int]:
        return [edge for edge, drawn in enumerate(self.drawn) if not drawn]

    def play(self, edge: int) -> int:
        """Draw a undrawn edge and return how many boxes it closes; with any, the mover goes on."""
        self.drawn[edge] = True
        self.left -= 1
        closed = 0
        for box in self.beside[edge]:
            self.sides[box] += 1
            closed += self.sides[box] == 4
        return closed

    def undo(self, edge: int) -> None:
        self.drawn[edge] = False
        self.left += 1
        for box in self.beside[edge]:
            self.sides[box] -= 1


class Node:
    """A position of the tree, with one entry per legal edge."""

    __slots__ = ("children", "edges", "priors", "totals", "visits")

    def __init__(self, edges: list[int], priors: list[float]):
        self.edges = edges
        self.priors = priors
        self.visits = [0] * len(edges)
        self.totals = [0.0] * len(edges)  # sums of values for the side to move here
        self.children: list[Node | None] = [None] * len(edges)

    def select(self) -> int:
        """Return the entry with the highest PUCT score."""
        scale = C_PUCT * math.sqrt(1 + sum(self.visits))
        best, best_score = 0, -math.inf
        for entry, visits in enumerate(self.visits):
            score = scale * self.priors[entry] / (1 + visits)
            if visits:
                score += self.totals[entry] / visits
            if score > best_score:
                best, best_score = entry, score
        return best


def expand(board: Board, evaluate: Evaluate) -> tuple[Node, float]:
    """Evaluate the position on the board: its node and its value for the side to move."""
    priors, value = evaluate(board.drawn)
    edges = board.legal()
    kept = [priors[edge] for edge in edges]
    total = sum(kept) or 1.0
    return Node(edges, [prior / total for prior in kept]), value


def simulate(board: Board, root: Node, evaluate: Evaluate) -> None:
    """Add one visit to the tree; the board is as before."""
    path, node = [], root
    while True:
        entry = node.select()
        closed = board.play(node.edges[entry])
        path.append((node, entry, closed))
        if not board.left:
            value = 0.0
            break
        child = node.children[entry]
        if child is None:
            node.children[entry], value = expand(board, evaluate)
            break
        node = child
    for node, entry, closed in reversed(path):
        # Who closes a box moves again, so only without one the value changes sides.
        value = closed / board.num_boxes + value if closed else -value
        node.visits[entry] += 1
        node.totals[entry] += value
        board.undo(node.edges[entry])


def add_noise(root: Node, rng: np.random.Generator) -> None:
    """Mix Dirichlet noise into the priors of the root."""
    noise = rng.dirichlet([NOISE_ALPHA] * len(root.edges)).tolist()
    root.priors = [
        (1 - NOISE_SHARE) * prior + NOISE_SHARE * extra
        for prior, extra in zip(root.priors, noise, strict=True)
    ]


def search_moves(board: Board, root: Node, evaluate: Evaluate, simulations: int) -> list[int]:
    """Run `simulations` and return the visits of the root's entries, reused ones included."""
    for _ in range(simulations):
        simulate(board, root, evaluate)
    return root.visits


def play_game(
    config: Config, evaluate: Evaluate, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Play one game and return of every ply the edge and the number of boxes it closed."""
    game = config.game.board
    board, record = Board(game), []
    root, _ = expand(board, evaluate)
    for ply in range(game.num_edges):
        add_noise(root, rng)
        visits = search_moves(board, root, evaluate, config.search.simulations)
        if ply < config.selfplay.sampled_plies:
            entry = rng.choice(len(visits), p=np.array(visits) / sum(visits))
        else:
            entry = max(range(len(visits)), key=visits.__getitem__)
        edge, child = root.edges[entry], root.children[entry]
        record.append((edge, board.play(edge)))
        if board.left:
            root = child or expand(board, evaluate)[0]
    return record


# The network and the processes


def network_evaluate(config: Config, form: str | None) -> Evaluate:
    """Return the network of a config as a function of one board; `form` is of its convolutions."""
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


def fastest_form(config: Config) -> str | None:
    """Return the form of the convolutions that is fastest at batch one; None without them."""
    if config.network.trunk != "conv":
        return None
    if jax.default_backend() != "cpu":
        return convolution_form(config.network, 1)
    forms, empty = ("direct", "shifted"), [False] * config.game.board.num_edges
    evaluates = [network_evaluate(config, form) for form in forms]
    calls = (lambda evaluate=evaluate: evaluate(empty)[1] for evaluate in evaluates)
    return min(zip(seconds_per_call(*calls, rounds=20), forms, strict=True))[1]


class Played(NamedTuple):
    """What one process did in one turn."""

    games: int
    evaluations: int
    seconds: float


class Baseline:
    """Processes that play together whenever it is called."""

    def __init__(self, pipes: list[Connection], form: str | None):
        self._pipes, self._form = pipes, form
        self._turns: list[list[Played]] = []

    def __call__(self) -> None:
        """Let all processes play at once. The first call also waits until they are ready."""
        for pipe in self._pipes:
            pipe.send("play")
        self._turns.append([pipe.recv() for pipe in self._pipes])

    def summary(self, games_per_second: float) -> dict[str, Any]:
        """Return medians over all turns but the first; `ratio` is how many times faster we are."""
        turns = self._turns[1:]
        # Sums of rates: a process that ends before the others does not count as idle.
        games = statistics.median(sum(p.games / p.seconds for p in turn) for turn in turns)
        evaluations = [sum(p.evaluations / p.seconds for p in turn) for turn in turns]
        return {
            "processes": len(self._pipes),
            "convolution": self._form,
            "games": sum(p.games for turn in turns for p in turn),
            "games_per_second": games,
            "evaluations_per_second": statistics.median(evaluations),
            "ratio": games_per_second / games,
        }


@contextmanager
def baseline_processes(config: Config, count: int) -> Iterator[Baseline]:
    """Yield a baseline of `count` processes, which end with this one."""
    context = multiprocessing.get_context("spawn")
    form = fastest_form(config)
    pipes, others = zip(*(context.Pipe() for _ in range(count)), strict=True)
    workers = [
        context.Process(target=_serve, args=(other, config, form, number), daemon=True)
        for number, other in enumerate(others)
    ]
    # The processes inherit the blocked signal: Ctrl-C is for this one.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    for worker, other in zip(workers, others, strict=True):
        worker.start()
        other.close()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield Baseline(list(pipes), form)
    finally:
        for worker in workers:
            worker.terminate()


def _serve(pipe: Connection, config: Config, form: str | None, number: int) -> None:
    """Play a turn for every message on `pipe`."""
    end_with_parent(multiprocessing.parent_process().sentinel)
    # Before this process touches a device: by default the first one would take most of its memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    evaluate, rng = network_evaluate(config, form), np.random.default_rng((config.seed, number))
    evaluate([False] * config.game.board.num_edges)  # compiles
    with suppress(EOFError):  # the other end is closed
        while pipe.recv():
            pipe.send(_play_turn(config, evaluate, rng))


def _play_turn(config: Config, evaluate: Evaluate, rng: np.random.Generator) -> Played:
    """Play whole games for at least `LEAST_SECONDS`."""
    evaluations, games, seconds, begin = 0, 0, 0.0, time.perf_counter()

    def counted(drawn: list[bool]) -> tuple[list[float], float]:
        nonlocal evaluations
        evaluations += 1
        return evaluate(drawn)

    while seconds < LEAST_SECONDS:
        play_game(config, counted, rng)
        games, seconds = games + 1, time.perf_counter() - begin
    return Played(games, evaluations, seconds)
