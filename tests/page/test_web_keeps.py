"""Test that nothing is lost: games while others begin, in tabs, storage, files and links."""

from __future__ import annotations

import json
import re
from pathlib import Path

from browsing import (
    GAME,
    begin,
    draw,
    drawn_edges,
    expect,
    hold,
    load,
    moves,
    open_games,
    ready,
    set_switch,
    start_game,
    to_play,
    wait_for,
    wait_for_info,
)

from jaxzero.play.game import LARGEST_SIDE

PEOPLE = [{"kind": "person"}, {"kind": "person"}]
OVER = {"rows": 1, "cols": 1, "start": [], "moves": [0, 1, 2, 3]}
TABLE = {"id": "one", "date": 1, "game": OVER, "seats": PEOPLE}


def play_a_turn(page, edge=0):
    """Draw an edge against the engine and wait for its answer."""
    start_game(page, "starts-you", mode="engine")
    draw(page, edge)
    page.get_by_test_id("move-2").wait_for()
    ready(page)


def reload(page):
    page.reload()
    wait_for_info(page)


def archive(page):
    return page.evaluate("JSON.parse(localStorage['jaxzero-games'] ?? '[]')")


def test_stepping_back_while_the_engine_thinks_keeps_all_moves(open_page):
    page = open_page()
    play_a_turn(page)
    held = hold(page, "move")
    draw(page, 20)
    wait_for(page, held, 1)
    page.keyboard.press("r")  # nothing to redo
    expect(page.get_by_test_id("status")).to_contain_text("thinks")
    page.keyboard.press("Home")
    held[0].fulfill(json={"edges": [5]})  # too late
    page.wait_for_timeout(200)
    expect(moves(page)).to_have_count(3)
    page.keyboard.press("End")  # the engine moves again
    wait_for(page, held, 2)
    page.get_by_test_id("undo").click()
    held[1].fulfill(json={"edges": [5]})
    page.wait_for_timeout(200)
    assert drawn_edges(page) == 2
    page.keyboard.press("r")
    wait_for(page, held, 3)
    held[2].fulfill(json={"edges": [22]})
    expect(moves(page)).to_have_count(4)


def test_a_game_that_is_watched_goes_on_after_steps_and_waits_where_somebody_looked_back(open_page):
    page = open_page()
    begin(page, "mode-watch", size="2x2")
    page.get_by_test_id("move-1").wait_for()
    page.get_by_test_id("undo").click()
    expect(page.get_by_test_id("watch-run")).to_contain_text("Go on")
    count = drawn_edges(page)
    page.get_by_test_id("watch-step").click()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(count + 1)
    page.get_by_test_id("watch-speed").press("End")
    page.get_by_test_id("watch-speed").press("p")
    expect(page.get_by_test_id("watch-speed")).to_have_value("5")
    page.get_by_test_id("move-4").wait_for()
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("first").click()
    to_play(page)
    expect(page.get_by_test_id("watch-run")).to_contain_text("Go on")
    page.get_by_test_id("watch-run").click()
    expect(page.locator("#board-host .edge:not(.drawn)")).to_have_count(0)
    held = hold(page, "move")
    page.get_by_test_id("again").click()
    wait_for(page, held, 1)
    page.get_by_test_id("watch-run").click()
    page.get_by_test_id("watch-step").click()
    wait_for(page, held, 2)
    page.get_by_test_id("watch-run").click()  # before the step is done
    wait_for(page, held, 3)
    held[2].fulfill(json={"edges": [0]})
    wait_for(page, held, 4)


def test_a_variation_of_a_review_is_not_kept_in_the_game_in_play(open_page):
    page = open_page()
    play_a_turn(page)
    page.get_by_test_id("nav-review").click()
    draw(page, 22)
    expect(moves(page)).to_have_count(3)
    reload(page)
    expect(moves(page)).to_have_count(2)
    to_play(page)
    expect(page.get_by_test_id("player-0")).to_contain_text("You")


def test_an_unfinished_game_is_among_the_games_and_offered_back_until_another_is_played(open_page):
    page = open_page()
    begin(page, "starts-engine")
    page.get_by_test_id("move-1").wait_for()
    start_game(page)  # nobody had begun the game before
    expect(page.get_by_test_id("notice")).to_be_hidden()
    for edge in (0, 20):  # two games against the engine, each replaced
        play_a_turn(page, edge)
        page.get_by_test_id("nav-review").click()
        load(page, GAME)
        expect(page.get_by_test_id("notice")).to_contain_text("My games")
        to_play(page)
    page.get_by_test_id("retry").click()
    expect(moves(page)).to_have_count(2)
    expect(page.get_by_test_id("player-0")).to_contain_text("You")
    expect(page.get_by_test_id("notice")).to_be_hidden()
    assert len(archive(page)) == 1, "a game that is taken back is on the table alone"
    start_game(page)
    expect(page.get_by_test_id("notice")).to_be_visible()
    draw(page, 5)  # the offer ends
    expect(page.get_by_test_id("notice")).to_be_hidden()
    reload(page)
    expect(page.get_by_test_id("notice")).to_be_hidden()
    open_games(page)
    games = page.get_by_test_id("archived")
    expect(games).to_have_count(2)
    expect(games.first).to_contain_text("(unfinished)")
    games.last.click()
    expect(page.get_by_test_id("nav-play")).to_have_attribute("aria-current", "page")
    expect(moves(page)).to_have_count(2)


