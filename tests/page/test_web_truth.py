"""Test that the page says what is true: the long chain rule, losses, mistakes, results."""

from __future__ import annotations

import json
import re
from itertools import islice

import numpy as np
from browsing import (
    GAME,
    answer,
    draw,
    expect,
    finish,
    load,
    moves,
    open_games,
    reload,
    set_switch,
    start_game,
    stream,
    to_play,
    wait_for_review,
)

from jaxzero.game import DotsAndBoxes, box_sides_table, count_sides, fullest_beside
from jaxzero.game.records import RecordedGame
from jaxzero.play.problems import LONG, find_regions
from jaxzero.solver.small import small_values

BOARD = DotsAndBoxes(3, 3)
PAIRS = ((0, 1), (3, 4))  # boxes that share a side


def endgames(rng):
    """Yield 3x3 games up to the first position with only long chains and loops, and the chains.

    They begin with the sides of 0, 1 or 2 pairs of boxes, each closed by one move, and go on with
    safe edges. Some of the first edges are drawn before the game.
    """
    while True:
        moves, drawn = [], np.zeros(BOARD.num_edges, bool)
        for one, other in PAIRS[: rng.integers(3)]:
            sides = box_sides_table(BOARD)[[one, other]].ravel()
            outer = [edge for edge in sides if edge not in moves and (sides == edge).sum() == 1]
            moves += [*rng.permutation(outer), np.intersect1d(*sides.reshape(2, 4)).item()]
        drawn[moves] = True
        while (safe := np.flatnonzero(~drawn & (fullest_beside(BOARD, drawn) < 2))).size:
            moves.append(rng.choice(safe))
            drawn[moves[-1]] = True
        if np.isin(count_sides(BOARD, drawn)[:-1], (2, 4)).all():
            regions = [*find_regions(BOARD, drawn)]
            if min(region.size for region in regions) >= LONG:
                moves, before = list(map(int, moves)), rng.integers(4)
                game = RecordedGame(3, 3, tuple(moves[:before]), tuple(moves[before:]))
                yield game, sum(not region.is_loop for region in regions)


def test_the_long_chain_rule_names_the_side_that_the_solver_sees_ahead(open_page):
    """Nobody wants to open the first long chain, so the side not to move is in control."""
    rule = """async (games) => {
        const { longChainRule, replay } = await import("./rules.js");
        return games.map((game) => longChainRule(game, replay(game)));
    }"""
    found = [*islice(endgames(np.random.default_rng(1)), 60)]
    said, seen = open_page().evaluate(rule, [game.to_json() for game, _ in found]), set()
    for (game, chains), rule in zip(found, said, strict=True):
        controls = 0 if rule["even"] == (chains % 2 == 0) else 1
        assert controls == 1 - game.player, game
        assert small_values(BOARD, game.drawn).max() <= 0, "the side to move wins nothing"
        seen.add((rule["pairs"], len(game.start) % 2))
    assert len(seen) == 6, "0, 1 and 2 pairs with an odd and an even start"


def test_a_loss_is_said_as_exact_as_a_bound_or_as_an_estimate(open_page):
    page = open_page("review")
    load(page, GAME | {"moves": [0, 11, 6]})
    set_switch(page, "teaching")
    to_play(page)
    number = page.locator("#board-host .number text")
    for exact, bound, words, label in (
        (True, False, "Proven: after this move you end 2 boxes worse", "\u22122"),
        (False, True, "Proven: after this move you end at least 2", "≥2"),
        (False, False, "Estimate: after this move you end about 2", "\u22122"),
    ):
        edge = {"edge": 2, "lost": 2, "class": "half-hearted", "exact": exact, "bound": bound}
        answer(page, "analyse", {"stage": "done", "simulations": 256, "best": 9, "edges": [edge]})
        page.reload()
        page.get_by_test_id("edge-2").click()
        expect(page.get_by_test_id("teach-panel")).to_contain_text(words)
        page.keyboard.press("a")
        expect(number).to_have_text(label)
        page.keyboard.press("a")
    page.get_by_test_id("nav-review").click()
    line = {"ply": 3, "player": 0, "margin": 0, "best": 9, "lost": 2, "mistake": True}
    for exact, words in ((False, "about 2 boxes"), (True, "lost 2 boxes")):
        answer(page, "review", line | {"exact": exact})
        load(page, GAME | {"moves": [*GAME["moves"], *([] if exact else [9])]})
        page.locator('[data-testid="next-mistake"]:enabled').click()
        expect(page.get_by_test_id("status")).to_contain_text(words)


