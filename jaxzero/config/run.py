"""All settings of a run, and the counts that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxzero.config.agent import GameConfig, NetworkConfig, SearchConfig
from jaxzero.config.checks import require
from jaxzero.config.training import EvaluationConfig, LearnerConfig, ReplayConfig, SelfplayConfig
from jaxzero.errors import InputError
from jaxzero.game.quiet import fewest_decisions, most_decisions


@dataclass(frozen=True)
class Config:
    """Settings of a training run."""

    game: GameConfig = field(default_factory=GameConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    selfplay: SelfplayConfig = field(default_factory=SelfplayConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    seed: int = 0
    """Seed of everything random."""
    iterations: int = 100
    """Iterations of the whole run; the decay of the step size ends here."""
    devices: int = 0
    """Devices to use; 0: all there are."""
    checkpoint_every: int = 20
    """Iterations between checkpoints; there is always one at the end."""
    keep_checkpoints: int = 10
    """Newest checkpoints kept."""
    save_replay: bool = True
    """Save the replay ring with the newest checkpoint, so that resuming equals not stopping."""

    def __post_init__(self):
        require("", self, ">= 0", "seed", "devices")
        require("", self, "<= 4294967295", "seed")
        require("", self, ">= 1", "iterations", "checkpoint_every", "keep_checkpoints")
        for name in ("surprise_weight", "start_ply"):
            value = getattr(self.selfplay, name)
            if value and self.search.reduction != "exact":
                raise InputError(
                    f"selfplay.{name}: {value} needs search.reduction exact, not "
                    f"{self.search.reduction}"
                )
        if self.positions_per_game < 1:
            raise InputError(
                f"selfplay.start_ply: {self.selfplay.start_ply} leaves nothing to play on "
                f"{self.game.board}"
            )

    @property
    def positions_per_game(self) -> int:
        """Positions that self-play adds for each game: one an edge, or with the reduction `exact`
        one a decision, of which the few beyond the fewest there can be are left out."""
        board = self.game.board
        exact = self.search.reduction == "exact"
        return (fewest_decisions(board) if exact else board.num_edges) - self.selfplay.start_ply

    @property
    def steps_per_game(self) -> int:
        """Steps of self-play that there is room for, in each game."""
        board = self.game.board
        exact = self.search.reduction == "exact"
        return (most_decisions(board) if exact else board.num_edges) - self.selfplay.start_ply

    @property
    def positions_per_iteration(self) -> int:
        """Positions that self-play adds in one iteration, all devices together."""
        return self.selfplay.games * self.positions_per_game

    @property
    def iterations_kept(self) -> int:
        """Iterations of positions in the full replay ring."""
        return -(-self.replay.capacity // self.positions_per_iteration)

    @property
    def replay_ratio(self) -> float:
        """Times each position is drawn for learning, on average."""
        drawn = self.learner.batch_size * self.learner.updates_per_iteration
        return drawn / self.positions_per_iteration

    @property
    def evaluations_per_iteration(self) -> int:
        """Network evaluations of self-play in one iteration: one a simulation, one a root.

        Those of decisions that are left out and of games that wait for the last are not counted.
        """
        return self.positions_per_iteration * (self.search.simulations + 1)

    def check_devices(self, devices: int) -> None:
        """Raise an InputError unless games and samples divide evenly over `devices`."""
        for name, value in (
            ("selfplay.games", self.selfplay.games),
            ("learner.batch_size", self.learner.batch_size),
        ):
            if value % devices:
                raise InputError(f"{name}: {value} is not divisible by {devices} devices")
