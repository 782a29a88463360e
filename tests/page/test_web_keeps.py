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
    finish,
    hold,
    load,
    moves,
    open_games,
    ready,
    reload,
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


def archive(page):
    return page.evaluate("JSON.parse(localStorage['jaxzero-games'] ?? '[]')")


def test_late_answers_steps_and_variations_change_no_game(open_page):
    page = open_page()
    play_a_turn(page)
    held, checks = hold(page, "move"), hold(page, "analyse")
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
    page.get_by_test_id("nav-review").click()
    draw(page, 21)  # a variation
    expect(moves(page)).to_have_count(5)
    reload(page)
    expect(moves(page)).to_have_count(4)
    to_play(page)
    expect(page.get_by_test_id("player-0")).to_contain_text("You")
    set_switch(page, "teaching")
    page.get_by_test_id("edge-7").click()
    expect(page.get_by_test_id("status")).to_contain_text("Checking")
    wait_for(page, checks, 1)
    start_game(page, size="2x2")
    checks[0].fulfill(body=json.dumps({"edges": [{"edge": 7, "lost": 0}]}) + "\n")
    page.wait_for_timeout(200)
    assert drawn_edges(page) == 0


def test_a_game_that_is_watched_waits_where_somebody_looked_back(open_page):
    page = open_page()
    begin(page, "mode-watch", size="2x2")
    page.get_by_test_id("move-1").wait_for()
    page.get_by_test_id("undo").click()
    run = page.get_by_test_id("watch-run")
    expect(run).to_contain_text("Go on")
    count = drawn_edges(page)
    page.get_by_test_id("watch-step").click()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(count + 1)
    page.get_by_test_id("watch-speed").press("End")
    run.click()
    page.get_by_test_id("move-4").wait_for()
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("first").click()
    to_play(page)
    expect(run).to_contain_text("Go on")
    run.click()
    expect(page.locator("#board-host .edge:not(.drawn)")).to_have_count(0)


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
    open_games(page)
    games = page.get_by_test_id("archived")
    expect(games).to_have_count(2)
    games.last.click()
    expect(moves(page)).to_have_count(2)


def test_a_position_set_up_and_a_game_from_an_earlier_move_leave_the_game_before(open_page):
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
    assert [len(table["game"]["moves"]) for table in archive(page)] == [2]
    load(page, GAME)
    page.get_by_test_id("retry").click()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(4)
    to_play(page)
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
    ("date", 1e300),
    ("seats", None),
    ("seats", PEOPLE[:1]),
    ("seats", [{"kind": "person"}, {"kind": "engine", "level": 9}]),
    ("game", OVER | {"moves": [0, 0]}),
    ("game", OVER | {"title": 5}),
    ("game", OVER | {"comments": {"1": None}}),
    ("game", GAME_IN_PLAY | {"variations": [{"at": 1, "moves": [0]}]}),
    ("game", GAME_IN_PLAY | {"joined": "all"}),
    ("names", ["", None]),
    ("clocks", {}),
    ("clocks", {"left": [1, None], "increment": 0}),
    ("flagged", 2),
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
    many = [TABLE | {"id": f"game {date}", "date": date} for date in range(2, 104)]
    assert page.evaluate(read, json.dumps(many)) == 100, "the last ones are kept"
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


def test_my_games_are_opened_exported_deleted_and_imported(open_page):
    page = open_page()
    for first in (0, 1):
        start_game(page, size="2x2")
        finish(page, [first, *range(12)])
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
    finish(page, reversed(range(12)))
    open_games(page)
    expect(games).to_have_count(3)
    with page.expect_download() as download:
        page.get_by_test_id("export-games").click()
    exported = json.loads(Path(download.value.path()).read_text())
    assert sorted(table["game"]["moves"][0] for table in exported) == [0, 0, 1]
    page.get_by_test_id("forget-game").first.click()  # the one on the table
    page.get_by_test_id("forget-cancel").click()
    page.get_by_test_id("open-games").click()
    expect(games).to_have_count(3)
    page.get_by_test_id("forget-game").first.click()
    page.get_by_test_id("forget-agree").click()
    expect(games).to_have_count(2)
    page.keyboard.press("Escape")
    expect(moves(page)).to_have_count(0)  # a new game is on the table
    page.get_by_test_id("file-input").set_input_files(download.value.path())
    expect(page.get_by_test_id("toast")).to_contain_text("1")
    page.get_by_test_id("open-games").click()
    expect(games).to_have_count(3)
    games.last.click()
    page.get_by_test_id("last").click()
    expect(page.get_by_test_id("comment")).to_have_value("first of all")
    change = """async () => (await import('./settings.js')).remember({ streak: 4, sound: true,
        ratings: { "3x3": 1200 } })"""
    page.evaluate(change)
    for kind, left in (
        ("rating", [{}, 4, True, 3]),
        ("streak", [{}, 0, True, 3]),
        ("games", [{}, 0, True, 0]),
    ):
        forget(page, kind)
        expect(page.get_by_test_id("forget-dialog")).to_be_hidden()
        assert [*stored(page, "ratings", "streak", "sound"), len(archive(page))] == left
    to_play(page)
    draw(page, 0)
    with page.expect_navigation():
        forget(page, "all")
    wait_for_info(page)
    expect(moves(page)).to_have_count(0)
    assert stored(page, "sound") == [False]


