"""Settings of a training run: self-play, replay, learning and evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from jsonargparse.typing import (
    ClosedUnitInterval,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from jaxzero.config.agent import GameConfig, NetworkConfig, SearchConfig, check_types
from jaxzero.config.lengths import Lengths
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes


def check_opening(field: str, plies: int, board: DotsAndBoxes) -> None:
    """Raise an InputError for an opening with more moves than the board has edges."""
    if plies > board.num_edges:
        raise InputError(f"{field}: {plies} is more than the {board.num_edges} edges of {board}")


@dataclass(frozen=True)
class SelfplayConfig:
    """Games of the network against itself."""

    games_per_iteration: PositiveInt = 1024
    """Games per iteration, all devices together. All games run in parallel: more games use a GPU
    better and take more memory. With late_start_moves a quarter of the games runs at a time."""
    late_start_moves: NonNegativeInt = 0
    """Number of random moves before self-play starts. They are not stored. Half of the games start
    even later, but games without enough steps left are not played. Later starts give shorter games
    and cleaner value targets. On 5x5 use three quarters of the moves, and let late_start_until
    lower them to 0. Captures do not count. Needs search.nodes quiet."""
    late_start_until: ClosedUnitInterval = 0.0
    """Fraction of the run over which late_start_moves falls linearly to 0; 0: it does not fall.
    Openings are learnt only after the endgames that follow them are played well. A twelfth of the
    games runs at a time. Once games are long, fewer than games_per_iteration are played."""
    random_opening_moves: NonNegativeInt = 6
    """Self-play begins each game with 0 to this many uniformly random moves, so that games differ.
    They have policy targets, but no margin targets. Captures count with search.nodes all only."""
    sampled_moves: NonNegativeInt = 8
    """Number of first moves of each game that are sampled from the policy of the search
    (temperature 1). Random opening moves count among them, but stay uniformly random. The search
    chooses later moves, still with Gumbel noise."""
    random_move_fraction: ClosedUnitInterval = 0.0
    """Fraction of games with one uniformly random move after the opening. Value targets before it
    are masked. Self-play then also learns to refute moves that it never plays. 0.2 in all presets
    but tiny. A game that ends before the chosen ply has no such move."""
    surprise_weight: ClosedUnitInterval = 0.0
    """Fraction of the stored positions that are sampled in proportion to how much the search
    changed the policy of the network (policy surprise weighting of KataGo). The others are sampled
    uniformly. 0.5 in all presets but tiny."""
    td_lambda: ClosedUnitInterval = 1.0
    """Lambda of the margin targets of early positions (TD(lambda), Sutton 1988). 1: the result of
    the game. Lower: the result mixed with the values of the searches after the next moves, the
    k-th with weight (1 - td_lambda) * td_lambda^(k - 1). Far from the end of a game, its result is
    a noisy target."""
    td_above_edges: NonNegativeInt = 24
    """With at most this many undrawn edges in the searched position, the result is the target."""

    def __post_init__(self):
        check_types(self, "selfplay")
        if self.late_start_until and not self.late_start_moves:
            raise InputError(
                f"selfplay.late_start_until: {self.late_start_until} needs "
                "selfplay.late_start_moves above 0, not 0"
            )


@dataclass(frozen=True)
class ReplayConfig:
    """The ring buffer of recent positions, on the device."""

    capacity: PositiveInt = 1_000_000
    """Number of newest positions to keep, all devices together; rounded up to whole iterations. A
    position takes about 2.2 bytes per edge."""

    def __post_init__(self):
        check_types(self, "replay")


@dataclass(frozen=True)
class LearnerConfig:
    """Gradient descent with clipping, warm-up and a late cosine decay."""

    batch_size: PositiveInt = 1024
    """Positions per update, all devices together; divisible by the number of devices. A larger
    batch raises the replay ratio."""
    updates_per_iteration: NonNegativeInt = 64
    """Updates after the games of each iteration. With batch_size it sets the replay ratio: how
    often an average position is sampled. The presets have a replay ratio of 3 to 8, lower on large
    boards; at 10 a 5x5 network memorised noisy results."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """Optimiser. muon: steps of weight matrices are equally long in all directions (Jordan et al.
    2024). With conv and a learning_rate of 3e-3, muon learnt more in short runs, but less in two
    hours on 5x5. muon takes more time with wide layers."""
    learning_rate: PositiveFloat = 1e-3
    """Learning rate after the warm-up. Lower it when the loss is unstable."""
    warmup_updates: NonNegativeInt = 100
    """Updates over which the learning rate rises from zero."""
    decay_fraction: ClosedUnitInterval = 0.5
    """Last fraction of the run over which the learning rate falls along a cosine to 2 % of its
    value; 0: it never falls. The run ends at iterations or minutes, whichever comes first."""
    weight_decay: NonNegativeFloat = 1e-4
    """Decoupled weight decay of matrices and kernels, not of biases and scales."""
    gradient_clip: PositiveFloat = 1.0
    """Largest global norm of a gradient; larger gradients are scaled down to it."""

    def __post_init__(self):
        check_types(self, "learner")


@dataclass(frozen=True)
class EvaluationConfig:
    """Matches and solved positions that measure the network, during training and after it."""

    evaluate_every: NonNegativeInt = 10
    """Iterations between evaluations; 0: only at the end."""
    games: PositiveInt = 128
    """Games per match during training, even: each opening is played twice with swapped seats."""
    final_games: PositiveInt = 512
    """Games per match at the end of the run, even."""
    simulations: NonNegativeInt = 64
    """Simulations per move of the network in evaluations; 0: the policy without search."""
    random_opening_moves: NonNegativeInt = 4
    """Each pair of games begins with 0 to this many random edges; here captures count too."""
    opponents: str = "random,greedy"
    """Players to play against, separated by commas: random, greedy, perfect, or perfect:SHARE,
    which plays this share of its moves at random. Empty: no matches."""
    suite: str = "auto"
    """Suite of exactly solved positions to score the network on: table, a stored suite such as
    5x5_tuning, a file of make_suite.py, or none. auto: table (positions of random play) on boards
    of up to 24 edges, else the stored tuning half for the board, if there is one. Keep the test
    half for the final result."""
    gate_threshold: ClosedUnitInterval = 0.0
    """Fraction of the points that new weights must win against the best weights before self-play
    uses the new ones; checked at every evaluation. 0: self-play always uses the newest weights."""

    def __post_init__(self):
        check_types(self, "evaluation")
        if self.gate_threshold and not self.evaluate_every:
            raise InputError(
                f"evaluation.gate_threshold: {self.gate_threshold} needs "
                "evaluation.evaluate_every of at least 1, not 0"
            )
        for name in ("games", "final_games"):
            if getattr(self, name) % 2:
                raise InputError(
                    f"evaluation.{name}: {getattr(self, name)} must be even "
                    "(pairs with swapped seats)"
                )


@dataclass(frozen=True)
class Config(Lengths):
    """Settings of a training run."""

    game: GameConfig = field(default_factory=GameConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    selfplay: SelfplayConfig = field(default_factory=SelfplayConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    seed: NonNegativeInt = 0
    """Seed of all random numbers. The same seed, config and devices repeat a run exactly."""
    iterations: NonNegativeInt = 100
    """Iterations of the whole run; each is self-play, then learning. 0: no limit; only minutes ends
    the run."""
    minutes: NonNegativeFloat = 0.0
    """Minutes of self-play and learning of the whole run, over all resumes; compiling and
    evaluations take extra time. The iteration in which the minutes run out is the last. 0: no
    limit. Time-limited runs are not reproducible: the learning rate follows the clock."""
    devices: NonNegativeInt = 0
    """Number of GPUs to use; 0: all. A CPU is one device unless JAX_NUM_CPU_DEVICES is set."""
    checkpoint_every: PositiveInt = 20
    """Iterations between checkpoints; the last iteration always has one."""
    save_replay: bool = True
    """Save the replay buffer with the newest two checkpoints. A resumed run then equals an
    uninterrupted run. The buffer is the largest part of a checkpoint."""

    def __post_init__(self):
        check_types(self)
        if not self.iterations and not self.minutes:
            raise InputError("iterations: 0 needs minutes above 0, or the run has no end")
        if self.selfplay.late_start_moves and self.search.nodes != "quiet":
            raise InputError(
                f"selfplay.late_start_moves: {self.selfplay.late_start_moves} needs search.nodes "
                f"quiet, not {self.search.nodes}"
            )
        if self.shortest_whole_game <= self.selfplay.late_start_moves:
            raise InputError(
                f"selfplay.late_start_moves: {self.selfplay.late_start_moves} leaves nothing to "
                f"play on {self.game.board}"
            )
        for name in ("selfplay", "evaluation"):
            plies = getattr(self, name).random_opening_moves
            check_opening(f"{name}.random_opening_moves", plies, self.game.board)

    def fraction_done(self, iterations: int, minutes: float) -> float:
        """Return the fraction of the run that is done, by iterations or by minutes.

        The larger fraction counts, so schedules reach their end whichever limit comes first.
        """
        of_iterations = iterations / self.iterations if self.iterations else 0.0
        of_minutes = minutes / self.minutes if self.minutes else 0.0
        return min(1.0, max(of_iterations, of_minutes))

    @property
    def iterations_kept(self) -> int:
        """Iterations of positions in the full replay buffer."""
        return -(-self.replay.capacity // self.positions_per_iteration)

    @property
    def replay_ratio(self) -> float:
        """Times each position is sampled for learning, on average."""
        sampled = self.learner.batch_size * self.learner.updates_per_iteration
        return sampled / self.new_positions_per_iteration

    def check_devices(self, devices: int) -> None:
        """Raise an InputError unless games and samples divide evenly over `devices`."""
        for name, value in (
            ("selfplay.games_per_iteration", self.selfplay.games_per_iteration),
            ("learner.batch_size", self.learner.batch_size),
        ):
            if value % devices:
                raise InputError(f"{name}: {value} is not divisible by {devices} devices")
