"""Test what ends games, clocks, notices and exercises, and that addresses keep what they name."""

from __future__ import annotations

import json
from functools import partial

from browsing import (
    GAME,
    expect,
    load,
)

TICK = 200  # ms of real time: the page looks at its clocks more often


def test_a_save_that_failed_is_not_made_later(open_page):
    page = open_page("review", alone=True)
    page.clock.install()
    load(page, GAME)
    page.route("**/api/write", lambda route: route.abort(), times=1)
    page.get_by_test_id("save").click()
    expect(page.get_by_test_id("notice")).to_be_visible()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.fast_forward(5000)
    page.wait_for_timeout(200)
    assert not any(url.endswith("write") for url in asked)


def test_a_closed_notice_of_an_outage_comes_back_after_a_minute(open_page):
    page = open_page(alone=True)
    page.clock.install()
    page.route("**/api/**", lambda route: route.abort())
    page.get_by_test_id("hint").click()
    expect(page.get_by_test_id("notice")).to_be_visible()
    expect(page.get_by_test_id("status")).to_have_text("No answer yet. Trying again …")
    page.locator("#notice-close").click()
    page.clock.fast_forward(30_000)
    expect(page.get_by_test_id("notice")).to_be_hidden()
    page.clock.fast_forward(40_000)
    expect(page.get_by_test_id("notice")).to_be_visible()


def test_the_long_chain_rule_counts_edges_before_the_game(open_page):
    page = open_page("review")
    page.get_by_test_id("analysis-review").click()
    for start, parity in (([], "an even"), ([0], "an odd"), ([0, 1, 2], "an odd")):
        load(page, {"rows": 3, "cols": 3, "start": start, "moves": []})
        expect(page.locator(".facts")).to_contain_text(f"wants {parity} number")


def answer(body, route):
    route.fulfill(body=body)


def test_an_estimate_is_called_one(open_page):
    page = open_page("review")
    line = {"ply": 3, "player": 0, "margin": 0, "best": 9, "lost": 2, "mistake": True}
    for exact, words in ((False, "about 2 boxes"), (True, "lost 2 boxes")):
        body = json.dumps(line | {"exact": exact}) + "\n"
        page.unroute("**/api/review")
        page.route("**/api/review", partial(answer, body))
        page.evaluate("sessionStorage.removeItem('jaxzero-review')")
        load(page, GAME | {"moves": [*GAME["moves"], *([] if exact else [9])]})
        page.locator('[data-testid="next-mistake"]:enabled').click()
        expect(page.get_by_test_id("status")).to_contain_text(words)
