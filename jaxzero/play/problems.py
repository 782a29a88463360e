"""Make training problems: positions by theme, with every edge graded by the exact solver.

All randomness comes from the seed, so the same question always gets the same problem. No program
depends on the board, so after `load_solver` every problem comes at once.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from jaxzero.game import (
    DotsAndBoxes,
    box_neighbours,
    box_sides_table,
    drawn_of,
    edge_permutations,
    fullest_beside,
)
from jaxzero.host.background import Programs
from jaxzero.measure.suite import DATA, load_suite
from jaxzero.solver.endgame import move_bounds, new_table

BOARDS = [DotsAndBoxes(*size) for size in ((3, 3), (3, 4), (4, 4), (4, 5), (5, 5))]
MAX_RIGHT = 0.25  # share of the edges of a problem that are right, so that guessing fails
GRADES = 3  # easy, medium, hard
CANDIDATES = 6  # problems of the sought kind made for a question, sorted by their difficulty
GAMES = 5000  # most random games for a problem, 70 microseconds each; most need hundreds
NODE_LIMIT, TABLE_ENTRIES = 3000, 2**14  # solver limits for a position: less than 0.1 s
LONG = 3  # boxes of the shortest long chain
OPENING_UNDRAWN = 33  # fewest undrawn edges of an opening, of 60 on 5x5

Rng = np.random.Generator


class Problem(NamedTuple):
    """A position, the question about it and the proven answers."""

    board: DotsAndBoxes
    drawn: np.ndarray  # [A] bool, edges on the board
    kind: str  # the kind of answer: edge or count
    answers: dict[str, int]  # {edge: boxes it loses}, or {"count": number}
    value: int  # boxes, for the side to move
    difficulty: float  # comparable within a theme
    reason: str  # code of the explanation
    chains: tuple[dict[str, Any], ...] = ()  # drawn with the answer of a count

    @property
    def rule(self) -> int | str:
        """Return what always answers such problems: a number, or what the reason tells to do."""
        return self.answers.get("count", self.reason)

    def to_json(self) -> dict[str, Any]:
        """Return the problem as JSON data for the page."""
        start = np.flatnonzero(self.drawn).tolist()
        game = {"rows": self.board.rows, "cols": self.board.cols, "start": start, "moves": []}
        return {"game": game, **{name: getattr(self, name) for name in self._fields[2:]}}


def find_problem(theme: str, seed: int, grade: int) -> Problem:
    """Return a problem of a theme of `THEMES`; grade 0 is easy, 2 is hard.

    The seed alone chooses the rule that is right, so the grade tells nothing about it.
    """
    rng = np.random.default_rng([seed, list(THEMES).index(theme)])
    for number in rng.permutation(len(RULES[theme])):
        fitting = (one for one in THEMES[theme](rng) if one.rule in RULES[theme][number])
        candidates = sorted(islice(fitting, CANDIDATES), key=lambda problem: problem.difficulty)
        if candidates:
            break
    return candidates[grade * (len(candidates) - 1) // (GRADES - 1)]


def count_chains(rng: Rng) -> Iterator[Problem]:
    """Yield positions without a safe edge; the question is the number of long chains.

    The difficulty is 80 for each chain or loop, 150 more for a loop, 10 for each box.
    """
    for board, drawn, regions in chain_positions(rng):
        moves = exact_moves(board, drawn)
        if moves is not None:
            count = sum(region.size >= LONG and not region.is_loop for region in regions)
            loops = sum(region.is_loop for region in regions)
            difficulty = 80.0 * len(regions) + 150 * loops + 10 * board.num_boxes
            reason = "count" if count < len(regions) else "all"
            known = "count", {"count": count}, int(moves.max()), difficulty, reason
            chains = tuple(region.to_json() for region in regions if region.size > 1)
            yield Problem(board, drawn, *known, chains)


def hand_back(rng: Rng) -> Iterator[Problem]:
    """Yield positions with an opened chain or loop: take all, or leave two or four boxes?"""
    for board, drawn, regions in chain_positions(rng):
        large = [region for region in regions if region.size >= LONG]
        if large and len(regions) > 1:
            yield from opened(board, drawn, large[rng.integers(len(large))])


def right_parity(rng: Rng) -> Iterator[Problem]:
    """Yield positions with a few safe edges; some of them are right and some are wrong."""
    for board, order in careful_games(rng):
        drawn = np.isin(np.arange(board.num_edges), order[: -rng.integers(1, 5)])
        safe = np.flatnonzero(~drawn & (fullest_beside(board, drawn) < 2))
        yield from graded(board, drawn, exact_moves(board, drawn), "parity", safe)


def with_loops(rng: Rng) -> Iterator[Problem]:
    """Yield positions with loops: which region to open, or whether to leave four boxes?"""
    for board, drawn, regions in chain_positions(rng):
        loops = [region for region in regions if region.is_loop]
        if loops and len(regions) > 1:
            yield from opened(board, drawn, loops[0])
            moves = exact_moves(board, drawn)
            if moves is not None:
                right = set(np.flatnonzero(moves == moves.max()).tolist())
                yield from graded(board, drawn, moves, why_open(board, regions, right))


def openings(rng: Rng) -> Iterator[Problem]:
    """Yield solved positions of the first half of games on 5x5, under random symmetries."""
    board = DotsAndBoxes(5, 5)
    drawn, moves = early_positions()
    for row in rng.permutation(len(drawn)):
        image = rng.choice(edge_permutations(board))
        yield from graded(board, drawn[row][image], moves[row][image], "opening")


@lru_cache(maxsize=1)
def early_positions() -> tuple[np.ndarray, np.ndarray]:
    """Return the early positions of stored suites and the values of their edges: [P, A] each."""
    names = ("5x5_tuning", "5x5_test", "5x5_final", "5x5_early")
    suites = [load_suite(name, DotsAndBoxes(5, 5)) for name in names]
    rows = [suite.undrawn >= OPENING_UNDRAWN for suite in suites]
    pairs = list(zip(suites, rows, strict=True))
    drawn = np.concatenate([suite.drawn[row] for suite, row in pairs])
    return drawn, np.concatenate([suite.moves[row] for suite, row in pairs]).astype(int)


def berlekamp(rng: Rng) -> Iterator[Problem]:
    """Yield the problems of Berlekamp's book that are solved at once, under random symmetries."""
    problems = json.loads((DATA / "berlekamp.json").read_text())
    for problem in rng.permutation(problems):
        board = DotsAndBoxes(problem["rows"], problem["cols"])
        drawn = drawn_of(board, problem["drawn"])[rng.choice(edge_permutations(board))]
        yield from graded(board, drawn, exact_moves(board, drawn), "opening")


