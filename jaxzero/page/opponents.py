"""Opponents from beginner to expert, on every board, and the network that plays each board."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, count_sides
from jaxzero.play.game import Record, choose, draw_turn
from jaxzero.play.looking import line_of_play, look_at
from jaxzero.players.agent import Agent
from jaxzero.players.players import Player, make_player
from jaxzero.players.preparation import PREPARATION, draws_best, exact_answer, stand_in
from jaxzero.players.recent import of_board
from jaxzero.runs.resize import resize
from jaxzero.runs.weights import load_weights
from jaxzero.solver.cancellation import check_cancelled

EVERY_BOARD = "5x5"  # the shipped network that plays boards without one of their own


@dataclass(frozen=True)
class Level:
    """How strong an opponent is."""

    name: str
    player: str  # as in `make_player`
    random_share: float = 0.0  # of its moves, any edge that is not drawn
    temperature: float = 0.0  # above 0 moves are drawn from the policy to the power 1 / temperature


LEVELS = (
    Level("beginner", "greedy", random_share=0.5),
    Level("novice", "greedy", random_share=0.2),
    Level("casual", "greedy"),
    Level("learner", "policy", random_share=0.15, temperature=1.0),
    Level("regular", "policy", random_share=0.04, temperature=0.7),
    Level("strong", "policy", temperature=0.4),
    Level("advanced", "search:16"),
    Level("master", "search:256"),
    Level("expert", "expert:2"),
)


def find_level(text: str) -> Level:
    """Return a level by its number or its name. Raises: InputError."""
    for number, level in enumerate(LEVELS):
        if text in (str(number), level.name):
            return level
    names = ", ".join(f"{number} {level.name}" for number, level in enumerate(LEVELS))
    raise InputError(f"level: {text[:40]!r} does not exist (known: {names})")


def agent_of(game: DotsAndBoxes) -> Agent:
    """Return the shipped network of a board, else the one that plays every board."""
    name = OWN_NETWORK.get(str(game), EVERY_BOARD)
    return of_board(game).get(
        agent_of, lambda: resize(load_weights(name).agent, game, f"weights: {name}")
    )


# 4x4, from zero, is weaker on its board than the shipped 5x5; 4x4_solver is not, and faster.
OWN_NETWORK = {"2x2": "2x2", "2x3": "2x3", "3x3": "3x3", "4x4": "4x4_solver", "5x5": "5x5"}


def player_of(name: str, game: DotsAndBoxes) -> Player:
    """Return a player of `make_player`, made once; it compiles at its first move."""
    return of_board(game).get(name, lambda: make_player(name, game, agent_of(game)))


def choose_edge(level: Level, record: Record, seed: int) -> int:
    """Return the edge that a level draws; it depends on the position, the ply and the seed."""
    check_cancelled()
    game, free = record.game, np.flatnonzero(~record.drawn)
    rng = np.random.default_rng([seed, len(record.moves)])
    if rng.random() < level.random_share:
        return int(rng.choice(free))
    if not level.temperature:
        return choose(player_of(level.player, game), record, seed)
    if (count_sides(game, record.drawn)[:-1] == 3).any():  # free boxes: no matter of taste
        return line_of_play(agent_of(game), record.drawn, edges=1)[0]
    look = look_at(agent_of(game), record.drawn)
    weights = look.prior[free].astype(float) ** (1 / level.temperature)
    return int(rng.choice(free, p=weights / weights.sum()))


def play_level(level: Level, record: Record, seed: int) -> tuple[Record, str | None]:
    """Let a level draw edges until the turn passes or the game is over.

    Also returns who stood in for a level that is not compiled (as `Answer.by`), None: nobody.
    """
    game, by = record.game, None

    def choose_now(record: Record) -> int:
        nonlocal by
        if is_warm(level, game):
            return choose_edge(level, record, seed)
        edge, by = stand_in(game, record.drawn, agent_of(game), seed)
        return edge

    return draw_turn(record, choose_now), by


def warm_up(level: Level, game: DotsAndBoxes) -> None:
    """Compile a level before its first move."""
    choose_edge(replace(level, random_share=0.0), Record(game), 0)
    if level.temperature:
        check_cancelled()
        line_of_play(agent_of(game), Record(game).drawn, edges=1)


def is_warm(level: Level, game: DotsAndBoxes) -> bool:
    """Return whether a level has been compiled for a board."""
    return PREPARATION.is_done(game, level)


def wanted(level: Level, game: DotsAndBoxes) -> AbstractContextManager[None]:
    """Have a level compiled for a board, in turn, unless the block ends before."""
    return PREPARATION.wanted(game, level, partial(warm_up, level, game))


def exact_answers(level: Level, record: Record) -> bool:
    """Return whether the exact solver answers for a level at once: nothing has to be compiled."""
    return draws_best(level.player) and exact_answer(record.game, record.drawn) is not None
