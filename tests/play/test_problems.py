"""Test the problems of the trainer: their answers are exact play, and they fit their themes."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import islice

import numpy as np
import pytest
from referee import boxes_of

from jaxzero.game import DotsAndBoxes
from jaxzero.play import problems as problems_module
from jaxzero.play.problems import GRADES, THEMES, find_problem
from jaxzero.solver.endgame import new_table, solve

TABLE = new_table(2**18)


@cache
def asked(theme: str, seed: int, grade: int) -> dict:
    return {"theme": theme, **find_problem(theme, seed, grade).to_json()}


def problems(theme: str, count: int) -> list[dict]:
    return [asked(theme, seed, seed % GRADES) for seed in range(count)]


def board_of(problem: dict) -> DotsAndBoxes:
    return DotsAndBoxes(problem["game"]["rows"], problem["game"]["cols"])


def open_sides(problem: dict) -> list[set[int]]:
    """Return the undrawn edges of every box, in plain Python."""
    drawn = set(problem["game"]["start"])
    return [box - drawn for box in boxes_of(board_of(problem))]


def regions(problem: dict) -> list[tuple[int, bool, set[int]]]:
    """Return every chain and loop: the number of boxes, whether it is a loop, its edges.

    The smallest comes first. In plain Python, for positions whose open boxes have two open sides.
    """
    left, found = [box for box in open_sides(problem) if box], []
    while left:
        edges, boxes = set(left.pop()), 1
        while near := [box for box in left if box & edges]:
            left = [box for box in left if not box & edges]
            edges, boxes = edges.union(*near), boxes + len(near)
        found.append((boxes, boxes == len(edges), edges))
    return sorted(found, key=lambda region: region[:2])


def smallest(problem: dict) -> set[int]:
    """Return the edges of all regions that are as small as the smallest."""
    there = regions(problem)
    return set().union(*(edges for boxes, _, edges in there if boxes == there[0][0]))


def closing(problem: dict) -> set[int]:
    return {edge for box in open_sides(problem) if len(box) == 1 for edge in box}


def safe(problem: dict) -> set[int]:
    undrawn = {int(edge) for edge in problem["answers"]}
    return undrawn - {edge for box in open_sides(problem) if len(box) < 3 for edge in box}


def right(problem: dict) -> set[int]:
    return {int(edge) for edge, lost in problem["answers"].items() if lost == 0}


def losses_by_play(problem: dict) -> dict[str, int]:
    """Return what every edge loses, by solving the position after every edge separately."""
    board, start = board_of(problem), problem["game"]["start"]
    boxes, worth = boxes_of(board), {}
    for edge in set(range(board.num_edges)) - set(start):
        closed = sum(edge in box and box <= {*start, edge} for box in boxes)
        rest = solve(board, [*start, edge], table=TABLE).value
        worth[str(edge)] = closed + rest if closed else -rest
    assert problem["value"] == max(worth.values())
    return {edge: problem["value"] - value for edge, value in worth.items()}


@pytest.mark.parametrize("theme", sorted(THEMES.keys() - {"opening", "chains"}))
def test_the_answers_are_exact_play(theme):
    for problem in problems(theme, 12):
        assert problem["kind"] == "edge"
        assert problem["answers"] == losses_by_play(problem)


@pytest.mark.parametrize("seed", [9, 10, 17, 30])  # solved quickly
def test_the_answers_of_an_opening_are_exact_play(seed):
    problem = asked("opening", seed, 0)
    assert problem["answers"] == losses_by_play(problem)


@pytest.mark.parametrize("theme", THEMES)
def test_every_problem_is_decided_and_comes_again_with_its_seed(theme):
    found = problems(theme, 12)
    again = [asked.__wrapped__(theme, seed, seed % GRADES) for seed in range(4)]
    assert found[:4] == again
    assert len({str(problem["game"]) for problem in found}) > 6
    for problem in found:
        assert problem["theme"] == theme and problem["difficulty"] > 0
        assert problem["game"]["moves"] == []
        if problem["kind"] == "edge":
            losses = problem["answers"].values()
            assert min(losses) == 0 < max(losses)


def test_chains_are_counted():
    for problem in problems("chains", 20):
        assert problem["kind"] == "count" and not closing(problem)
        assert {len(box) for box in open_sides(problem)} == {2}
        long = [boxes for boxes, is_loop, _ in regions(problem) if boxes >= 3 and not is_loop]
        assert problem["answers"] == {"count": len(long)}
        shown = [(one["length"], one["kind"] == "loop") for one in problem["chains"]]
        assert sorted(shown) == [region[:2] for region in regions(problem) if region[0] > 1]
        assert problem["reason"] == ("count" if len(regions(problem)) > len(long) else "all")
        solution = solve(board_of(problem), problem["game"]["start"], table=TABLE)
        assert problem["value"] == solution.value


def test_the_last_boxes_of_a_region_are_taken_or_left():
    reasons = set()
    for theme in ("handback", "loops"):
        for problem in problems(theme, 30):
            takes = closing(problem)
            if theme == "loops" and not takes:
                continue
            reasons.add(problem["reason"])
            assert len(takes) in (1, 2), "one end of a chain, or two ends of what was a loop"
            if problem["reason"] == "take_all":
                assert right(problem) <= takes
            else:
                assert not right(problem) & takes
                assert len(takes) == {"leave_two": 1, "leave_four": 2}[problem["reason"]]
    assert reasons == {"take_all", "leave_two", "leave_four"}


def test_the_reason_names_all_right_edges_of_an_endgame_with_loops(monkeypatch):
    monkeypatch.setattr(problems_module, "MAX_RIGHT", 1)  # more positions in which several are best
    reasons = set()
    for found in islice(THEMES["loops"](np.random.default_rng(0)), 600):
        problem = found.to_json()
        if closing(problem) or problem["reason"] == "opening":  # never asked
            continue
        assert problem["answers"] == losses_by_play(problem)
        reasons.add(problem["reason"])
        there, small = regions(problem), smallest(problem)
        assert not safe(problem) and len(there) > 1
        assert any(is_loop for _, is_loop, _ in there)
        if problem["reason"] == "open_smallest":
            assert right(problem) == small
        elif problem["reason"] == "middle_edge":
            sides = [edge for box in open_sides(problem) for edge in box]
            assert there[0][0] == 2
            assert right(problem) == {edge for edge in small if sides.count(edge) == 2}
        else:
            opened = [(boxes, is_loop) for boxes, is_loop, edges in there if edges & right(problem)]
            chains = [boxes for boxes, is_loop, _ in there if not is_loop and boxes >= 3]
            assert all(is_loop for _, is_loop in opened)
            assert chains and chains[0] <= opened[0][0]
    assert reasons == {"open_smallest", "middle_edge", "open_loop"}


def rule(problem: dict) -> tuple[str, object]:
    """Return the question that a problem asks, and what a person might always do with it."""
    if problem["kind"] == "count":
        return "count", problem["answers"]["count"]
    if closing(problem):
        return "last boxes", bool(right(problem) & closing(problem))
    there = regions(problem)
    return "opening", all(edges & right(problem) for size, _, edges in there if size == there[0][0])


@pytest.mark.parametrize("grade", range(GRADES))
@pytest.mark.parametrize(
    ("theme", "seeds", "most"),
    [
        ("chains", 60, 0.4),
        ("handback", 60, 0.6),
        pytest.param("loops", 200, 0.6, marks=pytest.mark.slow),
    ],
)
def test_the_grade_does_not_give_the_answer_away(theme, seeds, most, grade):
    rules = Counter(rule(asked(theme, seed, grade)) for seed in range(seeds))
    asked_for = Counter(question for question, _ in rules.elements())
    for (question, _), count in rules.items():
        assert count <= most * asked_for[question]


def test_safe_edges_differ_in_a_problem_of_parity():
    for problem in problems("parity", 20):
        assert not closing(problem)
        assert right(problem) < safe(problem), "all right edges are safe, not all safe ones right"


@pytest.mark.parametrize("theme", THEMES)
def test_a_higher_grade_is_harder(theme):
    means = [np.mean([asked(theme, s, g)["difficulty"] for s in range(8)]) for g in range(GRADES)]
    assert means[0] + 20 < means[1] < means[2] - 20


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_a_random_answer_is_rarely_right(theme):
    shares = []
    for seed in range(201):
        problem = asked(theme, seed, seed % GRADES)
        choices = len(problem["answers"])
        if problem["kind"] == "count":
            shares.append(1 / (1 + max(6, problem["answers"]["count"])))  # the buttons of the page
        else:
            shares.append(len(right(problem)) / choices)
    assert max(shares) <= 0.25
    assert np.mean(shares) <= 0.2  # 10 of 50
