"""Compiling in threads, and who answers meanwhile: no first move waits for a compiler.

What is wanted for a board is compiled in the order of asking. Until it is done a stand-in answers,
with what needs no compiling. What nobody wants any more leaves the queue, and ends between two
programs where it is compiled already.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Thread
from typing import NamedTuple

import numpy as np

from jaxzero.game import DotsAndBoxes, fullest_beside
from jaxzero.host.interrupts import ends_threads
from jaxzero.players import single
from jaxzero.players.agent import Agent
from jaxzero.players.players import careful_edges
from jaxzero.players.recent import is_marked, mark
from jaxzero.solver.cancellation import cancelled_by
from jaxzero.solver.small import small_values

AT_ONCE = 2  # threads that compile
PATIENCE = 2.0  # seconds that a first answer waits: programs kept on disk are loaded in less
STAND_INS = {
    "exact": "the exact solver",
    "policy": "the network without search",
    "rules": "a player of simple rules, without a network",
}


class Answer(NamedTuple):
    """The edge to draw, and who chose it."""

    edge: int
    by: str  # a key of STAND_INS; "search" where nobody stood in


@dataclass(eq=False)
class _Job:
    work: Callable[[], None]  # what compiles
    wanted: int = 0  # times
    begun: bool = False


class _NotWanted(Exception):
    pass


class Preparation:
    """Threads that compile what is wanted for boards; something is named by any hashable."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[DotsAndBoxes, Hashable], _Job] = {}  # in the order of asking
        self._changed = Condition()
        self._threads = 0

    def is_done(self, game: DotsAndBoxes, what: Hashable) -> bool:
        """Return whether something has been compiled, and is kept with its board."""
        return is_marked(game, what)

    def begin(self, game: DotsAndBoxes, what: Hashable, work: Callable[[], None]) -> _Job:
        """Have something compiled by `work()`, whether anybody waits for it or not."""
        with self._changed:
            job = self._jobs.setdefault((game, what), _Job(work))
            job.wanted += 1
            if self._threads < AT_ONCE and not job.begun:
                self._threads += 1
                # Python aborts where it ends while a thread compiles: it waits for this thread,
                # but not in a script, which ends all threads.
                Thread(target=self._run, name="preparation", daemon=ends_threads()).start()
        return job

    @contextmanager
    def wanted(
        self, game: DotsAndBoxes, what: Hashable, work: Callable[[], None]
    ) -> Iterator[None]:
        """Have something compiled by `work()`, in turn, unless the block ends before."""
        job = self.begin(game, what, work)
        try:
            yield
        finally:
            with self._changed:
                job.wanted -= 1
                if not job.wanted and not job.begun and self._jobs.get((game, what)) is job:
                    del self._jobs[game, what]

    def wait(self, game: DotsAndBoxes, what: Hashable, seconds: float) -> bool:
        """Wait until something is compiled, at most so long; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self.is_done(game, what), seconds)

    def _run(self) -> None:
        """Compile until nothing is wanted that has not begun."""
        while True:
            with self._changed:
                begun = next((one for one in self._jobs.items() if not one[1].begun), None)
                if begun is None:
                    self._threads -= 1
                    return
                (game, what), job = begun
                job.begun = True
            done = _is_finished(job)
            with self._changed:
                job.begun = False
                if done:
                    mark(game, what)
                if done or not job.wanted:
                    del self._jobs[game, what]
                self._changed.notify_all()


def _is_finished(job: _Job) -> bool:
    """Do a job for as long as it is wanted; return whether it came to its end."""

    def check() -> None:
        if not job.wanted:
            raise _NotWanted

    with cancelled_by(check):
        try:
            job.work()
        except _NotWanted:
            return False
        except Exception:
            return True  # whatever is wrong, the answer itself meets it and says so
    return True


PREPARATION = Preparation()


def first_answer(
    game: DotsAndBoxes,
    drawn: np.ndarray,
    what: Hashable,
    work: Callable[[], None],
    agent: Agent | None = None,
    seconds: float = PATIENCE,
    exact: bool = True,
) -> Answer | None:
    """Return None where `what`, compiled by `work()`, is ready or gets ready in so many seconds.

    Else a stand-in answers for a position [A] bool, and compiling goes on. Where the exact solver
    answers at once, and that is as good (`exact`), nothing begins to compile.
    """
    if PREPARATION.is_done(game, what):
        return None
    if exact and (found := exact_answer(game, drawn)):
        return found
    PREPARATION.begin(game, what, work)
    return None if PREPARATION.wait(game, what, seconds) else stand_in(game, drawn, agent)


def draws_best(player: str) -> bool:
    """Return whether a player draws what it holds for best: the exact solver may answer for it."""
    return player == "perfect" or player.startswith(("search", "expert"))


def exact_answer(game: DotsAndBoxes, drawn: np.ndarray) -> Answer | None:
    """Return a best edge of a position [A] bool where so few are left that it comes at once."""
    values = small_values(game, drawn)
    return None if values is None else Answer(int(values.argmax()), "exact")


def stand_in(
    game: DotsAndBoxes, drawn: np.ndarray, agent: Agent | None = None, seed: int = 0
) -> Answer:
    """Choose an edge of a position [A] bool with what needs no compiling now."""
    if found := exact_answer(game, drawn):
        return found
    if agent:
        edge = single.edge_if_compiled(agent, drawn)
        if edge is not None:
            return Answer(edge, "policy")
    edges = simple_edges(game, drawn)
    return Answer(int(np.random.default_rng([seed, drawn.sum()]).choice(edges)), "rules")


def simple_edges(game: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return the edges of a position [A] bool from which a player of simple rules draws one.

    They close a box, else give none away, else give the fewest away.
    """
    edges = np.flatnonzero(careful_edges(game, drawn[None])[0])
    if fullest_beside(game, drawn)[edges].max() == 2:  # all give boxes away
        lost = [_boxes_given(game, drawn, edge) for edge in edges]
        edges = edges[np.equal(lost, min(lost))]
    return edges


def _boxes_given(game: DotsAndBoxes, drawn: np.ndarray, edge: int) -> int:
    """Return how many edges that close boxes follow an edge."""
    drawn, count = drawn.copy(), 0
    while edge is not None:
        drawn[edge] = True
        closing = np.flatnonzero(~drawn & (fullest_beside(game, drawn) == 3))
        edge, count = (closing[0], count + 1) if len(closing) else (None, count)
    return count
