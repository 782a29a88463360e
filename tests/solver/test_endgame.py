"""The exact solver agrees with minimax, with published values and with itself."""

import itertools
import json
import os
import signal
import threading
import time
from functools import cache
from importlib.resources import files
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from compiled import random_positions, worths
from referee import exact_values

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_permutations
from jaxzero.players.players import careful_edges
from jaxzero.solver import bitboards, endgame, null_window
from jaxzero.solver.small import MAX_UNDRAWN, exact_answer, small_values

PROBLEMS = json.loads(files("jaxzero.measure").joinpath("data/berlekamp.json").read_text())
EMPTY_BOARDS = {
    **dict.fromkeys(((1, 1), (1, 3), (1, 5), (1, 7)), -1),
    **dict.fromkeys(((1, 2), (1, 4), (1, 6)), 0),
    **{(2, 2): 2, (2, 3): -2, (2, 4): 2, (2, 5): -2, (3, 3): -3},
}
BEST_OPENINGS = {(1, 4): 1, (2, 2): 8, (2, 3): 17, (2, 4): 18, (2, 5): 27, (3, 3): 24}


def every_position(board: DotsAndBoxes) -> np.ndarray:
    return np.arange(2**board.num_edges)[:, None] >> np.arange(board.num_edges) & 1 == 1


def careful_position(board: DotsAndBoxes, undrawn: int, rng: np.random.Generator) -> np.ndarray:
    """Return a position [A] bool after play that takes boxes and gives none unless forced."""
    drawn = np.zeros(board.num_edges, bool)
    for _ in range(board.num_edges - undrawn):
        drawn[rng.choice(np.flatnonzero(careful_edges(board, drawn[None])[0]))] = True
    return drawn


def all_but(board: DotsAndBoxes, *undrawn: list[int]) -> np.ndarray:
    return np.array([~np.isin(np.arange(board.num_edges), edges) for edges in undrawn])


# Undrawn edges of a loop and of chains that meet. Opening the loop is the only good move.
LOOP = [4, 5, 21, 26]
MEETING = (
    [7, 10, 12, 19, 24, 28, 30, 33, 34, 36, 37, 38],
    [2, 7, 10, 13, 17, 18, 23, 28, 29, 32, 37],
    [6, 13, 17, 23, 24, 28, 29, 32, 33, 34],
)
# A star beside a chain of 6. A star is a box open to three or four neighbours, each with three
# drawn sides. It has 4 or 5 boxes, but no move leaves two pairs of them and passes the turn.
STARS = {4: [4, 16, 17, 23, 24, 25, 11, 29, 28, 27], 5: [4, 7, 23, 24, 30, 31, 32, 14, 36, 35, 34]}
TABLE = endgame.new_table(2**16)  # small, and shared by all boards


def assert_equals_minimax(board: DotsAndBoxes, positions: np.ndarray) -> None:
    values, best, solved = endgame.solve_many(board, positions, table=TABLE)
    assert solved.all()
    for drawn, value, best_edges in zip(positions, values, best, strict=True):
        expected, worth = exact_values(board)(np.flatnonzero(drawn))
        assert value == expected
        assert set(np.flatnonzero(best_edges)) == {e for e in worth if worth[e] == value}


@pytest.mark.parametrize("size", [(1, 1), (1, 2), (2, 1), (1, 3), (2, 2)], ids=str)
def test_all_positions_of_tiny_boards(size):
    board = DotsAndBoxes(*size)
    assert_equals_minimax(board, every_position(board))


@pytest.mark.parametrize(
    ("size", "undrawn"),
    [((2, 3), 17), ((3, 2), 17), ((3, 3), 13), ((4, 4), 11), ((5, 5), 10), ((7, 7), 10)],
    ids=str,
)
def test_random_positions(size, undrawn):
    board = DotsAndBoxes(*size)
    assert_equals_minimax(board, random_positions(board, 100, 0, undrawn))
    for drawn in random_positions(board, 10, 0, undrawn, seed=6):
        values = endgame.move_values(board, drawn)
        _, worth = exact_values(board)(np.flatnonzero(drawn))
        assert {e: values[e] for e in np.flatnonzero(~drawn)} == worth
        assert (values[drawn] == endgame.ILLEGAL).all()


@pytest.mark.parametrize("size", [(3, 3), (3, 4), (4, 4)], ids=str)
def test_positions_of_careful_play(size):
    board, rng = DotsAndBoxes(*size), np.random.default_rng(1)
    positions = [careful_position(board, undrawn, rng) for undrawn in [8, 10, 12, 14] * 4]
    assert_equals_minimax(board, np.array(positions))


