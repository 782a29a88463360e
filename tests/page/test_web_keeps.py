"""Test that the page loses no game: during engine moves, variations, reloads, links and tabs."""

from __future__ import annotations

import json
import re

from browsing import (
    GAME,
    begin,
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
    wait_for_info,
)

from jaxzero.play.game import LARGEST_SIDE


def names(page):
    """Return the edges of the moves, without the marks that a review adds to them."""
    return [text.split()[1] for text in moves(page).all_inner_texts()]


def play_a_turn(page, edge=0):
    """Draw an edge against the engine and wait for its answer."""
    start_game(page, mode="engine")
    draw(page, edge)
    page.get_by_test_id("move-2").wait_for()
    ready(page)


def reload(page):
    page.reload()
    wait_for_info(page)


def test_stepping_back_while_the_engine_thinks_keeps_all_moves(open_page):
    page = open_page()
    play_a_turn(page)
    held = hold(page, "move")
    draw(page, 20)
    wait_for(page, held, 1)
    page.keyboard.press("Home")
    held[0].fulfill(json={"edges": [5]})
    page.wait_for_timeout(200)
    expect(moves(page)).to_have_count(3)
    page.keyboard.press("End")  # the engine moves again
    wait_for(page, held, 2)
    page.get_by_test_id("move-1").click()
    held[1].fulfill(json={"edges": [5]})
    page.wait_for_timeout(200)
    expect(moves(page)).to_have_count(3)
    page.keyboard.press("End")
    wait_for(page, held, 3)
    held[2].fulfill(json={"edges": [22]})
    expect(moves(page)).to_have_count(4)


def test_redo_and_undo_do_not_stop_the_engine_for_good(open_page):
    page = open_page()
    play_a_turn(page)
    held = hold(page, "move")
    draw(page, 20)
    wait_for(page, held, 1)
    page.keyboard.press("r")  # nothing to redo
    expect(page.get_by_test_id("status")).to_contain_text("thinks")
    page.get_by_test_id("undo").click()
    held[0].fulfill(json={"edges": [5]})  # too late
    page.wait_for_timeout(100)
    assert drawn_edges(page) == 2
    page.keyboard.press("r")
    wait_for(page, held, 2)
    held[-1].fulfill(json={"edges": [22]})
    expect(moves(page)).to_have_count(4)


def test_a_game_that_is_watched_goes_on_after_steps(open_page):
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
    expect(page.locator("#board-host .edge:not(.drawn)")).to_have_count(0)
    held = hold(page, "move")
    begin(page, "mode-watch", size="2x2")
    wait_for(page, held, 1)
    page.get_by_test_id("watch-run").click()
    page.get_by_test_id("watch-step").click()
    wait_for(page, held, 2)
    page.get_by_test_id("watch-run").click()  # before the step is done
    wait_for(page, held, 3)
    held[2].fulfill(json={"edges": [0]})
    wait_for(page, held, 4)


def test_a_variation_and_the_edges_of_a_review_are_not_kept_in_the_game(open_page):
    page = open_page("review")
    load(page, GAME)
    game = names(page)
    page.get_by_test_id("move-2").click()
    draw(page, 9)
    expect(moves(page)).to_have_count(3)
    reload(page)
    expect(moves(page)).to_have_count(5)
    assert names(page) == game
    to_play(page)
    play_a_turn(page)  # an unfinished game, then reviewed
    page.get_by_test_id("nav-review").click()
    draw(page, 22)
    expect(moves(page)).to_have_count(3)
    to_play(page)
    expect(moves(page)).to_have_count(2)


def test_a_link_to_the_own_game_leaves_its_players(open_page):
    page = open_page()
    play_a_turn(page)
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("share").click()
    expect(page).to_have_url(re.compile("#g="))
    reload(page)
    to_play(page)
    expect(page.get_by_test_id("player-0")).to_contain_text("You")
    expect(moves(page)).to_have_count(2)
    assert not page.get_by_test_id("notice").is_visible()


