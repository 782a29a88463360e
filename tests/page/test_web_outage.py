"""Test outages: failed requests are repeated, unwanted ones end, and the page opens offline."""

from __future__ import annotations

import shutil
import time

import pytest
from browsing import (
    GAME,
    begin,
    choose_size,
    draw,
    expect,
    finish,
    hold,
    load,
    moves,
    start_game,
    stream,
    to_play,
    wait_for_info,
)

pytest.importorskip("uvicorn", reason="needs the extra jaxzero[web]")

from fake_api import serve

from jaxzero.page import web_files

API = "**/api/**"


def open_timed(open_page, fragment="play"):
    """Open the page with a clock that `fast_forward` advances."""
    page = open_page(fragment, alone=True)
    page.clock.install()
    return page


def lose(route):
    route.abort()


def expect_notice(page, shown=True):
    expect(page.get_by_test_id("notice")).to_be_visible(visible=shown)


def test_everything_that_failed_is_repeated_once_the_server_is_back(open_page):
    page = open_timed(open_page)
    start_game(page, mode="engine", size="2x2")
    draw(page, 0)
    page.get_by_test_id("move-2").wait_for()
    page.route(API, lose)
    page.get_by_test_id("analysis").click()
    expect_notice(page)
    draw(page, 11)
    with page.expect_event("requestfailed"):  # the first retry fails too
        page.clock.fast_forward(2000)
    expect_notice(page)
    with page.expect_request("**/api/move"):
        page.unroute(API)
        page.wait_for_timeout(100)
        page.clock.fast_forward(4000)
    page.get_by_test_id("move-4").wait_for()
    page.locator("#board-host .cost").first.wait_for(state="attached")
    expect_notice(page, False)
    page.route("**/api/review", lose, times=1)
    page.get_by_test_id("nav-review").click()
    load(page, GAME)
    expect_notice(page)
    page.clock.fast_forward(2000)
    page.locator(".graph .slip").first.wait_for()
    page.route(API, lose)
    page.reload()
    expect_notice(page)  # the page begins without the server
    page.unroute(API)
    page.clock.fast_forward(4000)
    wait_for_info(page)


def test_a_button_repeats_at_once_and_so_does_a_computer_that_is_online_again(open_page):
    page = open_page()
    start_game(page, size="2x2")
    page.route(API, lose)
    page.get_by_test_id("hint").click()
    expect_notice(page)
    page.unroute(API)
    page.get_by_test_id("retry").click()
    page.locator("#board-host .hint-spot").wait_for()
    start_game(page, mode="engine", size="2x2")
    page.context.set_offline(True)
    draw(page, 0)
    expect_notice(page)
    page.context.set_offline(False)
    page.get_by_test_id("move-2").wait_for()
    page.route("**/api/review", lose)
    start_game(page, size="2x2")
    with page.expect_event("requestfailed"):  # the count of the mistakes, which nobody waits for
        finish(page, range(12))
    expect_notice(page, False)


def test_a_move_is_asked_for_once_again_and_only_while_it_is_wanted(open_page):
    page = open_timed(open_page)
    start_game(page, mode="engine", size="2x2")
    let_move, held = page.get_by_test_id("let-move"), hold(page, "move")
    page.route("**/api/move", lose, times=1)
    draw(page, 0)
    expect_notice(page)
    page.locator("#notice-close").click()  # closing the notice does not end the game
    let_move.click()
    page.clock.fast_forward(2500)  # time to repeat the failed request, if it is still wanted
    page.wait_for_timeout(200)
    for route, edge in zip(held, (11, 6), strict=False):
        route.fulfill(json={"edges": [edge]})
    page.get_by_test_id("move-2").wait_for()
    page.wait_for_timeout(200)
    expect(moves(page)).to_have_count(2)
    expect(let_move).to_be_hidden()
    page.route(API, lose)
    draw(page, 7)
    expect(page.get_by_test_id("status")).to_have_text("No answer yet. Trying again …")
    page.clock.fast_forward(30_000)
    expect_notice(page, False)  # a closed notice stays away for a minute
    page.clock.fast_forward(40_000)
    expect_notice(page)
    count = len(held)
    page.get_by_test_id("undo").click()
    expect_notice(page, False)
    page.unroute(API)
    page.clock.fast_forward(2500)
    page.wait_for_timeout(200)
    assert len(held) == count


def test_a_wrong_question_is_not_asked_again_and_its_notice_goes_with_what_is_done_next(open_page):
    page = open_timed(open_page, "review")
    asked = []

    def refuse(route):
        asked.append(route)
        route.fulfill(status=400, json={"error": "text: holds no game"})

    for go_on in (
        lambda: page.clock.fast_forward(2500),
        lambda: page.get_by_test_id("edge-0").click(),
        lambda: load(page, GAME),
        lambda: to_play(page),
    ):
        page.route("**/api/read", refuse, times=1)
        file = {"name": "cat.txt", "mimeType": "text/plain", "buffer": b"miaow"}
        page.get_by_test_id("file-input").set_input_files(file)
        told = page.locator("#notice:not([hidden])", has_text="holds no game")
        expect(told).to_have_count(1)
        expect(page.get_by_test_id("retry")).not_to_be_visible()
        go_on()
        page.wait_for_timeout(100)
        if len(asked) > 1:
            expect(told).to_have_count(0)
    assert len(asked) == 4


