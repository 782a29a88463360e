"""Test the page in a real browser: playing, reviewing, learning. conftest.py has its server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browsing import (
    GAME,
    begin,
    draw,
    drawn_edges,
    expect,
    hold,
    is_drawn,
    load,
    moves,
    ready,
    scores,
    set_switch,
    start_game,
    to_play,
    wait_for_review,
)


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
    assert scores(page) == [0, 6]
    assert page.get_by_test_id("status").inner_text() == "Second player won 6 : 0"
    assert page.get_by_test_id("live").inner_text() != ""
    start_game(page, size="2x3")
    assert drawn_edges(page) == 0
    assert not page.get_by_test_id("ended").is_visible()
    edge = page.get_by_test_id("edge-4")
    assert edge.get_attribute("aria-label") == "horizontal edge row 1, column 1, not drawn"
    draw(page, 4)
    assert edge.get_attribute("aria-label") == "horizontal edge row 1, column 1, drawn"
    draw(page, 1)
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
    asked = request.value.post_data_json
    assert (asked["rows"], asked["cols"], drawn_edges(page)) == (4, 4, 0)
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


def test_levels_have_names_and_the_seconds_of_getting_ready_are_shown(open_page):
    page = open_page()
    page.get_by_test_id("new-game").click()
    slider = page.get_by_test_id("level-0")
    for key, name, note in (("Home", "Beginner", "at random"), ("End", "Expert", "perfectly")):
        slider.press(key)
        assert slider.get_attribute("aria-valuetext").startswith(name)
        assert note in page.get_by_test_id("new-dialog").inner_text()
    page.keyboard.press("Escape")
    held = [hold(page, name) for name in ("warm", "move")]
    start_game(page, mode="engine", size="2x2")
    draw(page, 0)
    expect(page.get_by_test_id("status")).to_contain_text(
        re.compile(r"Please wait … \d s of about 60")
    )
    for (request,) in held:
        request.continue_()
    page.get_by_test_id("move-2").wait_for()
    expect(page.get_by_test_id("status")).not_to_contain_text("Please wait")


def test_analysis_on_and_off_and_a_hint(open_page):
    page = open_page()
    start_game(page, size="2x2")
    page.get_by_test_id("analysis").click()
    panel = page.get_by_test_id("analysis-panel")
    page.locator(".badge.exact").wait_for()
    assert "Proven" in panel.inner_text() and "Please wait" not in panel.inner_text()
    assert page.locator("#board-host .cost").count() == 3  # the best; no other edge is costly
    page.locator("#switch-everyEdge").click()
    expect(page.locator("#board-host .cost")).to_have_count(12)
    page.get_by_test_id("line").locator("button").first.hover()
    page.locator("#board-host .ghost").first.wait_for(state="attached")
    page.keyboard.press("a")
    assert not panel.is_visible()
    assert page.locator("#board-host .cost").count() == 0
    page.keyboard.press("h")
    page.locator("#board-host .hint-spot").wait_for()
    expect(page.get_by_test_id("status")).to_have_text(re.compile(r"^\S.*: [hv]\d,\d$"))
    expect(page.get_by_test_id("live")).to_contain_text("edge row")  # the long form


def test_a_game_is_reviewed_and_varied(open_page):
    page = open_page("review")
    load(page, GAME)
    page.locator(".graph .slip").first.wait_for()
    page.locator('[data-testid="next-mistake"]:enabled').click()
    assert "lost" in page.get_by_test_id("status").inner_text()
    page.locator("#board-host .hint-spot").wait_for(state="attached")  # the better edge
    current = page.locator('#moves [aria-current="true"]')
    assert current.locator(".slip").count() == 1
    page.get_by_test_id("mistake-4").click()  # in the table of mistakes
    expect(current).to_have_attribute("data-testid", "move-4")
    page.get_by_test_id("first").click()
    assert drawn_edges(page) == 0
    page.get_by_test_id("move-2").click()
    draw(page, 9)  # a variation
    assert moves(page).count() == 3
    page.get_by_test_id("leave-variation").click()
    assert moves(page).count() == 5


def test_teaching_warns_before_a_costly_move(open_page):
    page = open_page("review")
    load(page, GAME | {"moves": [0, 11, 6]})
    set_switch(page, "teaching")
    to_play(page)
    page.get_by_test_id("edge-2").click()  # the third side of a box
    warning = page.get_by_test_id("teach-panel")
    expect(warning).to_contain_text("Estimate: after this move you end about 2 boxes worse")
    expect(warning).to_contain_text("lets the other side take 1 box at once")  # the reason
    mark = page.locator("#board-host .hint")
    expect(mark).to_have_count(1)  # the edge in question, not the better one
    places = [part.bounding_box() for part in (warning, page.locator("#board-host .board"))]
    assert places[0]["x"] + places[0]["width"] <= places[1]["x"], "it does not cover the board"
    before = mark.get_attribute("x1"), mark.get_attribute("y1")
    page.get_by_test_id("teach-show").click()
    assert (mark.get_attribute("x1"), mark.get_attribute("y1")) != before
    page.get_by_test_id("teach-back").click()
    expect(warning).to_be_hidden()
    assert not is_drawn(page, 2)
    for again in (page.get_by_test_id("teach-anyway"), page.get_by_test_id("edge-2")):
        page.get_by_test_id("edge-2").click()
        expect(warning).to_be_visible()
        again.click()
        page.locator('#board-host .drawn[data-edge="2"]').wait_for()
        expect(warning).to_be_hidden()
        page.get_by_test_id("undo").click()
    draw(page, 9)  # loses nothing: no warning
    assert not warning.is_visible()


def test_a_lesson_that_begins_well_can_still_be_lost(open_page):
    page = open_page("learn", alone=True)
    page.clock.install()
    page.get_by_test_id("lesson-4").click()
    for edge in (13, 14, 16):  # the double-cross
        page.get_by_test_id(f"lesson-edge-{edge}").click()
    count = page.locator(".lesson .edge.drawn").count()
    page.get_by_test_id("lesson-show").click()  # the other side is to move: this shows nothing
    assert page.locator(".lesson .edge.drawn").count() >= count
    page.locator(".answer.part", has_text="double-cross").wait_for()
    while not page.locator('.lesson .board:not(.waits) .drawn[data-edge="17"]').count():
        page.clock.run_for(700)  # the other side opens the last chain
    page.get_by_test_id("lesson-edge-19").click()  # gives the whole chain away
    page.locator(".answer.bad").wait_for()
    assert re.findall(r"\d+", page.locator("#lesson-status").inner_text()) == ["2", "6"]
    page.get_by_test_id("nav-learn").click()
    expect(page.locator(".lesson-list .done")).to_have_count(0)


def test_the_language_is_switched_and_remembered(open_page):
    page = open_page()
    page.get_by_test_id("language").click()
    assert page.get_by_test_id("nav-play").inner_text() == "对弈"
    page.reload()
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    assert page.get_by_test_id("new-game").inner_text() == "新对局"


def test_both_languages_have_all_texts(open_page):
    odd = """async () => {
        const { TEXTS } = await import(new URL("i18n.js", document.querySelector("script").src));
        const names = (text) => text.match(/{\\w+}/g)?.sort().join() ?? "";
        const plain = (pair) => pair.every((text) => typeof text === "string");
        const same = (pair) => !plain(pair) || names(pair[0]) === names(pair[1]);
        return Object.keys(TEXTS).filter((key) => TEXTS[key].length !== 2 || !same(TEXTS[key]));
    }"""
    assert open_page().evaluate(odd) == []


def axe_script():
    folder = pytest.importorskip("axe_playwright_python", reason="no axe: accessibility unchecked")
    return next(Path(folder.__file__).parent.rglob("axe*.js")).read_text()


@pytest.mark.parametrize(
    ("size", "scheme", "locale", "rules"),
    [("phone", "dark", "zh-CN", "{}"), ("desk", "light", "en-US", "{runOnly: 'color-contrast'}")],
)
def test_every_view_fits_and_is_accessible(
    open_page, solver_is_loaded, size, scheme, locale, rules
):
    page = open_page("learn", size, scheme, locale=locale, bypass_csp=True)
    page.evaluate(axe_script())
    views = ("learn", "lesson-4", "train-chains", "train-parity", "play", "review")
    for view in (*views, "practise", "new-game", "settings", "open-games", "shortcuts"):
        if view in views:
            page.goto(f"{page.url.partition('#')[0]}#{view}")
        elif page.get_by_test_id(view).is_visible():
            page.get_by_test_id(view).click()
        if view.startswith("train"):
            choices = "#train-counts button, .lesson .board:not(.waits) .edge:not(.drawn)"
            page.locator(choices).first.click()
            page.locator("#train-answer:not(:empty)").wait_for()
        if view == "play":
            page.get_by_test_id("analysis").click()
            page.locator("#board-host .cost").first.wait_for(state="attached")
        if view == "review":
            load(page, GAME | {"variations": [{"at": 1, "moves": [3, 4]}]})
            wait_for_review(page)
        if view == "practise":
            page.get_by_test_id("edge-2").click()
            page.locator("[data-testid=practice-answer] p").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        part = "document.querySelector('dialog[open]') ?? document"
        found = page.evaluate(f"axe.run({part}, {rules})")["violations"]
        grave = [
            (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert grave == [], view
        if view == "practise":
            page.get_by_test_id("practice-next").click()
            to_play(page)
        page.keyboard.press("Escape")
        if view == "settings":
            page.get_by_test_id("nav-review").click()
