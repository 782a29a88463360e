"""Answer the questions of the page, without the server; a question holds the whole game.

All input is checked, and sizes and times are bounded. A stream of answers yields WAIT while it
waits for the compiler, so that other questions get a turn.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from typing import Any

from jaxzero import __version__
from jaxzero.api import number_within
from jaxzero.errors import InputError
from jaxzero.game.records import RecordedGame, read_game, write_game
from jaxzero.play.analysis import stages
from jaxzero.play.analysis_report import to_json
from jaxzero.play.game import LARGEST_SIDE
from jaxzero.play.opponents import (
    agent_of,
    analysis_programs,
    level_facts,
    play_level,
)
from jaxzero.play.problems import GRADES, SOLVER, THEMES, find_problem
from jaxzero.play.review import ReviewLine
from jaxzero.play.review import review as review_game

Answer = dict[str, Any]
WAIT: Answer = {}  # no answer yet


def about() -> Answer:
    """Return the facts that the page needs at its start."""
    return {"version": __version__, "levels": level_facts()}


def move(question: Answer) -> Answer:
    """Return the whole turn of the side to move."""
    game, level, seed = game_of(question), level_of(question), seed_of(question)
    if game.is_over:
        raise InputError("moves: the game is over")
    after = play_level(level, game, seed)
    return {"edges": list(after.moves[len(game.moves) :])}


def problem(question: Answer) -> Answer:
    """Return a training problem with its answers."""
    theme = text_of(question, "theme")
    if theme not in THEMES:
        known = ", ".join(THEMES)
        raise InputError(f"theme: {theme!r} does not exist (known: {known})")
    grade = number_within("grade", question.get("grade", 0), 0, GRADES - 1)
    return {"theme": theme, **find_problem(theme, seed_of(question), grade).to_json()}


def read(question: Answer) -> Answer:
    """Return the game in a text."""
    return small_enough("text", read_game(text_of(question, "text"))).to_json()


def write(question: Answer) -> Answer:
    """Return a game as a text."""
    return {"text": write_game(game_of(question), text_of(question, "format", "json"))}


def analyse(question: Answer) -> Iterator[Answer]:
    """Check the question now and return the stream of analyses of its position."""
    simulations = number_within("simulations", question.get("simulations", 256), 0, 1024)
    seconds = number_within("seconds", question.get("seconds", 10), 0, 60)
    return analyses(game_of(question), simulations, seconds)


def analyses(game: RecordedGame, simulations: int, seconds: int) -> Iterator[Answer]:
    """Yield analyses, each better than the last, until one proves every edge or all are done.

    `preparing` has the seconds of waiting for the compiler so far, or None.
    """
    last: Answer = {"edges": []}
    agent, programs = agent_of(game.board), analysis_programs(game.board)
    for found in stages(agent, game.drawn, game.margin, simulations, seconds):
        last = to_json(found)
        if not found.is_exact:
            for waited in programs.waits():
                yield {**last, "preparing": int(waited)}
                yield WAIT
        yield {**last, "preparing": None}
        if found.is_exact:
            break
    yield {**last, "stage": "done", "preparing": None}


def review(question: Answer) -> Iterator[Answer]:
    """Check the question now and return the stream of the review of its game."""
    simulations = number_within("simulations", question.get("simulations", 64), 1, 1024)
    return reviews(game_of(question), simulations)


def reviews(game: RecordedGame, simulations: int) -> Iterator[Answer]:
    """Yield the expected result of every position, and the margin that its move lost."""
    yield from preparing(SOLVER.waits())
    wait = analysis_programs(game.board).waits
    for line in review_game(agent_of(game.board), game, simulations, wait):
        if isinstance(line, ReviewLine):
            yield asdict(line) | {"mistake": line.is_mistake}
        else:
            yield from preparing([line])
    yield {"done": True}


def preparing(waits: Iterable[float]) -> Iterator[Answer]:
    """Yield the seconds of waiting for the compiler so far, and let other questions go first."""
    for waited in waits:
        yield {"preparing": int(waited)}
        yield WAIT


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


def seed_of(question: Answer) -> int:
    """Return the seed of a question. Raises: InputError."""
    return number_within("seed", question.get("seed", 0), 0, 2**32 - 1)


def level_of(question: Answer) -> str:
    """Return the number or name of the level of a question. Raises: InputError."""
    return text_of(question, "level", "5")


def text_of(question: Answer, name: str, default: str | None = None) -> str:
    """Return the text field `name` of a question. Raises: InputError."""
    found = question.get(name, default)
    if not isinstance(found, str):
        raise InputError(f"{name}: must be a text")
    return found
