"""Test the input of the page: clicks, touches, keys and the wheel."""

from __future__ import annotations

import pytest
from browsing import GAME, draw, drawn_edges, expect, hold, load, moves, ready, start_game, to_play

# The top row is a chain of four, opened on its left; the bottom row is an unopened chain of four.
CHAIN = {"rows": 2, "cols": 4, "start": [*range(12)], "moves": [12]}


def test_one_click_takes_a_chain_up_to_the_choice_and_undo_takes_one_click(open_page):
    page = open_page("review", motion="no-preference")
    load(page, CHAIN)
    to_play(page)
    draw(page, 13)
    toast = page.get_by_test_id("toast")
    expect(toast).to_contain_text("chain")  # shown once, to newcomers
    page.evaluate("document.querySelector('#toast').textContent = ''")
    page.get_by_test_id("undo").click()
    page.evaluate(
        """(edges) => edges.forEach((edge) =>
            document.querySelector(`#board-host [data-edge="${edge}"]`)
                .dispatchEvent(new MouseEvent("click", { bubbles: true })))""",
        [13, 16],  # the first takes two boxes; the second, while they are shown, leaves two
    )
    expect(page.locator('#board-host .drawn[data-edge="16"]')).to_have_count(1)
    expect(toast).to_be_empty()
    ready(page)
    for key, boxes in (("u", "2"), ("u", "0"), ("r", "2")):
        page.keyboard.press(key)
        expect(page.get_by_test_id("score-1")).to_have_text(boxes)
    page.reload()  # the next visit also knows which edges one click drew
    ready(page)
    page.get_by_test_id("undo").click()
    expect(page.get_by_test_id("score-1")).to_have_text("0")


def test_arrow_keys_step_through_a_review_and_the_wheel_scrolls(open_page):
    page = open_page("review", size="low")
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
    page.get_by_test_id("move-2").click()  # also with the focus on a move
    page.keyboard.press("ArrowRight")
    assert drawn_edges(page) == 3
    page.get_by_test_id("format").focus()  # but not in a field that uses the arrow keys
    page.keyboard.press("ArrowLeft")
    assert drawn_edges(page) == 3
    for view in ("review", "play"):
        page.get_by_test_id(f"nav-{view}").click()
        page.evaluate("scrollTo(0, 0)")
        page.locator("#board-host .board").hover()
        page.mouse.wheel(0, 60)
        page.wait_for_function("scrollY > 0")
        assert drawn_edges(page) == 3


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


def test_a_touch_of_small_boxes_needs_a_second_one_and_an_edge_is_marked_for_later(open_page):
    page = open_page("play", "phone", has_touch=True)
    start_game(page, size="9x9")
    page.get_by_test_id("edge-0").tap()
    page.locator("#board-host .hint").wait_for(state="attached")
    page.get_by_test_id("edge-5").tap()  # marks another edge
    assert page.locator("#board-host .edge.drawn").count() == 0
    page.get_by_test_id("edge-5").tap()
    page.locator('#board-host .drawn[data-edge="5"]').wait_for()
    start_game(page, mode="engine")
    held = hold(page, "move")
    page.get_by_test_id("edge-5").tap()
    page.locator('#board-host .drawn[data-edge="5"]').wait_for()
    page.get_by_test_id("edge-20").tap(force=True)  # marked before the engine has moved
    page.locator("#board-host .hint").wait_for(state="attached")
    held[0].fulfill(json={"edges": [22]})
    page.locator('#board-host .drawn[data-edge="20"]').wait_for()
    expect(moves(page)).to_have_count(3)


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


KEY = """([key, code]) => document.body.dispatchEvent(
    new KeyboardEvent("keydown", { key, code, bubbles: true, cancelable: true }))"""
NEW_GAME = (
    ("b", "KeyN", False),  # a Latin letter counts, not its key
    ("n", "KeyB", True),
    ("\N{CYRILLIC SMALL LETTER TE}", "KeyN", True),  # on the N key
    ("Process", "KeyN", True),
)
# A closed dialog keeps the focus until the next frame, when the key may already be down.
CLOSE_AND_REOPEN = f"""() => {{
    document.querySelector("#dialog").close();
    const press = {KEY.replace("document.body", "document.activeElement")};
    press(["n", "KeyN"]);
}}"""


def test_n_on_every_keyboard_and_enter_start_a_new_game(open_page):
    page = open_page("review")
    load(page, GAME)
    dialog = page.get_by_test_id("new-dialog")
    for key, code, opens in NEW_GAME:
        page.evaluate(KEY, [key, code])
        page.wait_for_timeout(50)
        expect(dialog).to_be_visible(visible=opens)
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
    page.keyboard.press("n")
    expect(dialog).to_be_visible()
    page.evaluate(CLOSE_AND_REOPEN)
    expect(dialog).to_be_visible()
    page.get_by_test_id("level-0").focus()
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(moves(page)).to_have_count(0)
