"""Test playing: by keyboard, against levels, with warnings, for a rating, to the end."""

from __future__ import annotations

import re

from browsing import (
    GAME,
    begin,
    choose_size,
    draw,
    drawn_edges,
    expect,
    finish,
    load,
    moves,
    ready,
    scores,
    set_switch,
    start_game,
    to_play,
)

from jaxzero.page.answers import about


def test_a_game_by_keyboard_and_another_begins(open_page):
    page = open_page()
    start_game(page, size="2x3")
    page.locator("#board-host .edge:focus").wait_for()  # a new game hands the focus to the board
    for line in range(5):
        across = line % 2 == 1
        if across:
            page.keyboard.press("ArrowRight")
        for column in range(4 if across else 3):
            if column:
                page.keyboard.press("ArrowLeft" if across else "ArrowRight")
            drawn = "#board-host .edge.drawn:focus"
            page.locator(f"#board-host .board:not(.waits), {drawn}").first.wait_for()
            page.keyboard.press("Enter")
            page.locator(drawn).wait_for()
        page.keyboard.press("ArrowDown")
    expect(moves(page)).to_have_count(17)
    expect(page.get_by_test_id("status")).to_have_text("Second player won 6 : 0")
    assert scores(page) == [0, 6]
    expect(page.get_by_test_id("live")).not_to_be_empty()
    start_game(page, size="2x3")
    expect(page.get_by_test_id("ended")).to_be_hidden()
    edge = page.get_by_test_id("edge-4")
    assert edge.get_attribute("aria-label") == "horizontal edge row 1, column 1, not drawn"
    for each in (4, 1):
        draw(page, each)
    assert edge.get_attribute("aria-label") == "horizontal edge row 1, column 1, drawn"
    top, beside = page.get_by_test_id("edge-10"), page.get_by_test_id("edge-11")
    expect(top).to_have_attribute("aria-label", re.compile("column 1, not drawn, third side$"))
    draw(page, 10)
    expect(beside).to_have_attribute("aria-label", re.compile("not drawn, closes a box$"))
    boxes = page.get_by_test_id("boxes").locator("li")
    expect(boxes).to_have_count(6)
    expect(boxes.nth(1)).to_have_text("box row 0, column 1: 3 of 4 sides")
    draw(page, 11)
    expect(boxes.nth(1)).to_have_text("box row 0, column 1: Second player")
    move = page.get_by_test_id("move-4")  # the words on the button are its name
    assert move.get_attribute("aria-label") is None and "v0,2" in move.inner_text()
    page.goto(f"{page.url.partition('#')[0]}#lesson-2")
    page.locator("#skip").focus()
    page.keyboard.press("Enter")  # the skip link leads to the board shown
    expect(page.locator(".lesson .edge:focus")).to_have_count(1)


def test_the_engine_answers_and_undo_takes_both_moves_back(open_page):
    page = open_page()
    with page.expect_request("**/api/warm") as request:  # the engine gets ready meanwhile
        start_game(page, mode="engine", size="4x4")
    assert request.value.post_data_json["rows"] == 4
    answers = []
    for _ in range(2):
        draw(page, 0)
        page.get_by_test_id("move-2").wait_for()
        ready(page)
        answers.append(moves(page).all_inner_texts())
        page.get_by_test_id("undo").click()
        assert drawn_edges(page) == 0
    assert answers[0] == answers[1], "the same move has the same answer"
    page.keyboard.press("r")
    assert drawn_edges(page) == len(answers[0])
    begin(page, "starts-engine")
    page.get_by_test_id("move-1").wait_for()
    expect(page.get_by_test_id("undo")).to_be_disabled()  # there is nothing to undo
    draw(page, 20)
    expect(page.get_by_test_id("undo")).to_be_enabled()


def test_teaching_warns_before_a_costly_move(open_page):
    page = open_page("review")
    load(page, GAME | {"moves": [0, 11, 6]})
    set_switch(page, "teaching")
    to_play(page)
    page.get_by_test_id("edge-2").click()  # the third side of a box
    warning = page.get_by_test_id("teach-panel")
    expect(warning).to_contain_text("lets the other side take 1 box at once")  # the reason
    mark = page.locator("#board-host .hint")
    expect(mark).to_have_count(1)  # the edge in question, not the better one
    before = mark.get_attribute("x1"), mark.get_attribute("y1")
    page.get_by_test_id("teach-show").click()
    assert (mark.get_attribute("x1"), mark.get_attribute("y1")) != before
    page.get_by_test_id("teach-back").click()
    expect(warning).to_be_hidden()
    assert drawn_edges(page) == 3
    for again in (page.get_by_test_id("teach-anyway"), page.get_by_test_id("edge-2")):
        page.get_by_test_id("edge-2").click()
        expect(warning).to_be_visible()
        again.click()
        page.locator('#board-host .drawn[data-edge="2"]').wait_for()
        expect(warning).to_be_hidden()
        page.get_by_test_id("undo").click()
    draw(page, 9)  # loses nothing
    expect(warning).to_be_hidden()


