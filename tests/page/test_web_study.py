"""Test studying a game on the page: its tree of moves, comments, playing on from a position."""

from __future__ import annotations

import json
import re
from pathlib import Path

from browsing import (
    GAME,
    begin,
    choose_size,
    draw,
    drawn_edges,
    expect,
    hold,
    load,
    moves,
    ready,
    set_switch,
    start_game,
    to_play,
    wait_for,
    wait_for_review,
)

from jaxzero.page.answers import about


def test_a_tree_of_moves_is_walked_changed_and_kept(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("move-2").click()
    draw(page, 9)
    draw(page, 1)
    expect(moves(page)).to_have_count(4)
    page.get_by_test_id("move-3").click()
    draw(page, 5)  # a variation of the variation
    expect(page.locator("#moves .branch .branch button")).to_have_count(1)
    page.get_by_test_id("comment").fill("odd")
    page.get_by_test_id("name-1").fill("Ben")
    expect(page.get_by_test_id("player-1")).to_contain_text("Ben")
    page.reload()
    page.locator("#moves .branch .branch button").click()
    expect(page.get_by_test_id("comment")).to_have_value("odd")
    expect(page.locator('#board-host .drawn[data-edge="5"]')).to_have_count(1)
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_test_id("comment")).to_have_value("")
    page.locator("#moves .branch .branch button").click()
    with page.expect_request("**/api/write") as request:
        page.get_by_test_id("format").select_option("json")
        page.get_by_test_id("copy").click()
    written = request.value.post_data_json
    assert written["names"] == ["", "Ben"]
    (line,) = written["variations"]
    assert (line["at"], line["moves"]) == (2, [9, 1])
    (inner,) = line["variations"]
    assert (inner["at"], inner["moves"], inner["comments"]) == (3, [5], {"4": "odd"})
    page.get_by_test_id("remove-variation").click()
    expect(page.locator("#moves .branch .branch")).to_have_count(0)
    page.get_by_test_id("move-2").click()
    draw(page, 6)  # the next move of the game leads back to it
    expect(moves(page)).to_have_count(5)
    page.get_by_test_id("last").click()
    page.get_by_test_id("comment").press_sequentially("end")
    page.locator("#moves").click(position={"x": 1, "y": 1})
    page.keyboard.press("ArrowLeft")  # another position has another comment
    expect(page.get_by_test_id("comment")).to_have_value("")
    page.get_by_test_id("last").click()
    expect(page.get_by_test_id("comment")).to_have_value("end")


def test_a_file_with_variations_and_a_long_comment_at_every_move_is_loaded_and_saved(open_page):
    page = open_page("review")
    comments = {str(ply): "好" * 1000 for ply in range(1, 61)}
    game = {"rows": 5, "cols": 5, "start": [], "moves": [*range(60)], "comments": comments}
    game |= {"variations": [{"at": 1, "moves": [3, 4]}]}
    load(page, game)
    with page.expect_download() as download:
        page.get_by_test_id("save").click()
    saved = json.loads(Path(download.value.path()).read_text())
    assert saved["comments"] == comments and saved["variations"] == game["variations"]
    page.locator("#moves .branch button").last.click()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(3)