def test_loops_closed_chains_and_stars():
    # On the left of 2x5 is a loop of 2x2 boxes (4 edges) or a closed chain (3); the rest is random.
    rng, block = np.random.default_rng(7), [5, 6, 16, 22]
    region = [e for e in range(15) if e % 5 >= 2] + [18, 19, 20, 24, 25, 26]
    for opened in (4, 3):
        beside = [rng.choice(region, int(rng.integers(6, 11)), replace=False) for _ in range(20)]
        board = DotsAndBoxes(2, 5)
        assert_equals_minimax(board, all_but(board, *([*block[:opened], *rest] for rest in beside)))
    board = DotsAndBoxes(4, 4)
    for drawn in all_but(board, *(LOOP + rest for rest in MEETING)):
        assert_equals_minimax(board, drawn[None])
        assert endgame.solve(board, drawn).best == tuple(LOOP)
    for rows, edges in STARS.items():
        board = DotsAndBoxes(rows, 3)
        (drawn,) = all_but(board, edges)
        assert_equals_minimax(board, drawn[None])
        assert endgame.solve(board, drawn).value == rows - 6


@pytest.mark.parametrize("size", sorted(EMPTY_BOARDS), ids=str)
def test_values_and_best_openings_of_empty_boards(size):
    for turned in {size, size[::-1]}:
        solution = endgame.solve(DotsAndBoxes(*turned), [])
        assert solution.value == EMPTY_BOARDS[size]
        assert len(solution.best) == BEST_OPENINGS.get(size, len(solution.best))


def test_the_table_of_the_tests_equals_the_solver():
    small, larger = DotsAndBoxes(2, 2), DotsAndBoxes(2, 3)
    for board, positions in (
        (small, every_position(small)),
        (larger, random_positions(larger, 10_000, 0, larger.num_edges)),
    ):
        values, best, _ = endgame.solve_many(board, positions, table=TABLE)
        moves = np.asarray(worths(board)(positions))
        assert (moves[positions] == endgame.ILLEGAL).all()
        over = positions.all(axis=1)
        np.testing.assert_array_equal(np.where(over, 0, moves.max(axis=1)), values)
        expected = (moves == moves.max(axis=1, keepdims=True)) & ~positions
        np.testing.assert_array_equal(expected, best)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p["problem"])
def test_berlekamp_problems(problem):
    board = DotsAndBoxes(problem["rows"], problem["cols"])
    solution = endgame.solve(board, problem["drawn"])
    assert (solution.value, list(solution.best)) == (problem["value"], problem["best"])
    assert solution.lower == solution.upper == solution.value


def chains_and_loops(board: DotsAndBoxes, rng: np.random.Generator) -> tuple:
    """Fill rows with chains and 2x2 blocks with loops: drawn [A], chain and loop lengths."""
    horizontal = np.ones((board.rows + 1, board.cols), bool)
    vertical = np.ones((board.rows, board.cols + 1), bool)
    chains, loops, row = [], [], 0
    while row < board.rows:
        if row + 2 <= board.rows and rng.random() < 0.5:
            for col in range(0, board.cols - 1, 2):
                horizontal[row + 1, col : col + 2] = False
                vertical[row : row + 2, col + 1] = False
                loops.append(4)
            row += 2
            continue
        length = int(rng.integers(1, board.cols + 1))  # starts at the left side, ends upwards
        if row == 0:
            vertical[row, :length] = False
            horizontal[row, length - 1] = False
        else:  # only rows with both ends on the sides of the board are separate
            length = board.cols
            vertical[row] = False
        chains.append(length)
        row += 1
    return np.concatenate([horizontal.ravel(), vertical.ravel()]), tuple(chains), tuple(loops)


@cache
def loony_margin(chains: tuple[int, ...], loops: tuple[int, ...] = ()) -> int:
    """Return the margin of the side to move where only separate chains and loops are left.

    The side to move must open a chain or loop. The margin v of the other side is 0 if nothing is
    left. Otherwise v is the minimum of c - 2 + |v(rest) - 2| over chains of c >= 3 boxes, l - 4 +
    |v(rest) - 4| over loops of l boxes, and c - v(rest) over chains of 1 or 2, which cannot be
    declined (Buzzard & Ciere 2014; hard-hearted handout of Berlekamp 2000 for the chain of 2).
    """
    margins = []
    for at, length in enumerate(chains):
        rest = -loony_margin(chains[:at] + chains[at + 1 :], loops)
        margins.append(length - 2 + abs(rest - 2) if length > 2 else length - rest)
    for at, length in enumerate(loops):
        rest = -loony_margin(chains, loops[:at] + loops[at + 1 :])
        margins.append(length - 4 + abs(rest - 4))
    return -min(margins, default=0)


