"""The modes of `scripts/play.py`: choose board and players, then play, show a game or a match."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Literal

from jaxzero.agent.players import Agent, Player, make_player
from jaxzero.cli import Source
from jaxzero.errors import InputError
from jaxzero.evaluation.arena import play_match
from jaxzero.game import DotsAndBoxes
from jaxzero.play.game import Side, warm_up
from jaxzero.play.terminal import Setup, play_game
from jaxzero.runs.resize import asked_board, resize

DEFAULT_BOARD = DotsAndBoxes(3, 3)  # if no network fixes the board
# The default players.
WITH_NETWORK, WITHOUT_NETWORK = "search:64", "perfect"


@dataclass(frozen=True)
class NamedAgent:
    """A trained network and the option that names it."""

    field: str  # the option
    source: str  # its value
    agent: Agent
    iteration: int
    trained_on: DotsAndBoxes

    def __str__(self) -> str:
        board = self.agent.network.game
        at_sight = f", trained on {self.trained_on} alone" if board != self.trained_on else ""
        return f"{self.source}, iteration {self.iteration}{at_sight}"


def load_named(source: Source | None) -> NamedAgent | None:
    """Read the network that the options of one player name. Raises: InputError."""
    if source is None:
        return None
    loaded = source.load()
    board = loaded.agent.network.game
    return NamedAgent(source.field, source.name, loaded.agent, loaded.iteration, board)


def choose_board(rows: int | None, cols: int | None, networks: list[NamedAgent]) -> DotsAndBoxes:
    """Return the board asked for, else the board of the networks, else 3x3. Raises: InputError."""
    default = networks[0].agent.network.game if networks else DEFAULT_BOARD
    return asked_board(rows, cols, default)


def fit(named: NamedAgent, board: DotsAndBoxes) -> NamedAgent:
    """Return a network for this board. Raises: InputError where it cannot play there."""
    return replace(named, agent=resize(named.agent, board, f"{named.field}: {named.source}"))


def choose_player(
    field: str, name: str | None, board: DotsAndBoxes, network: NamedAgent | None
) -> Player:
    """Return the player of the option `field`, ready to move. Raises: InputError."""
    name = name or (WITH_NETWORK if network else WITHOUT_NETWORK)
    try:
        player = make_player(name, board, network.agent if network else None)
    except InputError as error:
        raise InputError(str(error).replace("player:", f"{field}:", 1)) from error
    try:
        warm_up(player, board)
    except InputError as error:
        raise InputError(f"{field}: {name!r} cannot play here ({error})") from error
    return player


def play_human(
    board: DotsAndBoxes, opponent: Player, first: Literal["human", "ai"], seed: int, seconds: float
) -> None:
    """Play one game between the person at the keyboard and a player."""
    sides = (Side("you"), Side("AI", opponent))
    if first == "ai":
        sides = sides[::-1]
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")  # bytes that are not text get an answer
    print(f"{board} boxes, {board.num_edges} edges. Name an edge to draw it. Type help for more.")
    play_game(board, Setup(sides, input, print, seed, seconds))


def show_game(board: DotsAndBoxes, players: tuple[Player, Player], seed: int) -> None:
    """Show one game between two players, turn by turn."""
    sides = Side("A", players[0]), Side("B", players[1])
    play_game(board, Setup(sides, input, print, seed))


def report_match(
    board: DotsAndBoxes, players: tuple[Player, Player], games: int, opening_plies: int, seed: int
) -> None:
    """Play a match and report it from both sides."""
    print(
        f"{games} games on {board}, seats swapped, openings of 0 to {opening_plies} random moves",
        flush=True,
    )
    outcome = play_match(board, *players, games, opening_plies, seed)
    print("points [95 % interval], games, mean margin in boxes:")
    names = [f"{mark} {player.name}" for mark, player in zip("AB", players, strict=True)]
    width = max(map(len, names))
    for name, result in zip(names, (outcome, outcome.mirrored()), strict=True):
        print(f"{name:<{width}}  {result}")