def test_one_plays_on_from_a_position_of_a_review(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("move-2").click()
    draw(page, 9)
    page.get_by_test_id("play-here").click()
    page.locator("label", has=page.get_by_test_id("starts-you")).click()
    page.get_by_test_id("level-0").fill("4")
    with page.expect_request("**/api/move") as request:  # after three edges the engine moves
        page.get_by_test_id("start-game").click()
    asked = request.value.post_data_json
    assert (asked["moves"], asked["level"]) == ([0, 11, 9], "4")
    ready(page)
    expect(page.get_by_test_id("player-0")).to_contain_text("You")
    page.keyboard.press("l")  # the engine also moves for the person
    page.get_by_test_id("move-6").wait_for()
    page.get_by_test_id("nav-review").click()
    expect(page.locator("#moves .branch")).to_have_count(0)


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


def test_a_level_follows_the_rating_of_the_person(open_page):
    levels = [{"id": str(n), "name": "x", "rating": 600 + 200 * n} for n in range(9)]
    page = open_page()
    page.route("**/api/info", lambda route: route.fulfill(json=about() | {"levels": levels}))
    page.reload()
    page.get_by_test_id("new-game").click()
    choose_size(page, "2x2")
    page.get_by_test_id("adapts").check()
    expect(page.get_by_test_id("level-0")).to_have_count(0)
    with page.expect_request("**/api/warm") as request:
        page.get_by_test_id("start-game").click()
    assert request.value.post_data_json["level"] == "2"  # rated 1000
    for edge in range(12):
        if page.locator("#board-host .edge:not(.drawn)").count():
            draw(page, edge)
    expect(page.get_by_test_id("ended")).to_be_visible()
    own, other = (int(page.get_by_test_id(f"score-{player}").inner_text()) for player in (0, 1))
    ratings = page.evaluate("JSON.parse(localStorage.jaxzero).ratings")
    assert ratings == {"2x2": 1000 + 16 * ((own > other) - (own < other))}
    stored = page.evaluate("JSON.parse(localStorage.jaxzero).table.rated")
    assert stored is False  # a game counts once


def test_the_analysis_is_quiet_and_its_words_lead_to_lessons(open_page):
    page = open_page()
    start_game(page, size="3x3")
    for edge in (0, 3):  # two sides of the first box: each other side costs two boxes
        draw(page, edge)
    page.get_by_test_id("analysis").click()
    page.locator(".badge:not(.busy)").wait_for()
    costs = page.locator("#board-host .cost")
    expect(costs).to_have_count(3 + 2)  # the best edges and the costly edges
    chances = "Chances: First player 70 %, draw 0 %, Second player 30 %"
    expect(page.get_by_test_id("analysis-panel")).to_contain_text(chances)
    lines = page.locator(".lines .line")
    expect(lines).to_have_count(3)
    lines.nth(1).locator("button").first.hover()
    page.locator("#board-host .ghost").wait_for(state="attached")
    page.locator("#legend").click()
    draw(page, 6)
    page.locator(".badge:not(.busy)").wait_for()
    expect(page.locator("details.legends")).to_have_attribute("open", "")
    page.locator(".facts a").first.click()
    expect(page).to_have_url(re.compile("#lesson-3"))


def test_a_line_of_the_analysis_becomes_a_variation(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("move-2").click()
    page.get_by_test_id("analysis-review").click()
    page.get_by_test_id("line").locator("button").first.click()
    expect(page.locator("#moves .branch button")).to_have_count(1)


def test_a_hint_is_proven_where_the_edge_is(open_page):
    page = open_page()
    start_game(page)
    line, said = {"edges": [{"edge": 5, "lost": 0}], "best": 5, "value": 1.0}, []
    page.route("**/api/analyse", lambda route: route.fulfill(body=said[-1]))
    proven, hint = ({"exact": {"value": 1, "best": best}} for best in ([5], []))
    for answer, words in (
        (line | proven, "Best, proven: "),
        (line | hint, "Hint: "),
        ({"preparing": True}, "No hint yet"),
    ):
        said.append(json.dumps(answer) + "\n")
        page.keyboard.press("h")
        expect(page.get_by_test_id("status")).to_contain_text(words)
        draw(page, len(said))


def test_a_move_that_is_still_being_checked_is_not_drawn_in_a_new_game(open_page):
    page = open_page()
    start_game(page)
    checks, held = hold(page, "analyse"), hold(page, "move")
    set_switch(page, "teaching")  # from now on the page asks for analyses
    page.get_by_test_id("edge-0").click()
    expect(page.get_by_test_id("status")).to_contain_text("Checking")
    wait_for(page, checks, 1)
    begin(page, "mode-watch")
    wait_for(page, held, 1)
    checks[0].fulfill(body=json.dumps({"edges": [{"edge": 0, "lost": 0}]}) + "\n")
    page.wait_for_timeout(200)
    assert drawn_edges(page) == 0


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


def test_help_takes_a_game_out_of_the_rating(open_page):
    page, rated = open_page(), "JSON.parse(localStorage.jaxzero).table.rated"
    begin(page, "adapts")

    def set_up():
        for name in ("nav-review", "edit", "edge-20", "edit", "nav-play"):
            page.get_by_test_id(name).click()

    def look_at_the_analysis():
        page.keyboard.press("a")
        page.locator("#board-host .cost").first.wait_for(state="attached")
        page.keyboard.press("a")

    for get_help in (
        lambda: page.get_by_test_id("hint").click(),
        lambda: page.keyboard.press("Home"),
        look_at_the_analysis,
        set_up,
        lambda: set_switch(page, "teaching"),
    ):
        to_play(page)
        begin(page, size="3x3")
        draw(page, 0)
        page.get_by_test_id("move-2").wait_for()
        ready(page)
        assert page.evaluate(rated) is True
        get_help()
        page.reload()
        draw(page, 21)
        ready(page)  # the engine has moved too
        assert page.evaluate(rated) is False


def test_a_pressed_button_is_not_replaced_while_the_review_or_the_analysis_tells_more(open_page):
    page = open_page("review")
    page.set_viewport_size({"width": 760, "height": 2000})
    load(page, GAME)
    page.get_by_test_id("analysis-review").click()
    page.locator(".badge:not(.busy)").wait_for()
    wait_for_review(page)
    for button in ("#switch-everyEdge", '[data-testid="mistake-4"]', '[data-testid="move-2"]'):
        page.locator(".badge:not(.busy)").wait_for()  # the panels have their heights
        page.locator(button).hover()
        page.mouse.down()
        page.set_viewport_size({"width": 750, "height": 2000})  # the review is drawn again
        page.wait_for_timeout(100)
        page.mouse.up()
        page.set_viewport_size({"width": 760, "height": 2000})
    expect(page.locator("#switch-everyEdge")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#board-host .edge.drawn")).to_have_count(2)
