"""An engine for programs: it keeps a game and a clock, and chooses moves.

The player is the expert: network and exact solver together. `Clock` shares the time of the whole
game out over its decisions: most goes to those that the solver can just about prove. Pondering is
proving on while the opponent thinks: what is found stays in the table of the board.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Thread

import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, count_sides
from jaxzero.play.game import LARGEST_SIDE, Record, draw_turn
from jaxzero.players import expert
from jaxzero.players.agent import Agent
from jaxzero.players.preparation import PREPARATION, STAND_INS, Answer, first_answer
from jaxzero.runs.resize import resize
from jaxzero.solver import proof

# Undrawn edges between which a proof is hard and yet may succeed: these decisions get more time.
HARD = range(34, 49)
HARD_WEIGHT, EASY_WEIGHT, OPENING_WEIGHT = 3.0, 0.5, 1.0
MOST_OF_CLOCK = 0.2  # of what is left, for one decision
MOST_OF_TURN = 0.8  # of the overtime for a turn, for its first decision
RESERVE, LEAST_RESERVE = 0.05, 1.0  # share and seconds of the clock kept for delays and endings
CAPTURE_SECONDS = 0.3  # a turn goes on: the table knows the position already
LEAST_SECONDS = 0.02


@dataclass
class Clock:
    """The time of one side, in seconds: for a whole game, and beyond that for every turn."""

    left: float
    turn: float = 0.0  # overtime, as byo-yomi

    @property
    def longest(self) -> float:
        """The most that a decision gets."""
        return max(MOST_OF_CLOCK * self.left, MOST_OF_TURN * self.turn)

    def for_decision(self, undrawn: int, boxes_left: int) -> float:
        """Return the seconds for a decision with so many undrawn edges and boxes not closed."""
        # Every edge but one for each box passes the turn; half of these turns are ours.
        weights = [weight(edges) for edges in range(undrawn, boxes_left, -2)] or [EASY_WEIGHT]
        usable = max(0.0, self.left - max(RESERVE * self.left, LEAST_RESERVE))
        share = min(usable * weights[0] / sum(weights), MOST_OF_CLOCK * usable)
        return max(LEAST_SECONDS, share, MOST_OF_TURN * self.turn)


def weight(undrawn: int) -> float:
    """Return how much of the time a decision deserves, relative to others."""
    if undrawn in HARD:
        return HARD_WEIGHT
    return EASY_WEIGHT if undrawn < HARD.start else OPENING_WEIGHT


@dataclass(eq=False)  # a session equals itself alone
class Session:
    """A game in play, who plays it and how long it may think.

    Raises: InputError for a board it cannot play.
    """

    agent: Agent
    seconds: float  # of a decision, where there is no clock
    full: Clock | None = None  # of each side, at the start of a game
    tell: Callable[[str], None] = lambda _words: None  # hears what the protocol has no place for
    done: bool = field(init=False, default=False)  # asked to quit
    clocks: dict[int, Clock] = field(init=False)  # of the players; empty without clocks
    komi: float = field(init=False, default=0.0)  # boxes that the second player is given
    words: deque[str] = field(init=False, default_factory=deque)  # of a message that goes on
    record: Record = field(init=False)
    plays: int | None = field(init=False)  # the player that the engine is, where a protocol says so
    past: list[Record] = field(init=False)  # before each turn, for `undo`
    # Edges that may not begin the next turn; None where the other side did not just hear one.
    refused: set[int] | None = field(init=False)
    _experts: dict[DotsAndBoxes, expert.Expert] = field(init=False, default_factory=dict)
    _pondering: tuple[proof.Problem, Thread] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.new_game(self.agent.network.game)

    @property
    def game(self) -> DotsAndBoxes:
        return self.record.game

    def new_game(self, game: DotsAndBoxes | None = None) -> None:
        """Begin a game with full clocks. Raises: InputError for a board it cannot play."""
        game = game or self.game
        if max(game.rows, game.cols) > LARGEST_SIDE:
            raise InputError(f"board: {game} must be at most {LARGEST_SIDE}x{LARGEST_SIDE}")
        resize(self.agent, game, "board: this network")
        self.record, self.plays = Record(game), None
        self.past, self.refused = [], None
        self.start_clocks(self.full)

    def start_clocks(self, full: Clock | None) -> None:
        """Give both sides a full clock, or none, in this game and in later ones."""
        self.full = full
        self.clocks = {player: replace(full) for player in (0, 1)} if full else {}

    def get_ready(self) -> None:
        """Begin to compile what a decision on this board needs, in a thread."""
        self._stand_in(self.record.drawn, 0.0)

    def go_on(self, record: Record) -> None:
        """Take a record that goes on from the present one; `undo` returns to the present one."""
        self.past.append(self.record)
        self.record = record

    def undo(self) -> list[int]:
        """Go back to before the last turn; return its edges. Raises: InputError."""
        if not self.past:
            raise InputError("undo: there is no move to take back")
        undone, self.record = self.record.moves, self.past.pop()
        return list(undone[len(self.record.moves) :])

    def play_turn(self) -> list[int]:
        """Draw edges until the turn passes or the game is over; return them. Raises: InputError."""
        if self.record.is_over:
            raise InputError("turn: the game is over")
        plies = len(self.record.moves)
        self.go_on(draw_turn(self.record, self.choose))
        return list(self.record.moves[plies:])

    def ponder(self) -> None:
        """Begin to prove the value of the position, until `stop_pondering`; far from the end not.

        Nothing else may be asked of the session in between.
        """
        player, drawn = self._expert(), self.record.drawn
        provable = expert.may_prove(self.game, drawn) and not self.record.is_over
        if not provable or not PREPARATION.is_done(self.game, self):
            return
        # One thread: the other side may think on the same machine.
        problem = expert.problem_of(player, drawn, threads=1)

        def prove() -> None:
            guess = float(player.think(expert.SIMULATIONS[0], drawn).value)
            proof.prove_value(problem, guess)

        thread = Thread(target=prove, name="pondering", daemon=True)
        thread.start()
        self._pondering = problem, thread

    def stop_pondering(self) -> None:
        """End what `ponder` began."""
        if self._pondering is not None:
            problem, thread = self._pondering
            self._pondering = None
            problem.stop()
            thread.join()

    def choose(self, record: Record) -> int:
        """Return the edge to draw in a game that is not over; the clock runs."""
        player, clock = self._expert(), self.clocks.get(record.player)
        begin, drawn, seconds = time.monotonic(), record.drawn, self.seconds
        if clock:
            seconds = clock.for_decision(int(np.sum(~drawn)), record.boxes_left)
        if (count_sides(record.game, drawn)[:-1] == 3).any():
            seconds = min(seconds, CAPTURE_SECONDS)
        found = self._stand_in(drawn, seconds)
        if found:
            edge = found.edge
        else:
            seconds -= time.monotonic() - begin
            hurried = replace(player, seconds=max(LEAST_SECONDS, seconds))
            edge = expert.decide(hurried, drawn)
        if self.refused and edge in self.refused and record is self.record:
            order = expert.preference(player.think(expert.SIMULATIONS[0], drawn), drawn)
            edge = next(edge for edge in order if edge not in self.refused)
        if clock:
            clock.left -= time.monotonic() - begin
        return edge

    def _expert(self) -> expert.Expert:
        """Return the expert of this board."""
        if self.game not in self._experts:
            agent = resize(self.agent, self.game, "board: this network")
            made = expert.new_expert(agent, self.seconds)
            self._experts[self.game] = made
        return self._experts[self.game]

    def _stand_in(self, drawn: np.ndarray, seconds: float) -> Answer | None:
        """Return None where the expert can decide in so many seconds, else who answers for it."""
        player, game = self._expert(), self.game

        def compile_() -> None:
            self.tell(f"compiling for {game}")
            expert.prepare(player)
            # The expert is kept; its program may be gone after many other boards.
            player.think(expert.SIMULATIONS[0], drawn)
            self.tell("ready")

        found = first_answer(game, drawn, self, compile_, player.agent, seconds)
        if found and seconds and found.by != "exact":
            self.tell(f"still compiling: {STAND_INS[found.by]} answers")
        return found
