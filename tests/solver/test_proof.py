"""Test proofs with a deadline: exact if finished, otherwise with true bounds and a usable table."""

import time
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
from compiled import random_positions

from jaxzero.game import DotsAndBoxes
from jaxzero.solver import endgame, proof

BOARD, LARGE = DotsAndBoxes(3, 3), DotsAndBoxes(5, 5)
NOTHING = np.zeros(LARGE.num_edges, bool)
POSITIONS = random_positions(BOARD, 60, 1, 16)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("guess", [-20.0, -0.6, 3.0, 20.0])
def test_any_guess_ends_with_the_value(guess, threads):
    table = endgame.new_table(2**12)
    for drawn in POSITIONS:
        task = proof.new_task(BOARD, drawn, table, threads)
        proof.prove_value(task, guess)
        assert task.value == endgame.solve(BOARD, drawn).value


@pytest.mark.parametrize("threads", [1, 3])
def test_edges_tried_in_any_order_end_with_the_value_and_true_bounds(threads):
    table, rng = endgame.new_table(2**12), np.random.default_rng(2)
    for drawn in POSITIONS:
        task = proof.new_task(BOARD, drawn, table, threads)
        order = rng.permutation(np.flatnonzero(~drawn)).tolist()
        proof.prove_value(task, rng.uniform(-20, 20), order)
        worth = endgame.move_values(BOARD, drawn)
        assert task.value == worth[order].max()
        assert (task.most[order] >= worth[order]).all()
        assert proof.first_worth(task, task.value, order) in np.flatnonzero(worth == task.value)


def test_of_edges_that_nothing_is_proven_of_the_least_refuted_comes_first():
    task = proof.new_task(LARGE, NOTHING, endgame.new_table(2**12))
    task.most[3] = -1
    task.stop()
    assert proof.first_worth(task, -25, [3, 7, 5]) == 7


def test_the_first_edge_that_is_worth_enough_is_found():
    table, rng = endgame.new_table(2**12), np.random.default_rng(1)
    for drawn in POSITIONS:
        worth = endgame.move_values(BOARD, drawn)
        order = rng.permutation(np.flatnonzero(~drawn)).tolist()
        task = proof.new_task(BOARD, drawn, table)
        for least in sorted({int(worth[edge]) for edge in order}):
            first = next(edge for edge in order if worth[edge] >= least)
            assert proof.first_worth(task, least, order) == first
        assert proof.first_worth(task, int(worth[order].max()) + 2, order) is None


@pytest.mark.parametrize("threads", [1, 3])
def test_a_proof_that_takes_too_long_is_stopped_and_its_bounds_are_true(threads):
    task = proof.new_task(LARGE, NOTHING, endgame.new_table(2**12), threads)
    with ThreadPoolExecutor(1) as pool:
        proving = pool.submit(proof.prove_value, task, 0.0)
        proof.finish(task, proving, time.monotonic() + 0.05)
    assert task.value is None
    assert task.bounds.tolist() == [-25, 25]
    assert proof.is_worth(task, 7, -25) is True  # ready for the next proof


def test_an_interrupted_search_ends_and_its_table_stays_of_use(monkeypatch):
    """Ctrl-C reaches the thread that waits for the result."""
    table = endgame.new_table(2**12)

    def interrupt(_future, seconds=None):
        time.sleep(0.1)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Future, "result", interrupt)
        for search in (endgame.solve, endgame.move_bounds):
            with pytest.raises(KeyboardInterrupt):
                search(LARGE, NOTHING, table=table)  # takes years unless interrupted
    task = proof.new_task(LARGE, NOTHING, table)
    assert proof.is_worth(task, 7, -25) is True
    later, alone = (endgame.solve(BOARD, range(8), table=one) for one in (table, None))
    assert (later.value, later.best) == (alone.value, alone.best)


def test_a_stopped_look_keeps_the_order():
    task = proof.new_task(LARGE, NOTHING, endgame.new_table(2**12))
    task.stop()
    assert proof.first_worth(task, 1, [7, 3]) == 7
    assert proof.is_worth(task, 7, 1) is None
