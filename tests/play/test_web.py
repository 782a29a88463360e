"""The page in a real browser, against a stand-in for its server.

JAXZERO_PAGE_URL=http://127.0.0.1:8000/ runs the same tests against a server that is already there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from fake_api import PAGE, serve

playwright = pytest.importorskip(
    "playwright.sync_api",
    reason="THE PAGE IS NOT TESTED: no playwright, `pip install playwright`",
)
expect = playwright.expect
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="THE PAGE IS NOT TESTED: no Chromium on the PATH"
)

OPTIONS = """--no-sandbox --disable-gpu --disable-background-networking --disable-component-update
    --disable-sync --no-first-run""".split()
PATIENCE = 120_000 if "JAXZERO_PAGE_URL" in os.environ else 8_000  # ms; engines compile
expect.set_options(timeout=PATIENCE)
WIDTHS = {"phone": (375, 667), "desk": (1600, 1000)}
GAME = {"rows": 2, "cols": 2, "start": [], "moves": [0, 11, 6, 2, 7]}  # move 5 gives a box away


@pytest.fixture(scope="module")
def page_url():
    """The address of the page: of a stand-in, or of the server that the environment names."""
    if "JAXZERO_PAGE_URL" in os.environ:
        yield os.environ["JAXZERO_PAGE_URL"]
        return
    server = serve()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, page_url):
    """Return a function that opens the page at a fragment; errors in its console fail the test."""
    contexts, complaints = [], []

    def open_(fragment="play", size="desk", scheme="light", motion="reduce", **options):
        width, height = WIDTHS[size]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion=motion,
            **{"locale": "en-US"} | options,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: note(message, complaints))
        page.goto(f"{page_url}#{fragment}")
        page.get_by_test_id("format").locator("option").nth(1).wait_for(state="attached")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def note(message, complaints):
    planned = "503" in message.text  # the browser itself complains about answers made to fail
    if message.type in ("error", "warning") and not planned:
        complaints.append(f"{message.type}: {message.text}")


def start_game(page, mode="people", size="3x3"):
    page.get_by_test_id("new-game").click()
    page.locator("label", has=page.get_by_test_id(f"mode-{mode}")).click()
    page.get_by_test_id("size").select_option(size)
    page.get_by_test_id("start-game").click()
    page.locator(".board:not(.waits)").wait_for()


def is_drawn(page, edge):
    return "drawn" in page.get_by_test_id(f"edge-{edge}").get_attribute("class").split()


def draw(page, edge):
    """Click an edge once the board takes clicks, unless a chain has taken it along."""
    drawn = f'#board-host .drawn[data-edge="{edge}"]'
    page.locator(f"#board-host .board:not(.waits), {drawn}").first.wait_for()
    if not is_drawn(page, edge):
        page.get_by_test_id(f"edge-{edge}").click()
        page.locator(drawn).wait_for()


def wait_for_end(page):
    expect(page.locator("#board-host .edge:not(.drawn)")).to_have_count(0)
    expect(page.locator("#moves li")).to_have_count(24)


def scores(page):
    return [int(page.get_by_test_id(f"score-{player}").inner_text()) for player in (0, 1)]


def drawn_edges(page):
    return page.locator("#board-host .edge.drawn").count()


def test_a_game_by_clicks(open_page):
    page = open_page()
    start_game(page)
    for edge in range(24):
        draw(page, edge)
    wait_for_end(page)
    assert sum(scores(page)) == 9
    assert "wins" in page.get_by_test_id("status").inner_text()


def test_a_game_by_keyboard(open_page):
    page = open_page()
    start_game(page)
    page.locator("#board-host .edge:focus").wait_for()  # a new game hands the focus to the board
    for line in range(7):
        across = line % 2 == 1
        if across:
            page.keyboard.press("ArrowRight")
        for column in range(4 if across else 3):
            if column:
                page.keyboard.press("ArrowLeft" if across else "ArrowRight")
            drawn = "#board-host .edge.drawn:focus"
            page.locator(f"#board-host .board:not(.waits), {drawn}").first.wait_for()
            page.keyboard.press("Enter")
            page.locator(drawn).wait_for()
        page.keyboard.press("ArrowDown")
    wait_for_end(page)
    assert sum(scores(page)) == 9
    assert page.get_by_test_id("live").inner_text() != ""


def test_edges_have_labels(open_page):
    page = open_page()
    start_game(page)
    edge = page.get_by_test_id("edge-7")
    assert edge.get_attribute("aria-label") == "horizontal edge row 2, column 1, not drawn"
    draw(page, 7)
    assert edge.get_attribute("aria-label") == "horizontal edge row 2, column 1, drawn"


def test_the_engine_answers_and_undo_takes_both_moves_back(open_page):
    page = open_page()
    start_game(page, mode="engine")
    draw(page, 0)
    page.get_by_test_id("move-2").wait_for()
    page.locator("#board-host .board:not(.waits)").wait_for()
    count = drawn_edges(page)
    page.get_by_test_id("undo").click()
    assert drawn_edges(page) == 0
    page.keyboard.press("r")
    assert drawn_edges(page) == count


def test_a_late_answer_is_dropped(open_page):
    page = open_page()
    start_game(page, mode="engine")
    held = []
    page.route("**/api/move", lambda route: held.append(route))
    draw(page, 0)
    expect(page.get_by_test_id("status")).to_contain_text("thinks")
    page.wait_for_timeout(100)
    page.get_by_test_id("undo").click()
    for route in held:
        route.fulfill(json={"edges": [5]})
    page.wait_for_timeout(200)
    assert held
    assert drawn_edges(page) == 0


def test_analysis_on_and_off(open_page):
    page = open_page()
    start_game(page, size="2x2")
    page.get_by_test_id("analysis").click()
    panel = page.get_by_test_id("analysis-panel")
    page.locator(".badge.exact").wait_for()
    assert "Proven" in panel.inner_text()
    assert page.locator("#board-host .cost").count() == 12
    page.get_by_test_id("line").locator("button").first.hover()
    page.locator("#board-host .ghost").first.wait_for(state="attached")
    page.keyboard.press("a")
    assert not panel.is_visible()
    assert page.locator("#board-host .cost").count() == 0


def test_a_hint_points_at_an_edge(open_page):
    page = open_page()
    start_game(page, size="2x2")
    page.keyboard.press("h")
    page.locator("#board-host .hint-spot").wait_for()
    assert "edge row" in page.get_by_test_id("status").inner_text()


def load(page, game):
    file = {"name": "game.json", "mimeType": "text/plain", "buffer": json.dumps(game).encode()}
    page.get_by_test_id("file-input").set_input_files(file)
    expect(page.locator("#moves li")).to_have_count(len(game["moves"]))


def test_load_a_game_and_jump_to_a_mistake(open_page):
    page = open_page("review")
    load(page, GAME)
    page.locator(".graph .slip").first.wait_for()
    page.locator('[data-testid="next-mistake"]:enabled').click()
    assert "lost" in page.get_by_test_id("status").inner_text()
    current = page.locator('#moves [aria-current="true"]')
    assert current.locator(".slip").count() == 1
    page.get_by_test_id("first").click()
    assert drawn_edges(page) == 0
    page.get_by_test_id("move-3").click()
    assert drawn_edges(page) == 3


def test_a_variation_keeps_the_game(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("move-2").click()
    draw(page, 9)
    assert page.locator("#moves li").count() == 3
    page.get_by_test_id("leave-variation").click()
    assert page.locator("#moves li").count() == 5


def test_share_and_open_again(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("share").click()
    page.wait_for_function("location.hash.startsWith('#g=')")
    other = open_page(page.url.partition("#")[2])
    assert other.locator("#moves li").count() == 5
    broken = open_page("g=9x9.AA.AA")
    assert "9" in broken.get_by_test_id("notice").inner_text()


def test_set_up_a_position(open_page):
    page = open_page("review")
    load(page, GAME)
    page.get_by_test_id("edit").click()
    page.get_by_test_id("edge-0").click()
    page.get_by_test_id("edge-1").click()
    assert drawn_edges(page) == 5
    assert not is_drawn(page, 0)
    page.get_by_test_id("edit").click()
    assert "set up" not in page.get_by_test_id("status").inner_text().lower()


def test_teaching_warns_before_a_costly_move(open_page):
    page = open_page("review")
    load(page, GAME | {"moves": [0, 11, 6]})
    page.get_by_test_id("settings").click()
    page.get_by_test_id("teaching").check()
    page.keyboard.press("Escape")
    page.get_by_test_id("nav-play").click()
    page.get_by_test_id("edge-2").click()  # the third side of a box
    page.get_by_test_id("teach-back").click()
    assert not is_drawn(page, 2)
    page.get_by_test_id("edge-2").click()
    page.get_by_test_id("teach-anyway").click()
    page.locator('#board-host .drawn[data-edge="2"]').wait_for()


def test_errors_are_told_and_can_be_repeated(open_page):
    page = open_page()
    start_game(page, mode="engine")
    error = {"error": "engine: not available"}
    page.route("**/api/move", lambda route: route.fulfill(status=503, json=error))
    draw(page, 0)
    page.get_by_text("engine: not available").wait_for()
    page.unroute("**/api/move")
    page.get_by_test_id("retry").click()
    page.get_by_test_id("move-2").wait_for()


def test_watch_two_engines_step_by_step(open_page):
    page = open_page()
    page.get_by_test_id("new-game").click()
    page.locator("label", has=page.get_by_test_id("mode-watch")).click()
    page.get_by_test_id("size").select_option("2x2")
    page.get_by_test_id("start-game").click()
    page.locator("#board-host .edge.drawn").first.wait_for()
    page.get_by_test_id("watch-run").click()
    count = drawn_edges(page)
    page.get_by_test_id("watch-step").click()
    expect(page.locator("#board-host .edge.drawn")).to_have_count(count + 1)


def test_lessons_can_be_solved(open_page):
    page = open_page("lesson-1")
    for lesson, edges in enumerate(([10, 11], [6], [20], [13, 14, 16]), 1):
        page.goto(f"{page.url.partition('#')[0]}#lesson-{lesson}")
        for edge in edges:
            page.get_by_test_id(f"lesson-edge-{edge}").click()
        page.locator(".answer.good, .answer.part").wait_for()
    page.get_by_test_id("nav-learn").click()
    assert page.locator(".lesson-list .done").count() == 3  # the fourth is not played to its end


def test_the_language_is_switched_and_remembered(open_page):
    page = open_page()
    page.get_by_test_id("language").click()
    assert page.get_by_test_id("nav-play").inner_text() == "对弈"
    page.reload()
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    assert page.get_by_test_id("new-game").inner_text() == "新对局"


def test_both_languages_have_all_texts():
    text = (PAGE / "i18n.js").read_text()
    parts = text.split("const CHINESE")
    english, chinese = (re.findall(r'^  "?([\w.-]+)"?:', part, re.MULTILINE) for part in parts)
    assert english == chinese


def axe_script():
    folder = pytest.importorskip("axe_playwright_python", reason="no axe: accessibility unchecked")
    return next(Path(folder.__file__).parent.rglob("axe*.js")).read_text()


@pytest.mark.parametrize(
    ("size", "scheme", "locale"),
    [
        ("phone", "light", "en-US"),
        ("phone", "dark", "zh-CN"),
        ("desk", "light", "zh-CN"),
        ("desk", "dark", "en-US"),
    ],
)
def test_every_view_fits_and_is_accessible(open_page, size, scheme, locale):
    page = open_page("learn", size, scheme, locale=locale, bypass_csp=True)
    axe = axe_script()
    for view in ("learn", "lesson-4", "play", "review"):
        page.goto(f"{page.url.partition('#')[0]}#{view}")
        if view == "play":
            page.get_by_test_id("analysis").click()
            page.locator("#board-host .cost").first.wait_for(state="attached")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        page.evaluate(axe)
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        grave = [
            (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert grave == [], view
