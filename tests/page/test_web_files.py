"""Test loading and saving games on the page: files, drag and drop, the clipboard."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

from browsing import GAME, expect, moves

from jaxzero.errors import InputError
from jaxzero.game.notation import FORMATS, format_of_file, write_game
from jaxzero.game.recorded import RecordedGame


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
        listed = 0 if name == "ascii" else count  # a picture has no order of moves
        assert moves(page).count() == listed, name
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
    page.locator("#drop").wait_for()
    page.dispatch_event("#drop", "drop", dragged)


def test_files_and_texts_are_dropped_on_any_page(open_page):
    page = open_page("learn")
    for view, make in (("learn", FILE), ("play", FILE), ("review", TEXT)):
        page.get_by_test_id(f"nav-{view}").click()
        drop(page, json.dumps(GAME), make)
        expect(moves(page)).to_have_count(len(GAME["moves"]))
        expect(page.get_by_test_id("review-panel")).to_be_visible()
        assert not page.locator("#drop").is_visible()


DRAG = """() => {
    const dataTransfer = new DataTransfer();
    const drag = new DragEvent("dragstart", { dataTransfer, bubbles: true, cancelable: true });
    const begun = document.querySelector("#save").dispatchEvent(drag);
    return begun && ["text/plain", "DownloadURL"].map((kind) => dataTransfer.getData(kind));
}"""

# The page may not evaluate strings, so the wait is one function and not a polled expression.
DRAG_ONCE_WRITTEN = f"""async () => {{
    let dragged;
    while (!(dragged = ({DRAG})())) await new Promise(requestAnimationFrame);
    return dragged;
}}"""


def test_a_game_is_dragged_out(open_page):
    page = open_page("review")
    drop(page, write_game(game_of(4), "json"))
    page.get_by_test_id("format").select_option("ascii")
    assert page.evaluate(DRAG) is False, "nothing is written before the pointer comes"
    with page.expect_response("**/api/write"):
        page.get_by_test_id("save").hover()
    text, file = page.evaluate(DRAG_ONCE_WRITTEN)
    assert text == write_game(game_of(4), "ascii")
    kind, name, address = file.split(":", 2)
    assert (kind, name) == ("text/plain", "dots-and-boxes-5x5.ascii.txt")
    assert unquote(address.removeprefix("data:text/plain;charset=utf-8,")) == text


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


def can_hold(name: str, game: RecordedGame) -> bool:
    try:
        return bool(write_game(game, name))
    except InputError:
        return False


def test_only_formats_that_can_hold_the_game_are_offered(open_page):
    page = open_page("review")
    for game in (
        RecordedGame(2, 2, (), (0, 1, 2)),
        RecordedGame(5, 5, (), (3, 4)),
        RecordedGame(5, 5, (0, 1), (5,)),
        RecordedGame(7, 3, (0, 1), ()),
    ):
        drop(page, write_game(game, "json"))
        drawn = len(game.start) + len(game.moves)
        expect(page.locator("#board-host .edge.drawn")).to_have_count(drawn)
        options = page.get_by_test_id("format").locator("option")
        offered = [option.get_attribute("value") for option in options.all()]
        assert offered[:-3] == [name for name in FORMATS if can_hold(name, game)]
        assert offered[-3:] == ["picture", "png", "animation"]
