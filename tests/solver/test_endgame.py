"""The exact solver agrees with minimax, with published values and with itself."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from functools import cache
from importlib.resources import files

import numpy as np
import pytest
from brute_force import BruteForce, as_number
from loony import loony_margin

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_permutations
from jaxzero.solver import endgame

PROBLEMS = json.loads(files("jaxzero.measure").joinpath("data/berlekamp.json").read_text())
EMPTY_BOARDS = {
    **dict.fromkeys(((1, 1), (1, 3), (1, 5), (1, 7)), -1),
    **dict.fromkeys(((1, 2), (1, 4), (1, 6)), 0),
    **{(2, 2): 2, (2, 3): -2, (2, 4): 2, (2, 5): -2, (3, 3): -3, (3, 4): 0},
}


@cache
def brute_force(rows: int, cols: int) -> BruteForce:
    return BruteForce(DotsAndBoxes(rows, cols))


def random_positions(game, count, undrawn, seed=0):
    """Return positions [count, A] bool with up to `undrawn` edges left, any edges."""
    rng = np.random.default_rng(seed)
    ranks = rng.permuted(np.tile(np.arange(game.num_edges), (count, 1)), axis=1)
    return ranks >= rng.integers(0, undrawn + 1, (count, 1))


def careful_position(game, undrawn, rng):
    """Return a position [A] bool of play that takes boxes and gives a third side only if forced."""
    boxes_of, drawn = brute_force(game.rows, game.cols).boxes_of, 0
    for _ in range(game.num_edges - undrawn):
        legal = [e for e in range(game.num_edges) if not drawn >> e & 1]
        most = {e: max((box & drawn).bit_count() for box in boxes_of[e]) for e in legal}
        captures = [e for e in legal if most[e] == 3]
        safe = [e for e in legal if most[e] < 2]
        drawn |= 1 << int(rng.choice(captures or safe or legal))
    return np.array([drawn >> e & 1 == 1 for e in range(game.num_edges)])


def assert_equals_brute_force(game, positions):
    values, best, solved = endgame.solve_many(game, positions)
    assert solved.all()
    reference = brute_force(game.rows, game.cols)
    for drawn, value, best_edges in zip(positions, values, best, strict=True):
        margins = reference.move_margins(as_number(drawn))
        assert value == max(margins.values(), default=0)
        assert set(np.flatnonzero(best_edges)) == {e for e in margins if margins[e] == value}


@pytest.mark.parametrize("size", [(1, 1), (1, 2), (2, 1), (1, 3), (2, 2)], ids=str)
def test_all_positions_of_tiny_boards(size):
    game = DotsAndBoxes(*size)
    numbers = np.arange(2**game.num_edges)[:, None]
    assert_equals_brute_force(game, numbers >> np.arange(game.num_edges) & 1 == 1)


@pytest.mark.parametrize(
    ("size", "undrawn"),
    [((2, 3), 17), ((3, 2), 17), ((3, 3), 13), ((4, 4), 11), ((5, 5), 10), ((7, 7), 10)],
    ids=str,
)
def test_random_positions(size, undrawn):
    game = DotsAndBoxes(*size)
    assert_equals_brute_force(game, random_positions(game, 100, undrawn))


@pytest.mark.parametrize("size", [(3, 3), (3, 4), (4, 4)], ids=str)
def test_positions_of_careful_play(size):
    game, rng = DotsAndBoxes(*size), np.random.default_rng(1)
    positions = [careful_position(game, undrawn, rng) for undrawn in [8, 10, 12, 14] * 4]
    assert_equals_brute_force(game, np.array(positions))


@pytest.mark.parametrize("opened", [4, 3], ids=["loop", "closed chain"])
def test_a_loop_or_closed_chain_beside_random_positions(opened):
    # The block of 2x2 boxes on the left of a 2x5 board is one, the 2x3 on the right are random.
    game, rng = DotsAndBoxes(2, 5), np.random.default_rng(7)
    block, walls = [5, 6, 16, 22], [17, 23]
    region = [e for e in range(15) if e % 5 >= 2] + [18, 19, 20, 24, 25, 26]
    positions = np.ones((20, game.num_edges), bool)
    positions[:, block[:opened]] = False
    for drawn in positions:
        drawn[rng.choice(region, int(rng.integers(6, 11)), replace=False)] = False
    assert positions[:, walls].all()
    assert_equals_brute_force(game, positions)


def test_opening_a_loop_beside_chains_that_meet():
    # Opening the loop is the only good move, as the other side has to decline its 4 boxes.
    game, loop = DotsAndBoxes(4, 4), [4, 5, 21, 26]
    for rest in (
        [7, 10, 12, 19, 24, 28, 30, 33, 34, 36, 37, 38],
        [2, 7, 10, 13, 17, 18, 23, 28, 29, 32, 37],
        [6, 13, 17, 23, 24, 28, 29, 32, 33, 34],
    ):
        drawn = ~np.isin(np.arange(game.num_edges), loop + rest)
        assert_equals_brute_force(game, drawn[None])
        assert endgame.solve(game, drawn).best == tuple(loop)


def test_closed_stars_cannot_be_declined():
    # A box open to three or four neighbours that have three sides drawn each, beside a chain of
    # 6: no move leaves two pairs of the star and passes the turn, though it has 4 or 5 boxes.
    for rows, star, chain in (
        (4, [4, 16, 17], [23, 24, 25, 11, 29, 28, 27]),
        (5, [4, 7, 23, 24], [30, 31, 32, 14, 36, 35, 34]),
    ):
        game = DotsAndBoxes(rows, 3)
        drawn = ~np.isin(np.arange(game.num_edges), star + chain)
        assert_equals_brute_force(game, drawn[None])
        assert endgame.solve(game, drawn).value == len(star) + 1 - 6


# 3x4 and 4x3 search for seconds and say nothing that smaller boards do not.
LARGE = pytest.param((3, 4), marks=pytest.mark.slow)


@pytest.mark.parametrize("size", [*sorted(EMPTY_BOARDS)[:-1], LARGE], ids=str)
def test_values_of_empty_boards(size):
    assert endgame.solve(DotsAndBoxes(*size), []).value == EMPTY_BOARDS[size]


def test_best_openings_of_known_boards():
    assert endgame.solve(DotsAndBoxes(2, 2), []).best == (0, 1, 4, 5, 6, 8, 9, 11)
    assert endgame.solve(DotsAndBoxes(1, 4), []).best == (10,)
    assert len(endgame.solve(DotsAndBoxes(2, 3), []).best) == 17
    assert {*range(22)} - {*endgame.solve(DotsAndBoxes(2, 4), []).best} == {5, 6, 14, 19}
    assert len(endgame.solve(DotsAndBoxes(3, 3), []).best) == 24


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p["problem"])
def test_berlekamp_problems(problem):
    game = DotsAndBoxes(problem["rows"], problem["cols"])
    solution = endgame.solve(game, problem["drawn"])
    assert (solution.value, list(solution.best)) == (problem["value"], problem["best"])
    assert solution.lower == solution.upper == solution.value


def edges_of_chains_and_loops(game, rng):
    """Fill the rows of a board with chains, and blocks of 2x2 with loops: drawn [A], lengths."""
    horizontal = np.ones((game.rows + 1, game.cols), bool)
    vertical = np.ones((game.rows, game.cols + 1), bool)
    chains, loops, row = [], [], 0
    while row < game.rows:
        if row + 2 <= game.rows and rng.random() < 0.5:
            for col in range(0, game.cols - 1, 2):
                horizontal[row + 1, col : col + 2] = False
                vertical[row : row + 2, col + 1] = False
                loops.append(4)
            row += 2
            continue
        length = int(rng.integers(1, game.cols + 1))  # starts at the left side, ends upwards
        if row == 0:
            vertical[row, :length] = False
            horizontal[row, length - 1] = False
        else:  # only rows with both ends on the sides of the board are separate
            length = game.cols
            vertical[row] = False
        chains.append(length)
        row += 1
    return np.concatenate([horizontal.ravel(), vertical.ravel()]), tuple(chains), tuple(loops)


@pytest.mark.parametrize("size", [(5, 1), (5, 2), (7, 3), (5, 5), (6, 4), (7, 7)], ids=str)
def test_loony_endgames(size):
    game, rng = DotsAndBoxes(*size), np.random.default_rng(2)
    for _ in range(40):
        drawn, chains, loops = edges_of_chains_and_loops(game, rng)
        assert endgame.solve(game, drawn).value == loony_margin(chains, loops)


def test_loony_formulas_by_hand():
    assert loony_margin(()) == 0
    assert loony_margin((1,)) == -1
    assert loony_margin((5,)) == -5  # the last chain is taken whole
    assert loony_margin((3, 5)) == -4  # 3 - 2 + |5 - 2|
    assert loony_margin((1, 3)) == 2  # the other side opens the 3
    assert loony_margin((), (4, 4)) == 0


@pytest.mark.parametrize("size", [(3, 3), (4, 4), (4, 5)], ids=str)
def test_symmetric_positions_have_the_same_solution(size):
    game = DotsAndBoxes(*size)
    positions = random_positions(game, 20, 20, seed=3)
    values, best, _ = endgame.solve_many(game, positions)
    for permutation in edge_permutations(game):
        turned_values, turned_best, _ = endgame.solve_many(game, positions[:, permutation])
        np.testing.assert_array_equal(turned_values, values)
        np.testing.assert_array_equal(turned_best, best[:, permutation])


@pytest.mark.parametrize("size", [(2, 3), (2, 4), (2, 5), (1, 6), LARGE], ids=str)
def test_turned_boards_have_the_same_value(size):
    assert endgame.solve(DotsAndBoxes(*size[::-1]), []).value == EMPTY_BOARDS[size]


def test_margin_has_the_parity_of_the_boxes_left():
    game, rng = DotsAndBoxes(5, 5), np.random.default_rng(4)
    boxes_of = brute_force(5, 5).boxes_of
    boxes = {box for pair in boxes_of for box in pair}
    for _ in range(20):
        drawn = careful_position(game, 24, rng)
        left = sum(box & ~as_number(drawn) != 0 for box in boxes)
        assert (endgame.solve(game, drawn).value - left) % 2 == 0


def test_move_values_match_the_best_edges():
    game, rng = DotsAndBoxes(5, 5), np.random.default_rng(5)
    for _ in range(10):
        drawn = careful_position(game, 26, rng)
        values, solution = endgame.move_values(game, drawn), endgame.solve(game, drawn)
        assert (values[drawn] == endgame.ILLEGAL).all()
        assert values[~drawn].max() == solution.value
        assert tuple(np.flatnonzero(values == solution.value)) == solution.best


def test_move_values_equal_brute_force():
    game = DotsAndBoxes(3, 3)
    for drawn in random_positions(game, 50, 12, seed=6):
        values = endgame.move_values(game, drawn)
        margins = brute_force(3, 3).move_margins(as_number(drawn))
        assert {e: values[e] for e in np.flatnonzero(~drawn)} == margins


def test_a_table_can_be_shared_and_small():
    table = endgame.new_table(2**16)
    for size in ((2, 2), (1, 3), (1, 4), (3, 2), (2, 3)):
        game = DotsAndBoxes(*size)
        positions = random_positions(game, 2000, game.num_edges)
        values, _, _ = endgame.solve_many(game, positions, table=table)
        reference = brute_force(*size)
        assert values.tolist() == [reference.margin(as_number(drawn)) for drawn in positions]
    assert endgame.solve(DotsAndBoxes(2, 2), [], table=endgame.new_table(2)).value == 2


@pytest.mark.parametrize("node_limit", [1, 10, 1000, 20_000])
def test_bounds_contain_the_value_when_nodes_run_out(node_limit):
    solution = endgame.solve(DotsAndBoxes(3, 3), [], node_limit=node_limit)
    assert solution.value is None and solution.best == ()
    assert solution.lower <= -3 <= solution.upper and solution.lower < solution.upper
    assert solution.nodes <= node_limit + 24  # one more for every edge at most
    lower, upper = endgame.move_bounds(DotsAndBoxes(3, 3), [], node_limit=node_limit)
    assert (lower <= -3).all() and (upper >= -3).all()


def test_time_budget_ends_a_long_search():
    # The nodes take many times as long; how late the clock is heard is up to the machine.
    nodes = 50_000_000
    solution = endgame.solve(DotsAndBoxes(5, 5), [], node_limit=nodes, seconds=0.2)
    assert solution.value is None and solution.best == ()
    assert solution.nodes < nodes and solution.seconds >= 0.2


def test_batch_keeps_to_its_node_limit():
    game = DotsAndBoxes(3, 3)
    positions = np.zeros((2, 24), bool)
    positions[1, 6:] = True
    values, best, solved = endgame.solve_many(game, positions, node_limit=200)
    assert solved.tolist() == [False, True]
    assert not best[0].any() and values[1] == endgame.solve(game, positions[1]).value


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        ([3, 12], "edge 12"),
        ([-1], "edge -1"),
        ([3, 5, 3], "edge 3 is listed twice"),
        ([0.5], "drawn"),
        (np.zeros(11, bool), "(11,)"),
    ],
)
def test_bad_positions(drawn, text):
    with pytest.raises(InputError) as error:
        endgame.solve(DotsAndBoxes(2, 2), drawn)
    assert text in str(error.value) and "\n" not in str(error.value)


def test_bad_boards_batches_and_budgets():
    game = DotsAndBoxes(2, 2)
    with pytest.raises(InputError, match="8x8"):
        endgame.solve(DotsAndBoxes(8, 8), [])
    with pytest.raises(InputError, match="drawn"):
        endgame.solve_many(game, np.zeros((3, 11), bool))
    with pytest.raises(InputError, match="drawn"):
        endgame.solve_many(game, np.zeros((3, 12), int))
    with pytest.raises(InputError, match="node_limit: 0"):
        endgame.solve(game, [], node_limit=0)
    with pytest.raises(InputError, match="entries: 100"):
        endgame.new_table(100)


def test_what_is_proven_of_one_position_does_not_leak_into_another():
    """These two differ in the length of their first loop; one table once took them for one."""
    game = DotsAndBoxes(5, 5)
    undrawn = (
        "1 3 4 5 6 7 10 12 14 15 16 19 20 22 23 24 26 27 30 33 35 37 39 40 42 44 45 46 48 49 50 51 "
        "52 55 57 58",
        "1 3 4 5 6 7 10 14 16 20 23 24 26 30 33 35 37 39 40 42 44 45 46 49 52 58",
    )
    drawn = np.ones((2, game.num_edges), bool)
    for board, edges in zip(drawn, undrawn, strict=True):
        board[[int(edge) for edge in edges.split()]] = False
    values, best, solved = endgame.solve_many(game, drawn, table=endgame.new_table(2**18))
    assert solved.all()
    for row in range(2):
        alone = endgame.solve(game, drawn[row])
        assert (values[row], np.flatnonzero(best[row]).tolist()) == (alone.value, [*alone.best])
    assert values[1] == 13


@pytest.mark.parametrize("name", ["solve", "move_bounds", "solve_many"])
def test_ctrl_c_ends_a_long_search(name):
    game = DotsAndBoxes(5, 5)
    positions = np.zeros((1, 60), bool) if name == "solve_many" else []
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    getattr(endgame, name)(game, positions, node_limit=100)  # compiles
    ended = []
    interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            # The limit lets this test end where the interrupt does not.
            getattr(endgame, name)(game, positions, node_limit=10_000_000)
            ended.append(name)
            time.sleep(60)
        assert not ended
    finally:
        interrupt.join()
        signal.signal(signal.SIGINT, earlier)


@pytest.mark.parametrize("inline_nodes", [1, 50, 1000])
def test_a_search_that_moves_to_a_thread_finds_the_same(inline_nodes, monkeypatch):
    game, rng = DotsAndBoxes(3, 3), np.random.default_rng(8)
    positions = np.array([careful_position(game, undrawn, rng) for undrawn in (20, 6, 18, 0)])

    def results() -> list:
        solutions = [endgame.solve(game, drawn) for drawn in positions]
        bounds = [endgame.move_bounds(game, drawn) for drawn in positions]
        values, best, solved = endgame.solve_many(game, positions)
        assert solved.all()
        alone = [(solution.value, solution.best) for solution in solutions]
        return [alone, np.array(bounds).tolist(), values.tolist(), best.tolist()]

    expected = results()
    monkeypatch.setattr(endgame, "_INLINE_NODES", inline_nodes)
    assert results() == expected


def test_a_batch_keeps_to_its_time():
    game = DotsAndBoxes(5, 5)
    positions = np.zeros((3, 60), bool)
    positions[1, 8:] = True
    _, _, solved = endgame.solve_many(game, positions, node_limit=10**9, seconds=0.2)
    assert not solved[0] and not solved[2]
