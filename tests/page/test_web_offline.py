"""Test opening the page without its server: the browser has kept the page, and it works."""

from __future__ import annotations

import shutil
import time

import pytest
from browsing import draw, expect, expect_scores, moves, start_game

pytest.importorskip("uvicorn", reason="needs the extra jaxzero[web]")

from fake_api import serve

from jaxzero.page import web_files

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
    for edge in range(12):
        draw(page, edge)
    expect(page.get_by_test_id("ended")).to_have_text("See the mistakes")
    start_game(page, mode="people", size="5x5")
    for edge in (0, 5, 30, 31):  # closes a box
        draw(page, edge)
    expect_scores(page, 0, 1)
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
