"""Test what the page shows and says of each state: names, numbers, dates, titles, ends of games."""

from __future__ import annotations

import json
import re

import pytest
from browsing import (
    GAME,
    draw,
    expect,
    load,
    open_games,
    start_game,
    to_play,
    wait_for_info,
    wait_for_review,
)

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


def test_names_are_shown_whole_keep_their_place_and_have_limits(open_page):
    page = open_page("review")
    name, whole = "\N{HEBREW LETTER ALEF}" * 300, [0, 11, 6, 2, 7, 4, 9, 5, 10, 8, 3, 1]
    load(page, GAME | {"names": [name, "Benedictine " * 7], "title": name, "moves": whole})
    expect(page.get_by_test_id("name-0")).to_have_value(name[:100])
    expect(page.get_by_test_id("game-title")).to_have_value(name[:100])
    isolated = f"\N{FIRST STRONG ISOLATE}{name[:100]}\N{POP DIRECTIONAL ISOLATE}"
    expect(page.locator("#review-summary")).to_contain_text(isolated)
    for width, height in ((1280, 720), (640, 360), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        for part in page.locator(".player .name").all():
            assert part.evaluate("(one) => one.scrollWidth <= one.clientWidth"), width
            assert part.evaluate("(one) => one.scrollHeight <= one.clientHeight + 1"), width
        expect(page.locator(".player .name").first).to_have_attribute("dir", "auto")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def test_printing_shows_the_board_the_score_the_moves_the_comments_and_the_title(open_page):
    page = open_page("review")
    load(page, GAME | {"comments": {"0": "before all", "2": "a safe edge"}, "title": "The final"})
    page.emulate_media(media="print")
    for part in ("#board-host .board", "#players", "#moves"):
        expect(page.locator(part)).to_be_visible()
    title = page.locator("#table h1")
    expect(title).to_have_text("The final")
    for wide in (title, *page.locator("#moves .note").all()):
        assert wide.evaluate("(part) => part.getBoundingClientRect().width") > 50
    expect(page.locator("#moves")).to_contain_text("before all")
    for part in (".bar", ".toolbar.review-only", ".side", "#comment"):
        expect(page.locator(part)).to_be_hidden()


VIEWS = ("learn", "train", "lesson-2", "train-parity-0-7", "play", "review")


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844), (2560, 1440)])
def test_every_view_opens_at_its_top_with_a_title_and_text_of_its_size(
    open_page, solver_is_loaded, width, height
):
    page = open_page()
    page.set_viewport_size({"width": width, "height": height})
    titles, address = set(), page.url.partition("#")[0]
    for view in VIEWS:
        page.goto("about:blank")
        page.goto(f"{address}#{view}")
        wait_for_info(page)
        page.locator(".lesson .board, #table .board, #themes").last.wait_for()
        page.wait_for_timeout(200)
        if view != "train":  # leads to the list of problems
            assert page.evaluate("scrollY") == 0, view
        titles.add(page.title())
        assert page.locator("h1:visible").count() <= 1
        if view == "play":
            board = page.locator("#board-host .board").bounding_box()
            assert board["y"] + board["height"] <= height
    assert len(titles) == len(VIEWS) - 1  # of the start page and the list of problems it holds
    size = page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
    assert size >= 20 if height == 1440 else size == 16
    weights = page.locator("button, label, nav a, .name").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one).fontWeight)"
    )
    assert {*weights} == {"400"}, "the score alone is loud"


def test_coordinates_are_faint_until_a_name_is_on_the_screen(open_page):
    page = open_page()
    number = page.locator("#board-host .coordinates text").first
    expect(number).to_have_css("opacity", "0.4")
    for button in ("hint", "analysis", "nav-review"):
        page.get_by_test_id(button).click()
        expect(number).to_have_css("opacity", "1")
        if button == "analysis":
            page.get_by_test_id("analysis").click()


LINE = "(line) => ['x1', 'y1', 'x2', 'y2'].map((name) => line.getAttribute(name)).join()"


def test_areas_meet_the_curve_moves_are_in_columns_and_marks_of_an_edge_are_alike(open_page):
    page = open_page("review")
    lines = [{"ply": ply, "margin": margin} for ply, margin in enumerate((2, -2, 2))]
    body = "".join(json.dumps(line | {"player": 0, "lost": 0}) + "\n" for line in lines)
    page.route("**/api/review", lambda route: route.fulfill(body=body))
    load(page, GAME)
    page.locator(".graph .curve").wait_for()
    wait_for_review(page)
    curve, *areas = (
        [tuple(map(float, point.split(","))) for point in part.get_attribute("points").split()]
        for part in page.locator(".graph .curve, .graph polygon").all()[::-1]
    )
    crossing = (curve[0][0] + curve[1][0]) / 2, (curve[0][1] + curve[1][1]) / 2
    assert [pytest.approx(crossing) in area for area in areas] == [True, True]
    left = "(all) => [...new Set(all.map((one) => one.getBoundingClientRect().left))]"
    columns = [page.locator(f"#moves .by-{side}").evaluate_all(left) for side in (0, 1)]
    assert [len(column) for column in columns] == [1, 1] and columns[0] < columns[1]
    to_play(page)
    start_game(page)
    page.get_by_test_id("hint").click()
    hint = page.locator("#board-host .hint").evaluate(LINE)
    page.get_by_test_id("analysis").click()
    page.locator("#board-host .cost").first.wait_for(state="attached")
    assert hint in [line.evaluate(LINE) for line in page.locator("#board-host line.cost-0").all()]


