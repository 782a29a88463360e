"""Test that clocks, exercises, offers and addresses end with their game or position."""

from __future__ import annotations

import re

import pytest
from browsing import GAME, draw, drawn_edges, expect, load, look_back, moves, start_game, to_play

from jaxzero.page.answers import about

RATED = "JSON.parse(localStorage.jaxzero).table.rated"


def begin(page, mode, *options, size="2x2"):
    """Begin a game with more options than `start_game` has, such as a clock."""
    page.get_by_test_id("new-game").click()
    page.locator("label", has=page.get_by_test_id(f"mode-{mode}")).click()
    page.get_by_test_id("size").select_option(size)
    for option in options:
        page.locator("label", has=page.get_by_test_id(option)).click()
    page.get_by_test_id("start-game").click()
    page.locator("#ended").wait_for(state="hidden")


def stop_time(page):
    page.clock.install(time=0)
    page.clock.pause_at(10)


def let_pass(page, milliseconds):
    page.clock.run_for(milliseconds)
    page.wait_for_timeout(300)  # the page looks at its clock every tenth of a second


def test_the_engine_goes_on_compiling_while_a_person_thinks(open_page):
    page, asked, failed = open_page(), [], []
    page.route("**/api/warm", lambda route: asked.append(route))  # never answered
    page.on("requestfailed", lambda request: failed.append(request.url))
    start_game(page, mode="engine")
    page.wait_for_timeout(300)
    assert len(asked) - len(failed) == 1


def test_the_clock_stands_after_the_end_and_in_a_pause(open_page):
    page = open_page()
    stop_time(page)
    begin(page, "people", "clock-1+0")
    page.clock.run_for(1000)
    for edge in range(12):
        draw(page, edge)
    expect(page.get_by_test_id("ended")).to_be_visible()
    page.get_by_test_id("undo").click()
    expect(page.get_by_test_id("ended")).to_be_hidden()
    let_pass(page, 70_000)
    assert "time is up" not in page.get_by_test_id("status").inner_text()
    begin(page, "watch", "clock-1+0")
    page.clock.run_for(5000)
    page.get_by_test_id("watch-run").click()
    expect(page.get_by_test_id("watch-run")).to_contain_text("Play")
    let_pass(page, 70_000)
    assert "time is up" not in page.get_by_test_id("status").inner_text()


def test_a_game_lost_on_time_is_not_played_on(open_page):
    page = open_page()
    stop_time(page)
    begin(page, "people", "clock-1+0")
    page.clock.run_for(1000)
    draw(page, 0)
    page.clock.run_for(70_000)
    expect(page.get_by_test_id("status")).to_contain_text("time is up")
    page.get_by_test_id("nav-review").click()
    draw(page, 5)
    assert page.evaluate("JSON.parse(localStorage['jaxzero-games']).length") == 1
    expect(page.locator("#variation-tools")).to_be_visible()


def by_key(page):
    page.keyboard.press("m")


def load_another(page):
    load(page, GAME | {"moves": [0, 11]})


def set_up(page):
    page.get_by_test_id("edit").click()


@pytest.mark.parametrize("leave", [by_key, load_another, set_up])
def test_an_exercise_ends_with_its_position(open_page, leave):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("practise").click()
    expect(page.get_by_test_id("practice-panel")).to_be_visible()
    leave(page)
    expect(page.get_by_test_id("practice-panel")).to_be_hidden()


def test_an_edge_of_unknown_worth_is_not_called_good(open_page):
    page = open_page("review")
    judged = """async () => {
      const [{ createPractice }, { createRecord }] =
        await Promise.all([import("./practice.js"), import("./record.js")]);
      const record = createRecord({ rows: 2, cols: 2, start: [], moves: [] });
      const known = async () => ({ edges: [{ edge: 5, lost: null }] });
      const analysis = { known, showHint() {}, bestEdge: () => null };
      const practice = createPractice({ record, analysis, onChange() {} });
      practice.start([{ ply: 0, edge: 1, lost: 2 }]);
      await practice.press(5);
      return document.querySelector("[data-testid=practice-answer]").className;
    }"""
    assert page.evaluate(judged) == "answer bad"


