"""How long games are and how many positions they give, as it follows from the settings of a run.

A decision is a search and its move. Whole games differ little in length. Games that begin late
(`selfplay.late_start_moves`) are short and differ much, so a lane of the batch plays several of
them, one after the other.
"""

from __future__ import annotations

import math

from jaxzero.game.quiet import fewest_decisions, most_decisions

# Games that start late. A lane has twice the steps of the longest of them: about four games fit.
# Where the start falls to the first move, a lane has twice the steps of a whole game: twelve fit of
# those that start as late as `late_start_moves`.
GAMES_PER_LANE, GAMES_PER_LANE_FALLING = 4, 12


class Lengths:
    """Properties of a `Config`, which has the fields `game`, `search`, `selfplay`.

    A quiet game of 3x3 has 15 to 17 decisions: `shortest_whole_game` and `longest_game`.
    """

    @property
    def positions_per_game(self) -> int:
        """Positions stored per game: about the decisions of a game.

        Half of the games that start late start later than `late_start_moves`, at any later ply.
        """
        if self.selfplay.late_start_until:
            three_quarters = 3 * self.lane_steps / (4 * GAMES_PER_LANE_FALLING)
            return max(1, math.ceil(three_quarters - 0.5))  # the nearest, of two the smaller
        late = self.selfplay.late_start_moves > 0
        return max(1, 3 * self.shortest_game // 4) if late else self.shortest_game

    def lanes(self, games: int) -> int:
        """Return how many of `games` games of an iteration are played at once.

        Games that start late are short and differ in length: a lane plays several of them.
        """
        if not self.selfplay.late_start_moves:
            return games
        falls = self.selfplay.late_start_until > 0
        return max(1, games // (GAMES_PER_LANE_FALLING if falls else GAMES_PER_LANE))

    @property
    def solver_positions_per_game(self) -> int:
        """Solved positions stored per game, beside those of self-play."""
        return self.selfplay.solver_positions_per_game if self.selfplay.solver_below_edges else 0

    @property
    def moves_to_stop(self) -> int:
        """Edges drawn before a game is adjudicated; all edges where none is."""
        return self.game.board.num_edges - self.selfplay.solver_below_edges

    @property
    def decisions_per_lane(self) -> int:
        """Decisions of a lane in an iteration, as speeds count them.

        A whole game counts as many as the shortest, however many it will have. Lanes that play one
        late game after another are busy at every step.
        """
        return self.lane_steps if self.selfplay.late_start_moves else self.shortest_game

    @property
    def lane_steps(self) -> int:
        """Decisions at most that a lane makes in an iteration."""
        return self.longest_game * (2 if self.selfplay.late_start_moves else 1)

    @property
    def shortest_whole_game(self) -> int:
        """Decisions of the shortest game from the first move on."""
        board = self.game.board
        return fewest_decisions(board) if self.search.nodes == "quiet" else board.num_edges

    @property
    def shortest_game(self) -> int:
        """Decisions of the shortest whole game after the random moves at its start.

        An estimate where games are adjudicated: near the end a move and the captures after it draw
        about five edges.
        """
        cut = self.shortest_whole_game - self.selfplay.solver_below_edges // 5
        return max(1, min(cut, self.moves_to_stop) - self.shortest_start)

    @property
    def longest_game(self) -> int:
        """Decisions of the longest game."""
        board = self.game.board
        quiet = self.search.nodes == "quiet"
        most = most_decisions(board) if quiet else board.num_edges
        return min(most, self.moves_to_stop) - self.shortest_start

    @property
    def shortest_start(self) -> int:
        """Random moves before the longest game of the run."""
        return 0 if self.selfplay.late_start_until else self.selfplay.late_start_moves

    @property
    def positions_per_iteration(self) -> int:
        """Positions that an iteration adds to the replay, all devices together."""
        return self.selfplay.games_per_iteration * (
            self.positions_per_game + self.solver_positions_per_game
        )

    @property
    def new_positions_per_iteration(self) -> int:
        """Positions that an iteration adds to the replay, each counted once.

        Games that start late may have fewer decisions than are stored: some are stored twice.
        """
        games = self.selfplay.games_per_iteration
        played = self.lanes(games) * self.decisions_per_lane
        return min(games * self.positions_per_game, played) + games * self.solver_positions_per_game

    @property
    def decisions_per_iteration(self) -> int:
        """Decisions of self-play in one iteration."""
        return self.lanes(self.selfplay.games_per_iteration) * self.decisions_per_lane

    @property
    def evaluations_per_iteration(self) -> int:
        """Network evaluations of self-play in one iteration: one per simulation, one per root."""
        return self.decisions_per_iteration * (self.search.simulations + 1)