def test_an_unfinished_game_is_offered_back_where_another_begins(open_page):
    page = open_page()
    play_a_turn(page)
    page.get_by_test_id("nav-review").click()
    load(page, GAME)
    reload(page)  # the next visit offers it too
    expect(page.get_by_test_id("notice")).to_contain_text("set aside")
    for words in ("已收起", "set aside"):
        page.get_by_test_id("language").click()
        expect(page.get_by_test_id("notice")).to_contain_text(words)
    page.get_by_test_id("retry").click()
    expect(page.get_by_test_id("player-0")).to_contain_text("You")
    expect(moves(page)).to_have_count(2)
    reload(page)
    expect(moves(page)).to_have_count(2)
    assert not page.get_by_test_id("notice").is_visible()
    to_play(page)
    start_game(page, mode="people")
    draw(page, 5)  # the offer stays while the new game is played
    page.get_by_test_id("retry").click()
    expect(moves(page)).to_have_count(2)
    reload(page)  # the new game was set aside too
    page.get_by_test_id("retry").click()
    expect(moves(page)).to_have_count(1)


def test_a_game_that_nobody_has_begun_is_not_set_aside(open_page):
    page = open_page()
    start_game(page, mode="people")
    start_game(page, mode="engine")
    begin(page, "starts-engine")
    page.get_by_test_id("move-1").wait_for()
    start_game(page, mode="people")
    assert not page.get_by_test_id("notice").is_visible()


def test_games_set_aside_change_places(open_page):
    page = open_page()
    for edge in (0, 20):  # two games against the engine, each replaced
        play_a_turn(page, edge)
        page.get_by_test_id("nav-review").click()
        load(page, GAME)
        to_play(page)
    play_a_turn(page, 22)
    seen = []
    for _ in range(3):
        seen.append(moves(page).first.inner_text())
        reload(page)
        page.get_by_test_id("retry").click()
        expect(moves(page)).to_have_count(2)
    assert seen[0] == seen[2] != seen[1]
    assert not page.get_by_test_id("notice").is_visible()
    reload(page)
    expect(page.get_by_test_id("notice")).to_contain_text("set aside")


def test_a_position_that_is_set_up_offers_the_game_back_and_is_offered_back(open_page):
    page = open_page()
    play_a_turn(page)
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("edit").click()
    to_play(page)  # without "Done"
    expect(page.get_by_test_id("notice")).to_contain_text("set aside")
    page.get_by_test_id("retry").click()
    expect(moves(page)).to_have_count(2)
    page = open_page("review")
    page.get_by_test_id("game-title").fill("study")
    for edges in ((0, 5, 1, 7, 1), ()):  # one edge is erased; the second time nothing changes
        page.get_by_test_id("edit").click()
        for edge in edges:
            page.get_by_test_id(f"edge-{edge}").click()
        page.get_by_test_id("edit").click()
        assert not page.get_by_test_id("notice").is_visible(), "it replaced nothing"
        assert drawn_edges(page) == 3
        expect(page.get_by_test_id("game-title")).to_have_value("study")
    load(page, GAME)
    page.get_by_test_id("retry").click()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(3)


def test_what_cannot_be_read_from_storage_does_not_stop_the_page(open_page):
    page = open_page()
    table = {"game": {"rows": 2, "cols": 2}}
    store = "junk => { localStorage.setItem('jaxzero', junk); sessionStorage.jaxzero = junk; }"
    for aside in ([None, table], 5):
        junk = {"table": table, "aside": aside, "visited": True, "language": "xx", "setup": 5}
        page.evaluate(store, json.dumps(junk))
        reload(page)
        draw(page, 0)


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
    found = []
    for _ in range(2):
        reload(page)
        page.get_by_test_id("retry").click()
        expect(moves(page)).to_have_count(2)
        found.append(moves(page).first.inner_text())
    assert found == [second, first]


def test_what_was_played_on_from_a_game_of_people_survives(open_page):
    page = open_page("review")
    load(page, GAME)
    load(page, GAME | {"moves": []})
    assert not page.get_by_test_id("notice").is_visible()  # the first game was only viewed
    for edge in (0, 11, 6):
        draw(page, edge)
    load(page, GAME)
    page.get_by_test_id("retry").click()
    expect(moves(page)).to_have_count(3)
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("share").click()
    expect(page).to_have_url(re.compile("#g="))
    draw(page, 9)
    reload(page)
    expect(moves(page)).to_have_count(4)
    load(page, GAME | {"moves": [1, 2]})  # in place of the shared game
    reload(page)
    expect(moves(page)).to_have_count(2)


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
    line = {"edges": [{"edge": 0, "lost": 0}]}
    checks[0].fulfill(body=json.dumps(line) + "\n")
    page.wait_for_timeout(200)
    assert drawn_edges(page) == 0


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
