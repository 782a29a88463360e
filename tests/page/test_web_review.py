"""Test a review: the tree of moves, comments, the analysis, and what a long look costs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from browsing import GAME, draw, drawn_edges, expect, load, moves, start_game, wait_for_review


def test_a_game_is_reviewed_and_its_tree_of_moves_is_walked_changed_and_kept(open_page):
    page = open_page("review")
    load(page, GAME)
    page.locator('[data-testid="next-mistake"]:enabled').click()
    expect(page.get_by_test_id("status")).to_contain_text("lost")
    page.locator("#board-host .hint-spot").wait_for(state="attached")  # the better edge
    current = page.locator('#moves [aria-current="true"]')
    expect(current.locator(".slip")).to_have_count(1)
    page.get_by_test_id("first").click()
    assert drawn_edges(page) == 0
    page.get_by_test_id("mistake-4").click()  # in the table of mistakes
    expect(current).to_have_attribute("data-testid", "move-4")
    page.get_by_test_id("move-2").click()
    page.get_by_test_id("analysis-review").click()
    page.get_by_test_id("line").locator("button").first.click()  # becomes a variation
    branches, comment = page.locator("#moves .branch"), page.get_by_test_id("comment")
    expect(branches).to_have_count(1)
    page.get_by_test_id("leave-variation").click()
    expect(moves(page)).to_have_count(5)
    load(page, GAME)
    page.get_by_test_id("move-2").click()
    draw(page, 9)
    draw(page, 1)
    expect(moves(page)).to_have_count(4)
    page.get_by_test_id("move-3").click()
    draw(page, 5)  # a variation of the variation
    inner = branches.locator(".branch button")
    expect(inner).to_have_count(1)
    comment.fill("odd")
    page.get_by_test_id("name-1").fill("Ben")
    expect(page.get_by_test_id("player-1")).to_contain_text("Ben")
    page.reload()
    inner.click()
    expect(comment).to_have_value("odd")
    expect(page.locator('#board-host .drawn[data-edge="5"]')).to_have_count(1)
    with page.expect_download() as download:
        page.get_by_test_id("save").click()
    saved = json.loads(Path(download.value.path()).read_text())
    assert saved["names"] == ["", "Ben"]
    (line,) = saved["variations"]
    assert (line["at"], line["moves"]) == (2, [9, 1])
    (branch,) = line["variations"]
    assert (branch["at"], branch["moves"], branch["comments"]) == (3, [5], {"4": "odd"})
    page.get_by_test_id("remove-variation").click()
    expect(inner).to_have_count(0)
    page.get_by_test_id("move-2").click()
    draw(page, 6)  # the next move of the game leads back to it
    expect(moves(page)).to_have_count(5)
    page.get_by_test_id("last").click()
    comment.press_sequentially("end")
    page.locator("#moves").click(position={"x": 1, "y": 1})
    page.keyboard.press("ArrowLeft")  # another position has another comment
    expect(comment).to_have_value("")
    page.get_by_test_id("last").click()
    expect(comment).to_have_value("end")
    game = {"rows": 5, "cols": 5, "start": [], "moves": [*range(60)]}
    comments = {str(ply): "好" * 1000 for ply in range(1, 61)}
    load(page, game | {"comments": comments})
    with page.expect_download() as download:
        page.get_by_test_id("save").click()
    assert json.loads(Path(download.value.path()).read_text())["comments"] == comments


def test_a_hint_and_the_analysis_are_quiet_and_words_lead_to_lessons(open_page):
    page = open_page()
    start_game(page, size="3x3")
    coordinate = page.locator("#board-host .coordinates text").first
    expect(coordinate).to_have_css("opacity", "0.4")  # until a name is on the screen
    page.keyboard.press("h")
    page.locator("#board-host .hint-spot").wait_for()
    expect(coordinate).to_have_css("opacity", "1")
    expect(page.get_by_test_id("status")).to_have_text(re.compile(r"^\S.*: [hv]\d,\d$"))
    expect(page.get_by_test_id("live")).to_contain_text("edge row")  # the long form
    for edge in (0, 3):  # two sides of the first box: each other side costs two boxes
        draw(page, edge)
    page.keyboard.press("a")
    page.locator(".badge:not(.busy)").wait_for()
    costs = page.locator("#board-host .cost")
    expect(costs).to_have_count(3 + 2)  # the best edges and the costly edges
    page.locator("#switch-everyEdge").click()
    expect(costs).to_have_count(22)
    panel = page.get_by_test_id("analysis-panel")
    expect(panel).to_contain_text("Chances: First player 70 %, draw 0 %, Second player 30 %")
    lines = page.locator(".lines .line")
    expect(lines).to_have_count(3)
    lines.nth(1).locator("button").first.hover()
    page.locator("#board-host .ghost").wait_for(state="attached")
    page.locator("#legend").click()
    draw(page, 6)
    page.locator(".badge:not(.busy)").wait_for()
    expect(page.locator("details.legends")).to_have_attribute("open", "")
    page.keyboard.press("a")
    expect(panel).to_be_hidden()
    expect(costs).to_have_count(0)
    page.keyboard.press("a")
    page.locator(".facts a").first.click()
    expect(page).to_have_url(re.compile("#lesson-3"))


def test_a_thousand_steps_leave_nothing_behind(open_page):
    page = open_page("review")
    load(page, GAME)
    wait_for_review(page)
    session = page.context.new_cdp_session(page)
    walk = """async () => {
        for (let step = 0; step < 250; step++) {
            const key = step % 10 < 5 ? "ArrowLeft" : "ArrowRight";
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            if (step % 50 === 0) await new Promise((done) => setTimeout(done, 20));
        }
    }"""

    def used():
        session.send("HeapProfiler.collectGarbage")
        counts = session.send("Memory.getDOMCounters")
        heap = session.send("Runtime.getHeapUsage")["usedSize"]
        return heap, counts["nodes"], counts["jsEventListeners"]

    for _ in range(3):  # the compiler of the browser learns too
        page.evaluate(walk)
    before = used()
    for _ in range(4):
        page.evaluate(walk)
    grown = [after - one for after, one in zip(used(), before, strict=True)]
    assert grown[0] < 200_000 and max(grown[1:]) < 100, grown  # bytes; nodes and listeners
