"""Play as the expert: a network and the exact solver share the time of a decision.

A short search orders the moves and estimates the value. Then all cores try to prove the value,
while a longer search by the network runs beside them. Once the value is proven, the expert draws a
best edge. Among several best edges it draws the one that the search prefers, because that one is
harder for a weaker opponent. If time runs out first, the expert excludes edges that are proven
worse than the proven lower bound. It draws an edge proven to reach that bound, if there is one,
else an edge with the highest upper bound; the preference of the search breaks ties.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

import jax
import numpy as np

from jaxzero.game import DotsAndBoxes, fullest_beside
from jaxzero.host.memory import cores
from jaxzero.network.network import Agent
from jaxzero.players.network_player import Answer, choose_edge
from jaxzero.solver import endgame, proof
from jaxzero.solver.endgame import TranspositionTable

# Simulations of a search. The first number orders the moves and measures the network's speed.
SIMULATIONS = (16, 64, 256, 1024, 4096)
# Shares of the time for a decision.
PROOF_ALONE = 0.3  # until then the solver has all cores
LONG_SEARCH = 0.2  # budget of a long search; beside the solver it takes longer
SEARCH_ALONE = 0.7  # budget of a search without a proof
PROOF_ENDS = 0.9  # the rest is for finding an edge with the proven value
PROVEN_UNDRAWN = 48  # most undrawn edges for which a proof is tried
ENTRIES = (2**21, 2**23)  # least and most positions of a transposition table, 64 to 256 MiB
ENTRIES_PER_CORE_SECOND = 2**20  # a core searches four times this number


@dataclass(frozen=True)
class Expert:
    """A network and the time for a decision."""

    agent: Agent  # with weights on the device
    seconds: float
    durations: dict[int, float] = field(default_factory=dict)  # in seconds, by simulations
    entries: int = ENTRIES[0]  # positions of the table; experts with equal numbers share it

    def think(self, simulations: int, drawn: np.ndarray) -> Answer:
        """Search one position [A] bool; record the shortest duration of such a search."""
        begin = time.monotonic()
        answer = choose_edge(self.agent, drawn, simulations)
        seconds = time.monotonic() - begin
        self.durations[simulations] = min(seconds, self.durations.get(simulations, seconds))
        return answer

    @property
    def board(self) -> DotsAndBoxes:
        return self.agent.network.board


def new_expert(agent: Agent, seconds: float) -> Expert:
    """Return an expert. On a board beyond 7x7 it only searches, without the solver."""
    fitting = int(ENTRIES_PER_CORE_SECOND * seconds * cores())
    entries = min(max(ENTRIES[0], 1 << (fitting - 1).bit_length()), ENTRIES[1])
    agent = replace(agent, params=jax.device_put(agent.params))
    return Expert(agent, seconds, entries=entries)


def choose_edges(expert: Expert, _seeds: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Choose an edge in every position [B, A] bool, one after the other: [B] int32."""
    with _turn(expert.board):
        prepare(expert)
        return np.array([decide(expert, board) for board in drawn], np.int32)


def decide(expert: Expert, drawn: np.ndarray) -> int:
    """Choose an edge in one position [A] bool."""
    begin = time.monotonic()
    if not may_prove(expert.board, drawn):
        return int(expert.think(longest(expert, SEARCH_ALONE), drawn).edge)
    simulations = longest(expert, LONG_SEARCH)
    task = task_of(expert, drawn, cores())

    def at(share: float) -> float:
        return begin + share * expert.seconds

    with ThreadPoolExecutor(1) as pool:
        try:
            opinion = expert.think(SIMULATIONS[0], drawn)
            quiet = (fullest_beside(expert.board, drawn)[~drawn] < 3).all()
            order = preference(opinion, drawn) if quiet else ()  # a rule takes free boxes
            proving = pool.submit(proof.prove_value, task, float(opinion.value), order)
            with suppress(TimeoutError):
                proving.result(max(0.0, at(PROOF_ALONE) - time.monotonic()))
            if not proving.done() and simulations > SIMULATIONS[0]:
                opinion = expert.think(simulations, drawn)
            proof.finish(task, proving, at(PROOF_ENDS))
            order = preference(opinion, drawn)
            looking = pool.submit(proof.first_worth, task, int(task.bounds[0]), order)
            return proof.finish(task, looking, at(1.0))
        finally:
            task.stop()


def may_prove(board: DotsAndBoxes, drawn: np.ndarray) -> bool:
    """Return whether the expert tries to prove a position [A] bool."""
    return np.count_nonzero(~drawn) <= PROVEN_UNDRAWN and endgame.can_solve(board)


def task_of(expert: Expert, drawn: np.ndarray, threads: int) -> proof.ProofTask:
    """Return the task of a position [A] bool, with the shared table of its board."""
    board = expert.board
    return proof.new_task(board, drawn, _table(board, expert.entries), threads)


def preference(opinion: Answer, drawn: np.ndarray) -> list[int]:
    """Return the undrawn edges of a position [A] bool, the preferred edge first."""
    rank = np.where(drawn, -1.0, opinion.policy)
    rank[opinion.edge] = 2.0
    return np.argsort(-rank, kind="stable")[: np.count_nonzero(~drawn)].tolist()


def prepare(expert: Expert) -> None:
    """Compile search and solver, and measure the speed of the search."""
    if SIMULATIONS[0] not in expert.durations:
        board = expert.board
        if endgame.can_solve(board):
            last_ply = np.arange(board.num_edges) > 0
            task = proof.new_task(board, last_ply, endgame.new_table(2))
            proof.prove_value(task, 0.0)
            proof.first_worth(task, task.value, [0])
        empty = np.zeros(board.num_edges, bool)
        choose_edge(expert.agent, empty, SIMULATIONS[0])
        for _ in range(2):
            expert.think(SIMULATIONS[0], empty)


def longest(expert: Expert, share: float) -> int:
    """Return the most simulations that fit into a share of the time for a decision."""
    shortest, allowed = SIMULATIONS[0], share * expert.seconds
    cost = expert.durations[shortest] / shortest  # of a simulation
    fits = [n for n in SIMULATIONS if expert.durations.get(n, cost * n) <= allowed]
    return max(fits, default=shortest)


@cache
def _turn(board: DotsAndBoxes) -> threading.Lock:
    """Return the lock of a board: one decision at a time, because experts share the table."""
    return threading.Lock()


@lru_cache(maxsize=2)
def _table(_board: DotsAndBoxes, entries: int) -> TranspositionTable:
    """Return the transposition table of a board, kept between moves."""
    return endgame.new_table(entries)
