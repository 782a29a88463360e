"""The three things to do in a terminal: play, watch a game, have a match played."""

from __future__ import annotations

import sys
from typing import Literal

from jaxzero.agent.players import Player
from jaxzero.evaluation.arena import play_match
from jaxzero.game import DotsAndBoxes
from jaxzero.play.sides import Side
from jaxzero.play.terminal import Setup, play_game
from jaxzero.play.wording import match_report


def play_human(
    board: DotsAndBoxes, opponent: Player, first: Literal["human", "ai"], seed: int, seconds: float
) -> None:
    """Play one game between the person at the keyboard and a player."""
    sides = (Side("you"), Side("AI", opponent))
    if first == "ai":
        sides = sides[::-1]
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")  # any bytes get an answer, not a traceback
    print(f"{board} boxes, {board.num_edges} edges. Name an edge to draw it; help tells the rest.")
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
        f"{games} games on {board}, colours swapped, openings of 0 to {opening_plies} random moves",
        flush=True,
    )
    outcome = play_match(board, *players, games, opening_plies, seed)
    print("points [95 % interval], games, mean margin in boxes:")
    print(match_report((f"A {players[0].name}", f"B {players[1].name}"), outcome))
