"""Test clocks: whose runs, what stops them, and how they end a game."""

from __future__ import annotations

from browsing import begin, draw, expect, finish, hold, moves, start_game, stop_time, to_play

TICK = 200  # ms of real time: the page looks at its clocks more often


def expect_clocks(page, *times):
    for player, time in enumerate(times):
        expect(page.get_by_test_id(f"clock-{player}")).to_have_text(time)


def test_the_clock_of_the_side_to_move_runs_in_every_view_until_its_flag_falls(open_page):
    page = open_page(alone=True)
    stop_time(page)
    start_game(page, "clock-3+2", size="2x2")
    page.clock.run_for(1000)
    expect_clocks(page, "3:00", "3:00")  # they start with the first move
    draw(page, 0)
    page.clock.run_for(10_000)
    page.keyboard.press("Home")  # earlier moves are looked at
    page.clock.run_for(10_000)
    for view in ("review", "learn"):
        page.get_by_test_id(f"nav-{view}").click()
        page.locator(f'[data-testid="nav-{view}"][aria-current="page"]').wait_for()
        page.clock.run_for(10_000)
    to_play(page)
    expect_clocks(page, "3:00", "2:20")
    page.keyboard.press("End")
    draw(page, 11)
    expect_clocks(page, "3:00", "2:22")  # two seconds more for the turn
    page.get_by_test_id("undo").click()
    expect(moves(page)).to_have_count(1)  # with clocks, moves taken back are gone
    page.clock.run_for(2000)
    expect_clocks(page, "3:00", "2:20")
    page.get_by_test_id("nav-review").click()
    draw(page, 5)  # the game does not go on there
    expect(page.locator("#variation-tools")).to_be_visible()
    to_play(page)
    page.get_by_test_id("resign").click()
    page.clock.run_for(150_000)
    page.wait_for_timeout(TICK)
    page.get_by_test_id("resign-agree").click()  # too late: the time is up
    expect(page.get_by_test_id("status")).to_have_text("Second player lost on time")
    page.keyboard.press("u")
    expect(moves(page)).to_have_count(1)
    page.reload()
    expect(page.get_by_test_id("status")).to_have_text("Second player lost on time")
    assert page.evaluate("JSON.parse(localStorage['jaxzero-games']).length") == 1


def test_the_clock_stands_after_the_end_and_in_a_pause(open_page):
    page = open_page(alone=True)
    stop_time(page)
    start_game(page, "clock-3+2", size="2x2")
    finish(page, [0, 11, 6, 2, 7, *range(12)])
    page.clock.run_for(200_000)
    page.wait_for_timeout(TICK)
    # Two seconds for each turn but the last, which ends the game.
    expect_clocks(page, "3:08", "3:08")
    expect(page.get_by_test_id("status")).not_to_contain_text("lost on time")
    begin(page, "mode-watch", "clock-1+0")
    page.get_by_test_id("watch").wait_for()
    page.clock.run_for(5000)
    page.get_by_test_id("watch-run").click()
    expect(page.get_by_test_id("watch-run")).to_contain_text("Go on")
    page.wait_for_timeout(TICK)
    page.clock.run_for(70_000)
    expect(page.get_by_test_id("status")).not_to_contain_text("lost on time")


def test_the_computer_loses_no_time_while_its_server_prepares_a_board(open_page):
    page = open_page(alone=True)
    stop_time(page)
    warm, move = hold(page, "warm"), hold(page, "move")
    start_game(page, "clock-3+2", mode="engine", size="2x3")
    draw(page, 0)
    page.clock.run_for(50_000)
    page.wait_for_timeout(TICK)
    expect(page.get_by_test_id("status")).to_contain_text("50 s of about 60")
    expect_clocks(page, "3:00", "3:00")
    move[0].fulfill(json={"edges": [4]})
    page.get_by_test_id("move-2").wait_for()
    page.clock.run_for(10_000)
    page.wait_for_timeout(TICK)
    draw(page, 8)
    page.clock.run_for(5000)  # it thinks now: its clock runs
    page.wait_for_timeout(TICK)
    expect(page.get_by_test_id("status")).to_contain_text("The computer thinks … 5 s")
    expect_clocks(page, "2:52", "2:55")
    move[1].fulfill(json={"edges": [10]})
    expect_clocks(page, "2:52", "2:57")
    assert page.evaluate("JSON.parse(localStorage.jaxzero).usualWait") == 50
    assert len(warm) == 1