THEMES: dict[str, Callable[[Rng], Iterator[Problem]]] = {
    "chains": count_chains,
    "handback": hand_back,
    "parity": right_parity,
    "loops": with_loops,
    "opening": openings,
    "berlekamp": berlekamp,
}
RULES: dict[str, list[set[int | str]]] = {  # by theme; each of a list is right equally often
    "chains": [{0}, {1}, {2}, {3}, {4}],
    "handback": [{"take_all"}, {"leave_two", "leave_four"}],
    "parity": [{"parity"}],
    "loops": [{"take_all"}, {"leave_four"}, {"open_smallest", "middle_edge"}, {"open_loop"}],
    "opening": [{"opening"}],
    "berlekamp": [{"opening"}],
}


class Region(NamedTuple):
    """A chain or loop of a position in which every open box has two open sides."""

    boxes: list[int]
    edges: list[int]  # undrawn edges

    @property
    def size(self) -> int:
        return len(self.boxes)

    @property
    def is_loop(self) -> bool:
        return len(self.edges) == self.size

    def to_json(self) -> dict[str, Any]:
        """Return the region as JSON data for the page."""
        kind = "loop" if self.is_loop else "chain"
        return {"boxes": self.boxes, "length": self.size, "kind": kind}


def careful_games(rng: Rng) -> Iterator[tuple[DotsAndBoxes, list[int]]]:
    """Yield boards, each with the edges of random safe moves until no edge is safe.

    An unsafe edge never becomes safe again, so one check of each edge is enough.
    """
    for number in rng.integers(len(BOARDS), size=GAMES):
        board, order = BOARDS[number], []
        neighbours = box_neighbours(board).tolist()
        sides = [0] * board.num_boxes + [-board.num_edges]  # the outside never fills up
        for edge in rng.permutation(board.num_edges).tolist():
            one, other = neighbours[edge]
            if sides[one] < 2 and sides[other] < 2:
                sides[one], sides[other] = sides[one] + 1, sides[other] + 1
                order.append(edge)
        yield board, order


def chain_positions(rng: Rng) -> Iterator[tuple[DotsAndBoxes, np.ndarray, list[Region]]]:
    """Yield positions with only chains and loops, with their regions, the smallest first."""
    for board, order in careful_games(rng):
        drawn = np.bincount(order, minlength=board.num_edges) > 0
        if (drawn[box_sides_table(board)].sum(axis=1) == 2).all():
            regions = find_regions(board, drawn)
            yield board, drawn, sorted(regions, key=lambda region: region.size)


