"""Test the trainer and the lessons of the page against exact play."""

from __future__ import annotations

import re

import pytest
from browsing import expect

from jaxzero.game import DotsAndBoxes
from jaxzero.solver.endgame import move_values

pytestmark = pytest.mark.usefixtures("solver_is_loaded")


def open_theme(open_page, theme, **options):
    """Open the trainer; return the page and its first problem."""
    page = open_page("learn", **options)
    return page, to_next(page, page.get_by_test_id(f"train-{theme}"))


def to_next(page, link=None):
    """Ask for another problem and return it, once it is shown."""
    with page.expect_response("**/api/problem") as response:
        (link or page.get_by_test_id("train-next")).click()
    problem = response.value.json()
    page.locator(".lesson .edge, #train-counts").first.wait_for()
    return problem


def choices(page, problem, right):
    """Return the buttons or edges that answer a problem, right or wrong."""
    answers = problem["answers"]
    if problem["kind"] == "count":
        numbers = [n for n in range(7) if (n == answers["count"]) == right]
        return [page.get_by_test_id(f"train-count-{n}") for n in numbers]
    edges = [edge for edge, lost in answers.items() if (lost == 0) == right]
    return [page.get_by_test_id(f"train-edge-{edge}") for edge in edges]


def solved(page):
    return page.evaluate("JSON.parse(localStorage.getItem('jaxzero')).streak")


@pytest.mark.parametrize(
    ("theme", "size", "locale"), [("chains", "phone", "zh-CN"), ("parity", "desk", "en-US")]
)
def test_answers_are_judged_and_those_solved_in_a_row_are_counted(open_page, theme, size, locale):
    page, problem = open_theme(open_page, theme, size=size, locale=locale)
    streak = page.get_by_test_id("train-status")
    expect(streak).to_contain_text("0")
    for count in (1, 2):
        choices(page, problem, right=True)[0].click()
        expect(page.locator("#train-answer.good")).not_to_be_empty()
        expect(streak).to_contain_text(str(count))
        problem = to_next(page)
    choices(page, problem, right=False)[0].click()
    expect(page.locator("#train-answer.bad")).not_to_be_empty()
    expect(streak).to_contain_text("0")
    assert (page.locator(".hint-spot").count() == 1) == (problem["kind"] == "edge")
    assert (page.locator(".chain").count() > 0) == (problem["kind"] == "count")


def test_a_problem_has_an_address_and_counts_once(open_page):
    page, problem = open_theme(open_page, "parity")
    answers = []

    def keep(route) -> None:  # the browser forgets an answer when the page is loaded again
        response = route.fetch()
        answers.append(response.json())
        route.fulfill(response=response)

    page.route("**/api/problem", keep)
    for _ in range(2):
        page.reload()
        choices(page, problem, right=True)[0].click()
        page.locator("#train-answer.good").wait_for()
    assert answers == [problem, problem]
    assert solved(page) == 1
    hard = to_next(page, page.locator("label", has=page.get_by_test_id("grade-2")))
    assert hard != problem
    assert "#train-parity-2-" in page.url
    page.go_back()
    page.reload()
    choices(page, problem, right=True)[0].wait_for()
    assert answers[-1] == problem
    page.goto(f"{page.url.partition('#')[0]}#train-handback-2-7")
    page.get_by_test_id("train-next").click()
    page.wait_for_url("**/#train-handback-2-*")  # the next problem has the grade of the link


def test_a_mistake_shows_what_it_loses_and_every_edge_its_loss(open_page):
    page, problem = open_theme(open_page, "parity")
    edge, lost = max(problem["answers"].items(), key=lambda answer: answer[1])
    page.get_by_test_id(f"train-edge-{edge}").click()
    expect(page.get_by_test_id("train-answer")).to_contain_text(f"you end {lost} boxes worse")
    others = [loss for other, loss in problem["answers"].items() if other != edge]
    shown = page.locator(".number").all_text_contents()
    minus = "\N{MINUS SIGN}"
    assert sorted(shown) == sorted("★" if loss == 0 else f"{minus}{loss}" for loss in others)


def test_the_keyboard_is_enough(open_page):
    page, problem = open_theme(open_page, "loops")
    page.locator(".lesson .edge:focus").wait_for()
    choices(page, problem, right=True)[0].focus()
    page.keyboard.press("Enter")
    page.locator("#train-answer.good").wait_for()
    page.locator("#train-next:focus").wait_for()
    page.keyboard.press("Enter")
    page.locator(".lesson .edge:focus").wait_for()
    page.goto(f"{page.url.partition('#')[0]}#train-chains")
    page.locator("#train-counts button:focus").wait_for()
    page.keyboard.press("Enter")
    page.locator("#train-answer:not(:empty)").wait_for()


