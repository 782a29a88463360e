"""Provide opponents from beginner to expert on every board, and the network of each board."""

from functools import lru_cache

from jaxzero.game import DotsAndBoxes
from jaxzero.game.records import RecordedGame
from jaxzero.host.background import Programs
from jaxzero.network.network import Agent
from jaxzero.play.game import choose, draw_turn, warm_up
from jaxzero.play.looking import prepare
from jaxzero.players.players import LEVELS, Player, find_level, make_player
from jaxzero.runs.resize import resize
from jaxzero.runs.run_dir import shipped_names
from jaxzero.runs.weights import load_weights
from jaxzero.solver.endgame import can_solve, solve


@lru_cache(maxsize=8)
def agent_of(board: DotsAndBoxes) -> Agent:
    """Return the pretrained network of a board, else the one that plays its size best."""
    name = str(board)
    if name not in shipped_names():
        name = "7x7" if board.num_boxes > LARGE else "5x5"
    return resize(load_weights(name).agent, board, f"weights: {name}")


LARGE = 30  # boxes; on larger boards the 7x7 network is better than the 5x5 network


def level_facts() -> list[dict[str, str | int]]:
    """Return number, name and rating of each level."""
    return [
        {"id": str(number), "name": level.name, "rating": level.rating}
        for number, level in enumerate(LEVELS)
    ]


@lru_cache(maxsize=64)
def player_of(level: str, board: DotsAndBoxes) -> Player:
    """Return the player of a level, made once for a board."""
    return make_player(f"level:{level}", board, agent_of(board))


def programs_of(level: str, board: DotsAndBoxes) -> Programs:
    """Return the programs of a level on a board. Raises: InputError for an unknown level."""
    return Programs(board, find_level(level), lambda: warm_up(player_of(level, board), board))


def analysis_programs(board: DotsAndBoxes) -> Programs:
    """Return the programs of an analysis of a board."""

    def make() -> None:
        prepare(agent_of(board))
        if can_solve(board):
            solve(board, range(board.num_edges - 1))

    return Programs(board, "analysis", make)


def play_level(level: str, game: RecordedGame, seed: int) -> RecordedGame:
    """Let a level draw edges until the turn passes or the game is over."""

    def choose_edge(here: RecordedGame) -> int:
        programs_of(level, here.board).get()
        return choose(player_of(level, here.board), here, seed)

    return draw_turn(game, choose_edge)