def test_mistakes_of_the_computer_alone_are_no_exercises(open_page):
    page = open_page()
    people = [{"kind": "person"}, {"kind": "engine", "level": "1"}]
    slip = {"ply": 1, "player": 1, "best": 3, "lost": 2, "edge": 11}
    table = {"id": "one", "date": 1, "game": GAME, "seats": people, "komi": 0, "slips": [slip]}
    page.evaluate("(one) => (localStorage['jaxzero-games'] = JSON.stringify([one]))", table)
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("open-games").click()
    expect(page.get_by_test_id("archived")).to_have_count(1)
    expect(page.get_by_test_id("practise-games")).to_be_disabled()


def test_a_game_loaded_after_a_shared_one_is_kept(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("share").click()
    expect(page).to_have_url(re.compile("#g="))
    load(page, GAME | {"moves": [1, 2]})
    page.reload()
    expect(moves(page)).to_have_count(2)


def test_an_offer_ends_when_its_game_is_back(open_page):
    page = open_page()
    start_game(page)
    draw(page, 0)
    start_game(page)
    expect(page.get_by_test_id("notice")).to_be_visible()
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("open-games").click()
    page.get_by_test_id("archived").click()
    expect(moves(page)).to_have_count(1)
    expect(page.get_by_test_id("notice")).to_be_hidden()


def test_new_players_at_an_earlier_move_keep_comments_and_offer_the_rest_back(open_page):
    page = open_page()
    look_back(page)
    page.get_by_test_id("comment").fill("quiet")
    to_play(page)
    page.get_by_test_id("seats").click()
    page.get_by_test_id("start-game").click()
    expect(moves(page)).to_have_count(1)
    page.get_by_test_id("nav-review").click()
    expect(page.get_by_test_id("comment")).to_have_value("quiet")
    page.get_by_test_id("retry").click()
    expect(moves(page)).to_have_count(3)


def test_a_comment_stays_at_its_position_when_the_wheel_turns(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("comment").press_sequentially("end")
    page.locator("#board-host").hover()
    page.mouse.wheel(0, -200)
    expect(page.locator("#board-host .edge.drawn")).to_have_count(4)
    page.get_by_test_id("comment").press_sequentially("before")
    expect(page.get_by_test_id("comment")).to_have_value("before")
    page.get_by_test_id("last").click()
    expect(page.get_by_test_id("comment")).to_have_value("end")


def test_a_page_without_storage_offers_games_back_all_the_same(open_page):
    page = open_page()
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error(); }; }")
    start_game(page)
    draw(page, 0)
    start_game(page)
    page.get_by_test_id("retry").click()
    expect(moves(page)).to_have_count(1)


def test_the_legend_of_the_analysis_stays_open(open_page):
    page = open_page()
    start_game(page)
    page.get_by_test_id("analysis").click()
    page.locator(".badge:not(.busy)").wait_for()
    page.locator("#legend").click()
    draw(page, 0)
    page.locator(".badge:not(.busy)").wait_for()
    expect(page.locator("details.legends")).to_have_attribute("open", "")


def test_moves_taken_back_by_a_key_take_a_game_out_of_the_rating(open_page):
    page = open_page()
    page.route("**/api/info", lambda route: route.fulfill(json=about()))
    page.reload()
    page.get_by_test_id("new-game").click()
    page.get_by_test_id("adapts").check()
    page.get_by_test_id("start-game").click()
    for edge, rated in ((0, True), (20, False)):
        draw(page, edge)
        page.get_by_test_id("move-2").wait_for()
        page.locator("#board-host .board:not(.waits)").wait_for()
        assert page.evaluate(RATED) is rated
        page.keyboard.press("Home")


def test_a_game_that_is_watched_waits_where_somebody_looked_back(open_page):
    page = open_page()
    begin(page, "watch", size="3x3")
    page.get_by_test_id("move-2").wait_for()
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("first").click()
    to_play(page)
    expect(page.get_by_test_id("watch-run")).to_contain_text("Play")
    page.get_by_test_id("watch-run").click()
    page.get_by_test_id("move-4").wait_for()
    assert drawn_edges(page) > 2