def test_numbers_and_dates_are_written_as_in_the_language_of_the_page(open_page):
    page = open_page("review", locale="en-GB", timezone_id="Europe/Paris", alone=True)
    load(page, GAME | {"moves": [*GAME["moves"], 9]})
    page.get_by_test_id("language").click()
    wait_for_review(page)
    page.locator('[data-testid="next-mistake"]:enabled').click()
    texts = page.locator("body").inner_text()
    assert not re.search(r"[\u4e00-\u9fff][0-9]|[0-9%][\u4e00-\u9fff]", texts)
    assert "%" not in re.sub(r"[0-9]%", "", texts)
    seats = [{"kind": "person"}, {"kind": "person"}]
    over = {"rows": 1, "cols": 1, "start": [], "moves": [0, 1, 2, 3]}
    table = {"id": "one", "date": 1767222000000, "game": over, "seats": seats}
    page.evaluate("(one) => (localStorage['jaxzero-games'] = JSON.stringify([one]))", table)
    for words in ("2026/1/1 00:00", "01/01/2026, 00:00"):
        page.get_by_test_id("open-games").click()
        expect(page.get_by_test_id("archived")).to_contain_text(words)
        page.keyboard.press("Escape")
        page.get_by_test_id("language").click()


def test_the_end_shows_the_winner_counts_the_mistakes_and_begins_again_by_one_click(open_page):
    page = open_page()
    expect(page.get_by_test_id("player-1")).to_contain_text("Beginner")
    expect(page.locator("#board-host .edge")).to_have_count(24)
    start_game(page, "starts-engine", mode="engine", size="2x2")
    for edge in (*GAME["moves"], *range(12)):
        if page.locator("#board-host .edge:not(.drawn)").count():
            draw(page, edge)
    scores = [int(page.get_by_test_id(f"score-{side}").inner_text()) for side in (0, 1)]
    winner = scores.index(max(scores)) if scores[0] != scores[1] else "null"
    expect(page.get_by_test_id("status")).to_have_class(re.compile(f"result side-{winner}"))
    expect(page.get_by_test_id("ended")).to_have_text(re.compile(r"your \d+ mistake|No mistake"))
    shown = page.get_by_test_id("ended").inner_text()
    page.get_by_test_id("ended").click()
    own = page.locator("#mistakes tbody .sign.side-1").count()
    assert (re.findall(r"\d+", shown) or ["0"]) == [str(own)]
    to_play(page)
    main = page.locator(".toolbar.play-only .primary:visible")
    expect(main).to_have_count(1)
    main.click()
    page.get_by_test_id("move-1").wait_for()  # the computer begins again
    expect(page.locator("#board-host .edge")).to_have_count(12)
    expect(page.get_by_test_id("player-0")).to_contain_text("Beginner")


def test_another_level_is_offered_after_a_win_and_after_a_heavy_loss(open_page):
    page = open_page()
    for start, edges, level, words, lesson, other in (
        ([*range(7)], [7, 8, 9], "1", "A harder one?", False, "Casual"),
        ([*range(6)], [6, 7, 8, 9], "1", "An easier one?", False, "Beginner"),
        ([*range(6)], [6, 7, 8, 9], "0", "A smaller board?", True, "Beginner"),
    ):
        game = {"rows": 1, "cols": 3, "title": "", "start": start, "moves": edges}
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


def test_a_player_resigns_after_a_question(open_page):
    page = open_page()
    expect(page.get_by_test_id("resign")).to_be_hidden()
    draw(page, 0)
    page.get_by_test_id("move-2").wait_for()
    page.get_by_test_id("resign").click()
    page.get_by_test_id("resign-cancel").click()
    expect(page.get_by_test_id("ended")).to_be_hidden()
    page.get_by_test_id("resign").click()
    page.get_by_test_id("resign-agree").click()
    for _ in range(2):
        expect(page.get_by_test_id("status")).to_have_text("You resigned")
        expect(page.get_by_test_id("status")).to_have_class(re.compile("side-1"))
        expect(page.get_by_test_id("resign")).to_be_hidden()
        page.reload()
    open_games(page)
    expect(page.get_by_test_id("status")).to_have_text("You resigned")
    expect(page.get_by_test_id("archived")).to_contain_text("(resigned)")


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
