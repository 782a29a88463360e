"""Test that clocks, exercises, offers and addresses end with their game or position."""

from __future__ import annotations

import json

import pytest
from browsing import (
    GAME,
    begin,
    draw,
    drawn_edges,
    expect,
    load,
    look_back,
    moves,
    open_games,
    start_game,
    stop_time,
    to_play,
    wait_for_review,
)


def test_the_clock_stands_after_the_end_and_in_a_pause(open_page):
    page = open_page(alone=True)
    stop_time(page)
    start_game(page, "clock-3+2", size="2x2")
    for edge in [*GAME["moves"], *range(12)]:
        draw(page, edge)
    expect(page.get_by_test_id("ended")).to_be_visible()
    # Two seconds for each turn but the last, which ends the game.
    expect(page.get_by_test_id("clock-1")).to_have_text("3:08")
    page.get_by_test_id("undo").click()
    expect(page.get_by_test_id("ended")).to_be_hidden()
    page.clock.run_for(200_000)
    assert "lost on time" not in page.get_by_test_id("status").inner_text()
    begin(page, "mode-watch", "clock-1+0")
    page.get_by_test_id("watch").wait_for()
    page.clock.run_for(5000)
    page.get_by_test_id("watch-run").click()
    expect(page.get_by_test_id("watch-run")).to_contain_text("Go on")
    page.clock.run_for(70_000)
    assert "lost on time" not in page.get_by_test_id("status").inner_text()


def test_a_game_with_clocks_does_not_go_on_in_the_review(open_page):
    page = open_page()
    start_game(page, "clock-3+2", size="2x2")
    draw(page, 0)
    page.get_by_test_id("nav-review").click()
    draw(page, 5)
    expect(page.locator("#variation-tools")).to_be_visible()
    to_play(page)
    expect(moves(page)).to_have_count(1)


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
      practice.start(() => [{ ply: 0, edge: 1, lost: 2 }]);
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
    open_games(page)
    expect(page.get_by_test_id("archived")).to_have_count(1)
    expect(page.get_by_test_id("practise-games")).to_be_disabled()


def test_new_players_at_an_earlier_move_offer_the_rest_back(open_page):
    page = open_page()
    look_back(page)
    begin(page, "mode-people", by="play-here")
    expect(moves(page)).to_have_count(1)
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


def test_a_game_that_is_watched_waits_where_somebody_looked_back(open_page):
    page = open_page()
    begin(page, "mode-watch", size="3x3")
    page.get_by_test_id("watch-speed").press("End")
    page.get_by_test_id("move-2").wait_for()
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("first").click()
    to_play(page)
    expect(page.get_by_test_id("watch-run")).to_contain_text("Go on")
    page.get_by_test_id("watch-run").click()
    page.get_by_test_id("move-4").wait_for()
    assert drawn_edges(page) > 2


def end_a_game(page, winner):
    """Show the end of a game of a person against Novice that one player has won 4 : 0."""
    chain = {"rows": 1, "cols": 4, "start": [*range(9), *range(9 + winner, 9)], "moves": []}
    last = [9, 10, 11, 12] if winner == 0 else []
    seats = [{"kind": "person"}, {"kind": "engine", "level": "1"}]
    table = {"id": winner, "date": 1, "game": chain | {"moves": last}, "seats": seats}
    page.evaluate("(table) => (sessionStorage.jaxzero = JSON.stringify(table))", table)
    page.reload()


def test_the_first_game_can_be_won_and_another_level_is_offered_after_it(open_page):
    page = open_page()
    expect(page.get_by_test_id("player-1")).to_contain_text("Beginner")
    expect(page.locator("#board-host .edge")).to_have_count(24)
    row = {"rows": 1, "cols": 3, "title": ""}
    for start, edges, level, words, lesson, other in (
        ([*range(7)], [7, 8, 9], "1", "A harder one?", False, "Casual"),
        ([*range(6)], [6, 7, 8, 9], "1", "An easier one?", False, "Beginner"),
        ([*range(6)], [6, 7, 8, 9], "0", "A smaller board?", True, "Beginner"),
    ):
        game = row | {"start": start, "moves": edges}
        seats = [{"kind": "person"}, {"kind": "engine", "level": level}]
        table = {"id": "one", "date": 1, "game": game, "seats": seats}
        page.evaluate("(table) => (sessionStorage.jaxzero = JSON.stringify(table))", table)
        page.reload()
        expect(page.get_by_test_id("other-level")).to_have_text(words)
        assert page.get_by_test_id("end-lesson").is_visible() == lesson
        page.get_by_test_id("other-level").click()
        expect(page.get_by_test_id("player-1")).to_contain_text(other)
        expect(page.locator("#board-host .edge.drawn")).to_have_count(0)
    expect(page.locator("#board-host .edge")).to_have_count(12)  # 2x2


