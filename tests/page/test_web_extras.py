"""Test sounds and pictures of a game as files."""

from __future__ import annotations

from pathlib import Path

from browsing import draw, load, set_switch, start_game

LISTEN = """
    window.heard = [];
    const start = OscillatorNode.prototype.start;
    OscillatorNode.prototype.start = function (time) {
        heard.push(this.frequency.value);
        return start.call(this, time);
    };
    void 0;
"""
WIDE = {"rows": 2, "cols": 3, "start": [], "moves": [0, 9, 3, 10, 1]}  # move 4 closes a box


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
    for rest in (1, 3, 8, 4, 5, 9, 10, 11):
        draw(page, rest)
    assert len(page.evaluate("heard")[-3:]) == 3


def saved(page, name) -> Path:
    page.get_by_test_id("format").select_option(name)
    with page.expect_download() as download:
        page.get_by_test_id("save").click()
    return download.value.path()


def opened(page, content):
    """Return a new page that shows only `content`."""
    other = page.context.new_page()
    other.set_content(content)
    return other


def test_a_position_is_saved_as_a_picture(open_page):
    page = open_page("review", scheme="dark")
    load(page, WIDE)
    text = saved(page, "picture").read_text()
    assert 'class="board"' not in text and "var(" not in text
    count = opened(page, text).locator("body > svg").locator
    assert count("line[stroke='#33404f']").count() == len(WIDE["moves"]) - 1
    assert count("line[stroke='#b8570a']").count() == 1, "the last move"
    assert count("rect[fill='#fce5c6'] + svg.sign path").count() == 1, "the owner's sign"
    assert count("text").all_text_contents() == ["0", "1", "2", "0", "1", "2", "3"]


def test_a_picture_can_be_a_png(open_page):
    page = open_page("review", scheme="dark")
    load(page, WIDE)
    data = saved(page, "png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(data[place : place + 4], "big") for place in (16, 20))
    assert (width, height) == (2 * 392, 2 * 292)
    found = page.evaluate(
        """async (data) => {
            const image = await createImageBitmap(new Blob([Uint8Array.from(data)]));
            const often = { willReadFrequently: true };
            const context = new OffscreenCanvas(image.width, image.height).getContext("2d", often);
            context.drawImage(image, 0, 0);
            const at = (x, y) => [...context.getImageData(2 * x, 2 * y, 1, 1).data];
            return [at(5, 5), at(96, 46), at(76, 66)];
        }""",
        list(data),
    )
    page_colour, edge, box = found
    assert page_colour == [255, 255, 255, 255]
    assert edge == [0x33, 0x40, 0x4F, 255] and box == [0xFC, 0xE5, 0xC6, 255]
