"""Test loading and saving games on the page: files, drag and drop, the clipboard."""

from __future__ import annotations

import json
from pathlib import Path

from browsing import GAME, expect, load, moves

from jaxzero.game.records import FORMATS, RecordedGame, format_of_file, write_game


def game_of(moves: int) -> RecordedGame:
    """Return a game of 5x5, which every format can hold."""
    return RecordedGame(5, 5, (), tuple(range(2, 2 + moves)), ("Ann", "Ben"), "final", "2026-01-31")


def test_every_format_is_loaded_by_file(open_page):
    page = open_page("review")
    for count, name in enumerate(FORMATS, 3):  # each game has its own number of moves
        text = write_game(game_of(count), name)
        file = {"name": "game", "mimeType": "text/plain", "buffer": text.encode()}
        page.get_by_test_id("file-input").set_input_files(file)
        expect(page.locator("#board-host .edge.drawn")).to_have_count(count)
        assert moves(page).count() == count, name
        assert not page.get_by_test_id("notice").is_visible(), name


FILE = """text => {
    const data = new DataTransfer();
    data.items.add(new File([text], "game.txt"));
    return data;
}"""
TEXT = """text => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    return data;
}"""


def drop(page, text: str, make: str = FILE) -> None:
    """Drag a file or a text over the page and drop it."""
    dragged = {"dataTransfer": page.evaluate_handle(make, text)}
    page.dispatch_event("body", "dragover", dragged)
    page.dispatch_event("body", "drop", dragged)


def test_files_and_texts_are_dropped_on_any_page(open_page):
    page = open_page("learn")
    for view, make in (("learn", FILE), ("play", FILE), ("review", TEXT)):
        page.get_by_test_id(f"nav-{view}").click()
        drop(page, json.dumps(GAME), make)
        expect(moves(page)).to_have_count(len(GAME["moves"]))
        expect(page.get_by_test_id("review-panel")).to_be_visible()
    page.get_by_test_id("nav-learn").drag_to(page.locator("#board-host"))  # of the page itself
    page.wait_for_timeout(200)
    expect(page.get_by_test_id("notice")).to_be_hidden()


def test_only_formats_that_can_hold_the_game_are_offered(open_page):
    page = open_page("review")
    pictures = {"picture", "png"}
    for change, texts in (
        ({}, {"json", "ccgc", "text"}),
        ({"rows": 4, "moves": [1]}, {"json", "text"}),
        ({"start": [0], "moves": []}, {"json"}),
    ):
        load(page, {"rows": 5, "cols": 5, "start": [], "moves": [1, 2]} | change)
        options = page.get_by_test_id("format").locator("option")
        assert {*options.evaluate_all("all => all.map((one) => one.value)")} == texts | pictures


def test_a_game_is_copied_and_saved_in_the_format_chosen(open_page):
    page = open_page("review", permissions=["clipboard-read", "clipboard-write"])
    drop(page, write_game(game_of(4), "json"))
    expect(moves(page)).to_have_count(4)
    for name in FORMATS:
        page.get_by_test_id("format").select_option(name)
        page.get_by_test_id("copy").click()
        expect(page.get_by_test_id("toast")).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == write_game(game_of(4), name)
        with page.expect_download() as saved:
            page.get_by_test_id("save").click()
        assert saved.value.path().read_text() == copied
        assert format_of_file(Path(saved.value.suggested_filename)) == name
        page.evaluate("document.querySelector('#toast').textContent = ''")
