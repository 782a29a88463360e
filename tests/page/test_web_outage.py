"""Test an outage of the server: the page reports it, repeats failed requests and goes on."""

from __future__ import annotations

import json

import pytest
from browsing import (
    GAME,
    begin,
    choose_size,
    draw,
    expect,
    hold,
    load,
    moves,
    ready,
    start_game,
    to_play,
    wait_for_info,
)

LINE = json.dumps({"edges": [{"edge": 5, "lost": 0, "class": "safe"}], "best": 5, "value": 1.0})


@pytest.fixture
def timed(open_page):
    """Return a function that opens the page with a clock that `fast_forward` advances."""

    def open_(fragment="play"):
        page = open_page(fragment, alone=True)
        page.clock.install()
        return page

    return open_


def cut_off(page, pattern="**/api/**"):
    """Block requests to the server; return a function that unblocks them."""

    def lose(route):
        route.abort()

    page.route(pattern, lose)
    return lambda: page.unroute(pattern, lose)


def expect_notice(page, shown=True):
    expect(page.get_by_test_id("notice")).to_be_visible(visible=shown)


def test_everything_that_failed_is_repeated_once_the_server_is_back(timed):
    page = timed()
    start_game(page, mode="engine", size="2x2")
    draw(page, 0)
    page.get_by_test_id("move-2").wait_for()
    reconnect = cut_off(page)
    page.get_by_test_id("analysis").click()
    expect_notice(page)
    draw(page, 11)
    with page.expect_event("requestfailed"):  # the first retry fails too
        page.clock.fast_forward(2000)
    expect_notice(page)
    with page.expect_request("**/api/move"):
        reconnect()
        page.wait_for_timeout(100)
        page.clock.fast_forward(4000)
    page.get_by_test_id("move-4").wait_for()
    page.locator("#board-host .cost").first.wait_for(state="attached")
    expect_notice(page, False)
    ready(page)
    page.route("**/api/review", lambda route: route.abort(), times=1)
    page.get_by_test_id("nav-review").click()
    load(page, GAME)
    expect_notice(page)
    page.clock.fast_forward(2000)
    page.locator(".graph .slip").first.wait_for()
    reconnect = cut_off(page)
    page.reload()
    expect_notice(page)  # the page begins without the server
    reconnect()
    page.clock.fast_forward(4000)
    wait_for_info(page)


def test_a_button_repeats_at_once_and_so_does_a_computer_that_is_online_again(open_page):
    page = open_page()
    start_game(page, size="2x2")
    reconnect = cut_off(page)
    page.get_by_test_id("hint").click()
    expect_notice(page)
    reconnect()
    page.get_by_test_id("retry").click()
    page.locator("#board-host .hint-spot").wait_for()
    start_game(page, mode="engine", size="2x2")
    page.context.set_offline(True)
    draw(page, 0)
    expect_notice(page)
    page.context.set_offline(False)
    page.get_by_test_id("move-2").wait_for()
    cut_off(page, "**/api/review")
    start_game(page, size="2x2")
    for edge in range(12):
        draw(page, edge)
    with page.expect_event("requestfailed"):  # the count of the mistakes, which nobody waits for
        expect(page.get_by_test_id("ended")).to_have_text("See the mistakes")
    expect_notice(page, False)


def test_a_move_is_asked_for_once_again_and_only_while_it_is_wanted(timed):
    page = timed()
    start_game(page, mode="engine", size="2x2")
    let_move, held = page.get_by_test_id("let-move"), hold(page, "move")
    expect(let_move).not_to_be_visible()
    page.route("**/api/move", lambda route: route.abort(), times=1)
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
    expect(let_move).not_to_be_visible()
    page.get_by_test_id("move-1").click()  # an earlier position, where the computer is to move
    let_move.click()
    page.wait_for_timeout(100)
    held[-1].fulfill(json={"edges": [7]})
    page.locator('#board-host .drawn[data-edge="7"]').wait_for()
    page.clock.fast_forward(60_000)  # a closed notice stays away for a minute
    reconnect = cut_off(page)
    draw(page, 11)
    expect_notice(page)
    count = len(held)
    page.get_by_test_id("undo").click()
    expect_notice(page, False)
    reconnect()
    page.clock.fast_forward(2500)
    page.wait_for_timeout(200)
    assert len(held) == count


def test_a_wrong_question_is_not_asked_again_and_its_notice_goes_with_what_is_done_next(timed):
    page = timed("review")
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


def test_a_closed_notice_comes_back_after_a_minute_and_a_save_is_not_made_later(timed):
    page = timed()
    reconnect = cut_off(page)
    page.get_by_test_id("hint").click()
    expect_notice(page)
    expect(page.get_by_test_id("status")).to_have_text("No answer yet. Trying again …")
    page.locator("#notice-close").click()
    page.clock.fast_forward(30_000)
    expect_notice(page, False)
    page.clock.fast_forward(40_000)
    expect_notice(page)
    reconnect()
    page.clock.fast_forward(4000)
    page.get_by_test_id("nav-review").click()
    page.route("**/api/write", lambda route: route.abort(), times=1)
    page.get_by_test_id("save").click()
    expect_notice(page)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.fast_forward(5000)
    page.wait_for_timeout(200)
    assert not any(url.endswith("write") for url in asked)


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


def test_an_analysis_for_a_hint_or_a_warning_ends_with_it(open_page):
    page = open_page()
    start_game(page, size="2x2")
    page.evaluate(
        """(line) => {
            const ask = window.fetch;
            window.fetch = (path, options) => path !== "api/analyse" ? ask(path, options) :
                new Promise((done) => {
                    const body = new ReadableStream({ start(stream) {
                        stream.enqueue(new TextEncoder().encode(line));
                        options.signal.addEventListener("abort", () => (window.ended = true));
                    } });
                    done(new Response(body));
                });
        }""",
        LINE + "\n",
    )
    page.get_by_test_id("hint").click()
    page.locator("#board-host .hint-spot").wait_for()
    page.wait_for_timeout(50)
    assert page.evaluate("window.ended") is True
    assert page.locator("#board-host .hint-spot").count() == 1


def test_a_new_game_needs_no_server(open_page):
    page = open_page()
    held = hold(page, "info")
    with page.expect_request("**/api/info"):
        page.reload()
    page.get_by_test_id("new-game").click()
    choose_size(page, "5x5")
    slider = page.get_by_test_id("level-0")
    expect(slider).to_have_attribute("aria-valuetext", "Beginner")
    held[0].continue_()
    wait_for_info(page)
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "Novice · rating 760")
    choose_size(page, "9x2")  # no rating was measured there
    expect(slider).to_have_attribute("aria-valuetext", "Novice")
    page.get_by_test_id("start-game").click()
    expect(page.locator("#board-host .edge")).to_have_count(47)
