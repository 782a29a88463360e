"""Play as an engine for programs: keep a game and clocks, and choose moves.

The player is the expert, which combines network and exact solver. `Clock` divides the time of the
game among its decisions. Most time goes to positions that the solver can barely prove. Pondering
runs the solver while the opponent thinks; its proofs stay in the table of the board.
"""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from threading import Thread

import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, count_sides
from jaxzero.game.records import RecordedGame
from jaxzero.host.background import Job, Programs
from jaxzero.network.network import Agent
from jaxzero.play.game import LARGEST_SIDE, draw_turn
from jaxzero.players import expert
from jaxzero.players.players import choose_by_rules
from jaxzero.runs.resize import check_fits, resize
from jaxzero.solver import proof
from jaxzero.solver.small import exact_answer

# With this many undrawn edges a proof is hard but can succeed: these decisions get more time.
HARD = range(34, 49)
HARD_WEIGHT, EASY_WEIGHT, OPENING_WEIGHT = 3.0, 0.5, 1.0
MAX_OF_CLOCK = 0.2  # share of the remaining time, for one decision
MAX_OF_TURN = 0.8  # share of the overtime of a turn, for one decision
RESERVE, LEAST_RESERVE = 0.05, 1.0  # kept for delays and endings: a share of the clock, and seconds
CAPTURE_SECONDS = 0.3  # most seconds when a box can be taken: the table holds earlier proofs
LEAST_SECONDS = 0.02


@dataclass
class Clock:
    """The time of one side, in seconds: the time left for the game, and overtime for each turn."""

    left: float
    turn: float = 0.0  # overtime for each turn, as byo-yomi

    def for_decision(self, undrawn: int, boxes_left: int) -> float:
        """Return the seconds for a decision with this many undrawn edges and open boxes."""
        # About one edge per open box does not pass the turn. Half of the other turns are ours.
        weights = [weight(edges) for edges in range(undrawn, boxes_left, -2)] or [EASY_WEIGHT]
        usable = max(0.0, self.left - max(RESERVE * self.left, LEAST_RESERVE))
        share = min(usable * weights[0] / sum(weights), MAX_OF_CLOCK * usable)
        return max(LEAST_SECONDS, share, MAX_OF_TURN * self.turn)


def weight(undrawn: int) -> float:
    """Return the relative weight of a decision in the division of time."""
    if undrawn in HARD:
        return HARD_WEIGHT
    return EASY_WEIGHT if undrawn < HARD.start else OPENING_WEIGHT


