"""Analyse a position: the value of every edge, the expected end, the chains, the proofs.

An analysis improves in stages. It begins with the structure of the position, from the rules alone,
and with the proofs that the exact solver finds within 0.1 seconds. Then one evaluation by the
network values every edge, and a search improves the values of the best edges. Last, the solver
replaces estimates by proofs as far as its time allows.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Generic, TypeVar

import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, box_neighbours, fullest_beside
from jaxzero.game.structure import Structure
from jaxzero.host.memory import cores
from jaxzero.network.network import Agent
from jaxzero.play.looking import (
    exact_line,
    line_of_play,
    look_at,
    moves_of,
    structure_of,
)
from jaxzero.players.network_player import choose_edge
from jaxzero.solver.endgame import (
    ILLEGAL,
    Solution,
    TranspositionTable,
    can_solve,
    is_compiled,
    move_bounds,
    new_table,
    solve,
)
from jaxzero.solver.small import small_values

LONG = 3  # boxes of the shortest long chain
AT_ONCE, FIRST_SLICE, LONGEST_SLICE = 0.1, 0.2, 0.5  # seconds of one solver call
TABLE_ENTRIES = 2**20  # positions, 32 MiB
JUDGED_EXACTLY = 38  # most undrawn edges for which `prove` calls the solver
MAX_LINES = 3


@dataclass(frozen=True)
class EdgeFacts:
    """One undrawn edge. Values are boxes still to come for the side to move."""

    edge: int
    kind: str  # takes, safe, hard-hearted, half-hearted or loony
    prior: float | None = None  # the network's probability
    visits: int | None = None
    value: float | None = None
    lost: float | None = None  # boxes worse than the best edge
    exact: bool = False  # value and lost are proven
    bound: bool = False  # proven: value is at most this, lost at least this


@dataclass(frozen=True)
class Chain:
    """A chain or loop of the position after all free boxes are taken, or the free boxes."""

    boxes: tuple[int, ...]
    kind: str  # chain, loop, free, or single: a box that no other box continues
    edges: tuple[int, ...]  # undrawn edges of its boxes


Value = TypeVar("Value", float, float | None)


@dataclass(frozen=True)
class Analysis(Generic[Value]):
    """One stage of the analysis of a position; values are boxes for the side to move."""

    stage: str  # structure, policy, search or exact
    edges: tuple[EdgeFacts, ...]
    chains: tuple[Chain, ...]
    safe: int  # edges that give no box away after all free boxes are taken
    declined: int  # free boxes that the mover can leave at the end: 0, 2 or 4
    simulations: int = 0
    value: Value = None  # boxes still to come; None only in the stage `structure`
    final: tuple[tuple[int, float], ...] = ()  # (final margin, probability)
    best: int | None = None  # the edge to draw
    line: tuple[int, ...] = ()  # principal variation
    lines: tuple[tuple[int, ...], ...] = ()  # `line`, then lines after the next best edges
    bounds: tuple[int, int] | None = None  # proven bounds of the value; equal when it is proven

    @property
    def proven(self) -> int | None:
        """The proven value; None if it is not proven."""
        known = self.bounds is not None and self.bounds[0] == self.bounds[1]
        return self.bounds[0] if known else None

    @property
    def is_exact(self) -> bool:
        """Whether the value of every edge is proven."""
        return self.proven is not None and all(one.exact for one in self.edges)

    @property
    def chances(self) -> tuple[float, float, float]:
        """The probabilities of winning, drawing and losing the game."""
        won = sum(chance for margin, chance in self.final if margin > 0)
        even = sum(chance for margin, chance in self.final if margin == 0)
        lost = sum(chance for margin, chance in self.final if margin < 0)
        total = won + even + lost or 1.0
        return won / total, even / total, lost / total


_free_tables: list[TranspositionTable] = []


@contextmanager
def lent_table() -> Iterator[TranspositionTable]:
    """Lend the most recently returned table, or a new one: concurrent calls use different tables.

    A table keeps its proofs, so later calls for any position can use them.
    """
    try:
        table = _free_tables.pop()
    except IndexError:
        table = new_table(TABLE_ENTRIES)
    try:
        yield table
    finally:
        _free_tables.append(table)


def stages(
    agent: Agent,
    drawn: np.ndarray,
    ahead: int = 0,
    simulations: int = 256,
    seconds: float = 0.0,
) -> Iterator[Analysis[float | None]]:
    """Yield analyses of a position [A] bool, each better than the one before.

    `ahead` is the margin so far: boxes of the side to move minus the opponent's. The solver runs
    for up to `seconds` (0: no solver) and yields after each time slice, with or without progress.
    The first analysis comes at once: it uses neither the network nor a solver that must compile.
    `looking.prepare` compiles the programs of the later stages. With a solver and few edges left
    (`small_values`) the first analysis is exact. A finished game yields nothing.
    """
    board = agent.network.board
    if drawn.all():
        return
    analysis = by_structure(board, drawn)
    values = small_values(board, drawn) if seconds > 0 else None
    proof = None
    if values is None and seconds > 0:
        if _is_small(board, drawn) and not is_compiled():
            yield analysis
        proof = prove(board, drawn, min(seconds, AT_ONCE))

    def proven(analysis: Analysis) -> Analysis:
        if values is not None:
            return _with_bounds(analysis, int(values.max()), values, values, ahead)
        return _proven(analysis, drawn, ahead, proof) if proof else analysis

    @cache
    def line_from(edge: int) -> tuple[int, ...]:
        if values is not None:
            return exact_line(board, drawn, (edge,))
        return line_of_play(agent, drawn, edge)

    def with_line(analysis: Analysis) -> Analysis:
        worse = analysis.best is not None and (
            values is not None or analysis.line == (analysis.best,)
        )
        return replace(analysis, line=line_from(analysis.best)) if worse else analysis

    def with_lines(analysis: Analysis) -> Analysis:
        analysis = with_line(analysis)
        if analysis.best is None:
            return analysis
        return replace(analysis, lines=(analysis.line, *map(line_from, best_edges(analysis)[1:])))

    yield proven(analysis) if values is None else with_lines(proven(analysis))
    analysis = by_network(agent, analysis, drawn, ahead)
    yield with_line(proven(analysis))
    if simulations:
        analysis = by_search(agent, analysis, drawn, simulations)
        yield with_line(proven(analysis))
    if simulations or seconds > 0:
        yield with_lines(proven(analysis))  # slow: the network plays the lines
    if seconds > 0:
        yield from map(with_lines, by_solver(board, proven(analysis), drawn, ahead, seconds))


def analyse(
    agent: Agent, drawn: np.ndarray, ahead: int = 0, simulations: int = 256, seconds: float = 0.0
) -> Analysis[float]:
    """Return the last analysis of `stages`. Raises: InputError for a finished game."""
    if drawn.all():
        raise InputError(f"position: no edge is left on a {agent.network.board} board")
    *_, analysis = stages(agent, drawn, ahead, simulations, seconds)
    return analysis


def best_edges(analysis: Analysis) -> list[int]:
    """Return up to `MAX_LINES` edges of an analysis that has values, the best edge first.

    Edges of one kind in one chain have the same value, so the list has only the best one.
    """
    chains = [chain for chain in analysis.chains if chain.kind != "free"]
    chain_of = {edge: chain.boxes for chain in chains for edge in chain.edges}
    ranked = sorted(
        analysis.edges,
        key=lambda one: (
            *(one.edge != analysis.best, one.lost, one.bound),
            *(-(one.visits or 0), -(one.prior or 0.0)),
        ),
    )
    listed: dict[tuple, int] = {}
    for one in ranked:
        listed.setdefault((chain_of.get(one.edge, one.edge), one.kind), one.edge)
    return list(listed.values())[:MAX_LINES]


def prove(board: DotsAndBoxes, drawn: np.ndarray, seconds: float) -> Solution | None:
    """Return the solution of a position [A] bool; None if it is too large or time ran out."""
    if not _is_small(board, drawn):
        return None
    with lent_table() as table:
        solution = solve(board, drawn, seconds=seconds, table=table)
    return solution if solution.best else None


def _is_small(board: DotsAndBoxes, drawn: np.ndarray) -> bool:
    """Return whether the solver nearly always needs at most a second for a position [A] bool."""
    few = np.count_nonzero(~drawn) <= JUDGED_EXACTLY
    return few and can_solve(board)


def by_structure(board: DotsAndBoxes, drawn: np.ndarray) -> Analysis:
    """Return the stage `structure` of a position [A] bool: edge kinds and chains, by the rules."""
    structure = structure_of(board, drawn)
    kinds = _kinds(board, drawn, structure)
    edges = tuple(EdgeFacts(edge, kinds[edge]) for edge in np.flatnonzero(~drawn).tolist())
    chains = tuple(_chains(board, drawn, structure))
    safe, declined = int(structure.safe.sum()), int(structure.declined)
    return Analysis("structure", edges, chains, safe, declined)


def by_network(agent: Agent, known: Analysis, drawn: np.ndarray, ahead: int) -> Analysis:
    """Return the stage `policy`: values by one evaluation of the network, without a search."""
    look = look_at(agent, drawn)
    line = line_of_play(agent, drawn)
    highest = look.values[~drawn].max()
    edges = tuple(
        replace(
            one,
            prior=float(look.prior[one.edge]),
            value=float(look.values[one.edge]),
            lost=float(highest - look.values[one.edge]),
        )
        for one in known.edges
    )
    final: dict[int, float] = {}
    for margin, chance in zip(look.margins.tolist(), look.chances.tolist(), strict=True):
        end = round(margin) + ahead
        final[end] = final.get(end, 0.0) + chance
    return replace(
        known,
        stage="policy",
        edges=edges,
        value=float(look.value),
        final=tuple(sorted((m, c) for m, c in final.items() if c >= 5e-4)),
        best=line[0],
        line=line,
    )


def by_search(agent: Agent, known: Analysis, drawn: np.ndarray, simulations: int) -> Analysis:
    """Return the stage `search`: `known` improved by a search with this many simulations."""
    answer = choose_edge(agent, drawn, simulations)
    best, value = int(answer.edge), float(answer.value)
    values = {one.edge: one.value for one in known.edges}
    visits = dict.fromkeys(values, 0)
    moves = range(len(drawn))  # in the plain game the moves are the edges
    if agent.settings.nodes == "quiet":
        moves = moves_of(agent.network.board, drawn).tolist()
    if agent.settings.nodes == "all" or not any(one.kind == "takes" for one in known.edges):
        for edge, move in enumerate(moves):
            if edge in values and move >= 0 and answer.visits[move]:
                visits[edge] = int(answer.visits[move])
                values[edge] = float(answer.qvalues[move])
    # The chosen edge gets the value of the search, and no other edge gets more.
    values = {edge: min(value, worth) for edge, worth in values.items()} | {best: value}
    edges = tuple(
        replace(one, value=values[one.edge], visits=visits[one.edge], lost=value - values[one.edge])
        for one in known.edges
    )
    return replace(
        known,
        stage="search",
        simulations=simulations,
        edges=edges,
        value=value,
        best=best,
        line=line_of_play(agent, drawn, best),
    )


def searched(agent: Agent, drawn: np.ndarray, simulations: int) -> Analysis:
    """Return the analysis of a position [A] bool by a search alone, without the solver."""
    known = by_network(agent, by_structure(agent.network.board, drawn), drawn, 0)
    return by_search(agent, known, drawn, simulations)


def by_solver(
    board: DotsAndBoxes, known: Analysis, drawn: np.ndarray, ahead: int, seconds: float
) -> Iterator[Analysis]:
    """Yield the proofs of the exact solver after each time slice; nothing beyond 7x7.

    Slices show bounds early, and let other requests run between them.
    """
    if not can_solve(board):
        return
    known, slice_ = replace(known, stage="exact"), FIRST_SLICE
    end = time.monotonic() + seconds
    while not known.is_exact and (left := end - time.monotonic()) > 0:
        with lent_table() as table:
            limits = {"seconds": min(slice_, left), "table": table, "threads": cores()}
            if known.proven is None:
                solution = solve(board, drawn, **limits)
                known = _proven(known, drawn, ahead, solution)
            else:
                bounds = move_bounds(board, drawn, **limits)
                known = _with_bounds(known, known.proven, *bounds, ahead)
        slice_ = min(2 * slice_, LONGEST_SLICE)
        yield known


def _proven(known: Analysis, drawn: np.ndarray, ahead: int, solution: Solution) -> Analysis:
    """Return an analysis with the proofs of a solution of its position."""
    value, best = solution.value, list(solution.best)
    if value is None:
        return replace(known, bounds=(solution.lower, solution.upper))
    lower = np.full(len(drawn), ILLEGAL)
    upper = np.full(len(drawn), value - 2 if best else value)  # values lie two boxes apart
    lower[best] = upper[best] = value
    return _with_bounds(known, value, lower, upper, ahead)


def _with_bounds(
    known: Analysis, value: int, lower: np.ndarray, upper: np.ndarray, ahead: int
) -> Analysis:
    """Return an analysis with the proven value of its position and bounds [A] on its edges."""

    def bounded(one: EdgeFacts) -> EdgeFacts:
        worth, exact = float(upper[one.edge]), bool(lower[one.edge] == upper[one.edge])
        if one.bound:  # known before
            worth = min(one.value, worth)
        bound = not exact and worth < value
        if not exact and not bound and one.value is not None:
            worth = min(one.value, worth)
        return replace(one, value=worth, lost=value - worth, exact=exact, bound=bound)

    edges = tuple(one if one.exact else bounded(one) for one in known.edges)
    best = [one.edge for one in edges if one.exact and one.lost == 0]
    if best and known.best not in best:
        known = replace(known, best=best[0], line=(best[0],))
    final, bounds = ((value + ahead, 1.0),), (value, value)
    return replace(known, edges=edges, value=float(value), final=final, bounds=bounds)


def _kinds(board: DotsAndBoxes, drawn: np.ndarray, structure: Structure) -> list[str]:
    """Return the kind of every edge: list [A]; the kinds of drawn edges are meaningless."""
    takes = fullest_beside(board, drawn) == 3
    lengths = np.append(structure.length.ravel(), 0)[box_neighbours(board)]
    opened = lengths.max(axis=1)
    # After an outer edge of a chain of two, the opponent can decline and return the turn.
    outer = (opened == 2) & (lengths.min(axis=1) != 2)
    gives = np.where(opened >= LONG, "loony", np.where(outer, "half-hearted", "hard-hearted"))
    kinds = np.where(takes, "takes", np.where(structure.safe, "safe", gives)).astype(object)
    for edge in np.flatnonzero(structure.quiet & ~drawn & ~takes):  # inside the free boxes
        left = structure_of(board, drawn | (np.arange(len(drawn)) == edge))
        few = "half-hearted" if left.declined else "hard-hearted"
        kinds[edge] = few if left.taken <= 2 else "loony"
    return kinds.tolist()


def _chains(board: DotsAndBoxes, drawn: np.ndarray, structure: Structure) -> Iterator[Chain]:
    """Yield the free boxes, then the chains and loops in the order of their first box."""
    beside, undrawn = box_neighbours(board), np.flatnonzero(~drawn)

    def chain(boxes: np.ndarray, kind: str) -> Chain:
        touches = np.isin(beside[undrawn], boxes).any(axis=1)
        return Chain(tuple(boxes.tolist()), kind, tuple(undrawn[touches].tolist()))

    free = np.flatnonzero(structure.free)
    if len(free):
        yield chain(free, "free")
    first, length, loop = (
        field.ravel() for field in (structure.first, structure.length, structure.loop)
    )
    for start in np.unique(first[length > 0]):
        boxes = np.flatnonzero((first == start) & (length > 0))
        yield chain(boxes, "loop" if loop[start] else "chain" if len(boxes) > 1 else "single")