@pytest.mark.parametrize("size", [(5, 1), (5, 2), (7, 3), (5, 5), (6, 4), (7, 7)], ids=str)
def test_loony_endgames(size):
    board, rng = DotsAndBoxes(*size), np.random.default_rng(2)
    assert loony_margin((3, 5)) == -4 and loony_margin((1, 3)) == 2  # by hand
    for _ in range(40):
        drawn, chains, loops = chains_and_loops(board, rng)
        assert endgame.solve(board, drawn).value == loony_margin(chains, loops)


@pytest.mark.parametrize("size", [(3, 3), (4, 5)], ids=str)
def test_symmetric_positions_have_the_same_solution(size):
    board = DotsAndBoxes(*size)
    positions = random_positions(board, 20, 0, 20, seed=3)
    values, best, _ = endgame.solve_many(board, positions)
    for permutation in edge_permutations(board):
        turned_values, turned_best, _ = endgame.solve_many(board, positions[:, permutation])
        np.testing.assert_array_equal(turned_values, values)
        np.testing.assert_array_equal(turned_best, best[:, permutation])


@pytest.mark.parametrize(("inline_nodes", "threads"), [(1, 1), (1, 3), (1000, 2), (2**14, 1)])
def test_all_searches_find_the_same_in_one_thread_or_several(inline_nodes, threads, monkeypatch):
    monkeypatch.setattr(endgame, "_INLINE_NODES", inline_nodes)
    for size, undrawn in ((3, (20, 6, 18, 0)), (5, (26, 24))):
        board, rng = DotsAndBoxes(size, size), np.random.default_rng(8)
        positions = np.array([careful_position(board, count, rng) for count in undrawn])
        values, best, solved = endgame.solve_many(board, positions)
        assert solved.all()
        for drawn, value, best_edges in zip(positions, values, best, strict=True):
            solution = endgame.solve(board, drawn, threads=threads)
            worth, upper = endgame.move_bounds(board, drawn, threads=threads)
            assert (worth == upper).all()
            assert solution.value == value == (0 if drawn.all() else worth[~drawn].max())
            chosen = np.flatnonzero(best_edges).tolist()
            assert chosen == [*solution.best] == np.flatnonzero((worth == value) & ~drawn).tolist()


def test_what_is_proven_of_one_position_does_not_leak_into_another():
    """The two positions differ in the length of the first loop; a table once confused them."""
    board = DotsAndBoxes(5, 5)
    undrawn = (
        "1 3 4 5 6 7 10 12 14 15 16 19 20 22 23 24 26 27 30 33 35 37 39 40 42 44 45 46 48 49 50 51 "
        "52 55 57 58",
        "1 3 4 5 6 7 10 14 16 20 23 24 26 30 33 35 37 39 40 42 44 45 46 49 52 58",
    )
    drawn = all_but(board, *([int(edge) for edge in edges.split()] for edges in undrawn))
    values, best, solved = endgame.solve_many(board, drawn, table=endgame.new_table(2**18))
    assert solved.all() and values[1] == 13
    for row in range(2):
        alone = endgame.solve(board, drawn[row])
        assert (values[row], np.flatnonzero(best[row]).tolist()) == (alone.value, [*alone.best])


# Keys of entries: horizontal edges, vertical edges, code of the chains.
SETS = (5, 9, 70), (5, 9, 71), (6, 9, 70), (5, 8, 70), (6, 8, 70)  # the last mixes two others
KEYS = [tuple(map(np.uint64, key)) for key in SETS]


def with_hash(key: tuple) -> tuple:
    return np.uint64(null_window._hash(*key)), *key


def one_entry(key: tuple, lower: int) -> np.ndarray:
    """Return the words of the entry of a key in a table of one bucket."""
    table = endgame.new_table(2)
    null_window._store(table, 0, *with_hash(key), lower, lower + 2, np.uint64(3), np.uint64(40))
    assert null_window._load(table, 0, *with_hash(key), 25) == (lower, lower + 2, 3)
    return table[:4].copy()


