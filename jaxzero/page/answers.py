"""Answer the questions of the page, without the server; a question holds the whole game.

All input is checked, and sizes and times are bounded. A stream of answers yields WAIT while it
waits for the compiler, so that other questions get a turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from functools import partial
from typing import Any

from jsonargparse.typing import NonNegativeInt, restricted_number_type

from jaxzero import __version__
from jaxzero.config import check_number
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.game.records import FORMATS, RecordedGame, read_game, write_game
from jaxzero.page.opponents import OWN_NETWORK, agent_of, play_level
from jaxzero.page.problems import THEMES, find_problem
from jaxzero.play.analysis import stages
from jaxzero.play.analysis_report import to_json
from jaxzero.play.game import LARGEST_SIDE, Record
from jaxzero.play.looking import prepare
from jaxzero.play.review import review as review_game
from jaxzero.players.levels import LEVELS, find_level
from jaxzero.players.preparation import PREPARATION
from jaxzero.solver.cancellation import check_cancelled
from jaxzero.solver.endgame import can_solve, solve

Rating = restricted_number_type(None, float, [(">=", 0), ("<=", 4000)])
Simulations = restricted_number_type(None, int, [(">=", 0), ("<=", 1024)])
ReviewSimulations = restricted_number_type(None, int, [(">=", 1), ("<=", 1024)])
Seconds = restricted_number_type(None, int, [(">=", 0), ("<=", 60)])

Answer = dict[str, Any]
WAIT: Answer = {}  # no answer yet


def about() -> Answer:
    """Return the facts that the page needs at its start."""
    boards = [tuple(map(int, name.split("x"))) for name in OWN_NETWORK]
    return {
        "version": __version__,
        "boards": [{"rows": rows, "cols": cols} for rows, cols in boards],
        "sizes": {"min": 1, "max": LARGEST_SIDE},
        "levels": [
            {"id": str(number), "name": level.name, "rating": level.rating}
            for number, level in enumerate(LEVELS)
        ],
        "formats": list(FORMATS),
    }


def move(question: Answer) -> Answer:
    """Return the whole turn of the side to move, and the stand-in for the level, if any."""
    record, level = record_of(question), find_level(text_of(question, "level", "5"))
    seed = check_number("seed", question.get("seed", 0), NonNegativeInt)
    if record.is_over:
        raise InputError("moves: the game is over")
    after, by = play_level(level, record, seed)
    return {"edges": list(after.moves[len(record.moves) :]), "by": by}


def problem(question: Answer) -> Answer:
    """Return a training problem with its answers."""
    theme = text_of(question, "theme")
    if theme not in THEMES:
        known = ", ".join(THEMES)
        raise InputError(f"theme: {theme!r} does not exist (known: {known})")
    seed = check_number("seed", question.get("seed", 0), NonNegativeInt)
    rating = check_number("rating", question.get("rating", 1000), Rating)
    return {"theme": theme, **find_problem(theme, seed, rating).to_json()}


def read(question: Answer) -> Answer:
    """Return the game in a text."""
    return small_enough("text", read_game(text_of(question, "text"))).to_json()


def write(question: Answer) -> Answer:
    """Return a game as a text."""
    return {"text": write_game(game_of(question), text_of(question, "format", "json"))}


def analyse(question: Answer) -> Iterator[Answer]:
    """Check the question now and return the stream of analyses of its position."""
    simulations = check_number("simulations", question.get("simulations", 256), Simulations)
    seconds = check_number("seconds", question.get("seconds", 10), Seconds)
    return analyses(record_of(question), simulations, seconds)


def analyses(record: Record, simulations: int, seconds: int) -> Iterator[Answer]:
    """Yield analyses, each better than the last, until one proves every edge or all are done."""
    last: Answer = {"edges": []}
    agent = agent_of(record.game)
    for found in stages(agent, record.drawn, record.margin, simulations, seconds):
        last = to_json(found)
        ready = found.is_exact or PREPARATION.is_done(record.game, prepare)
        yield {**last, "preparing": not ready}
        if found.is_exact:
            break
        if not ready:
            yield from until_prepared(record.game)
    yield {**last, "stage": "done", "preparing": False}


def until_prepared(game: DotsAndBoxes) -> Iterator[Answer]:
    """Yield WAIT until the programs of an analysis are compiled."""
    for _ in PREPARATION.polled(game, prepare, partial(prepare_board, game)):
        yield WAIT


def prepare_board(game: DotsAndBoxes) -> None:
    """Compile the programs of an analysis; cancelling ends it between two programs."""
    prepare(agent_of(game))
    check_cancelled()
    if can_solve(game):
        solve(game, range(game.num_edges - 1))


def review(question: Answer) -> Iterator[Answer]:
    """Check the question now and return the stream of the review of its game."""
    simulations = check_number("simulations", question.get("simulations", 64), ReviewSimulations)
    return reviews(record_of(question), simulations)


def reviews(record: Record, simulations: int) -> Iterator[Answer]:
    """Yield the expected result of every position, and the margin that its move lost."""
    wait = partial(until_prepared, record.game)
    for line in review_game(agent_of(record.game), record, simulations, wait):
        if line:
            yield asdict(line) | {"mistake": line.is_mistake}
        else:
            yield {"preparing": True}
            yield WAIT
    yield {"done": True}


def record_of(question: Answer) -> Record:
    """Return the game of a question as a record. Raises: InputError."""
    game = game_of(question)
    return Record(game.board, game.moves, game.start)


def game_of(question: Answer) -> RecordedGame:
    """Return the game of a question. Raises: InputError."""
    names = [field.name for field in fields(RecordedGame)]
    game = RecordedGame.from_json({name: question[name] for name in names if name in question})
    return small_enough("board", game)


def small_enough(field: str, game: RecordedGame) -> RecordedGame:
    """Return `game` unchanged. Raises: InputError for a board that is too large to play."""
    if max(game.rows, game.cols) > LARGEST_SIDE:
        most = f"{LARGEST_SIDE}x{LARGEST_SIDE}"
        raise InputError(f"{field}: a {game.rows}x{game.cols} board is beyond {most}")
    return game


def text_of(question: Answer, name: str, default: str | None = None) -> str:
    """Return the text field `name` of a question. Raises: InputError."""
    found = question.get(name, default)
    if not isinstance(found, str):
        raise InputError(f"{name}: must be a text")
    return found