def find_regions(board: DotsAndBoxes, drawn: np.ndarray) -> Iterator[Region]:
    """Yield the chains and loops, candidates as undrawn edges that boxes connect."""
    sides, neighbours = box_sides_table(board).tolist(), box_neighbours(board).tolist()
    left = set(np.flatnonzero(~drawn).tolist())
    while left:
        boxes, edges, new = set(), set(), {min(left)}
        while new:
            edges |= new
            near = {box for edge in new for box in neighbours[edge] if box < board.num_boxes}
            new = {edge for box in near for edge in sides[box] if edge in left} - edges
            boxes |= near
        left -= edges
        yield Region(sorted(boxes), sorted(edges))


def exact_moves(board: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray | None:
    """Return the value of drawing each edge [A]; None if the solver reaches its node limit."""
    table = new_table(TABLE_ENTRIES)
    lower, upper = move_bounds(board, drawn, node_limit=NODE_LIMIT, table=table)
    return lower if (lower == upper).all() else None


def load_solver() -> None:
    """Solve a position of four edges; the first call compiles the solver."""
    exact_moves(DotsAndBoxes(1, 1), np.zeros(4, bool))


SOLVER = Programs(DotsAndBoxes(3, 3), "solver", load_solver)  # with the first board of the page


def opened(board: DotsAndBoxes, drawn: np.ndarray, region: Region) -> Iterator[Problem]:
    """Open a region, take all but its last boxes, and yield the decision about the last boxes.

    A chain is opened at an end, so its last two boxes can be left. A loop can leave four boxes.
    """
    drawn, kept = drawn.copy(), 4 if region.is_loop else 2
    drawn[max(region.edges, key=lambda edge: box_neighbours(board)[edge].max())] = True
    for _ in range(region.size - kept):
        drawn[closing_edges(board, drawn)[0]] = True
    moves, closing = exact_moves(board, drawn), closing_edges(board, drawn)
    if moves is not None:
        leave = "leave_four" if region.is_loop else "leave_two"
        takes = moves[closing].max() == moves.max()
        left = [edge for edge in region.edges if not drawn[edge]]
        yield from graded(board, drawn, moves, "take_all" if takes else leave, left)


def why_open(board: DotsAndBoxes, regions: list[Region], right: set[int]) -> str:
    """Return the code of a reason why exactly the edges `right` are right; "opening" if unknown.

    The regions are all of the position, the smallest first.
    """
    size = regions[0].size
    smallest = {edge for region in regions if region.size == size for edge in region.edges}
    if right == smallest:
        return "open_smallest"
    outside = {edge for edge in smallest if box_neighbours(board)[edge].max() == board.num_boxes}
    if size == 2 and right == smallest - outside:
        return "middle_edge"
    best = [region for region in regions if right & set(region.edges)]
    before = [region for region in regions if LONG <= region.size <= best[0].size]
    if all(region.is_loop for region in best) and not all(region.is_loop for region in before):
        return "open_loop"
    return "opening"


def closing_edges(board: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return the edges that close a box of a position [A] bool."""
    return np.flatnonzero(~drawn & (fullest_beside(board, drawn) == 3))


def graded(
    board: DotsAndBoxes,
    drawn: np.ndarray,
    moves: np.ndarray | None,
    reason: str,
    choice: Sequence[int] | None = None,
) -> Iterator[Problem]:
    """Yield the problem of a position if `choice` has all right edges and at least one wrong
    edge, and if few enough edges are right (`MAX_RIGHT`).

    `moves` [A] are the exact values of all edges, or None if unknown. The default `choice` is all
    undrawn edges.

    The difficulty is 300 times the share of mistakes among all edges, plus 12 for each undrawn
    edge, and 200 divided by the number of boxes that the smallest mistake loses.
    """
    if moves is None:
        return
    edges, best = np.flatnonzero(~drawn), moves.max()
    choice = edges if choice is None else choice
    right = np.flatnonzero(moves == best)
    if not np.isin(right, choice).all() or np.isin(choice, right).all():
        return
    if len(right) > MAX_RIGHT * len(edges):
        return
    losses = best - moves[edges]
    difficulty = 300 * np.mean(losses > 0) + 12 * len(edges) + 200 / losses[losses > 0].min()
    answers = dict(zip(map(str, edges.tolist()), losses.tolist(), strict=True))
    yield Problem(board, drawn, "edge", answers, int(best), float(difficulty), reason)
