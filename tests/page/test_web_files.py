"""Test files of games and pictures, drag and drop, the clipboard, and sounds."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from browsing import GAME, draw, expect, finish, load, moves, set_switch, start_game

from jaxzero.game.records import FORMATS, RecordedGame, format_of_file, write_game


def test_every_format_is_loaded_copied_and_saved(open_page):
    page = open_page("review", permissions=["clipboard-read", "clipboard-write"])
    for count, name in enumerate(FORMATS, 3):  # each game has its own number of moves
        played = tuple(range(2, 2 + count))  # on a board that every format can hold
        game = RecordedGame(5, 5, (), played, ("Ann", "Ben"), "final", "2026-01-31")
        text = write_game(game, name)
        file = {"name": "game", "mimeType": "text/plain", "buffer": text.encode()}
        page.get_by_test_id("file-input").set_input_files(file)
        expect(page.locator("#board-host .edge.drawn")).to_have_count(count)
        expect(moves(page)).to_have_count(count)
        page.get_by_test_id("format").select_option(name)
        page.get_by_test_id("copy").click()
        expect(page.get_by_test_id("toast")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == text
        with page.expect_download() as download:
            page.get_by_test_id("save").click()
        assert download.value.path().read_text() == text
        assert format_of_file(Path(download.value.suggested_filename)) == name
        page.evaluate("document.querySelector('#toast').textContent = ''")
        expect(page.get_by_test_id("notice")).to_be_hidden()
    for change, formats in (
        ({}, {"json", "ccgc", "text"}),
        ({"rows": 4, "moves": [1]}, {"json", "text"}),  # the others cannot hold the game
        ({"start": [0], "moves": []}, {"json"}),
    ):
        load(page, {"rows": 5, "cols": 5, "start": [], "moves": [1, 2]} | change)
        options = page.get_by_test_id("format").locator("option")
        offered = options.evaluate_all("all => all.map((one) => one.value)")
        assert {*offered} == {*formats, "picture", "png"}


FILE = "(data, text) => data.items.add(new File([text], 'game.txt'))"
TEXT = "(data, text) => data.setData('text/plain', text)"
PASTE = """([text, selector]) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    document.querySelector(selector).dispatchEvent(
        new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""


def drop(fill, page, text):
    """Drag a file or a text over the page and drop it."""
    make = f"(text) => {{ const data = new DataTransfer(); ({fill})(data, text); return data; }}"
    dragged = {"dataTransfer": page.evaluate_handle(make, text)}
    page.dispatch_event("body", "dragover", dragged)
    page.dispatch_event("body", "drop", dragged)


def paste(page, text, selector="body"):
    page.evaluate(PASTE, [text, selector])


def test_files_texts_and_links_are_dropped_or_pasted_in_any_view(open_page):
    page = open_page("learn")
    to_link = "async (game) => (await import('./record.js')).toFragment(game)"
    link = f"http://other:8000/#{page.evaluate(to_link, GAME)}"
    for count, view, give in (
        (1, "learn", partial(drop, FILE)),
        (2, "play", partial(drop, FILE)),
        (3, "review", partial(drop, TEXT)),
        (4, "learn", paste),
    ):
        page.get_by_test_id(f"nav-{view}").click()
        give(page, json.dumps(GAME | {"moves": GAME["moves"][:count]}))
        expect(moves(page)).to_have_count(count)
        expect(page.get_by_test_id("review-panel")).to_be_visible()
    page.get_by_test_id("nav-play").click()
    page.get_by_test_id("new-game").click()
    paste(page, link, "[data-testid=rows]")  # a field keeps pasted text
    page.wait_for_timeout(100)
    expect(moves(page)).to_have_count(4)
    page.keyboard.press("Escape")
    for _ in range(2):  # the second time the address has the link already
        paste(page, link)
        expect(moves(page)).to_have_count(5)
        page.get_by_test_id("move-1").click()
        draw(page, 3)
        expect(moves(page)).to_have_count(2)
    page.get_by_test_id("nav-learn").drag_to(page.locator("#board-host"))  # of the page itself
    page.wait_for_timeout(200)
    expect(page.get_by_test_id("notice")).to_be_hidden()


WIDE = {"rows": 2, "cols": 3, "start": [], "moves": [0, 9, 3, 10, 1]}  # move 4 closes a box
PIXELS = """async (data) => {
    const image = await createImageBitmap(new Blob([Uint8Array.from(data)]));
    const often = { willReadFrequently: true };
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d", often);
    context.drawImage(image, 0, 0);
    const at = (x, y) => [...context.getImageData(2 * x, 2 * y, 1, 1).data];
    return [image.width, image.height, at(5, 5), at(96, 46), at(76, 66)];
}"""


def test_a_position_is_saved_as_a_picture(open_page):
    page = open_page("review", scheme="dark")
    load(page, WIDE)
    text = saved(page, "picture").read_text()
    assert 'class="board"' not in text and "var(" not in text
    other = page.context.new_page()
    other.set_content(text)
    count = other.locator("body > svg").locator
    assert count("line[stroke='#33404f']").count() == len(WIDE["moves"]) - 1
    assert count("line[stroke='#b8570a']").count() == 1, "the last move"
    assert count("rect[fill='#fce5c6'] + svg.sign path").count() == 1, "the owner's sign"
    assert count("text").all_text_contents() == ["0", "1", "2", "0", "1", "2", "3"]
    data = saved(page, "png").read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height, paper, edge, box = page.evaluate(PIXELS, list(data))
    assert (width, height) == (2 * 392, 2 * 292)
    assert paper == [255, 255, 255, 255]
    assert edge == [0x33, 0x40, 0x4F, 255] and box == [0xFC, 0xE5, 0xC6, 255]


def saved(page, name) -> Path:
    page.get_by_test_id("format").select_option(name)
    with page.expect_download() as download:
        page.get_by_test_id("save").click()
    return download.value.path()


LISTEN = """
    window.heard = [];
    const start = OscillatorNode.prototype.start;
    OscillatorNode.prototype.start = function (time) {
        heard.push(this.frequency.value);
        return start.call(this, time);
    };
    void 0;
"""


def test_edges_boxes_and_the_end_are_heard_once_this_is_switched_on(open_page):
    page = open_page()
    page.evaluate(LISTEN)
    start_game(page, size="2x2")
    draw(page, 0)
    assert page.evaluate("heard") == []
    set_switch(page, "sound")
    page.evaluate("heard.length = 0")  # the switch plays a sample
    draw(page, 2)
    edge = page.evaluate("heard")
    draw(page, 6)
    draw(page, 7)
    box = page.evaluate("heard")[2 * len(edge) :]
    assert len(edge) == 1 and len(box) == 2 and box[0] < box[1]
    finish(page, range(12))
    assert len(page.evaluate("heard")[-3:]) == 3
