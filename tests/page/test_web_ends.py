"""Test what ends games, clocks, notices and exercises, and that addresses keep what they name."""

from __future__ import annotations

import pytest
from browsing import (
    GAME,
    draw,
    expect,
    hold,
    load,
    moves,
    open_games,
    start_game,
    stop_time,
    to_play,
)

TICK = 200  # ms of real time: the page looks at its clocks more often


def test_resigning_after_the_time_is_up_changes_nothing(open_page):
    page = open_page(alone=True)
    stop_time(page)
    start_game(page, "clock-1+0", size="2x2")
    draw(page, 0)
    draw(page, 11)
    page.get_by_test_id("resign").click()
    page.clock.run_for(65_000)
    page.wait_for_timeout(TICK)
    page.get_by_test_id("resign-agree").click()
    expect(page.get_by_test_id("status")).to_have_text("First player lost on time")


def test_the_clock_of_the_side_to_move_runs_while_earlier_moves_are_looked_at(open_page):
    page = open_page(alone=True)
    stop_time(page)
    start_game(page, "clock-3+2", size="2x2")
    for edge in (0, 11, 6):
        draw(page, edge)
    page.keyboard.press("Home")
    page.clock.run_for(20_000)
    expect(page.get_by_test_id("clock-0")).to_have_text("3:02")
    expect(page.get_by_test_id("clock-1")).to_have_text("2:42")


def test_the_computer_loses_no_time_while_its_server_prepares_a_board(open_page):
    page = open_page(alone=True)
    stop_time(page)
    warm, move = hold(page, "warm"), hold(page, "move")
    start_game(page, "clock-3+2", mode="engine", size="2x3")
    draw(page, 0)
    page.clock.run_for(50_000)
    page.wait_for_timeout(TICK)
    expect(page.get_by_test_id("status")).to_contain_text("50 s of about 60")
    expect(page.get_by_test_id("clock-1")).to_have_text("3:00")
    move[0].fulfill(json={"edges": [4]})
    page.get_by_test_id("move-2").wait_for()
    page.clock.run_for(10_000)
    page.wait_for_timeout(TICK)
    draw(page, 8)
    expect(page.get_by_test_id("clock-0")).to_have_text("2:52")
    page.clock.run_for(5000)  # it thinks now: its clock runs
    page.wait_for_timeout(TICK)
    expect(page.get_by_test_id("status")).to_contain_text("The computer thinks … 5 s")
    expect(page.get_by_test_id("clock-1")).to_have_text("2:55")
    move[1].fulfill(json={"edges": [10]})
    expect(page.get_by_test_id("clock-1")).to_have_text("2:57")
    assert page.evaluate("JSON.parse(localStorage.jaxzero).usualWait") == 50
    assert len(warm) == 1


def test_moves_taken_back_with_clocks_are_gone_and_the_right_clock_runs(open_page):
    page = open_page(alone=True)
    stop_time(page)
    start_game(page, "clock-1+0", size="3x3")
    for edge in (0, 3, 6):
        draw(page, edge)
    page.get_by_test_id("undo").click()
    expect(moves(page)).to_have_count(2)
    for edge in (9, 12, 15):
        draw(page, edge)
    page.clock.run_for(70_000)
    expect(page.get_by_test_id("status")).to_have_text("Second player lost on time")


def test_a_game_that_was_resigned_shows_its_result_in_the_review_and_an_easier_level(open_page):
    page = open_page()
    start_game(page, mode="engine", size="2x2")
    draw(page, 0)
    page.get_by_test_id("move-2").wait_for()
    page.get_by_test_id("resign").click()
    page.get_by_test_id("resign-agree").click()
    page.get_by_test_id("nav-review").click()
    expect(page.get_by_test_id("status")).to_have_text("You resigned")


