"""Test what everybody can read: both languages, names, paper, forced colours, screen readers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browsing import GAME, draw, expect, load, to_play, wait_for_review

LOOKS = """(all) => all.map((one) => {
    const { backgroundColor, outlineStyle } = getComputedStyle(one);
    return [backgroundColor, outlineStyle].join();
})"""


def test_forced_colours_show_what_is_chosen(open_page):
    page = open_page(forced_colors="active")
    draw(page, 0)
    page.get_by_test_id("move-2").wait_for()
    page.get_by_test_id("analysis").click()
    page.get_by_test_id("new-game").click()
    for group, chosen in (
        (".bar nav a", 0),
        (".player", 0),
        ("#moves button", 1),
        (".segments:has([name=clock]) label", 0),
    ):
        looks = page.locator(group).evaluate_all(LOOKS)
        assert looks.count(looks[chosen]) == 1, (group, looks)


def test_names_titles_and_comments_are_shown_whole_and_printed(open_page):
    page = open_page("review")
    name, whole = "\N{HEBREW LETTER ALEF}" * 300, [0, 11, 6, 2, 7, 4, 9, 5, 10, 8, 3, 1]
    notes = {"title": name, "comments": {"0": "before all", "2": "a safe edge"}}
    load(page, GAME | notes | {"names": [name, "Benedictine " * 7], "moves": whole})
    expect(page.get_by_test_id("name-0")).to_have_value(name[:100])
    expect(page.get_by_test_id("game-title")).to_have_value(name[:100])
    isolated = f"\N{FIRST STRONG ISOLATE}{name[:100]}\N{POP DIRECTIONAL ISOLATE}"
    expect(page.locator("#review-summary")).to_contain_text(isolated)
    for width, height in ((1280, 720), (640, 360), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        for part in page.locator(".player .name").all():
            assert part.evaluate("(one) => one.scrollWidth <= one.clientWidth"), width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    page.emulate_media(media="print")
    for part in ("#board-host .board", "#players", "#moves"):
        expect(page.locator(part)).to_be_visible()
    expect(page.locator("#table h1")).to_have_text(name[:100])
    expect(page.locator("#moves")).to_contain_text("before all")
    for part in (".bar", ".toolbar.review-only", ".side", "#comment"):
        expect(page.locator(part)).to_be_hidden()


def test_the_language_is_remembered_and_writes_numbers_and_dates_its_own_way(open_page):
    page = open_page("review", locale="en-GB", timezone_id="Europe/Paris", alone=True)
    odd = """async () => {
        const { TEXTS } = await import("./i18n.js");
        const names = (text) => text.match(/{\\w+}/g)?.sort().join() ?? "";
        const plain = (pair) => pair.every((text) => typeof text === "string");
        const same = (pair) => !plain(pair) || names(pair[0]) === names(pair[1]);
        return Object.keys(TEXTS).filter((key) => TEXTS[key].length !== 2 || !same(TEXTS[key]));
    }"""
    assert page.evaluate(odd) == [], "both languages have all texts with the same fields"
    load(page, GAME | {"moves": [*GAME["moves"], 9]})
    page.get_by_test_id("language").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.get_by_test_id("nav-play")).to_have_text("对弈")
    wait_for_review(page)
    page.locator('[data-testid="next-mistake"]:enabled').click()
    five = """async () => {
        const { t, TEXTS } = await import("./i18n.js");
        const keys = Object.keys(TEXTS).filter((key) => typeof TEXTS[key][1] === "string");
        return keys.map((key) => t(key, new Proxy({}, { get: () => 5 }))).join("\\n");
    }"""
    texts = page.locator("body").inner_text() + page.evaluate(five)
    assert not re.search(r"[\u4e00-\u9fff][0-9]|[0-9%][\u4e00-\u9fff]", texts)
    assert "%" not in re.sub(r"[0-9]%", "", texts)
    seats = [{"kind": "person"}, {"kind": "person"}]
    over = {"rows": 1, "cols": 1, "start": [], "moves": [0, 1, 2, 3]}
    table = {"id": "one", "date": 1767222000000, "game": over, "seats": seats}
    page.evaluate("(one) => (localStorage['jaxzero-games'] = JSON.stringify([one]))", table)
    for words in ("2026/1/1 00:00", "01/01/2026, 00:00"):
        page.get_by_test_id("open-games").click()
        expect(page.get_by_test_id("archived")).to_contain_text(words)
        page.keyboard.press("Escape")
        page.get_by_test_id("language").click()


@pytest.mark.parametrize(
    ("size", "scheme", "locale", "rules"),
    [("phone", "dark", "zh-CN", "{}"), ("desk", "light", "en-US", "{runOnly: 'color-contrast'}")],
)
def test_every_view_fits_and_is_accessible(
    open_page, solver_is_loaded, size, scheme, locale, rules
):
    axe = pytest.importorskip("axe_playwright_python", reason="no axe: accessibility unchecked")
    page = open_page("learn", size, scheme, locale=locale, bypass_csp=True)
    page.evaluate(next(Path(axe.__file__).parent.rglob("axe*.js")).read_text())
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
