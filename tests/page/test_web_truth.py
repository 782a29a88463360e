"""Test that the page says what is true: the long chain rule, losses, verdicts, results."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import islice

import numpy as np
from browsing import GAME, draw, expect, load, moves, set_switch, start_game, to_play

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


def answer(line, route):
    route.fulfill(body=json.dumps(line) + "\n")


def test_a_loss_is_said_as_exact_as_a_bound_or_as_an_estimate(open_page):
    page = open_page("review")
    load(page, GAME | {"moves": [0, 11, 6]})
    set_switch(page, "teaching")
    to_play(page)
    warning, number = page.get_by_test_id("teach-panel"), page.locator("#board-host .number text")
    for known, words, label in (
        (
            {"exact": True, "bound": False},
            "Proven: after this move you end 2 boxes worse",
            "\u22122",
        ),
        ({"exact": False, "bound": True}, "Proven: after this move you end at least 2", "≥2"),
        ({"exact": False, "bound": False}, "Estimate: after this move you end about 2", "\u22122"),
    ):
        edge = {"edge": 2, "lost": 2, "class": "half-hearted"} | known
        found = {"stage": "done", "simulations": 256, "best": 9, "edges": [edge]}
        page.unroute("**/api/analyse")
        page.route("**/api/analyse", partial(answer, found))
        page.reload()
        page.get_by_test_id("edge-2").click()
        expect(warning).to_contain_text(words)
        page.keyboard.press("a")
        expect(number).to_have_text(label)
        page.keyboard.press("a")


def test_an_estimated_mistake_is_called_an_estimate(open_page):
    page = open_page("review")
    line = {"ply": 3, "player": 0, "margin": 0, "best": 9, "lost": 2, "mistake": True}
    for exact, words in ((False, "about 2 boxes"), (True, "lost 2 boxes")):
        page.unroute("**/api/review")
        page.route(
            "**/api/review",
            partial(answer, line | {"exact": exact}),
        )
        load(page, GAME | {"moves": [*GAME["moves"], *([] if exact else [9])]})
        page.locator('[data-testid="next-mistake"]:enabled').click()
        expect(page.get_by_test_id("status")).to_contain_text(words)


def test_a_mistake_tried_again_is_judged_by_the_look_of_the_review_and_no_shorter_one(open_page):
    page = open_page("review")
    load(page, GAME)
    page.locator('[data-testid="practise"]:enabled').wait_for()
    page.evaluate("""() => {
        const { fetch } = window;
        const line = (lost, simulations) => new TextEncoder().encode(JSON.stringify({ stage:
            "search", simulations, best: 9, edges: [{ edge: 2, lost, class: "loony" }] }) + "\\n");
        window.fetch = (url, options) => !String(url).endsWith("analyse") ? fetch(url, options) :
            new Response(new ReadableStream({ start(stream) {
                stream.enqueue(line(0, 0)); // a first guess
                window.goOn = () => (stream.enqueue(line(2, 256)), stream.close());
            } }));
    }""")
    page.get_by_test_id("practise").click()
    page.get_by_test_id("edge-2").click()
    verdict = page.get_by_test_id("practice-answer")
    expect(verdict).to_have_class(re.compile("busy"))
    page.wait_for_timeout(500)  # the first guess has come
    expect(verdict).to_have_class(re.compile("busy"))
    page.evaluate("goOn()")
    expect(verdict).to_have_class(re.compile("bad"))


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


def test_the_link_of_an_empty_board_shows_an_empty_board(open_page):
    page = open_page()
    start_game(page, size="3x3")
    draw(page, 0)
    page.evaluate("location.hash = '#g=3x3..'")
    page.locator('[data-testid="nav-review"][aria-current="page"]').wait_for()
    expect(moves(page)).to_have_count(0)
    page.get_by_test_id("retry").click()  # the own game was set aside
    expect(moves(page)).to_have_count(1)
