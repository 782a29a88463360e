"""Test sounds, pictures of a game as files, and a board that is turned or flipped."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from browsing import draw, expect, load, set_switch, start_game

LISTEN = """
    window.heard = [];
    window.shaken = [];
    const start = OscillatorNode.prototype.start;
    OscillatorNode.prototype.start = function (time) {
        heard.push(this.frequency.value);
        return start.call(this, time);
    };
    navigator.vibrate = (shake) => shaken.push(shake);
"""
WIDE = {"rows": 2, "cols": 3, "start": [], "moves": [0, 9, 3, 10, 1]}  # move 4 closes a box


def remember(page, **changes):
    page.evaluate("async (all) => (await import('./settings.js')).remember(all)", changes)
    page.reload()


def test_edges_boxes_and_the_end_are_heard_once_this_is_switched_on(open_page):
    page = open_page()
    page.evaluate(LISTEN)
    start_game(page, size="2x2")
    draw(page, 0)
    assert page.evaluate("heard") == []
    set_switch(page, "sound")
    page.evaluate("heard.length = shaken.length = 0")  # the switch plays a sample
    draw(page, 2)
    edge = page.evaluate("heard")
    draw(page, 6)
    draw(page, 7)
    box = page.evaluate("heard")[2 * len(edge) :]
    assert len(edge) == 1 and len(box) == 2 and box[0] < box[1]
    for rest in (1, 3, 8, 4, 5, 9, 10, 11):
        draw(page, rest)
    assert len(page.evaluate("heard")[-3:]) == 3 and page.evaluate("shaken.at(-1).length") == 3


def test_nothing_is_heard_before_the_first_gesture(open_page):
    page = open_page()
    # Code that a test evaluates counts as a gesture, and so does waiting for an element. Code that
    # the page runs by itself does not.
    try_sound = "import('./sound.js').then(({ sound }) => sound('end'))"
    tell = "then(() => console.log('tried'))"
    page.add_init_script(f"{LISTEN} addEventListener('load', () => {try_sound}.{tell});")
    page.evaluate("async () => (await import('./settings.js')).remember({ sound: true })")
    with page.expect_console_message(lambda message: message.text == "tried"):
        page.reload()
    assert page.evaluate("[...heard, ...shaken]") == []
    page.evaluate(try_sound)
    assert page.evaluate("heard.length") == 3


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


def test_a_game_is_saved_as_an_animation_that_an_image_plays(open_page):
    page = open_page("review")
    load(page, WIDE)
    page.get_by_test_id("first").click()
    text = saved(page, "animation").read_text()
    seen = opened(page, text).evaluate(
        """() => {
            const svg = document.querySelector("body > svg");
            svg.pauseAnimations();
            const lines = () => [...svg.querySelectorAll("line:has(animate)")].filter(isSeen);
            const isSeen = (part) => getComputedStyle(part).opacity === "1";
            const boxes = () => [...svg.querySelectorAll("g:has(> animate)")].filter(isSeen);
            const colours = () => lines().map((line) => getComputedStyle(line).stroke);
            return [0.1, 0.8, 1.5, 2.9, 3.6, 7, 7.3].map((time) => {
                svg.setCurrentTime(time);
                const newest = colours().filter((colour) => colour !== "rgb(51, 64, 79)");
                return [lines().length, boxes().length, newest.join()];
            });
        }"""
    )
    blue, brown = "rgb(29, 111, 196)", "rgb(184, 87, 10)"
    assert seen == [
        *([0, 0, ""], [1, 0, blue], [2, 0, brown], [4, 1, brown], [5, 1, brown], [5, 1, ""]),
        [0, 0, ""],  # the animation begins again
    ]
    image = opened(page, f'<img src="data:image/svg+xml,{quote(text)}">').locator("img")
    early = image.screenshot()
    page.wait_for_timeout(1000)
    assert image.screenshot() != early


def place(page, edge):
    """Return x and y of an edge's middle as shown, in edge lengths from the top left dot."""
    box = page.locator(f'#board-host [data-edge="{edge}"] .guide').evaluate(
        "line => ['x1', 'x2', 'y1', 'y2'].map((name) => line[name].baseVal.value / 100)"
    )
    return (box[0] + box[1]) / 2, (box[2] + box[3]) / 2