def test_a_request_that_nobody_waits_for_is_ended(open_page):
    page = open_page()
    given_up = []
    page.on("requestfailed", lambda request: given_up.append(request.url.rpartition("/")[2]))
    for name in ("warm", "move", "analyse"):
        page.route(f"**/api/{name}", lambda route: None)
    start_game(page, mode="engine", size="2x2")
    page.wait_for_timeout(300)
    assert given_up == []  # the board is prepared while a person thinks
    start_game(page, mode="people", size="2x2")
    page.wait_for_timeout(200)
    assert given_up == ["warm"]
    page.get_by_test_id("analysis").click()
    for end in ("undo", "nav-learn", "new-game"):
        to_play(page)
        start_game(page, mode="engine", size="2x2")
        draw(page, 0)
        page.wait_for_timeout(400)
        given_up.clear()
        if end == "new-game":
            begin(page, "mode-people")
        else:
            page.get_by_test_id(end).click()
        page.wait_for_timeout(200)
        assert {"move", "analyse"} <= set(given_up), end
    page.evaluate("localStorage.clear()")
    page.reload()
    start_game(page, size="2x2")
    stream(page, "analyse")
    page.get_by_test_id("hint").click()
    edges = [{"edge": 5, "lost": 0, "class": "safe"}]
    page.evaluate("send", {"edges": edges, "best": 5, "value": 1.0})
    page.evaluate("aborted")  # an analysis for a hint ends with it
    page.locator("#board-host .hint-spot").wait_for()


def test_a_new_game_needs_no_server(open_page):
    page = open_page()
    held = hold(page, "info")
    with page.expect_request("**/api/info"):
        page.reload()
    page.get_by_test_id("new-game").click()
    choose_size(page, "5x5")
    slider = page.get_by_test_id("level-0")
    for key, name, note in (("End", "Expert", "perfectly"), ("Home", "Beginner", "at random")):
        slider.press(key)
        expect(slider).to_have_attribute("aria-valuetext", name)
        expect(page.get_by_test_id("new-dialog")).to_contain_text(note)
    held[0].continue_()
    wait_for_info(page)
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "Novice · rating 760")
    choose_size(page, "9x2")  # no rating was measured there
    expect(slider).to_have_attribute("aria-valuetext", "Novice")
    page.get_by_test_id("start-game").click()
    expect(page.locator("#board-host .edge")).to_have_count(47)


INSTALLED = """
    () => Promise.race([
        navigator.serviceWorker.ready.then(() => true),
        new Promise((_, fail) => setTimeout(() => fail(new Error("not kept")), 20_000)),
    ])
"""


@pytest.fixture
def page(browser):
    """Yield a page that the browser may keep; the other tests block service workers."""
    context = browser.new_context(locale="en-US", reduced_motion="reduce")
    yield context.new_page()
    context.close()


def test_the_page_opens_without_the_server_and_goes_on_by_itself_when_it_is_back(page):
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    with serve() as url:
        page.goto(f"{url}#play")
        page.evaluate(INSTALLED)
    page.reload()
    start_game(page, mode="people", size="2x2")
    finish(page, range(12))
    start_game(page, mode="people", size="5x5")
    for edge in (0, 5, 30, 31):  # closes a box
        draw(page, edge)
    expect(page.get_by_test_id("score-1")).to_have_text("1")
    page.get_by_test_id("hint").click()
    expect(page.get_by_test_id("notice")).to_be_visible()
    expect(page.locator("#board-host .hint-spot")).to_have_count(0)
    with serve(port_of(url)):
        page.locator("#board-host .hint-spot").wait_for(timeout=30_000)
        expect(page.get_by_test_id("notice")).not_to_be_visible()
    expect(moves(page)).to_have_count(4)
    assert faults == []


def test_an_update_takes_the_place_of_the_old_files(page, tmp_path, monkeypatch):
    with serve() as url:
        page.goto(f"{url}#play")
        page.evaluate(INSTALLED)
        (old,) = page.evaluate("caches.keys()")
    folder = shutil.copytree(web_files.WEB, tmp_path / "web")
    styles = (folder / "base.css").read_text()
    (folder / "base.css").write_text(f"{styles}\nbody {{ scroll-margin: 7px; }}\n")
    monkeypatch.setattr(web_files, "WEB", folder)
    with serve(port_of(url)):
        page.reload()
        margin = "getComputedStyle(document.body).scrollMarginTop"
        assert page.evaluate(margin) == "7px"
        deadline = time.monotonic() + 8
        while old in page.evaluate("caches.keys()") and time.monotonic() < deadline:
            page.wait_for_timeout(50)
        assert len(page.evaluate("caches.keys()")) == 1
    page.reload()
    assert page.evaluate(margin) == "7px"


def port_of(url: str) -> int:
    return int(url.rstrip("/").rpartition(":")[2])