def test_an_address_opens_what_it_names(open_page):
    page = open_page("lesson-11")  # there are nine
    page.get_by_test_id("lesson-9").wait_for()
    page.goto(f"{page.url.partition('#')[0]}#review")
    load(page, GAME | {"moves": GAME["moves"][:3]})
    page.get_by_test_id("share").click()
    page.wait_for_url("**/#g=*")
    link = page.url
    draw(page, 9)
    draw(page, 1)
    page.goto("about:blank")
    page.goto(link)
    expect(moves(page)).to_have_count(5)  # the own game is still there
    expect(page.locator("#board-host .edge.drawn")).to_have_count(3)


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
        (".toolbar.play-only button:visible", -1),
        (".segments:has([name=clock]) label", 0),
    ):
        looks = page.locator(group).evaluate_all(LOOKS)
        assert looks.count(looks[chosen]) == 1, (group, looks)


def test_a_player_resigns_after_a_question(open_page):
    page = open_page()
    expect(page.get_by_test_id("resign")).to_be_hidden()
    draw(page, 0)
    page.get_by_test_id("move-2").wait_for()
    page.get_by_test_id("resign").click()
    page.get_by_test_id("resign-dialog").get_by_text("Cancel").click()
    expect(page.get_by_test_id("ended")).to_be_hidden()
    page.get_by_test_id("resign").click()
    page.get_by_test_id("resign-agree").click()
    expect(page.get_by_test_id("status")).to_have_text("You resigned")
    expect(page.get_by_test_id("resign")).to_be_hidden()
    page.reload()
    expect(page.get_by_test_id("status")).to_have_text("You resigned")
    open_games(page)
    expect(page.get_by_test_id("archived")).to_contain_text("(resigned)")
    page.get_by_test_id("archived").click()
    load(page, GAME)
    page.locator("#moves .slip").first.wait_for()
    assert page.get_by_test_id("move-4").inner_text().split() == ["4", "h1,0", "\N{MINUS SIGN}1"]


def test_boxes_to_take_now_chains_and_loops_have_three_names(open_page):
    page = open_page()
    sizes = {"free": 2, "chain": 5, "loop": 4}
    chains = [
        {"boxes": [*range(n)], "kind": kind if kind == "loop" else "chain", "length": n}
        | {"free": kind == "free", "edges": []}
        for kind, n in sizes.items()
    ]
    structure = {"chains": chains, "safe": 0, "long": 1, "control": None}
    line = {"edges": [], "structure": structure, "stage": "structure", "value": None}
    page.route("**/api/analyse", lambda route: route.fulfill(body=json.dumps(line) + "\n"))
    page.get_by_test_id("analysis").click()
    facts = page.locator(".facts")
    expect(facts).to_contain_text("Boxes to take now: 2")
    expect(facts).to_contain_text("Chains: 5")
    expect(facts).to_contain_text("Loops: 4")
    expect(facts).to_contain_text("1 long chain")
    expect(page.locator("#board-host .chain text")).to_have_text(["5", "○4"])
    page.locator("#legend").click()
    expect(page.locator(".legend").last).to_contain_text("hard-hearted: gives one or two boxes")


def test_a_clock_runs_in_every_view(open_page):
    page = open_page(alone=True)
    stop_time(page)
    start_game(page, "clock-1+0", size="2x2")
    draw(page, 0)
    for view in ("review", "learn"):
        page.get_by_test_id(f"nav-{view}").click()
        page.locator(f'[data-testid="nav-{view}"][aria-current="page"]').wait_for()
        page.clock.run_for(20_000)
    to_play(page)
    expect(page.get_by_test_id("clock-1")).to_have_text("0:20")
    page.get_by_test_id("nav-learn").click()
    page.clock.run_for(21_000)
    to_play(page)
    expect(page.get_by_test_id("status")).to_contain_text("lost on time")


def test_names_from_a_file_have_limits_and_a_comment_is_no_name_of_a_button(
    open_page,
):
    page = open_page("review")
    name = "\N{HEBREW LETTER ALEF}" * 300
    load(page, GAME | {"names": [name, ""], "title": name, "comments": {"1": "first move"}})
    shown = page.get_by_test_id("player-0").locator(".name")
    expect(shown).to_have_text(name[:100])
    expect(shown).to_have_attribute("dir", "auto")
    expect(page.get_by_test_id("game-title")).to_have_value(name[:100])
    button = page.get_by_test_id("move-1")
    assert "first move" not in button.get_attribute("aria-label")
    assert button.get_attribute("title") == "first move"


def test_a_file_without_a_game_is_answered_with_what_can_be_done(open_page):
    page = open_page("review")
    file = {"name": "cat.txt", "mimeType": "text/plain", "buffer": b"miaow"}
    page.get_by_test_id("file-input").set_input_files(file)
    expect(page.get_by_test_id("notice")).to_contain_text("Please load a file that was saved here")


def test_printing_shows_the_board_the_score_the_moves_and_the_comments(open_page):
    page = open_page("review")
    load(page, GAME | {"comments": {"2": "a safe edge"}})
    page.emulate_media(media="print")
    for part in ("#board-host .board", "#players", "#moves"):
        expect(page.locator(part)).to_be_visible()
    note = page.locator("#moves .note")
    assert note.evaluate("(note) => note.getBoundingClientRect().width") > 50
    for part in (".bar", ".toolbar.review-only", ".side", "#comment"):
        expect(page.locator(part)).to_be_hidden()


