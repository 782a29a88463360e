"""Test the mistakes of a game: the table, the exercises, and those of all games."""

from __future__ import annotations

import json
import re

from browsing import (
    GAME,
    draw,
    expect,
    load,
    moves,
    open_games,
    start_game,
    to_play,
    wait_for_review,
)


def test_one_learns_from_the_mistakes_of_a_game(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("practise").click()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(3)  # before the mistake
    expect(page.locator("#board-host .cost")).to_have_count(0)
    page.keyboard.press("ArrowLeft")  # does not end the exercise
    answer = page.get_by_test_id("practice-answer")
    page.get_by_test_id("edge-2").click()  # the same mistake again
    expect(answer).to_have_class(re.compile("bad"))
    expect(answer.locator("p").nth(1)).to_contain_text("box")  # the reason beside the loss
    page.get_by_test_id("practice-show").click()
    page.locator("#board-host .hint").wait_for(state="attached")
    page.get_by_test_id("edge-9").click()
    expect(answer).to_have_class(re.compile("good"))
    page.get_by_test_id("practice-next").click()
    assert not page.get_by_test_id("practice-panel").is_visible()
    expect(moves(page)).to_have_count(5)
    for leave in (
        lambda: page.keyboard.press("m"),
        lambda: page.get_by_test_id("edit").click(),
        lambda: load(page, GAME | {"moves": [0, 11]}),
    ):
        load(page, GAME)
        page.get_by_test_id("practise").click()
        expect(page.get_by_test_id("practice-panel")).to_be_visible()
        leave()  # the exercise ends with its position
        expect(page.get_by_test_id("practice-panel")).to_be_hidden()


def test_an_edge_of_unknown_worth_is_not_called_good(open_page):
    page = open_page("review")
    page.route("**/api/analyse", lambda route: route.fulfill(body='{"edges": []}\n'))
    load(page, GAME)
    page.get_by_test_id("practise").click()
    page.get_by_test_id("edge-9").click()
    expect(page.get_by_test_id("practice-answer")).to_have_class(re.compile("bad"))


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
    for edge in [*GAME["moves"], *range(12)]:
        draw(page, edge)
    page.get_by_test_id("nav-review").click()
    wait_for_review(page)
    expect(page.get_by_test_id("mistakes").locator("tbody tr").first).to_contain_text("box")
    to_play(page)
    start_game(page, size="3x3")
    draw(page, 0)
    open_games(page)
    expect(page.get_by_test_id("archived").first).to_contain_text("%")
    page.get_by_test_id("practise-games").click()
    expect(page.get_by_test_id(re.compile(r"^edge-\d+$"))).to_have_count(12)  # the board of 2x2
    page.get_by_test_id("edge-9").click()
    expect(page.get_by_test_id("practice-answer")).to_have_class(re.compile("good|bad"))
    to_play(page)
    page.get_by_test_id("retry").click()  # the game of 3x3 was set aside
    expect(page.get_by_test_id(re.compile(r"^edge-\d+$"))).to_have_count(24)


def test_a_review_begins_at_the_end(open_page):
    page = open_page()
    with page.expect_response("**/api/review") as response:
        load(page, GAME)
    plies = [json.loads(line).get("ply") for line in response.value.text().splitlines()]
    assert plies == [5, 4, 3, 2, 1, 0, None]
    wait_for_review(page)
    expect(page.locator("#moves .slip")).to_have_count(1)


def test_a_review_of_an_empty_game_prepares_the_solver_and_says_so(open_page):
    page = open_page("play")
    body = json.dumps({"preparing": 7}) + "\n"
    page.evaluate(
        """(line) => {
            const ask = window.fetch;
            window.fetch = (path, options) => path !== "api/review" ? ask(path, options) :
                Promise.resolve(new Response(new ReadableStream({
                    start: (stream) => stream.enqueue(new TextEncoder().encode(line)) })));
        }""",
        body,
    )
    page.get_by_test_id("nav-review").click()
    expect(page.locator("#review-state")).to_contain_text("solver gets ready")
    expect(page.locator("#review-state")).to_contain_text("7 s")