def test_a_position_that_is_set_up_keeps_its_title_and_the_game_before_it(open_page):
    page = open_page()
    play_a_turn(page)
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("game-title").fill("study")
    for edges in ((5, 1, 7, 1), ()):  # one edge is erased; the second time nothing changes
        page.get_by_test_id("edit").click()
        for edge in edges:
            page.get_by_test_id(f"edge-{edge}").click()
        page.get_by_test_id("edit").click()
        assert drawn_edges(page) == 4
        expect(page.get_by_test_id("game-title")).to_have_value("study")
    load(page, GAME)
    page.get_by_test_id("retry").click()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(4)
    assert [len(table["game"]["moves"]) for table in archive(page)] == [2]


def test_new_players_at_an_earlier_move_leave_the_rest_among_the_games(open_page):
    page = open_page()
    start_game(page, size="2x2")
    for edge in (0, 11, 6):
        draw(page, edge)
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("move-1").click()
    begin(page, "mode-people", by="play-here")
    expect(moves(page)).to_have_count(1)
    page.get_by_test_id("retry").click()
    expect(moves(page)).to_have_count(3)


GAME_IN_PLAY = OVER | {"moves": [0]}
DAMAGES = [
    ("id", ""),
    ("date", "today"),
    ("date", 1e300),
    ("seats", None),
    ("seats", PEOPLE[:1]),
    ("seats", [{"kind": "person"}, {"kind": "engine", "level": 9}]),
    ("game", OVER | {"moves": [0, 0]}),
    ("game", OVER | {"rows": 99}),
    ("game", OVER | {"title": 5}),
    ("game", OVER | {"comments": {"1": None}}),
    ("game", GAME_IN_PLAY | {"variations": [{"at": 1, "moves": [0]}]}),
    ("game", GAME_IN_PLAY | {"variations": [None]}),
    ("game", GAME_IN_PLAY | {"joined": "all"}),
    ("names", {}),
    ("names", ["", None]),
    ("clocks", {}),
    ("clocks", {"left": [1, None], "increment": 0}),
    ("flagged", 2),
    ("flagged", None),
    ("resigned", "yes"),
    ("rated", 1),
    ("accuracy", [None, None]),
    ("slips", [{"player": 2}]),
]


def test_no_damaged_table_is_imported_or_shown_and_none_is_lost(open_page):
    page = open_page()
    read = "async (text) => (await import('./archive.js')).importGames(text)"
    damaged = [
        TABLE | {"id": f"no {index}", name: value} for index, (name, value) in enumerate(DAMAGES)
    ]
    for table in damaged:
        assert page.evaluate(read, json.dumps([TABLE, table])) is None, table
    for new in (1, 0):
        assert page.evaluate(read, json.dumps([TABLE])) == new
    store = """([table, games]) => {
        localStorage.jaxzero = JSON.stringify({ visited: true, table });
        localStorage["jaxzero-games"] = games;
        sessionStorage.jaxzero = JSON.stringify(table);
        localStorage.removeItem("jaxzero-damaged");
    }"""
    shown = page.get_by_test_id("archived")
    for table in damaged[::3]:
        page.evaluate(store, [table, json.dumps([table, TABLE])])
        reload(page)
        draw(page, 0)
        assert table in page.evaluate("JSON.parse(localStorage['jaxzero-damaged'])")
        assert len(archive(page)) == 1
    for games in ("{}", "miaow", "5", "null", '"text"', "[null, 1]", "[[[]]]"):
        page.evaluate(store, [None, games])
        reload(page)
        open_games(page)
        expect(shown).to_have_count(0)
        page.keyboard.press("Escape")


ODD_SETTINGS = [
    {"setup": {"levels": None, "rows": 0, "cols": "3", "mode": "x", "clock": 5}},
    {"setup": 5, "language": "xx", "speed": 99, "usualWait": None, "grade": -1},
    {"table": {"game": {"rows": 2, "cols": 2}}, "aside": [None, TABLE], "lessons": [5]},
    [],
    "text",
    7,
]