def test_exercises_of_a_running_review_are_mistakes_of_persons(open_page):
    page = open_page("review")
    judged = """async (seats) => {
        const [{ createReview }, { createRecord }] =
            await Promise.all([import("./review.js"), import("./record.js")]);
        const game = { rows: 2, cols: 2, start: [], moves: [0, 11] };
        const rest = { moves: [] };
        const line = (ply) => JSON.stringify({ ply, player: ply, lost: 2, mistake: true, best: 5,
            margin: 0, exact: true }) + "\\n";
        const body = new ReadableStream({ start(stream) {
            const send = (text) => stream.enqueue(new TextEncoder().encode(text));
            window.goOn = () => (send(line(0)), stream.close());
            send(line(1));
        } });
        window.fetch = async () => new Response(body);
        const found = [];
        const nothing = () => {};
        const review = createReview({ record: createRecord(game), isShown: () => true,
            notice: { settle: nothing }, nameOf: String, seats: () => seats, onNews: () =>
            found.push(review.slips().length), onReviewed: nothing, onMove: nothing,
            onComment: nothing });
        review.refresh();
        while (found.length < 1) await new Promise((done) => setTimeout(done, 50));
        window.goOn();
        while (found.length < 2) await new Promise((done) => setTimeout(done, 50));
        return found;
    }"""
    person, engine = {"kind": "person"}, {"kind": "engine", "level": "1"}
    assert page.evaluate(judged, [person, engine]) == [0, 1]


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


def test_a_link_with_a_damaged_ply_shows_the_end(open_page):
    page = open_page("g=2x2..AAE.-1")
    expect(page.get_by_test_id("status")).to_have_text("Move 2 of 2")


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


@pytest.mark.parametrize("ply", [0, 2])
def test_a_shared_link_shows_the_position_that_was_shared(open_page, ply):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("first").click()
    for _ in range(ply):
        page.get_by_test_id("forward").click()
    page.get_by_test_id("share").click()
    page.wait_for_url("**/#g=*")
    link = page.url
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.goto("about:blank")
    page.goto(link)
    expect(moves(page)).to_have_count(5)
    expect(page.locator("#board-host .edge.drawn")).to_have_count(ply)


def test_the_next_problem_has_the_grade_of_a_link(open_page, solver_is_loaded):
    page = open_page("train-handback-2-7")
    page.locator("#train-question:not(.busy)").wait_for()
    page.get_by_test_id("train-next").click()
    page.wait_for_url("**/#train-handback-2-*")


def test_the_skip_link_leads_to_the_board_shown(open_page):
    page = open_page("lesson-2")
    page.locator("#skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".lesson .edge:focus")).to_have_count(1)


def test_games_end_in_the_list_without_storage_too(open_page):
    page = open_page()
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error(); }; }")
    start_game(page, size="2x2")
    for edge in range(12):
        draw(page, edge)
    open_games(page)
    expect(page.get_by_test_id("archived")).to_have_count(1)


def test_a_link_of_the_page_that_is_dragged_is_no_game(open_page):
    page = open_page("review")
    page.get_by_test_id("nav-learn").drag_to(page.locator("#board-host"))
    page.wait_for_timeout(200)
    expect(page.get_by_test_id("notice")).to_be_hidden()


def test_a_comment_on_the_start_is_printed_and_so_is_the_title(open_page):
    page = open_page("review")
    load(page, GAME | {"comments": {"0": "before all"}, "title": "The final"})
    page.emulate_media(media="print")
    expect(page.locator("#moves")).to_contain_text("before all")
    page.emulate_media(media="screen")
    page.get_by_test_id("comment").fill("at the end")
    expect(page.locator("#moves .note")).to_have_count(2)
    page.emulate_media(media="print")
    title = page.locator("h1")
    expect(title).to_have_text("The final")
    assert title.evaluate("(title) => title.getBoundingClientRect().width") > 50


def test_a_long_hint_of_an_edge_fits_a_phone(open_page):
    page = open_page(size="small", has_touch=True)
    page.evaluate("import('./notice.js').then(({ say }) => say('word '.repeat(30)))")
    width = "(toast) => toast.getBoundingClientRect().width"
    assert page.get_by_test_id("toast").evaluate(width) > 250
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    to_play(page)
