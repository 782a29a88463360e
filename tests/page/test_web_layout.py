"""Test the layout: the board is large enough in every window and stays in place during a game."""

from __future__ import annotations

import pytest
from browsing import GAME, begin, draw, expect, finish, load, start_game, wait_for_review

WINDOWS = [  # CSS pixels, and screen pixels per CSS pixel
    (320, 568, 1),
    (390, 844, 1),
    (667, 375, 1),
    (1280, 720, 1),
    (2560, 1440, 1),
    (400, 250, 4),  # 1600x1000 enlarged to 400 %
]
VIEWS = ("learn", "train", "lesson-4", "train-parity-0-7", "play", "review")
FITS = "document.documentElement.scrollWidth <= innerWidth"


@pytest.mark.parametrize(("width", "height", "scale"), WINDOWS)
def test_every_view_opens_at_its_top_with_a_title_and_a_large_board(
    open_page, solver_is_loaded, width, height, scale
):
    page = open_page(device_scale_factor=scale)
    page.set_viewport_size({"width": width, "height": height})
    titles, address = set(), page.url.partition("#")[0]
    board = page.locator(".lesson .board:visible, #board-host .board:visible")
    for view in VIEWS:
        page.goto("about:blank")
        page.goto(f"{address}#{view}")
        board.or_(page.locator("#themes:visible")).first.wait_for()
        page.wait_for_timeout(200)
        if view != "train":  # leads to the list of problems
            assert page.evaluate("scrollY") == 0, view
        titles.add(page.title())
        assert page.evaluate(FITS), view
        if view not in ("learn", "train"):
            place = board.bounding_box()
            assert max(place["width"], place["height"]) >= min(320, width), view
            assert place["x"] >= 0 and place["x"] + place["width"] <= width, view
    assert len(titles) == len(VIEWS) - 1  # of the start page and the list of problems it holds
    size = page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
    assert size >= 20 if height == 1440 else size == 16
    page.evaluate("scrollTo(0, 200); location.hash = '#play'")
    page.locator('[data-testid="nav-play"][aria-current="page"]').wait_for()
    assert page.evaluate("scrollY") == 0, "the next view has no place of the one before"
    start_game(page, mode="engine", size="2x2")
    draw(page, 0)
    start_game(page, mode="engine", size="2x2")
    notice = page.get_by_test_id("notice")
    notice.wait_for()  # of the game set aside
    page.evaluate("scrollTo(0, 0)")
    told = notice.bounding_box()
    parts = ["#players"] + ["#board-host .board"] * (height >= 320)
    for part in parts + [".toolbar.play-only button:visible"] * (width > 600):
        place = page.locator(part).last.bounding_box()
        apart = [
            one[side] + one[length] <= other[side]
            for one, other in ((place, told), (told, place))
            for side, length in (("x", "width"), ("y", "height"))
        ]
        assert any(apart), part


def test_boards_of_other_shapes_are_large_enough_and_number_their_dots(open_page):
    page = open_page(size="low")
    for rows, cols in ((2, 9), (9, 2)):
        begin(page, size=f"{rows}x{cols}")
        labels = page.locator("#board-host .coordinates text")
        expect(labels).to_have_text([*map(str, [*range(rows + 1), *range(cols + 1)])])  # dots
        place = page.locator("#board-host .board").bounding_box()
        assert max(place["width"], place["height"]) >= 320
        assert page.evaluate(FITS)


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


LOW_OR_NARROW = [(320, 568), (600, 360), (640, 360), (800, 600), (821, 620), (900, 600)]
SPILLS = """() => [...document.querySelectorAll(".toolbar :is(button, a)")].filter((button) => {
    const words = document.createRange();
    words.selectNodeContents(button);
    return words.getBoundingClientRect().width > button.offsetWidth;
}).map((button) => button.textContent)"""


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_clocks_and_buttons_fit_into_low_and_narrow_windows(open_page, locale):
    page = open_page(locale=locale)
    page.get_by_test_id("new-game").click()
    too_wide = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).length"
    assert page.locator("dialog[open] .segments label").evaluate_all(too_wide) == 0
    page.keyboard.press("Escape")
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
            assert page.evaluate(FITS), width
            assert page.evaluate(SPILLS) == [], (view, width)


@pytest.mark.parametrize(("size", "locale"), [("low", "en-US"), ("desk", "zh-CN")])
def test_the_board_stays_where_it_is_all_through_a_game_and_its_review(open_page, size, locale):
    page = open_page(size=size, locale=locale, motion="no-preference")
    start_game(page, mode="engine", size="2x2")
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
    finish(page, range(12))
    page.wait_for_timeout(50)
    assert page.evaluate("window.places.size") == 1
    page.goto(f"{page.url.partition('#')[0]}#review")
    load(page, GAME)
    page.locator('[data-testid="next-mistake"]:enabled').click()
    page.evaluate("window.places.clear()")
    for button in ("Home", "forward", "next-mistake", "End", "back"):
        page.keyboard.press(button) if button[0].isupper() else page.get_by_test_id(button).click()
        page.wait_for_timeout(40)
    page.wait_for_timeout(50)
    assert page.evaluate("window.places.size") == 1
