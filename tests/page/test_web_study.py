"""Test studying a game on the page: its tree of moves, comments, playing on from a position."""

from __future__ import annotations

import json
import re
from pathlib import Path

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
    open_games,
    ready,
    set_switch,
    start_game,
    stop_time,
    to_play,
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
    assert written["names"] == ["First player", "Ben"]
    (line,) = written["variations"]
    assert (line["at"], line["moves"]) == (2, [9, 1])
    (inner,) = line["variations"]
    assert (inner["at"], inner["moves"], inner["comments"]) == (3, [5], {"4": "odd"})


def test_the_next_move_of_the_game_leads_back_from_a_variation(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("move-2").click()
    draw(page, 9)
    page.get_by_test_id("back").click()
    draw(page, 6)
    expect(moves(page)).to_have_count(5)
    expect(page.locator("#moves .branch button")).to_have_count(1)


def test_a_game_with_a_long_comment_at_every_move_is_loaded_and_saved(open_page):
    page = open_page("review")
    comments = {str(ply): "好" * 1000 for ply in range(1, 61)}
    game = {"rows": 5, "cols": 5, "start": [], "moves": [*range(60)], "comments": comments}
    load(page, game)
    page.get_by_test_id("format").select_option("json")
    with page.expect_download() as download:
        page.get_by_test_id("save").click()
    saved = json.loads(Path(download.value.path()).read_text())
    assert saved["comments"] == comments


def test_a_file_brings_its_variations_and_one_is_deleted(open_page):
    page = open_page("review")
    load(page, GAME | {"variations": [{"at": 1, "moves": [3, 4]}], "comments": {"5": "end"}})
    expect(page.get_by_test_id("comment")).to_have_value("end")
    page.locator("#moves .branch button").last.click()
    expect(page.locator('#board-host .drawn[data-edge="4"]')).to_have_count(1)
    page.get_by_test_id("remove-variation").click()
    expect(page.locator("#moves .branch")).to_have_count(0)
    expect(moves(page)).to_have_count(5)
    expect(page.locator("#board-host .edge.drawn")).to_have_count(1)


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


def test_games_that_have_ended_are_archived_and_opened_again(open_page):
    page = open_page()
    for first in (0, 1):
        finish(page, first)
    open_games(page)
    games = page.get_by_test_id("archived")
    expect(games).to_have_count(2)
    with page.expect_download() as download:
        page.get_by_test_id("export-games").click()
    exported = json.loads(Path(download.value.path()).read_text())
    assert [table["game"]["moves"][0] for table in exported] == [1, 0]
    games.last.click()
    expect(page.get_by_test_id("move-1")).to_contain_text("h0,0")
    page.get_by_test_id("comment").fill("first of all")  # the archive keeps it too
    page.reload()
    page.get_by_test_id("open-games").click()
    games.first.click()
    expect(page.get_by_test_id("move-1")).to_contain_text("h0,1")
    page.get_by_test_id("open-games").click()
    games.last.click()
    expect(page.get_by_test_id("comment")).to_have_value("first of all")


def test_a_clock_that_has_run_out_ends_the_game(open_page):
    page = open_page(alone=True)
    stop_time(page)
    start_game(page, "clock-3+2", size="5x5")
    page.clock.run_for(1000)
    clock = page.get_by_test_id("clock-1")
    expect(clock).to_have_text("3:00")
    draw(page, 0)
    page.clock.run_for(30_000)
    expect(clock).to_have_text("2:30")
    expect(page.get_by_test_id("clock-0")).to_have_text("3:00")  # it starts with the first move
    draw(page, 9)
    page.clock.run_for(1000)
    expect(clock).to_have_text("2:32")  # two seconds more for the turn
    page.get_by_test_id("undo").click()
    page.clock.run_for(2000)
    expect(clock).to_have_text("2:30")  # the clock goes on
    draw(page, 20)
    page.clock.run_for(180_000)
    expect(page.get_by_test_id("status")).to_contain_text("lost on time")
    expect(page.get_by_test_id("edge-20")).to_be_disabled()
    page.keyboard.press("u")  # as the button, no longer
    expect(page.locator("#board-host .edge.drawn")).to_have_count(2)
    page.reload()
    expect(page.get_by_test_id("status")).to_contain_text("lost on time")
    page.get_by_test_id("nav-review").click()
    draw(page, 5)  # not played on: a variation
    expect(page.locator("#variation-tools")).to_be_visible()
    assert page.evaluate("JSON.parse(localStorage['jaxzero-games']).length") == 1


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


def test_one_learns_from_the_mistakes_of_a_game(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("practise").click()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(3)  # before the mistake
    expect(page.locator("#board-host .cost")).to_have_count(0)
    answer = page.get_by_test_id("practice-answer")
    page.get_by_test_id("edge-2").click()  # the same mistake again
    expect(answer).to_have_class(re.compile("bad"))
    expect(answer.locator("p").nth(1)).to_contain_text("box")  # the reason beside the loss
    page.get_by_test_id("practice-show").click()
    page.locator("#board-host .hint").wait_for(state="attached")
    page.get_by_test_id("edge-9").click()
    expect(answer).to_have_class(re.compile("good"))
    page.get_by_test_id("practice-next").click()
    assert not page.get_by_test_id("practice-panel").is_visible()
    expect(moves(page)).to_have_count(5)


def test_mistakes_of_games_in_the_archive_become_exercises(open_page):
    page = open_page()
    start_game(page, size="2x2")
    for edge in [*GAME["moves"], *range(12)]:
        draw(page, edge)
    page.get_by_test_id("nav-review").click()
    expect(page.get_by_test_id("mistakes").locator("tbody tr").first).to_contain_text("box")
    start = page.get_by_test_id("nav-play")
    start.click()
    start_game(page, size="3x3")
    draw(page, 0)
    open_games(page)
    expect(page.get_by_test_id("archived")).to_contain_text("%")
    page.get_by_test_id("practise-games").click()
    expect(page.get_by_test_id(re.compile(r"^edge-\d+$"))).to_have_count(12)  # the board of 2x2
    page.get_by_test_id("edge-9").click()
    expect(page.get_by_test_id("practice-answer")).to_have_class(re.compile("good|bad"))
    page.get_by_test_id("nav-play").click()
    page.get_by_test_id("retry").click()  # the game of 3x3 was set aside
    expect(page.get_by_test_id(re.compile(r"^edge-\d+$"))).to_have_count(24)


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

    def heap():
        session.send("HeapProfiler.collectGarbage")
        return session.send("Runtime.getHeapUsage")["usedSize"]

    page.evaluate(walk)
    before = heap()
    for _ in range(4):
        page.evaluate(walk)
    assert heap() - before < 300_000  # bytes


def finish(page, first):
    """Play a game of two people on 2x2 to its end."""
    start_game(page, size="2x2")
    for edge in [first, *range(12)]:
        draw(page, edge)
    expect(page.get_by_test_id("ended")).to_be_visible()


def test_a_game_that_has_ended_stays_in_the_archive_whatever_follows(open_page):
    page = open_page()
    finish(page, 0)
    page.get_by_test_id("nav-review").click()
    for _ in range(2):
        page.get_by_test_id("edit").click()  # a game without a move is none
    assert page.evaluate("JSON.parse(localStorage['jaxzero-games']).length") == 1
    open_games(page)
    page.get_by_test_id("archived").click()
    to_play(page)
    page.get_by_test_id("undo").click()  # another end makes another game
    page.get_by_test_id("undo").click()
    for edge in reversed(range(12)):
        draw(page, edge)
    expect(page.get_by_test_id("ended")).to_be_visible()
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("open-games").click()
    expect(page.get_by_test_id("archived")).to_have_count(2)
    with page.expect_download() as download:
        page.get_by_test_id("export-games").click()
    page.evaluate("localStorage.removeItem('jaxzero-games')")
    page.keyboard.press("Escape")
    page.get_by_test_id("file-input").set_input_files(download.value.path())
    expect(page.get_by_test_id("toast")).to_contain_text("2")
    page.get_by_test_id("open-games").click()
    expect(page.get_by_test_id("archived")).to_have_count(2)


DAMAGES = [
    ("seats", None),
    ("seats", [{"kind": "person"}]),
    ("seats", [{"kind": "person"}, {"kind": "nobody"}]),
    ("game", {"rows": 2, "cols": 2, "start": [], "moves": [0, 0]}),
    ("date", "today"),
    ("names", {}),
    ("slips", [{"player": 2}]),
]


def test_only_games_that_are_kept_are_imported(open_page):
    page = open_page()
    people = [{"kind": "person"}, {"kind": "person"}]
    game = {"rows": 1, "cols": 1, "start": [], "moves": [0, 1, 2, 3]}
    table = {"id": "one", "date": 1, "game": game, "seats": people, "komi": 0}
    read = "async (text) => (await import('./archive.js')).importGames(text)"
    for field, value in DAMAGES:
        damaged = json.dumps([table, table | {"id": "two", field: value}])
        assert page.evaluate(read, damaged) is None, (field, value)
    assert page.evaluate(read, json.dumps([table])) == 1
    assert page.evaluate(read, json.dumps([table])) == 0, "it is there already"
    # Beyond the limit of the archive the oldest games are neither added nor counted.
    many = [table | {"id": f"game {date}", "date": date} for date in range(2, 104)]
    assert page.evaluate(read, json.dumps(many)) == 100
    page.evaluate("localStorage.clear()")
    assert page.evaluate(read, json.dumps([table | {"names": ["", "Ben"]}])) == 1
    open_games(page)
    expect(page.get_by_test_id("archived")).to_have_count(1)
    expect(page.get_by_test_id("archived")).to_contain_text("Ben")


def test_an_unfinished_game_whose_offer_is_declined_is_among_the_games(open_page):
    page = open_page()
    start_game(page, size="2x2")
    draw(page, 0)
    start_game(page, size="3x3")
    expect(page.get_by_test_id("notice")).to_be_visible()
    page.locator("#notice-close").click()
    page.reload()
    assert not page.get_by_test_id("notice").is_visible()
    open_games(page)
    with page.expect_download() as download:
        page.get_by_test_id("export-games").click()
    assert len(json.loads(Path(download.value.path()).read_text())) == 1
    page.get_by_test_id("archived").click()
    expect(page.get_by_test_id("nav-play")).to_have_attribute("aria-current", "page")
    expect(page.locator("#board-host .edge.drawn")).to_have_count(1)


def test_keys_do_not_end_an_exercise_and_a_line_becomes_a_variation(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("practise").click()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_test_id("practice-panel")).to_be_visible()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(3)
    page.get_by_test_id("practice-next").click()
    page.get_by_test_id("move-2").click()
    page.get_by_test_id("analysis-review").click()
    page.get_by_test_id("line").locator("button").first.click()
    expect(page.locator("#moves .branch button")).to_have_count(1)


RATED = "JSON.parse(localStorage.jaxzero).table.rated"


def begin_rated(page):
    """Begin a game whose level follows the rating; one move of each side is drawn."""
    begin(page, "adapts")
    draw(page, 0)
    page.get_by_test_id("move-2").wait_for()
    ready(page)
    assert page.evaluate(RATED) is True
    return page


def ask_for_a_hint(page):
    page.keyboard.press("h")
    page.locator("#board-host .hint-spot").wait_for()


def take_moves_back(page):
    page.keyboard.press("Home")


def set_up(page):
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("edit").click()
    page.get_by_test_id("edge-20").click()
    page.get_by_test_id("edit").click()


def look_at_the_analysis(page):
    page.keyboard.press("a")
    page.locator("#board-host .cost").first.wait_for(state="attached")
    page.keyboard.press("a")


def be_taught(page):
    set_switch(page, "teaching")


HELP = [ask_for_a_hint, take_moves_back, set_up, look_at_the_analysis, be_taught]


@pytest.mark.parametrize("get_help", HELP)
def test_help_takes_a_game_out_of_the_rating(open_page, get_help):
    page = begin_rated(open_page())
    get_help(page)
    page.reload()
    draw(page, 20)
    ready(page)  # the engine has moved too
    assert page.evaluate(RATED) is False


def test_a_click_on_a_move_counts_while_a_review_tells_more(open_page):
    page = open_page("review")
    page.set_viewport_size({"width": 760, "height": 2000})
    load(page, GAME)
    wait_for_review(page)
    page.get_by_test_id("move-2").hover()
    page.mouse.down()
    page.set_viewport_size({"width": 750, "height": 2000})  # the review is drawn again
    page.wait_for_timeout(100)
    page.mouse.up()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(2)


def test_a_click_in_the_analysis_counts_while_more_lines_come(open_page):
    page = open_page()
    start_game(page, size="3x3")
    page.get_by_test_id("analysis").click()
    page.locator(".badge:not(.busy)").wait_for()
    page.locator("#switch-everyEdge").hover()
    page.mouse.down()
    page.evaluate("document.querySelector('#language').click()")  # the panel is written again
    page.wait_for_timeout(50)
    page.mouse.up()
    expect(page.locator("#switch-everyEdge")).to_have_attribute("aria-pressed", "true")