# Returns the edge that a click near the end of a given edge hits.
NEAR_ITS_END = """(edge) => {
    const line = document.querySelector(`#board-host [data-edge="${edge}"] .guide`);
    const end = (name) => line[name].baseVal.value;
    const at = (name) => 0.17 * end(`${name}1`) + 0.83 * end(`${name}2`);
    const { x, y } = new DOMPoint(at("x"), at("y")).matrixTransform(line.getScreenCTM());
    return document.elementFromPoint(x, y).closest(".edge")?.dataset.edge;
}"""


def test_the_board_is_turned_and_flipped(open_page):
    page = open_page("review")
    remember(page, turn=1, flip=True, analysis=True)
    load(page, {**WIDE, "moves": [4]})
    # Places of the first edge, the first vertical edge and the last edge on 2x3.
    assert [place(page, edge) for edge in (0, 9, 16)] == [(2, 2.5), (1.5, 3), (0.5, 0)]
    label = page.get_by_test_id("edge-16").get_attribute("aria-label")
    assert label == "vertical edge row 1, column 3, not drawn", "names stay those of the board"
    for edge in (0, 9, 16):  # a click draws the edge shown there
        assert page.evaluate(NEAR_ITS_END, edge) == str(edge)
        page.get_by_test_id(f"edge-{edge}").click()
        expect(page.locator(f'#board-host .drawn[data-edge="{edge}"]')).to_have_count(1)
    turned = page.evaluate(
        """[...document.querySelectorAll("#board-host text")].map((text) => {
            const { b, c } = text.getScreenCTM();
            return b || c;
        }).filter(Boolean)"""
    )
    assert turned == [], "numbers stay upright"


def test_arrow_keys_move_as_it_is_seen(open_page):
    page = open_page()
    remember(page, turn=1, flip=True)
    start_game(page, size="3x3")

    def after(edge, *keys):
        page.get_by_test_id(f"edge-{edge}").focus()
        for key in keys:
            page.keyboard.press(f"Arrow{key}")
        return place(page, page.evaluate("document.activeElement.dataset.edge"))

    assert place(page, 17) == (1.5, 2), "a vertical edge that is seen as a horizontal one"
    assert after(17, "Left") == (0.5, 2) and after(17, "Right") == (2.5, 2)
    assert after(17, "Up") == (1, 1.5) and after(17, "Down") == (1, 2.5)
    assert after(17, "Up", "Up") == (1.5, 1)
    assert after(17, *["Left"] * 5) == (0.5, 2) and after(17, *["Up"] * 9)[1] == 0
    assert after(17, "Up", *["Right"] * 5, "Down") == (2.5, 2)


def test_the_settings_turn_the_board_at_once_with_all_that_is_drawn_on_it(open_page):
    page = open_page(size="phone")
    start_game(page, size="2x2")
    page.get_by_test_id("hint").click()
    spot = page.locator("#board-host .hint-spot")
    spot.wait_for()
    edge = page.locator("#board-host .board").evaluate(
        "board => { const at = (c) => c.cx.baseVal.value + ',' + c.cy.baseVal.value;"
        " return at(board.querySelector('.hint-spot')); }"
    )
    set_switch(page, "turn-1")
    assert place(page, 0) == (2, 0.5)
    spot.wait_for()
    x, y = map(float, edge.split(","))
    assert spot.evaluate("c => [c.cx.baseVal.value, c.cy.baseVal.value]") == [200 - y, x]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_lesson_turns_at_once_too(open_page):
    page = open_page("lesson-1")
    first = page.locator('#learn [data-edge="0"] .guide')
    expect(first).to_have_attribute("y1", "0")
    set_switch(page, "turn-2")
    expect(first).not_to_have_attribute("y1", "0")
