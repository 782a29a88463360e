"""Lengths of games and numbers of positions, computed from the settings of a run.

A decision is a search and its move. A lane is one place in the batch of parallel games. Whole games
differ little in length. Late games (`selfplay.late_start_moves`) are short and differ much in
length, so a lane plays several of them, one after the other.
"""

from __future__ import annotations

import math

from jaxzero.game.quiet import fewest_decisions, most_decisions

# Late games that a lane has room for. A lane has twice the steps of the longest game of the run, so
# about four games fit. With `late_start_until` the longest game is a whole game, so about twelve
# games that start at `late_start_moves` fit.
GAMES_PER_LANE, GAMES_PER_LANE_FALLING = 4, 12


class Lengths:
    """Computed properties of a `Config`, which has the fields `game`, `search` and `selfplay`.

    A quiet game of 3x3 has 15 to 17 decisions: `shortest_whole_game` and `longest_game`.
    """

    @property
    def positions_per_game(self) -> int:
        """Positions stored per game: about the mean number of decisions of a game.

        Half of the late games start later than `late_start_moves`, at a uniformly random ply.
        """
        if self.selfplay.late_start_until:
            three_quarters = 3 * self.lane_steps / (4 * GAMES_PER_LANE_FALLING)
            return max(1, math.ceil(three_quarters - 0.5))  # rounded, halves down
        late = self.selfplay.late_start_moves > 0
        return max(1, 3 * self.shortest_game // 4) if late else self.shortest_game

    def lanes(self, games: int) -> int:
        """Return how many of the `games` games of an iteration run in parallel."""
        if not self.selfplay.late_start_moves:
            return games
        falls = self.selfplay.late_start_until > 0
        return max(1, games // (GAMES_PER_LANE_FALLING if falls else GAMES_PER_LANE))

    @property
    def decisions_per_lane(self) -> int:
        """Decisions of a lane in an iteration, for measuring speeds.

        Every whole game counts as a shortest game, although it may have more decisions. A lane with
        late games counts one decision at every step.
        """
        return self.lane_steps if self.selfplay.late_start_moves else self.shortest_game

    @property
    def lane_steps(self) -> int:
        """Largest number of decisions of a lane in an iteration."""
        return self.longest_game * (2 if self.selfplay.late_start_moves else 1)

    @property
    def shortest_whole_game(self) -> int:
        """Decisions of the shortest game from the first move on."""
        board = self.game.board
        return fewest_decisions(board) if self.search.nodes == "quiet" else board.num_edges

    @property
    def shortest_game(self) -> int:
        """Decisions of the shortest whole game after the random moves at its start."""
        return max(1, self.shortest_whole_game - self.shortest_start)

    @property
    def longest_game(self) -> int:
        """Decisions of the longest game."""
        board = self.game.board
        quiet = self.search.nodes == "quiet"
        most = most_decisions(board) if quiet else board.num_edges
        return most - self.shortest_start

    @property
    def shortest_start(self) -> int:
        """Random moves before the longest game of the run."""
        return 0 if self.selfplay.late_start_until else self.selfplay.late_start_moves

    @property
    def positions_per_iteration(self) -> int:
        """Positions that an iteration adds to the replay, all devices together."""
        return self.selfplay.games_per_iteration * self.positions_per_game

    @property
    def new_positions_per_iteration(self) -> int:
        """Distinct positions that an iteration adds to the replay.

        Late games may have fewer decisions than stored positions; some are then stored twice.
        """
        games = self.selfplay.games_per_iteration
        return min(games * self.positions_per_game, self.decisions_per_iteration)

    @property
    def decisions_per_iteration(self) -> int:
        """Decisions of self-play in one iteration."""
        return self.lanes(self.selfplay.games_per_iteration) * self.decisions_per_lane

    @property
    def evaluations_per_iteration(self) -> int:
        """Network evaluations of self-play in one iteration: one per simulation, one per root."""
        return self.decisions_per_iteration * (self.search.simulations + 1)
