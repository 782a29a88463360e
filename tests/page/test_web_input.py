"""Test the input of the page: clicks, touches, keys and the wheel."""

from __future__ import annotations

import json

import pytest
from browsing import (
    GAME,
    draw,
    drawn_edges,
    expect,
    expect_scores,
    load,
    moves,
    ready,
    start_game,
    to_play,
)

# The top row is a chain of four, opened on its left; the bottom row is an unopened chain of four.
CHAIN = {"rows": 2, "cols": 4, "start": [*range(12)], "moves": [12]}


def test_a_click_counts_while_a_chain_is_still_being_shown(open_page):
    page = open_page("review", motion="no-preference")
    load(page, CHAIN)
    to_play(page)
    page.evaluate(
        """(edges) => edges.forEach((edge) =>
            document.querySelector(`#board-host [data-edge="${edge}"]`)
                .dispatchEvent(new MouseEvent("click", { bubbles: true })))""",
        [13, 16],  # the first takes two boxes, the second leaves two
    )
    expect(page.locator('#board-host .drawn[data-edge="16"]')).to_have_count(1)
    expect_scores(page, 0, 2)


def test_one_click_takes_a_chain_up_to_the_choice_and_undo_takes_one_click(open_page):
    page = open_page("review")
    load(page, CHAIN)
    to_play(page)
    draw(page, 13)
    expect(page.get_by_test_id("toast")).to_contain_text("chain")  # shown once, to newcomers
    page.evaluate("document.querySelector('#toast').textContent = ''")
    page.get_by_test_id("undo").click()
    draw(page, 13)
    expect(page.get_by_test_id("toast")).to_be_empty()
    ready(page)
    expect_scores(page, 0, 2)
    after = drawn_edges(page)
    page.get_by_test_id("undo").click()
    expect_scores(page, 0, 0)
    page.get_by_test_id("redo").click()
    expect_scores(page, 0, 2)
    assert drawn_edges(page) == after
    draw(page, 16)  # a second click
    ready(page)
    page.get_by_test_id("undo").click()
    expect_scores(page, 0, 2)
    page.reload()  # the next visit also knows which edges one click drew
    ready(page)
    page.get_by_test_id("undo").click()
    expect_scores(page, 0, 0)


def test_arrow_keys_step_through_a_review(open_page):
    page = open_page("review")
    load(page, GAME)
    page.locator("#skip").focus()
    page.keyboard.press("Enter")  # to the board, where the arrows go from edge to edge
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.edge") == "7"
    assert drawn_edges(page) == 5
    page.evaluate("document.activeElement.blur()")
    for key, count in (("ArrowLeft", 4), ("ArrowLeft", 3), ("ArrowRight", 4), ("Home", 0)):
        page.keyboard.press(key)
        assert drawn_edges(page) == count
    page.get_by_test_id("move-2").click()  # also with the focus on a move or the board
    page.keyboard.press("ArrowRight")
    assert drawn_edges(page) == 3
    page.get_by_test_id("edge-2").click()
    page.keyboard.press("ArrowLeft")
    assert drawn_edges(page) == 3
    page.get_by_test_id("format").focus()  # but not in a field that uses the arrow keys
    page.keyboard.press("ArrowLeft")
    assert drawn_edges(page) == 3


def test_the_wheel_scrolls_every_view_and_steps_through_no_game(open_page):
    page = open_page("review", size="low")
    load(page, GAME)
    for view in ("review", "play"):
        page.get_by_test_id(f"nav-{view}").click()
        page.keyboard.press("Home")
        page.locator("#board-host .board").hover()
        page.mouse.wheel(0, 60)
        page.wait_for_function("scrollY > 0")
        assert drawn_edges(page) == 0


