"""Test the layout: the board is large enough in every window and stays in place during a game."""

from __future__ import annotations

import pytest
from browsing import GAME, draw, expect, load, start_game, wait_for_review

SIZES = [  # windows in CSS pixels, and screen pixels per CSS pixel
    (320, 568, 1),
    (667, 375, 1),
    (1180, 560, 1),
    (1280, 720, 1),
    (400, 250, 4),  # 1600x1000 enlarged to 400 %
]
PLACE = """(selector) => {
    const { x, y, width, height } = document.querySelector(selector).getBoundingClientRect();
    return { x: x + scrollX, y: y + scrollY, width, height };
}"""


@pytest.mark.parametrize(("width", "height", "scale"), SIZES)
def test_the_board_is_large_enough_and_nothing_covers_it(open_page, width, height, scale):
    page = open_page(device_scale_factor=scale)
    page.set_viewport_size({"width": width, "height": height})
    for view in ("play", "analysis", "review", "lesson-4"):
        board = ".lesson .board" if view == "lesson-4" else "#board-host .board"
        if view == "analysis":
            page.get_by_test_id(view).click()
            page.locator(".badge:not(.busy)").wait_for()
        else:
            page.goto(f"{page.url.partition('#')[0]}#{view}")
            page.locator(board).wait_for()
        place = page.evaluate(PLACE, board)
        assert max(place["width"], place["height"]) >= min(320, width), view
        assert place["x"] >= 0 and place["x"] + place["width"] <= width, view
        whole = page.evaluate("document.documentElement.scrollHeight")
        assert place["y"] + place["height"] <= whole, view
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
    page.get_by_test_id("nav-play").click()
    # The notice of a game set aside covers no score, no board and no button. Where the toolbar is
    # below the board, it may have to be scrolled up.
    stacked = width < 600 or (width <= 820 and height > 620)
    for edge in (0, None):
        start_game(page, mode="engine", size="2x2")
        if edge is not None:
            draw(page, edge)
    page.get_by_test_id("notice").wait_for()
    page.evaluate("scrollTo(0, 0)")
    whole_board = ["#board-host .board"] if height >= 320 else []
    for part in ("#players", *whole_board, ".toolbar.play-only"):
        if stacked and part == ".toolbar.play-only":
            page.locator(part).evaluate("(part) => part.scrollIntoView()")
        notice = page.evaluate(PLACE, "#notice")
        place = page.evaluate(PLACE, part)
        apart = [
            one[side] + one[length] <= other[side]
            for one, other in ((place, notice), (notice, place))
            for side, length in (("x", "width"), ("y", "height"))
        ]
        assert any(apart), part


MIDDLES = """(all) => all.map((one) => {
    const { x, y, width, height } = one.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
})"""


def test_boards_of_other_shapes_are_large_enough_and_show_their_coordinates(open_page):
    page = open_page(size="low")
    store = "async (setup) => (await import('./settings.js')).remember({ setup })"
    for rows, cols in ((2, 9), (9, 2)):
        page.evaluate(store, {"rows": rows, "cols": cols})
        page.reload()
        page.get_by_test_id("new-game").click()
        page.get_by_test_id("start-game").click()
        page.locator("#board-host .board").wait_for()
        place = page.evaluate(PLACE, "#board-host .board")
        assert max(place["width"], place["height"]) >= 320
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        labels = page.locator("#board-host .coordinates text")
        expect(labels).to_have_text([*map(str, [*range(rows + 1), *range(cols + 1)])])  # dots
        middles = labels.evaluate_all(MIDDLES)
        dots = page.locator("#board-host .dots circle").evaluate_all(MIDDLES)
        for row in range(rows + 1):
            beside = dots[(cols + 1) * row]
            assert abs(middles[row][1] - beside[1]) < 4 and middles[row][0] < beside[0]
        for (x, y), above in zip(middles[rows + 1 :], dots, strict=False):
            assert abs(x - above[0]) < 4 and y < above[1]


# Records the place of the board before every paint of the browser.
WATCH = """() => {
    window.places = new Set();
    const look = () => {
        const board = document.querySelector("#board-host .board");
        const { x, y, width, height } = board.getBoundingClientRect();
        window.places.add([x + scrollX, y + scrollY, width, height].map(Math.round).join());
        requestAnimationFrame(look);
    };
    look();
}"""