def test_odd_settings_get_their_defaults(open_page):
    page = open_page()
    for odd in ODD_SETTINGS:
        page.evaluate("(odd) => (localStorage.jaxzero = JSON.stringify(odd))", odd)
        page.evaluate("sessionStorage.clear()")
        reload(page)
        to_play(page)
        draw(page, 0)
        start_game(page, mode="engine")
    assert [table["id"] for table in archive(page)].count("one") == 1, "set aside formerly"


def test_the_archive_keeps_the_last_hundred_games(open_page):
    page = open_page()
    read = "async (text) => (await import('./archive.js')).importGames(text)"
    many = [TABLE | {"id": f"game {date}", "date": date} for date in range(2, 104)]
    assert page.evaluate(read, json.dumps(many)) == 100
    page.evaluate("localStorage.clear()")
    assert page.evaluate(read, json.dumps([TABLE | {"names": ["", "Ben"]}])) == 1
    open_games(page)
    expect(page.get_by_test_id("archived")).to_have_count(1)
    expect(page.get_by_test_id("archived")).to_contain_text("Ben")


def finish(page, first):
    """Play a game of two people on 2x2 to its end."""
    start_game(page, size="2x2")
    for edge in [first, *range(12)]:
        draw(page, edge)
    expect(page.get_by_test_id("ended")).to_be_visible()


def test_games_that_have_ended_are_archived_exported_opened_and_imported(open_page):
    page = open_page()
    for first in (0, 1):
        finish(page, first)
    page.get_by_test_id("nav-review").click()
    for _ in range(2):
        page.get_by_test_id("edit").click()  # a game without a move is none
    page.get_by_test_id("open-games").click()
    games = page.get_by_test_id("archived")
    expect(games).to_have_count(2)
    games.last.click()
    expect(page.get_by_test_id("move-1")).to_contain_text("h0,0")
    page.get_by_test_id("comment").fill("first of all")  # the archive keeps it too
    reload(page)
    to_play(page)
    for _ in range(2):
        page.get_by_test_id("undo").click()  # another end makes another game
    for edge in reversed(range(12)):
        draw(page, edge)
    expect(page.get_by_test_id("ended")).to_be_visible()
    open_games(page)
    expect(games).to_have_count(3)
    with page.expect_download() as download:
        page.get_by_test_id("export-games").click()
    exported = json.loads(Path(download.value.path()).read_text())
    assert sorted(table["game"]["moves"][0] for table in exported) == [0, 0, 1]
    page.evaluate("localStorage.removeItem('jaxzero-games')")
    page.keyboard.press("Escape")
    page.get_by_test_id("file-input").set_input_files(download.value.path())
    expect(page.get_by_test_id("toast")).to_contain_text("3")
    page.get_by_test_id("open-games").click()
    expect(games).to_have_count(3)
    games.last.click()
    page.get_by_test_id("last").click()
    expect(page.get_by_test_id("comment")).to_have_value("first of all")


def forget(page, kind):
    page.get_by_test_id("settings").click()
    page.get_by_test_id(f"forget-{kind}").click()
    page.get_by_test_id("forget-agree").click()


def test_games_the_rating_and_the_streak_are_deleted_each_and_all(open_page):
    page = open_page()
    for first in (0, 1):
        finish(page, first)
    open_games(page)
    page.get_by_test_id("forget-game").first.click()  # the one on the table
    page.get_by_test_id("forget-cancel").click()
    page.get_by_test_id("open-games").click()
    page.get_by_test_id("forget-game").first.click()
    page.get_by_test_id("forget-agree").click()
    expect(page.get_by_test_id("archived")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(moves(page)).to_have_count(0)  # a new game is on the table
    stored = "JSON.parse(localStorage.jaxzero)"
    change = """async () => (await import('./settings.js')).remember({ streak: 4, sound: true,
        ratings: { "3x3": 1200 } })"""
    page.evaluate(change)
    forget(page, "rating")
    forget(page, "streak")
    expect(page.get_by_test_id("forget-dialog")).to_be_hidden()
    assert page.evaluate(f"[{stored}.ratings, {stored}.streak, {stored}.sound]") == [{}, 0, True]
    assert len(archive(page)) == 1
    forget(page, "games")
    assert archive(page) == []
    to_play(page)
    finish(page, 0)
    with page.expect_navigation():
        forget(page, "all")
    wait_for_info(page)
    assert archive(page) == [] and page.evaluate(f"{stored}.sound") is False


def test_each_tab_keeps_its_own_game_and_none_is_lost(open_page):
    page = open_page()
    play_a_turn(page)
    first = moves(page).first.inner_text()
    other = page.context.new_page()
    other.goto(page.url)
    play_a_turn(other, 20)
    second = moves(other).first.inner_text()
    set_switch(other, "sound")  # a setting that all tabs share
    reload(page)
    assert moves(page).first.inner_text() == first != second
    for tab in (page, other):  # each sets its game aside
        tab.get_by_test_id("nav-review").click()
        load(tab, GAME)
    assert {table["game"]["moves"][0] for table in archive(page)} == {0, 20}


def test_without_storage_games_last_until_the_page_closes_and_this_is_said_once(open_page):
    page = open_page()
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error(); }; }")
    start_game(page)
    draw(page, 0)
    expect(page.get_by_test_id("toast")).to_contain_text("stores nothing")
    page.evaluate("document.querySelector('#toast').textContent = ''")
    finish(page, 1)
    expect(page.get_by_test_id("toast")).not_to_contain_text("stores nothing")
    open_games(page)
    expect(page.get_by_test_id("archived")).to_have_count(2)
    page.get_by_test_id("archived").last.click()
    expect(moves(page)).to_have_count(1)