def test_a_finger_that_stays_reads_about_an_edge_and_draws_nothing(open_page):
    page = open_page(size="phone", has_touch=True, is_mobile=True, locale="zh-CN")
    start_game(page, size="2x2")
    page.get_by_test_id("analysis").click()
    page.locator(".badge.exact").wait_for()
    place = page.get_by_test_id("edge-4").bounding_box()
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    touch = page.context.new_cdp_session(page)
    finger = [{"x": x, "y": y}]
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": finger})
    expect(page.get_by_test_id("toast")).to_contain_text("h2,0")
    expect(page.get_by_test_id("toast")).to_be_in_viewport()
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(400)
    assert drawn_edges(page) == 0
    page.touchscreen.tap(x, y)
    page.locator('#board-host .drawn[data-edge="4"]').wait_for()


TO_SCREEN = """([x, y]) => {
    const board = document.querySelector("#board-host .board");
    const at = new DOMPoint(x, y).matrixTransform(board.getScreenCTM());
    return [at.x, at.y];
}"""


@pytest.mark.parametrize("touch", [False, True])
def test_a_click_draws_the_edge_that_it_can_mean_alone(open_page, touch):
    page = open_page(size="phone", has_touch=touch)
    start_game(page, size="2x2")
    press = page.touchscreen.tap if touch else page.mouse.click
    for spot in ((0, 0), (50, 50), (103, 97), (47, 46)):
        press(*page.evaluate(TO_SCREEN, spot))
        page.wait_for_timeout(50)
        assert drawn_edges(page) == 0, spot
    for spot in ((25, 0), (75, 8), (50, 22), (200, 130)):
        press(*page.evaluate(TO_SCREEN, spot))
        expect(page.locator("#board-host .edge.drawn")).to_have_count(1)
        ready(page)
        page.get_by_test_id("undo").click()


KEY = """([key, code, shiftKey]) => document.body.dispatchEvent(
    new KeyboardEvent("keydown", { key, code, shiftKey, bubbles: true, cancelable: true }))"""
NEW_GAME = (  # the first is the Cyrillic letter on the N key
    ("\N{CYRILLIC SMALL LETTER TE}", "KeyN"),
    ("N", "KeyN"),
    ("n", "KeyB"),
    ("Process", "KeyN"),
)


def test_enter_starts_a_new_game_wherever_the_focus_is_and_n_on_every_keyboard(open_page):
    page = open_page("review")
    for focus in (None, "level-0"):
        page.get_by_test_id("nav-review").click()
        load(page, GAME)
        page.keyboard.press("n")
        page.get_by_test_id("new-dialog").wait_for()
        if focus:
            page.get_by_test_id(focus).focus()
        page.keyboard.press("Enter")
        expect(page.get_by_test_id("new-dialog")).not_to_be_visible()
        expect(page.locator("#board-host .edge.drawn")).to_have_count(0)
        expect(moves(page)).to_have_count(0)
    page.evaluate(KEY, ["b", "KeyN", False])  # a Latin letter counts, not its key
    page.wait_for_timeout(50)
    expect(page.get_by_test_id("new-dialog")).not_to_be_visible()
    for key, code in NEW_GAME:
        page.evaluate(KEY, [key, code, False])
        expect(page.get_by_test_id("new-dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_test_id("new-dialog")).not_to_be_visible()


PASTE = """([text, selector]) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    document.querySelector(selector).dispatchEvent(
        new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""


@pytest.mark.parametrize("view", ["learn", "play"])
def test_a_position_or_a_link_is_pasted(open_page, view):
    page = open_page(view)
    text = json.dumps(GAME)
    if view == "play":
        page.get_by_test_id("new-game").click()
        page.evaluate(PASTE, [text, "[data-testid=rows]"])  # a field keeps pasted text
        page.wait_for_timeout(100)
        assert moves(page).count() == 0
        page.keyboard.press("Escape")
        to_link = "async (game) => (await import('./record.js')).toFragment(game)"
        text = f"http://other:8000/#{page.evaluate(to_link, GAME)}"
    page.evaluate(PASTE, [text, "body"])
    expect(moves(page)).to_have_count(len(GAME["moves"]))
    assert page.get_by_test_id("review-panel").is_visible()
    if view == "play":
        page.get_by_test_id("move-1").click()
        draw(page, 3)
        page.evaluate(PASTE, [text, "body"])  # the link that the address already has
        expect(moves(page)).to_have_count(len(GAME["moves"]))