@pytest.mark.parametrize("bounds", [range(5), (1,) * 5], ids=["unequal", "equal"])
def test_an_entry_that_two_threads_wrote_at_once_is_of_no_position(bounds):
    table, written = endgame.new_table(2), list(map(one_entry, KEYS, bounds))
    for one, other in itertools.permutations(written, 2):
        for mine in itertools.product((False, True), repeat=4):
            table[:4] = np.where(mine, one, other)
            if not any((table[:4] == whole).all() for whole in (one, other)):
                found = [null_window._find(table, 0, *with_hash(key))[0] for key in KEYS]
                assert found == [-1] * len(KEYS)


def test_an_entry_that_is_replaced_during_a_look_is_not_decoded(monkeypatch):
    class Table(list):
        """A table to which another thread writes an entry after so many reads."""

        def __getitem__(self, at):
            word = super().__getitem__(at)
            self.reads -= 1
            if self.reads == 0:
                self[:4] = foreign
            return word

    monkeypatch.setattr(null_window, "_find", null_window._find.py_func)
    own, foreign = one_entry(KEYS[0], 1), one_entry(KEYS[1], 7)
    for reads in range(1, 12):
        table = Table(endgame.new_table(2))
        table[:4], table.reads = own, reads
        found = null_window._load.py_func(table, 0, *with_hash(KEYS[0]), 25)
        assert found in ((1, 3, 3), (-25, 25, 255)), reads


def test_bounds_contain_the_value_where_a_limit_ends_the_search():
    board = DotsAndBoxes(3, 3)
    for nodes in (1, 10, 1000, 20_000):
        lower, upper = endgame.move_bounds(board, [], node_limit=nodes)
        assert (lower <= -3).all() and (upper >= -3).all() and (lower < upper).any()
    positions = np.arange(24) >= np.array([[24], [6]])
    values, best, solved = endgame.solve_many(board, positions, node_limit=200)
    assert solved.tolist() == [False, True]
    assert not best[0].any() and values[1] == endgame.solve(board, positions[1]).value
    for threads in (1, 3):
        solution = endgame.solve(DotsAndBoxes(5, 5), [], seconds=0.2, threads=threads)
        assert solution.value is None and solution.best == () and solution.lower < solution.upper


def test_every_board_that_is_solved_has_a_number_of_its_own_in_a_shared_table():
    sides = range(1, 10)
    boards = [DotsAndBoxes(rows, cols) for rows in sides for cols in sides]
    solved = [board for board in boards if endgame.can_solve(board)]
    numbers = {int(endgame._geometry(board)[bitboards.SIZE]) for board in solved}
    assert len(numbers) == len(solved) == 49 and max(numbers) < 2**6


def test_what_cannot_be_solved_is_refused():
    board = DotsAndBoxes(2, 2)
    for call, text in (
        (lambda: endgame.solve(board, [3, 12]), "^position: edge 12"),
        (lambda: endgame.solve(DotsAndBoxes(8, 8), []), "8x8"),
        (lambda: endgame.solve(DotsAndBoxes(1, 8), []), "1x8"),
        (lambda: endgame.solve_many(board, np.zeros((3, 11), bool)), "drawn"),
        (lambda: endgame.solve_many(board, np.zeros((3, 12), int)), "drawn"),
    ):
        with pytest.raises(InputError, match=text):
            call()


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize("name", ["move_bounds", "solve_many"])
def test_ctrl_c_ends_a_long_search(name):
    board, positions = DotsAndBoxes(5, 5), np.zeros((1, 60), bool)
    positions = positions if name == "solve_many" else positions[0]
    getattr(endgame, name)(board, positions, node_limit=100)  # compiles
    ended = []
    interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            # The limit ends this test if the interrupt does not.
            getattr(endgame, name)(board, positions, node_limit=10_000_000)
            ended.append(name)
            time.sleep(60)
        assert not ended
    finally:
        interrupt.join()


def test_a_change_of_the_bitboards_invalidates_the_compiled_search():
    """numba checks only the file of the search, so that file holds a checksum of bitboards.py."""
    checksum = crc32(Path(bitboards.__file__).read_bytes())
    assert checksum == null_window.BITBOARDS_CHECKSUM, f"set it to {checksum:#010x}"


@pytest.mark.parametrize("sides", [(1, 1), (1, 2), (2, 2), (4, 3)], ids=str)
def test_values_of_few_edges_in_plain_python_are_those_of_the_solver(sides):
    board = DotsAndBoxes(*sides)
    for drawn in random_positions(board, 10, 1, min(MAX_UNDRAWN, board.num_edges)):
        values = endgame.move_values(board, drawn)
        np.testing.assert_array_equal(small_values(board, drawn), values)
        assert values[exact_answer(board, drawn)] == values.max()
    assert exact_answer(DotsAndBoxes(4, 3), np.zeros(31, bool)) is None
