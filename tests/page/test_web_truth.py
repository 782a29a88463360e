"""Test that the page says what is true: the long chain rule, losses, verdicts, results."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import partial

import numpy as np
from browsing import GAME, draw, expect, load, moves, set_switch, start_game, to_play

from jaxzero.game import DotsAndBoxes, count_sides
from jaxzero.game.records import RecordedGame
from jaxzero.play.analysis import by_structure
from jaxzero.players.players import careful_edges
from jaxzero.solver.small import small_values

BOARD = DotsAndBoxes(3, 3)


def endgames(rng):
    """Yield 3x3 games up to the first position with only long chains and loops."""
    while True:
        start = rng.choice(BOARD.num_edges, size=rng.integers(4), replace=False)
        game = RecordedGame(3, 3, tuple(map(int, start)))
        while not game.is_over:
            sides = count_sides(BOARD, game.drawn)[:-1]
            if np.isin(sides, (2, 4)).all():
                chains = by_structure(BOARD, game.drawn).chains
                if min(len(chain.boxes) for chain in chains) > 2:
                    yield game, sum(chain.kind == "chain" for chain in chains)
                break
            edges = careful_edges(BOARD, game.drawn[None])[0] if rng.random() < 0.7 else ~game.drawn
            game = game.draw(int(rng.choice(np.flatnonzero(edges))))


def test_the_long_chain_rule_names_the_side_that_the_solver_sees_ahead(open_page):
    """Nobody wants to open the first long chain, so the side not to move is in control."""
    page, counts = open_page(), Counter()
    rule = """async (game) => {
        const { longChainRule, replay } = await import("./rules.js");
        return longChainRule(game, replay(game));
    }"""
    for game, chains in endgames(np.random.default_rng(1)):
        said = page.evaluate(rule, game.to_json())
        controls = 0 if said["even"] == (chains % 2 == 0) else 1
        assert controls == 1 - game.player, game
        assert small_values(BOARD, game.drawn).max() <= 0, "the side to move wins nothing"
        counts[said["pairs"], len(game.start) % 2] += 1
        if min(counts[pairs, odd] for pairs in (0, 1, 2) for odd in (0, 1)) > 2:
            break


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