def test_storage_that_is_refused_is_reported_once(open_page):
    page = open_page()
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error(); }; }")
    draw(page, 0)
    expect(page.get_by_test_id("toast")).to_contain_text("stores nothing")
    page.evaluate("document.querySelector('#toast').textContent = ''")
    page.get_by_test_id("move-2").wait_for()
    draw(page, 20)
    expect(page.get_by_test_id("toast")).to_be_empty()


def test_a_reason_is_proven_or_called_an_estimate(open_page):
    page = open_page()
    reasons = """async ([game, edge, exact, best]) => {
        const [{ reasonsOf }, { createRecord }] =
            await Promise.all([import("./teach.js"), import("./record.js")]);
        const rated = { edge, lost: 2, class: "safe", exact };
        const edges = best.map(([edge, name]) => ({ edge, lost: 0, class: name, exact }));
        const found = { edges, structure: { chains: [] } };
        return reasonsOf(createRecord(game), rated, found);
    }"""
    empty = {"rows": 5, "cols": 5, "start": [], "moves": []}
    (estimate,) = page.evaluate(reasons, [empty, 0, False, [[1, "safe"]]])
    assert estimate == "The search estimates that another edge is better."
    assert page.evaluate(reasons, [empty, 0, True, [[1, "safe"]]]) == []  # too early for parity
    late = {"rows": 2, "cols": 2, "start": [0, 1, 2], "moves": []}
    # h1,1 leaves five safe edges, h2,0 leaves four and v0,2 five.
    (parity,) = page.evaluate(reasons, [late, 3, True, [[4, "safe"]]])
    assert "5 safe edges" in parity and "leaves 4" in parity
    assert page.evaluate(reasons, [late, 3, True, [[4, "loony"]]]) == []
    assert page.evaluate(reasons, [late, 3, True, [[8, "safe"]]]) == []
    assert page.evaluate(reasons, [late, 3, True, []]) == []


def test_a_review_begins_at_the_end_and_is_kept_over_a_reload(open_page):
    page = open_page("review")
    with page.expect_response("**/api/review") as response:
        load(page, GAME)
    plies = [json.loads(line).get("ply") for line in response.value.text().splitlines()]
    assert plies == [5, 4, 3, 2, 1, 0, None]
    wait_for_review(page)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    wait_for_review(page)
    assert not any(url.endswith("api/review") for url in asked)
    expect(page.locator("#moves .slip")).to_have_count(1)


@pytest.mark.parametrize("address", ["train-parity", "train-chains", "lesson-4", "review"])
def test_an_address_shows_the_top_of_its_page(open_page, solver_is_loaded, address):
    page = open_page(address, size="small")
    page.locator(".board:visible, #train-counts button").last.wait_for()
    page.wait_for_timeout(300)
    assert page.evaluate("scrollY") == 0


def test_exercises_grow_with_the_review(open_page):
    page = open_page("review")
    lines = [
        {"ply": ply, "player": 0, "margin": 0, "best": 9, "lost": 2, "mistake": True}
        | {"exact": True}
        for ply in (4, 2)
    ]
    page.evaluate(
        """(lines) => {
            const ask = window.fetch;
            window.fetch = (path, options) => path !== "api/review" ? ask(path, options) :
                Promise.resolve(new Response(new ReadableStream({ start(stream) {
                    const send = (line) => stream.enqueue(new TextEncoder().encode(line));
                    send(JSON.stringify(lines[0]) + "\\n");
                    window.goOn = () => send(JSON.stringify(lines[1]) + "\\n");
                } })));
        }""",
        lines,
    )
    load(page, GAME)
    page.locator('[data-testid="practise"]:enabled').click()
    expect(page.get_by_test_id("practice-panel")).to_contain_text("Mistake 1 of 1")
    page.evaluate("goOn()")
    expect(page.get_by_test_id("practice-panel")).to_contain_text("Mistake 1 of 2")
    page.get_by_test_id("practice-next").click()
    expect(page.get_by_test_id("practice-panel")).to_contain_text("Move 3 was")


def test_files_and_sharing_are_behind_one_button(open_page):
    page = open_page("review")
    page.locator("#files").evaluate("(files) => files.removeAttribute('open')")
    for name in ("share", "save", "name-0"):
        expect(page.get_by_test_id(name)).to_be_hidden()
    page.get_by_test_id("files").focus()
    page.keyboard.press("Enter")
    for name in ("share", "save", "name-0"):
        expect(page.get_by_test_id(name)).to_be_visible()


def test_names_keep_their_place_in_sentences_that_run_the_other_way(open_page):
    page = open_page("review")
    name = "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}"
    load(page, GAME | {"moves": [*GAME["moves"], 4, 9, 5, 10, 8, 3, 1], "names": [name, "Ben"]})
    isolated = f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}"
    for place in ("#review-summary", "#status"):
        expect(page.locator(place)).to_contain_text(isolated)
    expect(page.get_by_test_id("name-0")).to_have_value(name)
    with page.expect_request("**/api/write") as asked:
        page.get_by_test_id("save").click()
    assert asked.value.post_data_json["names"] == [name, "Ben"]