def expect_words_to_fit(page):
    """Assert that player names fit beside long scores, and that the choices of a new game fit."""
    for score in page.locator(".player .score").all():
        score.evaluate("(score) => (score.textContent = '12.5')")
    for player in (0, 1):
        name = page.get_by_test_id(f"player-{player}").locator(".name")
        lines = "(name) => name.clientHeight / parseFloat(getComputedStyle(name).lineHeight)"
        assert name.evaluate(lines) < 1.5
        assert name.evaluate("(name) => name.scrollWidth <= name.clientWidth")
    page.get_by_test_id("new-game").click()
    too_wide = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).length"
    assert page.locator("dialog[open] .segments label").evaluate_all(too_wide) == 0
    page.keyboard.press("Escape")


LOW_OR_NARROW = [(320, 568), (600, 360), (640, 360), (800, 600), (821, 620), (900, 600)]
SPILLS = """() => [...document.querySelectorAll(".toolbar :is(button, a)")].filter((button) => {
    const words = document.createRange();
    words.selectNodeContents(button);
    return words.getBoundingClientRect().width > button.offsetWidth;
}).map((button) => button.textContent)"""


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_clocks_and_buttons_fit_into_low_and_narrow_windows(open_page, locale):
    page = open_page(locale=locale)
    game = {"rows": 1, "cols": 3, "start": [*range(6)], "moves": [6, 7, 8, 9]}
    seats = [{"kind": "person"}, {"kind": "engine", "level": "0"}]
    lost = {"id": "one", "date": 1, "game": game, "seats": seats}
    for view in ("end", "play", "review"):
        if view == "end":  # with the most buttons
            page.evaluate("(table) => (sessionStorage.jaxzero = JSON.stringify(table))", lost)
            page.reload()
            page.get_by_test_id("end-lesson").wait_for()
        if view == "play":
            start_game(page, "clock-10+5", mode="engine", size="2x2")
        if view == "review":
            page.get_by_test_id("nav-review").click()
            load(page, GAME)
            wait_for_review(page)
        for width, height in LOW_OR_NARROW:
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            assert page.evaluate(SPILLS) == [], (view, width)
            for name in page.locator(".player .name").all() if view == "play" else ():
                assert name.evaluate("(name) => name.scrollWidth <= name.clientWidth"), width


def expect_one_place(page):
    page.wait_for_timeout(50)
    assert len(page.evaluate("[...window.places]")) == 1


@pytest.mark.parametrize(("size", "locale"), [("low", "en-US"), ("desk", "zh-CN")])
def test_the_board_stays_where_it_is_all_through_a_game_and_its_review(open_page, size, locale):
    page = open_page(size=size, locale=locale, motion="no-preference")
    start_game(page, mode="engine", size="2x2")
    expect_words_to_fit(page)
    page.evaluate(WATCH)
    page.get_by_test_id("hint").click()
    page.locator("#board-host .hint-spot").wait_for()
    draw(page, 0)
    page.locator("#board-host .board:not(.waits)").wait_for()
    page.get_by_test_id("undo").click()
    refuse = {"status": 503, "json": {"error": "busy"}}
    page.route("**/api/move", lambda route: route.fulfill(**refuse), times=1)
    draw(page, 5)
    page.get_by_test_id("retry").wait_for()
    page.get_by_test_id("retry").click()  # the notice goes
    page.locator("#board-host .board:not(.waits)").wait_for()
    for edge in range(12):
        draw(page, edge)
    page.get_by_test_id("ended").wait_for()
    expect_one_place(page)
    page.goto(f"{page.url.partition('#')[0]}#review")
    load(page, GAME)
    page.locator('[data-testid="next-mistake"]:enabled').click()
    page.evaluate("window.places.clear()")
    for button in ("Home", "forward", "next-mistake", "End", "back"):
        page.keyboard.press(button) if button[0].isupper() else page.get_by_test_id(button).click()
        page.wait_for_timeout(40)
    expect_one_place(page)
