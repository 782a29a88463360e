"""Actions on the board of the page, for its tests."""

from __future__ import annotations

import json
import re

import pytest

expect = pytest.importorskip(
    "playwright.sync_api",
    reason="THE PAGE IS NOT TESTED: no playwright, `pip install playwright`",
).expect
GAME = {"rows": 2, "cols": 2, "start": [], "moves": [0, 11, 6, 2, 7]}  # move 4 gives a box away


def wait_for_info(page):
    """Wait until the page knows what the server offers."""
    page.wait_for_function("import('./rating.js').then(({ ratingOf }) => ratingOf('5'))")


def reload(page):
    page.reload()
    wait_for_info(page)


def ready(page):
    """Wait until the board accepts clicks."""
    page.locator("#board-host .board:not(.waits)").wait_for()


def choose_size(page, size):
    for side, count in zip(("rows", "cols"), size.split("x"), strict=True):
        page.get_by_test_id(side).select_option(count)


def begin(page, *options, size=None, by="new-game"):
    """Open a dialog for a game by a button, choose options by their test ids, and start."""
    page.get_by_test_id(by).click()
    for option in options:
        page.locator("label", has=page.get_by_test_id(option)).click()
    if size:
        choose_size(page, size)
    page.get_by_test_id("start-game").click()


def start_game(page, *options, mode="people", size="3x3"):
    """Begin a game that is not watched and wait for its board."""
    begin(page, f"mode-{mode}", *options, size=size)
    # The old board stays until the browser has reported that the dialog is closed.
    rows, cols = map(int, size.split("x"))
    edges = rows * (cols + 1) + cols * (rows + 1)
    expect(page.get_by_test_id(re.compile(r"^edge-\d+$"))).to_have_count(edges)
    ready(page)


def set_switch(page, name):
    """Click a switch or a choice of the settings."""
    page.get_by_test_id("settings").click()
    page.locator("label", has=page.get_by_test_id(name)).click()
    page.keyboard.press("Escape")


def stop_time(page):
    """Stop the clock and the timers of the page; `page.clock.run_for` lets them go on."""
    page.clock.install(time=0)
    page.clock.pause_at(10)


def hold(page, name):
    """Hold the requests of one name until a test answers them; return their list."""
    held = []
    page.route(f"**/api/{name}", lambda route: held.append(route))  # playwright sets attributes
    return held


def wait_for(page, held, count):
    """Wait until `held` contains `count` requests."""
    for _ in range(200):
        if len(held) == count:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{len(held)} requests, not {count}")


def answer(page, name, *lines):
    """Answer all requests of one name with lines."""
    body = "".join(json.dumps(line) + "\n" for line in lines)
    page.unroute(f"**/api/{name}")
    page.route(f"**/api/{name}", lambda route: route.fulfill(body=body))


def stream(page, name):
    """Answer a request of one name with lines that a test sends by `send(line)` until `done()`."""
    page.evaluate(
        """(path) => {
            const { fetch } = window;
            let start;
            const begun = new Promise((done) => (start = done));
            const write = (text) => (stream) => stream.enqueue(new TextEncoder().encode(text));
            window.send = (line) => begun.then(write(JSON.stringify(line) + "\\n"));
            window.done = () => begun.then((stream) => stream.close());
            window.fetch = (url, options) => {
                if (url !== path) return fetch(url, options);
                window.aborted = new Promise((done) => (options.signal.onabort = done));
                return Promise.resolve(new Response(new ReadableStream({ start })));
            };
        }""",
        f"api/{name}",
    )


def open_games(page):
    page.get_by_test_id("nav-review").click()
    page.get_by_test_id("open-games").click()


def to_play(page):
    """Follow the link to the game; the page shows it a moment later."""
    page.get_by_test_id("nav-play").click()
    page.locator('[data-testid="nav-play"][aria-current="page"]').wait_for()


def moves(page):
    """Return the moves of the line shown."""
    return page.locator('#moves [data-testid^="move-"]')


def draw(page, edge):
    """Click an edge when the board accepts clicks, unless it was drawn with its chain."""
    drawn = page.locator(f'#board-host .drawn[data-edge="{edge}"]')
    page.locator("#board-host .board:not(.waits)").or_(drawn).first.wait_for()
    if not drawn.count():
        page.get_by_test_id(f"edge-{edge}").click()
        drawn.wait_for()


def wait_for_review(page):
    """Wait until the whole game shown in the review is reviewed."""
    page.locator("#review-summary:not(:empty)").wait_for(state="attached")  # the review has begun
    page.locator("#review-state:empty").wait_for(state="attached")


def finish(page, edges):
    """Draw edges until the game has ended."""
    for edge in edges:
        if page.locator("#board-host .edge:not(.drawn)").count():
            draw(page, edge)
    expect(page.get_by_test_id("ended")).to_be_visible()


def scores(page):
    return [int(page.get_by_test_id(f"score-{player}").inner_text()) for player in (0, 1)]


def drawn_edges(page):
    return page.locator("#board-host .edge.drawn").count()


def load(page, game):
    file = {"name": "game.json", "mimeType": "text/plain", "buffer": json.dumps(game).encode()}
    page.get_by_test_id("file-input").set_input_files(file)
    expect(moves(page)).to_have_count(len(game["moves"]))