@dataclass(eq=False)  # sessions compare by identity
class Session:
    """A game in play, the agent that plays it, and its time limits.

    Raises: InputError for a board that the agent cannot play.
    """

    agent: Agent
    seconds: float  # for a decision without a clock
    full: Clock | None = None  # each side's clock at the start of a game
    tell: Callable[[str], None] = lambda _words: None  # gets progress messages
    done: bool = field(init=False, default=False)  # the program asked to quit
    clocks: dict[int, Clock] = field(init=False)  # by player; empty without clocks
    words: deque[str] = field(init=False, default_factory=deque)  # of an incomplete message
    game: RecordedGame = field(init=False)
    plays: int | None = field(init=False)  # the engine's player, if the protocol sets one
    past: list[RecordedGame] = field(init=False)  # games before each turn, for `undo`
    # Edges that must not begin the next turn; None unless the engine has just sent a turn.
    refused: set[int] | None = field(init=False)
    _said: bool = field(init=False)  # that simple rules answer in this game
    _job: Job | None = field(init=False, default=None)  # compiles for the newest board
    _experts: dict[DotsAndBoxes, expert.Expert] = field(init=False, default_factory=dict)
    _pondering: tuple[proof.ProofTask, Thread] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.new_game(self.agent.network.board)

    @property
    def board(self) -> DotsAndBoxes:
        return self.game.board

    def new_game(self, board: DotsAndBoxes | None = None) -> None:
        """Begin a game with full clocks. Raises: InputError for a board that cannot be played."""
        board = board or self.board
        if max(board.rows, board.cols) > LARGEST_SIDE:
            raise InputError(f"board: {board} must be at most {LARGEST_SIDE}x{LARGEST_SIDE}")
        check_fits(self.agent.network, board, "board: this network")
        self.game, self.plays = RecordedGame(board.rows, board.cols), None
        self.past, self.refused, self._said = [], None, False
        self.start_clocks(self.full)

    def start_clocks(self, full: Clock | None) -> None:
        """Give both sides a full clock, or none, in this game and in later games."""
        self.full = full
        self.clocks = {player: replace(full) for player in (0, 1)} if full else {}

    def get_ready(self) -> Job:
        """Compile the programs for a decision on this board in a thread, and those of no other."""
        before, self._job = self._job, self._programs().request()
        if before:
            before.withdraw()
        return self._job

    def go_on(self, game: RecordedGame) -> None:
        """Replace the game by its continuation; `undo` returns to the old game."""
        self.past.append(self.game)
        self.game = game

    def undo(self) -> list[int]:
        """Take back the last turn and return its edges. Raises: InputError."""
        if not self.past:
            raise InputError("undo: there is no move to take back")
        undone, self.game = self.game.moves, self.past.pop()
        return list(undone[len(self.game.moves) :])

    def play_turn(self) -> list[int]:
        """Draw edges until the turn passes or the game is over; return them. Raises: InputError."""
        if self.game.is_over:
            raise InputError("turn: the game is over")
        plies = len(self.game.moves)
        self.go_on(draw_turn(self.game, self.choose))
        return list(self.game.moves[plies:])

    def ponder(self) -> None:
        """Start proving the value of the position, if it is near enough to the end of the game.

        Call `stop_pondering` before any other method of the session.
        """
        drawn = self.game.drawn
        provable = expert.may_prove(self.board, drawn) and not self.game.is_over
        if not provable or not self._programs().ready:
            return
        player = self._expert(self.board)
        # One thread, because the opponent may think on the same machine.
        task = expert.task_of(player, drawn, threads=1)

        def prove() -> None:
            guess = float(player.think(expert.SIMULATIONS[0], drawn).value)
            proof.prove_value(task, guess)

        thread = Thread(target=prove, name="pondering", daemon=True)
        thread.start()
        self._pondering = task, thread

    def stop_pondering(self) -> None:
        """Stop the proof that `ponder` started."""
        if self._pondering is not None:
            task, thread = self._pondering
            self._pondering = None
            task.stop()
            thread.join()

    def choose(self, game: RecordedGame) -> int:
        """Return the edge to draw in an unfinished game; the time comes off the clock."""
        clock = self.clocks.get(game.player)
        begin, drawn, seconds = time.monotonic(), game.drawn, self.seconds
        if clock:
            seconds = clock.for_decision(int(np.sum(~drawn)), game.boxes_left)
        if (count_sides(game.board, drawn)[:-1] == 3).any():
            seconds = min(seconds, CAPTURE_SECONDS)
        edge = self._edge_without_compiler(drawn, seconds)
        if edge is None:
            seconds -= time.monotonic() - begin
            hurried = replace(self._expert(self.board), seconds=max(LEAST_SECONDS, seconds))
            edge = expert.decide(hurried, drawn)
        if self.refused and edge in self.refused and game is self.game:
            opinion = self._expert(self.board).think(expert.SIMULATIONS[0], drawn)
            order = expert.preference(opinion, drawn)
            edge = next(edge for edge in order if edge not in self.refused)
        if clock:
            clock.left -= time.monotonic() - begin
        return edge

    def _expert(self, board: DotsAndBoxes) -> expert.Expert:
        """Return the expert for a board; make it at its first use, which takes seconds."""
        if board not in self._experts:
            agent = resize(self.agent, board, "board: this network")
            self._experts[board] = expert.new_expert(agent, self.seconds)
        return self._experts[board]

    def _programs(self) -> Programs:
        """Return the programs for a decision on this board."""
        board = self.board

        def make() -> None:
            self.tell(f"compiling for {board}")
            player = self._expert(board)
            expert.prepare(player)
            # `prepare` skips a known expert, but its program may be gone after many other boards.
            player.think(expert.SIMULATIONS[0], np.zeros(board.num_edges, bool))
            self.tell("ready")

        return Programs(board, self, make)

    def _edge_without_compiler(self, drawn: np.ndarray, seconds: float) -> int | None:
        """Return None if the expert gets ready within `seconds`, else an edge by simple rules."""
        if self._programs().ready:
            return None
        edge = exact_answer(self.board, drawn)
        if edge is not None:
            return edge
        try:
            return self.get_ready().future.result(seconds)
        except (TimeoutError, CancelledError):
            if not self._said:
                self.tell("still compiling: simple rules answer")
            self._said = True
            return int(choose_by_rules(self.board, np.zeros(1, np.uint32), drawn[None])[0])
