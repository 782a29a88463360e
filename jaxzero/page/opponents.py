"""Provide opponents from beginner to expert on every board, and the network of each board."""

from __future__ import annotations

from jaxzero.game import DotsAndBoxes
from jaxzero.play.game import Record, choose, draw_turn
from jaxzero.play.game import warm_up as warm_up_player
from jaxzero.players.agent import Agent
from jaxzero.players.levels import Level
from jaxzero.players.players import Player, make_player
from jaxzero.players.preparation import PREPARATION, draws_best, exact_answer, stand_in
from jaxzero.players.recent import of_board
from jaxzero.runs.resize import resize
from jaxzero.runs.weights import load_weights
from jaxzero.solver.cancellation import check_cancelled


def agent_of(game: DotsAndBoxes) -> Agent:
    """Return the pretrained network of a board, else the one that plays its size best."""
    name = OWN_NETWORK.get(str(game), "7x7" if game.num_boxes > LARGE else "5x5")
    return of_board(game).get(
        agent_of, lambda: resize(load_weights(name).agent, game, f"weights: {name}")
    )


# The boards that a network was trained on. The 5x5 network is stronger on 4x4 than `4x4`; the 7x7
# network was trained on 6x6 boards too.
TRAINED = ("2x2", "2x3", "3x3", "4x4", "5x5", "6x6", "7x7")
OWN_NETWORK = {board: board for board in TRAINED} | {"4x4": "5x5", "6x6": "7x7"}
LARGE = 30  # boxes; on larger boards the 7x7 network is better than the 5x5 network


def player_of(level: Level, game: DotsAndBoxes) -> Player:
    """Return the player of a level, made once for a board; it compiles at its first move."""
    name = f"level:{level.name}"
    return of_board(game).get(name, lambda: make_player(name, game, agent_of(game)))


def play_level(level: Level, record: Record, seed: int) -> tuple[Record, str | None]:
    """Let a level draw edges until the turn passes or the game is over.

    Also return the stand-in (as `Answer.by`) if the level is not compiled, else None.
    """
    game, by = record.game, None

    def choose_now(record: Record) -> int:
        nonlocal by
        if PREPARATION.is_done(game, level):
            check_cancelled()
            return choose(player_of(level, game), record, seed)
        edge, by = stand_in(game, record.drawn, agent_of(game), seed)
        return edge

    return draw_turn(record, choose_now), by


def warm_up(level: Level, game: DotsAndBoxes) -> None:
    """Compile the programs of a level."""
    check_cancelled()
    warm_up_player(player_of(level, game))


def exact_answers(level: Level, record: Record) -> bool:
    """Return whether the exact solver answers for a level at once, without compiling."""
    return draws_best(level.player) and exact_answer(record.game, record.drawn) is not None