def test_a_hint_is_proven_where_the_edge_is_and_boxes_to_take_are_no_chain(open_page):
    page = open_page()
    start_game(page)
    line = {"edges": [{"edge": 5, "lost": 0}], "best": 5, "value": 1.0}
    for edge, found, words in (
        (0, line | {"exact": {"value": 1, "best": [5]}}, "Best, proven: "),
        (1, line | {"exact": {"value": 1, "best": []}}, "Hint: "),
        (2, {"preparing": True}, "No hint yet"),
    ):
        answer(page, "analyse", found)
        page.keyboard.press("h")
        expect(page.get_by_test_id("status")).to_contain_text(words)
        draw(page, edge)
    chains = [
        {"boxes": [*range(n)], "kind": kind, "length": n, "free": free, "edges": []}
        for kind, n, free in (("chain", 2, True), ("chain", 5, False), ("loop", 4, False))
    ]
    structure = {"chains": chains, "safe": 0, "long": 1, "control": None}
    answer(page, "analyse", {"edges": [], "structure": structure, "stage": "structure"})
    page.keyboard.press("a")
    for words in ("Boxes to take now: 2", "Chains: 5", "Loops: 4", "1 long chain"):
        expect(page.locator(".facts")).to_contain_text(words)
    expect(page.locator("#board-host .chain text")).to_have_text(["5", "○4"])


def test_a_drawn_lesson_and_an_even_game_name_no_winner(open_page):
    page = open_page("lesson-4", alone=True)
    page.clock.install()
    for edge in (13, 14, 16, 18, 19, 21):  # leave two boxes of both chains: 4 : 4
        page.locator(f'.lesson [data-edge="{edge}"]').first.click()
        page.clock.run_for(3000)
    expect(page.get_by_test_id("lesson-status")).to_have_text("You 4 : 4 opponent")
    expect(page.get_by_test_id("lesson-answer")).to_contain_text("A draw, 4 : 4")
    words = """async (margin) => (await import("./outcome.js")).marginWords(margin, (side) =>
        `Side ${side}`)"""
    said = [page.evaluate(words, margin) for margin in (-2, -0.4, 0.4, 2)]
    assert said == ["Side 1 wins by 2", "about even", "about even", "Side 0 wins by 2"]


def test_a_reason_is_proven_or_called_an_estimate(open_page):
    page = open_page()
    reasons = """async ([game, edge, exact, best]) => {
        const [{ reasonsOf }, { createRecord }] =
            await Promise.all([import("./teach.js"), import("./record.js")]);
        const rated = { edge, lost: 2, class: "safe", exact };
        const edges = best.map(([edge, name]) => ({ edge, lost: 0, class: name, exact }));
        const found = { edges, structure: { chains: [] } };
        return reasonsOf(createRecord(game), rated, found);
    }"""
    empty = {"rows": 5, "cols": 5, "start": [], "moves": []}
    assert "estimates" in page.evaluate(reasons, [empty, 0, False, [[1, "safe"]]])[0]
    assert page.evaluate(reasons, [empty, 0, True, [[1, "safe"]]]) == []  # too early for parity
    late = {"rows": 2, "cols": 2, "start": [0, 1, 2], "moves": []}
    # h1,1 leaves five safe edges, h2,0 leaves four and v0,2 five.
    (parity,) = page.evaluate(reasons, [late, 3, True, [[4, "safe"]]])
    assert "5 safe edges" in parity and "leaves 4" in parity
    for best in ([[4, "loony"]], [[8, "safe"]], []):
        assert page.evaluate(reasons, [late, 3, True, best]) == []