def forget(page, kind):
    page.get_by_test_id("settings").click()
    page.get_by_test_id(f"forget-{kind}").click()
    page.get_by_test_id("forget-agree").click()


def stored(page, *names):
    found = page.evaluate("JSON.parse(localStorage.jaxzero)")
    return [found[name] for name in names]


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
    toast = page.get_by_test_id("toast")
    expect(toast).to_contain_text("stores nothing")
    page.evaluate("document.querySelector('#toast').textContent = ''")
    start_game(page, size="2x2")
    finish(page, range(12))
    expect(toast).not_to_contain_text("stores nothing")
    open_games(page)
    expect(page.get_by_test_id("archived")).to_have_count(2)
    page.get_by_test_id("archived").last.click()
    expect(moves(page)).to_have_count(1)


def test_a_link_and_a_file_keep_the_game_its_position_who_played_and_how_it_ended(open_page):
    page = open_page()
    expect(page.get_by_test_id("resign")).to_be_hidden()
    play_a_turn(page)
    for answer in ("cancel", "agree"):
        expect(page.get_by_test_id("ended")).to_be_hidden()
        page.get_by_test_id("resign").click()
        page.get_by_test_id(f"resign-{answer}").click()
    expect(page.get_by_test_id("status")).to_have_text("You resigned")
    reload(page)
    expect(page.get_by_test_id("status")).to_have_text("You resigned")
    expect(page.get_by_test_id("resign")).to_be_hidden()
    page.get_by_test_id("nav-review").click()
    expect(page.get_by_test_id("name-0")).to_have_value("")  # nobody is called "You"
    page.get_by_test_id("name-0").fill("Ann & Co")
    written = copied(page)
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
    expect(page.get_by_test_id("status")).to_contain_text(re.compile("Ann & Co.? resigned"))
    load(page, GAME | {"names": ["Ann", "Ben"], "result": "second timed out"})
    expect(page.get_by_test_id("status")).to_contain_text("lost on time")
    assert archive(page) == [], "games were only looked at"
    draw(page, 9)  # the game has ended: this is a variation
    expect(page.locator("#variation-tools")).to_be_visible()
    assert copied(page)["result"] == "second timed out"


def copied(page):
    with page.expect_request("**/api/write") as request:
        page.get_by_test_id("copy").click()
    return request.value.post_data_json


BROKEN = ("g=9x9.AA.AA", "g=0x2..", "g=2x2.%", "g=", "g=&name=x", "g=2x2..AAE.AAE.AAE&result=x&g=")


def test_an_address_opens_what_it_names(open_page):
    page, side = open_page("lesson-11"), LARGEST_SIDE  # there are nine lessons
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
    load(page, {"rows": side, "cols": side, "start": [], "moves": [0, 100, 101]})
    reload(page)
    page.get_by_test_id("share").click()
    page.wait_for_url("**/#g=*")
    link = page.url.partition("#")[2]
    draw(page, 9)
    go(link)
    expect(moves(page)).to_have_count(4)  # the own game is still there
    assert drawn_edges(page) == 3
    expect(page.locator("#board-host .edge")).to_have_count(2 * side * (side + 1))
    page.evaluate(f"location.hash = '#g={side}x{side}..'")
    expect(moves(page)).to_have_count(0)
    page.get_by_test_id("retry").click()  # the own game was set aside
    expect(moves(page)).to_have_count(4)