def test_one_plays_on_from_a_position_of_a_review(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("move-2").click()
    draw(page, 9)
    page.get_by_test_id("play-here").click()
    page.locator("label", has=page.get_by_test_id("starts-you")).click()
    page.get_by_test_id("level-0").fill("4")
    with page.expect_request("**/api/move") as request:  # after three edges the engine moves
        page.get_by_test_id("start-game").click()
    asked = request.value.post_data_json
    assert (asked["moves"], asked["level"]) == ([0, 11, 9], "4")
    ready(page)
    expect(page.get_by_test_id("player-0")).to_contain_text("You")
    page.keyboard.press("l")  # the engine also moves for the person
    page.get_by_test_id("move-6").wait_for()


def test_the_end_shows_the_winner_counts_the_mistakes_and_begins_again_by_one_click(open_page):
    page = open_page()
    expect(page.get_by_test_id("player-1")).to_contain_text("Beginner")  # at the first visit
    expect(page.locator("#board-host .edge")).to_have_count(24)
    start_game(page, "starts-engine", mode="engine", size="2x2")
    finish(page, [*GAME["moves"], *range(12)])
    boxes = scores(page)
    winner = boxes.index(max(boxes)) if boxes[0] != boxes[1] else "null"
    expect(page.get_by_test_id("status")).to_have_class(re.compile(f"result side-{winner}"))
    expect(page.get_by_test_id("ended")).to_have_text(re.compile(r"your \d+ mistake|No mistake"))
    shown = page.get_by_test_id("ended").inner_text()
    page.get_by_test_id("ended").click()
    own = page.locator("#mistakes tbody .sign.side-1").count()
    assert (re.findall(r"\d+", shown) or ["0"]) == [str(own)]
    to_play(page)
    page.locator(".toolbar.play-only .primary:visible").click()
    page.get_by_test_id("move-1").wait_for()  # the computer begins again
    expect(page.locator("#board-host .edge")).to_have_count(12)
    expect(page.get_by_test_id("player-0")).to_contain_text("Beginner")


def test_another_level_is_offered_after_a_win_and_after_a_heavy_loss(open_page):
    page = open_page()
    for start, edges, level, words, lesson, other in (
        ([*range(7)], [7, 8, 9], "1", "A harder one?", False, "Casual"),
        ([*range(6)], [6, 7, 8, 9], "1", "An easier one?", False, "Beginner"),
        ([*range(6)], [6, 7, 8, 9], "0", "A smaller board?", True, "Beginner"),
    ):
        game = {"rows": 1, "cols": 3, "title": "", "start": start, "moves": edges}
        seats = [{"kind": "person"}, {"kind": "engine", "level": level}]
        table = {"id": "one", "date": 1, "game": game, "seats": seats}
        page.evaluate("(table) => (sessionStorage.jaxzero = JSON.stringify(table))", table)
        page.reload()
        expect(page.get_by_test_id("other-level")).to_have_text(words)
        assert page.get_by_test_id("end-lesson").is_visible() == lesson
        page.get_by_test_id("other-level").click()
        expect(page.get_by_test_id("player-1")).to_contain_text(other)
        expect(page.locator("#board-host .edge.drawn")).to_have_count(0)
    expect(page.locator("#board-host .edge")).to_have_count(12)  # 2x2


def test_a_level_follows_the_rating_of_the_person_which_counts_no_game_with_help(open_page):
    levels = [{"id": str(n), "name": "x", "rating": 600 + 200 * n} for n in range(9)]
    page = open_page()
    page.route("**/api/info", lambda route: route.fulfill(json=about() | {"levels": levels}))
    page.reload()
    page.get_by_test_id("new-game").click()
    choose_size(page, "2x2")
    page.get_by_test_id("adapts").check()
    expect(page.get_by_test_id("level-0")).to_have_count(0)
    with page.expect_request("**/api/warm") as request:
        page.get_by_test_id("start-game").click()
    assert request.value.post_data_json["level"] == "2"  # rated 1000
    finish(page, range(12))
    own, other = scores(page)
    stored = "JSON.parse(localStorage.jaxzero)"
    rating = 1000 + 16 * ((own > other) - (own < other))
    assert page.evaluate(f"{stored}.ratings") == {"2x2": rating}
    assert page.evaluate(f"{stored}.table.rated") is False, "a game counts once"

    def click(*names):
        for name in names:
            page.get_by_test_id(name).click()

    for get_help in (
        lambda: click("hint"),
        lambda: click("analysis", "analysis"),
        lambda: click("nav-review", "edit", "edge-20", "edit", "nav-play"),
        lambda: page.keyboard.press("Home"),
        lambda: set_switch(page, "teaching"),
    ):
        to_play(page)
        begin(page, size="3x3")
        draw(page, 0)
        page.get_by_test_id("move-2").wait_for()
        ready(page)
        assert page.evaluate(f"{stored}.table.rated") is True
        get_help()
        page.reload()
        draw(page, 21)
        ready(page)  # the engine has moved too
        assert page.evaluate(f"{stored}.table.rated") is False
