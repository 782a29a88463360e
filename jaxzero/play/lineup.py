"""From the names of players and runs to the board and the players."""

from __future__ import annotations

from dataclasses import dataclass

from jaxzero.agent.players import Agent, Player, make_player
from jaxzero.config import GameConfig
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.play.sides import warm_up
from jaxzero.training.source import Source

DEFAULT_SIZE = 3  # boxes a side where no run tells the board
WITH_NETWORK, WITHOUT_NETWORK = "search:64", "perfect"


@dataclass(frozen=True)
class Run:
    """A trained network and where it came from."""

    field: str  # the option that named it
    source: str
    agent: Agent
    iteration: int

    def __str__(self) -> str:
        return f"{self.source}, iteration {self.iteration}"


def load_run(source: Source | None) -> Run | None:
    """Read the network that the options of one player name. Raises: InputError."""
    if source is None:
        return None
    loaded = source.load()
    return Run(source.field, source.name, loaded.agent, loaded.iteration)


def choose_board(rows: int | None, cols: int | None, runs: list[Run]) -> DotsAndBoxes:
    """Return the board asked for, else that of the runs, else 3x3.

    Raises: InputError, with both values, where a run plays another board.
    """
    trained = runs[0].agent.network.game if runs else DotsAndBoxes(DEFAULT_SIZE, DEFAULT_SIZE)
    asked = {
        "rows": trained.rows if rows is None else rows,
        "cols": trained.cols if cols is None else cols,
    }
    try:
        board = GameConfig(**asked).board
    except InputError as error:
        raise InputError(str(error).removeprefix("game.")) from error
    for run in runs:
        known = run.agent.network.game
        if known == board:
            continue
        if rows is None and cols is None:
            raise InputError(f"{run.field}: {run.source} plays {known}, not {board}")
        name = "rows" if known.rows != board.rows else "cols"
        raise InputError(
            f"{name}: {asked[name]} contradicts {getattr(known, name)} of {run.field} {run.source}"
        )
    return board


def choose_player(field: str, name: str | None, board: DotsAndBoxes, run: Run | None) -> Player:
    """Return the player of the option `field`, ready to move. Raises: InputError."""
    name = name or (WITH_NETWORK if run else WITHOUT_NETWORK)
    try:
        player = make_player(name, board, run.agent if run else None)
    except InputError as error:
        raise InputError(str(error).replace("player:", f"{field}:", 1)) from error
    try:
        warm_up(player, board)
    except InputError as error:
        raise InputError(f"{field}: {name!r} cannot play here ({error})") from error
    return player
