"""The expert: a network and the exact solver share the time of a decision.

A short search orders the moves and guesses the value. From there a thread tries to prove the value,
while a longer search of the network runs beside it. Once the value is proven, the expert draws an
exact best edge: of several the one that the search prefers, so that a weaker opponent has problems
to solve. Where time ends before, the expert leaves out the edges that are proven to be worth less
than the proven lower bound, and draws what the search prefers of the others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import NamedTuple

import chex
import jax
import numpy as np

from jaxzero.agent.choosing import search_one
from jaxzero.agent.network import Network
from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes
from jaxzero.programs import kept_program
from jaxzero.solver import endgame, proof
from jaxzero.solver.cancellation import check_cancelled, holding, result_of
from jaxzero.solver.endgame import TranspositionTable

# Simulations of a search. Each number compiles a program, so there are few. The first is always
# compiled: it orders the moves at once, and shows how fast the network is here.
SIMULATIONS = (16, 64, 256, 1024, 4096)
# Shares of the time for a decision.
PROOF_ALONE = 0.3  # until then the solver has the cores for itself
LONG_SEARCH = 0.2  # what a long search may take; beside the solver it takes more
PROOF_ENDS = 0.9  # the rest is for the edges that keep what is proven
PROVEN_UNDRAWN = 48  # edges; no proof is tried from more
ENTRIES = 2**21  # positions of a transposition table, 64 MiB


class Opinion(NamedTuple):
    """What a search thinks of one position."""

    edge: jax.Array  # [] int32, the edge to draw
    value: jax.Array  # [] float32, remaining margin of the side to move, boxes
    policy: jax.Array  # [A] float32, over the moves of the position without its free boxes


@dataclass(frozen=True)
class Expert:
    """A network, the time for a decision, and the searches compiled so far."""

    network: Network
    params: chex.ArrayTree  # on the device
    settings: SearchConfig
    seconds: float
    searches: dict[int, Callable] = field(default_factory=dict)  # by simulations
    durations: dict[int, float] = field(default_factory=dict)  # in seconds, by simulations

    def think(self, simulations: int, drawn: np.ndarray) -> Opinion:
        """Search one position [A] bool."""
        return Opinion(*jax.device_get(self.searches[simulations](self.params, drawn)))


def new_expert(
    network: Network, params: chex.ArrayTree, settings: SearchConfig, seconds: float
) -> Expert:
    """Return an expert. Raises: InputError for a board beyond 7x7."""
    game = network.game
    _warm_up(game)
    return Expert(network, jax.device_put(params), settings, seconds)


def _warm_up(game: DotsAndBoxes) -> None:
    """Compile the solver, which would take the time of the first decision."""
    last_ply = np.arange(game.num_edges) > 0
    problem = proof.new_problem(game, last_ply, endgame.new_table(2))
    proof.prove_value(problem, 0.0)
    proof.first_worth(problem, problem.value, [0])


def choose_edges(expert: Expert, _seeds: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Choose an edge in every position [B, A] bool, one after the other: [B] int32."""
    with holding(_turn(expert.network.game)):
        simulations = prepare(expert)
        return np.array([decide(expert, simulations, board) for board in drawn], np.int32)


def decide(expert: Expert, simulations: int, drawn: np.ndarray) -> int:
    """Choose an edge in one position [A] bool; a long search has so many `simulations`."""
    check_cancelled()  # others may have taken their time
    begin = time.monotonic()
    if np.count_nonzero(~drawn) > PROVEN_UNDRAWN:
        return int(expert.think(simulations, drawn).edge)
    problem = problem_of(expert, drawn)

    def at(share: float) -> float:
        return begin + share * expert.seconds

    with ThreadPoolExecutor(1) as pool:
        try:
            opinion = expert.think(SIMULATIONS[0], drawn)
            proving = pool.submit(proof.prove_value, problem, float(opinion.value))
            with suppress(TimeoutError):
                result_of(proving, max(0.0, at(PROOF_ALONE) - time.monotonic()))
            if not proving.done() and simulations > SIMULATIONS[0]:
                opinion = expert.think(simulations, drawn)
            proof.finish(problem, proving, at(PROOF_ENDS))
            order = preference(opinion, drawn)
            looking = pool.submit(proof.first_worth, problem, int(problem.bounds[0]), order)
            return proof.finish(problem, looking, at(1.0))
        finally:
            problem.stop()


def problem_of(expert: Expert, drawn: np.ndarray) -> proof.Problem:
    """Return the problem of a position [A] bool, with the table of all decisions on its board."""
    game = expert.network.game
    return proof.new_problem(game, drawn, _table(game))


def preference(opinion: Opinion, drawn: np.ndarray) -> list[int]:
    """Return the undrawn edges of a position [A] bool, the preferred first."""
    rank = np.where(drawn, -1.0, opinion.policy)
    rank[opinion.edge] = 2.0
    return np.argsort(-rank, kind="stable")[: np.count_nonzero(~drawn)].tolist()


def prepare(expert: Expert) -> int:
    """Compile what the expert needs; return how many simulations a long search has."""
    compile_shortest(expert)
    while True:
        simulations = _longest(expert, SIMULATIONS)
        if simulations in expert.searches:
            return simulations
        _compile(expert, simulations)


def prepare_all(expert: Expert) -> None:
    """Compile every search that the time of a decision allows, the shorter first."""
    compile_shortest(expert)
    for simulations in SIMULATIONS[1:]:
        fits = _longest(expert, (simulations,)) == simulations
        if fits and simulations not in expert.searches:
            _compile(expert, simulations)


def compile_shortest(expert: Expert) -> None:
    """Compile the search without which there is no decision."""
    if SIMULATIONS[0] not in expert.searches:
        _compile(expert, SIMULATIONS[0])


def longest_ready(expert: Expert) -> int:
    """Return how many simulations a long search has, of the searches that are compiled."""
    return _longest(expert, tuple(expert.searches))


def _longest(expert: Expert, known: tuple[int, ...]) -> int:
    """Return the most simulations of these that fit into the time of a long search."""
    shortest, allowed = SIMULATIONS[0], LONG_SEARCH * expert.seconds
    cost = expert.durations[shortest] / shortest  # of a simulation
    fits = [n for n in known if expert.durations.get(n, cost * n) <= allowed]
    return max(fits, default=shortest)


def _compile(expert: Expert, simulations: int) -> None:
    """Compile a search and measure how long it takes."""
    check_cancelled()
    settings = replace(expert.settings, simulations=simulations)
    empty, durations = np.zeros(expert.network.game.num_edges, bool), []
    search = kept_program(partial(_think, expert.network, settings), expert.params, empty)
    for _ in range(3):  # the first call compiles
        begin = time.monotonic()
        jax.device_get(search(expert.params, empty))
        durations.append(time.monotonic() - begin)
    # Another thread may decide: what it finds in `searches` is ready.
    expert.durations[simulations] = min(durations)
    expert.searches[simulations] = search


def _think(
    network: Network, settings: SearchConfig, params: chex.ArrayTree, drawn: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Search one position [A] bool; return the fields of an Opinion."""
    choice, found = search_one(network, settings, params, drawn)
    return choice.edge, choice.value, found.policy[0]


@cache
def _turn(game: DotsAndBoxes) -> threading.Lock:
    """Return the lock of a board: one decision at a time, as experts share the table."""
    return threading.Lock()


@lru_cache(maxsize=2)
def _table(game: DotsAndBoxes) -> TranspositionTable:
    """Return the table of a board, which lasts from move to move."""
    return endgame.new_table(ENTRIES)
