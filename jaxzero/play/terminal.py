"""Play a game in the terminal: show text, read entries of a person, and loop over turns.

Any two functions that read and write lines can replace the terminal.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_name, parse_edge, render
from jaxzero.game.records import RecordedGame
from jaxzero.host.progress import working
from jaxzero.play.game import (
    Sides,
    boxes_text,
    choose,
    draw_turn,
    programs_of,
)
from jaxzero.players.players import Player
from jaxzero.solver.endgame import solve
from jaxzero.solver.solve import describe, solve_position

PROMPT = "edge> "
COMMANDS = {
    "h2,1": "draw an edge; 'h 2 1', 'h21' and its number do the same",
    "undo": "take back to your previous decision",
    "hint": "a best edge where the solver finds one, else what the opponent would draw",
    "solve": "the exact value of the position and of its edges",
    "board": "show the board again",
    "help": "show this",
    "quit": "stop; so do Ctrl-D and Ctrl-C",
}
WORDS = tuple(COMMANDS)[1:]
_SHORT = {"?": "help", "q": "quit", "exit": "quit", "u": "undo"}


@dataclass(frozen=True)
class Setup:
    """The players and the terminal."""

    sides: Sides
    read: Callable[[str], str]  # shows a prompt and returns a line; EOFError at the end of input
    write: Callable[[str], None]  # shows a line
    seed: int = 0
    seconds: float = 5.0  # time limit of the solver for `hint` and `solve`
    save: Callable[[RecordedGame], None] = lambda _record: None  # called first and after each turn

    def choose(self, player: Player, game: RecordedGame) -> int:
        """Return the edge that a player draws, once its programs are compiled."""
        programs_of(player, game.board).get()
        return choose(player, game, self.seed)


def play_game(game: RecordedGame, setup: Setup) -> RecordedGame:
    """Continue a game and return it, unfinished if the person stops it."""
    watching = not any(side.is_person for side in setup.sides)
    setup.save(game)
    try:
        while not game.is_over:
            if watching or setup.sides[game.player].is_person:
                setup.write(position_text(game, setup.sides))
            game = _take_turn(game, setup)
            setup.save(game)
    except EOFError:  # `quit` raises it too
        setup.write(f"\nStopped at {score_text(game, setup.sides)}.")
        return game
    setup.write(position_text(game, setup.sides))
    setup.write(result_text(game, setup.sides))
    return game


def _take_turn(game: RecordedGame, setup: Setup) -> RecordedGame:
    """Return the game after a player's turn or a person's decision."""
    side = setup.sides[game.player]
    if side.player is None:
        return _decide(game, setup)
    with working(f"{side.name} is thinking"):
        after = draw_turn(game, partial(setup.choose, side.player))
    setup.write(turn_text(game, after, setup.sides))
    return after


def _decide(game: RecordedGame, setup: Setup) -> RecordedGame:
    """Ask the person for entries until one changes the game."""
    while True:
        entry = setup.read(PROMPT)
        try:
            entered = find_entry(game.board, entry)
            after = game.draw(entered) if isinstance(entered, int) else _obey(entered, game, setup)
        except ValueError as error:
            setup.write(str(error))
            continue
        if after is not game:
            return after


def find_entry(board: DotsAndBoxes, entry: str) -> int | str:
    """Return the edge or the command that an entry names. Raises: InputError for others."""
    word = entry.strip().lower()
    word = _SHORT.get(word, word)
    if word in WORDS:
        return word
    if not word:
        raise InputError("enter an edge such as h0,0, or help")
    if re.search(r"\d", word):
        return parse_edge(board, word)
    raise InputError(
        f"{word!r} is neither an edge nor a command "
        f"(edges are named like h0,0; commands: {', '.join(WORDS)})"
    )


def _obey(command: str, game: RecordedGame, setup: Setup) -> RecordedGame:
    """Execute one of the COMMANDS; only `undo` changes the game. Raises: EOFError to quit."""
    match command:
        case "undo":  # to the person's previous decision
            for plies in reversed(range(len(game.moves))):
                earlier = game.cut(plies)
                if setup.sides[earlier.player].is_person:
                    return earlier
            setup.write("there is no move of yours to take back")
        case "hint":
            setup.write(hint(game, setup))
        case "solve":
            solved = solve_position(game.board, game.drawn, setup.seconds)
            setup.write(describe(game.board, solved))
        case "board":
            setup.write(position_text(game, setup.sides))
        case "help":
            width = max(map(len, COMMANDS))
            for name, meaning in COMMANDS.items():
                setup.write(f"  {name:<{width}}  {meaning}")
        case "quit":
            raise EOFError
    return game


def hint(game: RecordedGame, setup: Setup) -> str:
    """Return a line with a best edge if the solver finds one, else with the opponent's choice."""
    try:
        best = solve(game.board, game.drawn, seconds=setup.seconds).best
    except InputError:  # the board is too large for the solver
        best = ()
    if best:
        return f"hint: {edge_name(game.board, best[0])} (a best edge, proven)"
    player = next(side.player for side in setup.sides if side.player)
    edge = setup.choose(player, game)
    return f"hint: {edge_name(game.board, edge)} (what {player.name} would draw)"


def position_text(game: RecordedGame, sides: Sides) -> str:
    """Return the board, the score and the side to move."""
    marks = {box: sides[owner].mark for box, owner in game.owners.items()}
    board = render(game.board, game.drawn, marks)
    if game.is_over:
        return f"\n{board}\n"
    side = sides[game.player]
    turn = "your turn" if side.is_person else f"{side.name} to move"
    left = boxes_text(game.boxes_left)
    return f"\n{board}\n\n{score_text(game, sides)}, {left} left, {turn}"


def score_text(game: RecordedGame, sides: Sides) -> str:
    """Return the score between the names of the sides, such as `you 2 : 1 AI (perfect)`."""
    first, second = game.score
    return f"{sides[0].name} {first} : {second} {sides[1].name}"


def turn_text(before: RecordedGame, after: RecordedGame, sides: Sides) -> str:
    """Return one line with the moves of a player's turn."""
    moves = after.moves[len(before.moves) :]
    names = ", ".join(edge_name(after.board, edge) for edge in moves)
    closed = before.boxes_left - after.boxes_left
    ending = f" and closes {boxes_text(closed)}" if closed else ""
    return f"{sides[before.player].name} draws {names}{ending}"


def result_text(game: RecordedGame, sides: Sides) -> str:
    """Return one line with the result; the winner's boxes come first."""
    first, second = game.score
    if first == second:
        return f"The game is a draw, {first} : {second}."
    winner = sides[first < second].name
    return f"The winner is {winner}, {max(first, second)} : {min(first, second)}."
