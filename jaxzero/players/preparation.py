"""Compile programs in threads, with stand-ins that answer until the programs are ready.

Requests are compiled in the order of arrival. Until a request is compiled, a stand-in answers
without compiling. A request that nobody waits for any more leaves the queue. If it is already
being compiled, it ends between two programs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Thread
from typing import NamedTuple

import numpy as np

from jaxzero.game import DotsAndBoxes, fullest_beside
from jaxzero.game.board import box_sides_table, take_free_boxes
from jaxzero.players import single
from jaxzero.players.agent import Agent
from jaxzero.players.players import careful_edges
from jaxzero.players.recent import is_marked, mark
from jaxzero.solver.cancellation import cancelled_by
from jaxzero.solver.small import small_values

AT_ONCE = 2  # compiler threads
PATIENCE = 2.0  # seconds that a first answer waits; programs on disk load faster
STAND_INS = {
    "exact": "the exact solver",
    "policy": "the network without search",
    "rules": "a player of simple rules, without a network",
}


class Answer(NamedTuple):
    """The edge to draw, and who chose it."""

    edge: int
    by: str  # a key of STAND_INS


@dataclass(eq=False)
class _Job:
    work: Callable[[], None]  # compiles the programs
    wanted: int = 0  # number of requests that still wait
    begun: bool = False


class _NotWanted(Exception):
    pass


class Preparation:
    """Compile programs for boards in threads; any hashable names a set of programs."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[DotsAndBoxes, Hashable], _Job] = {}  # in order of arrival
        self._changed = Condition()
        self._threads = 0

    def is_done(self, game: DotsAndBoxes, what: Hashable) -> bool:
        """Return whether the programs `what` are compiled and still kept with their board."""
        return is_marked(game, what)

    def begin(self, game: DotsAndBoxes, what: Hashable, work: Callable[[], None]) -> _Job:
        """Queue `work()`, which compiles `what`, whether or not anybody waits for it."""
        with self._changed:
            job = self._jobs.setdefault((game, what), _Job(work))
            job.wanted += 1
            if self._threads < AT_ONCE and not job.begun:
                self._threads += 1
                Thread(target=self._run, name="preparation", daemon=True).start()
        return job

    @contextmanager
    def wanted(
        self, game: DotsAndBoxes, what: Hashable, work: Callable[[], None]
    ) -> Iterator[None]:
        """Queue `work()`, which compiles `what`; the end of the block cancels this request."""
        job = self.begin(game, what, work)
        try:
            yield
        finally:
            with self._changed:
                job.wanted -= 1
                if not job.wanted and not job.begun and self._jobs.get((game, what)) is job:
                    del self._jobs[game, what]

    def polled(
        self, game: DotsAndBoxes, what: Hashable, work: Callable[[], None]
    ) -> Iterator[None]:
        """Yield until `work()` has compiled `what`; closing the iterator cancels this request."""
        if not self.is_done(game, what):
            with self.wanted(game, what, work):
                while not self.is_done(game, what):
                    yield

    def wait(self, game: DotsAndBoxes, what: Hashable, seconds: float) -> bool:
        """Wait up to `seconds` until `what` is compiled; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self.is_done(game, what), seconds)

    def _run(self) -> None:
        """Compile queued jobs until all jobs have begun."""
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
    """Run a job while it is wanted; return False if it was cancelled."""

    def check() -> None:
        if not job.wanted:
            raise _NotWanted

    with cancelled_by(check):
        try:
            job.work()
        except _NotWanted:
            return False
        except Exception:
            return True  # the answer itself meets the same error and reports it
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
    """Return None if `what`, compiled by `work()`, gets ready within `seconds`.

    Otherwise return a stand-in's answer for a position [A] bool while compiling goes on. With
    `exact`, an answer of the exact solver that comes at once replaces the player without compiling.
    """
    if PREPARATION.is_done(game, what):
        return None
    if exact and (found := exact_answer(game, drawn)):
        return found
    PREPARATION.begin(game, what, work)
    return None if PREPARATION.wait(game, what, seconds) else stand_in(game, drawn, agent)


def draws_best(player: str) -> bool:
    """Return whether a player draws the edge it thinks best, so the solver may answer for it."""
    return player == "perfect" or player.startswith(("search", "expert"))


def exact_answer(game: DotsAndBoxes, drawn: np.ndarray) -> Answer | None:
    """Return a best edge of a position [A] bool; None if too many edges are left."""
    values = small_values(game, drawn)
    return None if values is None else Answer(int(values.argmax()), "exact")


def stand_in(
    game: DotsAndBoxes, drawn: np.ndarray, agent: Agent | None = None, seed: int = 0
) -> Answer:
    """Choose an edge of a position [A] bool without compiling."""
    if found := exact_answer(game, drawn):
        return found
    if agent:
        edge = single.edge_if_compiled(agent, drawn)
        if edge is not None:
            return Answer(edge, "policy")
    edges = simple_edges(game, drawn)
    return Answer(int(np.random.default_rng([seed, drawn.sum()]).choice(edges)), "rules")


def simple_edges(game: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return the edges of a position [A] bool that simple rules allow.

    They close a box, else give no box away, else give away the fewest boxes.
    """
    edges = np.flatnonzero(careful_edges(game, drawn[None])[0])
    if fullest_beside(game, drawn)[edges].max() == 2:  # every edge gives boxes away
        after = take_free_boxes(game, drawn | (np.arange(game.num_edges) == edges[:, None]))
        lost = after[:, box_sides_table(game)].all(axis=-1).sum(axis=1)  # with those closed before
        edges = edges[lost == lost.min()]
    return edges