def lessons(page):
    """Return the game and the solution of every lesson."""
    return page.evaluate("""async () => {
        const page = document.querySelector("script").src;
        const { LESSONS } = await import(new URL("lesson_data.js", page));
        return LESSONS.map(({ game, solution }) => ({ game, solution }));
    }""")


def test_every_lesson_is_won_by_its_solution_and_exact_play_after_it(open_page):
    page = open_page("learn", alone=True)
    page.clock.install()
    data = lessons(page)
    assert len(data) == 9
    for number, (start, solution) in enumerate((one.values() for one in data), 1):
        win_lesson(page, number, DotsAndBoxes(start["rows"], start["cols"]), solution)
        page.get_by_test_id("nav-learn").click()
        expect(page.locator(".lesson-list .done")).to_have_count(number)


def win_lesson(page, number, board, solution):
    page.get_by_test_id(f"lesson-{number}").click()
    page.get_by_test_id("lesson-board").wait_for()
    while not page.locator("#lesson-answer.good").count():
        while not page.locator(".lesson .board:not(.waits)").count():
            page.clock.run_for(700)  # the other side moves
        numbers = "all => all.map((edge) => Number(edge.dataset.edge))"
        drawn = page.locator(".lesson .edge.drawn").evaluate_all(numbers)
        values = move_values(board, drawn)
        edge = solution.pop(0) if solution else int(values.argmax())
        assert values[edge] == values.max(), f"edge {edge} loses boxes"
        page.get_by_test_id(f"lesson-edge-{edge}").click()
        assert not page.locator("#lesson-answer.bad").count()
    assert not solution


def test_a_lesson_that_begins_well_can_still_be_lost(open_page):
    page = open_page("learn", alone=True)
    page.clock.install()
    page.get_by_test_id("lesson-4").click()
    for edge in (13, 14, 16):  # the double-cross
        page.get_by_test_id(f"lesson-edge-{edge}").click()
    count = page.locator(".lesson .edge.drawn").count()
    page.get_by_test_id("lesson-show").click()  # the other side is to move: this shows nothing
    assert page.locator(".lesson .edge.drawn").count() >= count
    page.locator(".answer.part", has_text="double-cross").wait_for()
    while not page.locator('.lesson .board:not(.waits) .drawn[data-edge="17"]').count():
        page.clock.run_for(700)  # the other side opens the last chain
    page.get_by_test_id("lesson-edge-19").click()  # gives the whole chain away
    page.locator(".answer.bad").wait_for()
    assert re.findall(r"\d+", page.locator("#lesson-status").inner_text()) == ["2", "6"]
    page.get_by_test_id("nav-learn").click()
    expect(page.locator(".lesson-list .done")).to_have_count(0)


# Returns how each lesson answers each first edge: [[edge, mood, answer, boxes given], ...].
JUDGED = """async () => {
    const [{ LESSONS }, { boxesGiven, closedBy, replay }] =
        await Promise.all([import("./lesson_data.js"), import("./rules.js")]);
    return LESSONS.map(({ game, judge }) => {
        const { drawn } = replay(game);
        const open = [...drawn.keys()].filter((edge) => !drawn[edge]);
        return open.map((edge) => {
            const closed = closedBy(game, drawn, edge).length;
            const given = boxesGiven(game, drawn, edge);
            const { mood, answer } = judge({ edge, closed, given, ply: 0, score: [closed, 0] });
            return [edge, mood, answer, given];
        });
    });
}"""


def test_what_a_lesson_praises_is_best_and_the_count_is_blamed_for_safe_edges_alone(open_page):
    page = open_page("learn")
    judged = page.evaluate(JUDGED)
    for number, (lesson, answers) in enumerate(zip(lessons(page), judged, strict=True), 1):
        game = lesson["game"]
        values = move_values(DotsAndBoxes(game["rows"], game["cols"]), game["start"])
        best = {edge for edge, mood, *_ in answers if mood != "bad"}
        assert best and all(values[edge] == values.max() for edge in best), number
        if number == 5:
            assert {given for _, _, answer, given in answers if answer == "bad"} == {0}