def test_a_mistake_tried_again_is_judged_by_a_whole_look_that_knows_the_edge(open_page):
    page = open_page("review")
    load(page, GAME)
    edge = {"edge": 2, "lost": 0, "class": "loony"}
    line = {"stage": "search", "simulations": 256, "best": 9}
    for known in ([edge | {"lost": 2}], []):
        page.locator('[data-testid="practise"]:enabled').wait_for()
        stream(page, "analyse")
        page.get_by_test_id("practise").click()
        page.get_by_test_id("edge-2").click()
        page.evaluate("send", line | {"simulations": 0, "edges": [edge]})  # a first guess
        verdict = page.get_by_test_id("practice-answer")
        page.wait_for_timeout(500)
        expect(verdict).to_have_class(re.compile("busy"))
        page.evaluate("send", line | {"edges": known})
        page.evaluate("done")
        expect(verdict).to_have_class(re.compile("bad"))
        reload(page)


def test_one_learns_from_the_mistakes_of_a_game(open_page):
    page = open_page("review")
    with page.expect_response("**/api/review") as response:
        load(page, GAME)
    plies = [json.loads(line).get("ply") for line in response.value.text().splitlines()]
    assert plies == [5, 4, 3, 2, 1, 0, None], "a review begins at the end"
    page.get_by_test_id("practise").click()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(3)  # before the mistake
    expect(page.locator("#board-host .cost")).to_have_count(0)
    page.keyboard.press("ArrowLeft")  # does not end the exercise
    verdict = page.get_by_test_id("practice-answer")
    page.get_by_test_id("edge-2").click()  # the same mistake again
    expect(verdict).to_have_class(re.compile("bad"))
    expect(verdict.locator("p").nth(1)).to_contain_text("box")  # the reason beside the loss
    page.get_by_test_id("practice-show").click()
    page.locator("#board-host .hint").wait_for(state="attached")
    page.get_by_test_id("edge-9").click()
    expect(verdict).to_have_class(re.compile("good"))
    page.get_by_test_id("practice-next").click()
    expect(page.get_by_test_id("practice-panel")).to_be_hidden()
    expect(moves(page)).to_have_count(5)
    page.get_by_test_id("practise").click()
    load(page, GAME | {"moves": [0, 11]})  # the exercise ends with its position
    expect(page.get_by_test_id("practice-panel")).to_be_hidden()


def test_mistakes_of_persons_in_the_archive_become_exercises(open_page):
    page = open_page()
    people = [{"kind": "person"}, {"kind": "engine", "level": "1"}]
    slip = {"ply": 1, "player": 1, "best": 3, "lost": 2, "edge": 11}
    table = {"id": "one", "date": 1, "game": GAME, "seats": people, "slips": [slip]}
    page.evaluate("(one) => (localStorage['jaxzero-games'] = JSON.stringify([one]))", table)
    open_games(page)
    expect(page.get_by_test_id("practise-games")).to_be_disabled()  # the computer's mistake
    page.keyboard.press("Escape")
    to_play(page)
    start_game(page, size="2x2")
    finish(page, [*GAME["moves"], *range(12)])
    page.get_by_test_id("nav-review").click()
    wait_for_review(page)
    to_play(page)
    start_game(page, size="3x3")
    draw(page, 0)
    open_games(page)
    expect(page.get_by_test_id("archived").first).to_contain_text("%")
    page.get_by_test_id("practise-games").click()
    expect(page.get_by_test_id(re.compile(r"^edge-\d+$"))).to_have_count(12)  # the board of 2x2
    page.get_by_test_id("edge-9").click()
    expect(page.get_by_test_id("practice-answer")).to_have_class(re.compile("good|bad"))


def test_a_review_of_an_empty_game_prepares_the_solver_and_says_so(open_page):
    page = open_page()
    stream(page, "review")
    page.get_by_test_id("nav-review").click()
    page.evaluate("send", {"preparing": 7})
    expect(page.locator("#review-state")).to_contain_text("7 s")