def test_a_link_keeps_the_game_its_position_and_who_played(open_page):
    page = open_page()
    play_a_turn(page)
    page.get_by_test_id("resign").click()
    page.get_by_test_id("resign-agree").click()
    page.get_by_test_id("nav-review").click()
    expect(page.get_by_test_id("name-0")).to_have_value("")  # nobody is called "You"
    page.get_by_test_id("name-0").fill("Ann & Co")
    with page.expect_request("**/api/write") as request:
        page.get_by_test_id("copy").click()
    written = request.value.post_data_json
    assert written["names"] == ["Ann & Co", "Computer (Beginner)"]
    assert written["result"] == "first resigned"
    page.get_by_test_id("back").click()
    page.get_by_test_id("share").click()
    expect(page).to_have_url(re.compile("#g="))
    link = page.url
    reload(page)  # the own game keeps its players
    to_play(page)
    expect(page.get_by_test_id("player-0")).to_contain_text("You")
    start_game(page, mode="engine")  # the next game has the name too
    page.get_by_test_id("nav-review").click()
    expect(page.get_by_test_id("name-0")).to_have_value("Ann & Co")
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.goto("about:blank")
    page.goto(link)
    expect(moves(page)).to_have_count(2)
    assert drawn_edges(page) == 1
    expect(page.get_by_test_id("player-1")).to_contain_text("Computer (Beginner)")
    page.get_by_test_id("last").click()
    expect(page.get_by_test_id("status")).to_contain_text(
        "Ann & Co\N{POP DIRECTIONAL ISOLATE} resigned"
    )


def test_a_file_keeps_the_result_and_the_reason_of_the_end(open_page):
    page = open_page("review")
    load(page, GAME | {"names": ["Ann", "Ben"], "result": "second timed out"})
    expect(page.get_by_test_id("status")).to_contain_text("lost on time")
    assert archive(page) == [], "it was only looked at"
    draw(page, 9)  # the game has ended: this is a variation
    expect(page.locator("#variation-tools")).to_be_visible()
    with page.expect_request("**/api/write") as request:
        page.get_by_test_id("copy").click()
    assert request.value.post_data_json["result"] == "second timed out"


BROKEN = ("g=9x9.AA.AA", "g=0x2..", "g=2x2.%", "g=", "g=&name=x", "g=2x2..AAE.AAE.AAE&result=x&g=")


def test_an_address_opens_what_it_names(open_page):
    page = open_page("lesson-11")  # there are nine
    page.get_by_test_id("lesson-9").wait_for()
    address = page.url.partition("#")[0]

    def go(fragment):
        page.goto("about:blank")
        page.goto(f"{address}#{fragment}")

    for fragment in BROKEN[:-1]:
        go(fragment)
        expect(page.get_by_test_id("notice")).to_contain_text("link is damaged")
    for fragment in ("g=2x2..AAE.-1", BROKEN[-1]):  # the end is shown
        go(fragment)
        expect(page.get_by_test_id("status")).to_have_text("Move 2 of 2")
    go("review")
    load(page, GAME | {"moves": GAME["moves"][:3]})
    page.get_by_test_id("share").click()
    page.wait_for_url("**/#g=*")
    link = page.url.partition("#")[2]
    draw(page, 9)
    draw(page, 1)
    go(link)
    expect(moves(page)).to_have_count(5)  # the own game is still there
    assert drawn_edges(page) == 3


def test_a_game_on_the_largest_board_is_kept_and_shared(open_page):
    page, side = open_page("review"), LARGEST_SIDE
    load(page, {"rows": side, "cols": side, "start": [], "moves": [0, 100]})
    reload(page)
    expect(moves(page)).to_have_count(2)
    expect(page.locator("#board-host .edge")).to_have_count(2 * side * (side + 1))
    page.get_by_test_id("share").click()
    expect(page).to_have_url(re.compile("#g="))
    page.evaluate("localStorage.clear()")
    reload(page)
    expect(moves(page)).to_have_count(2)
