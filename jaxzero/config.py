"""Every setting of a run, with its default, unit and meaning.

The dataclasses are the single source of defaults and of the help texts. Values are checked once,
at construction. Counts of games, positions and samples are totals over all devices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.game.quiet import fewest_decisions, most_decisions


def _require(section: str, settings: Any, condition: str, *names: str) -> None:
    """Raise an InputError for the first named field that breaks `condition`, e.g. "> 0"."""
    operator, bound = condition.split()
    holds = {
        ">=": lambda value: value >= float(bound),
        ">": lambda value: value > float(bound),
        "<": lambda value: value < float(bound),
        "<=": lambda value: value <= float(bound),
    }[operator]
    for name in names:
        value = getattr(settings, name)
        if not math.isfinite(value) or not holds(value):
            raise InputError(f"{section}.{name}: {value} must be {condition}".lstrip("."))


@dataclass(frozen=True)
class GameConfig:
    """The board."""

    rows: int = 5
    """Rows of boxes."""
    cols: int = 5
    """Columns of boxes."""

    def __post_init__(self):
        _require("game", self, ">= 1", "rows", "cols")
        _require("game", self, "<= 20", "rows", "cols")

    @property
    def board(self) -> DotsAndBoxes:
        return DotsAndBoxes(self.rows, self.cols)


@dataclass(frozen=True)
class NetworkConfig:
    """The residual network."""

    trunk: Literal["conv", "dense", "lattice", "graph"] = "conv"
    """conv: a ResNet on the grid of dots; dense: fully connected residual blocks on the edges;
    lattice: a ResNet with a square for every dot, edge and box; graph: messages between boxes
    through the open edges."""
    features: Literal["raw", "structure"] = "structure"
    """raw: the edges alone; structure: also free boxes, chains, loops and counts with their parity,
    derived from the edges on the device."""
    channels: int = 128
    """Width of the trunk: channels of a square or box, or units (dense)."""
    blocks: int = 10
    """Residual blocks, two layers each."""
    pooling_every: int = 3
    """Every so many blocks the pooled board feeds back into all squares or boxes (not dense); 0:
    never."""
    attention_heads: int = 0
    """Heads of a self-attention block over the squares or boxes at the end of the trunk (not
    dense); 0: none."""
    squeeze_excitation: bool = False
    """Scale the channels of each block by a function of the pooled board (conv, lattice)."""
    compute_dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Number format of activations and matrix products (parameters are always float32); auto:
    float32 on a CPU, which has no fast bfloat16, else bfloat16."""
    convolution: Literal["auto", "direct", "shifted", "winograd"] = "auto"
    """How convolutions are computed. direct: the library's own; shifted: nine slices and a matrix
    product; winograd: Winograd's minimal filtering, float32 only; auto: winograd on a CPU (shifted
    for small batches), else direct."""

    def __post_init__(self):
        _require("network", self, ">= 1", "channels", "blocks")
        _require("network", self, ">= 0", "pooling_every", "attention_heads")
        if self.convolution == "winograd" and self.compute_dtype == "bfloat16":
            raise InputError("network.convolution: winograd needs float32, not bfloat16")
        if self.attention_heads and self.trunk == "dense":
            self._refuse("attention_heads", "conv, lattice or graph")
        if self.squeeze_excitation and not self.convolutional:
            self._refuse("squeeze_excitation", "conv or lattice")
        if self.attention_heads and self.channels % self.attention_heads:
            raise InputError(
                f"network.attention_heads: {self.attention_heads} does not divide "
                f"network.channels {self.channels}"
            )

    def _refuse(self, name: str, trunks: str) -> None:
        raise InputError(
            f"network.{name}: {getattr(self, name)} needs network.trunk {trunks}, not {self.trunk}"
        )

    @property
    def convolutional(self) -> bool:
        return self.trunk in ("conv", "lattice")

    def pools_after(self, block: int) -> bool:
        """Return whether the pooled board feeds back within `block`, counted from 0."""
        return self.pooling_every > 0 and (block + 1) % self.pooling_every == 0


@dataclass(frozen=True)
class SearchConfig:
    """The tree search of self-play."""

    simulations: int = 16
    """Simulations per move; each evaluates one position."""
    considered: int = 16
    """Root actions that enter sequential halving, at most."""
    value_scale: float = 0.5
    """Weight of values against priors (c_scale of Gumbel AlphaZero, in units of mctx: 0.5 here is
    1.0 of the paper, whose values span 0 to 1)."""
    visit_offset: float = 50.0
    """Visits added to the most visited child before scaling values (c_visit of the paper)."""
    win_weight: float = 0.0
    """Utility: 0 is the margin in boxes, 1 the win probability, between them a mixture."""
    max_depth: int = 0
    """Deepest descent below the root, in plies; 0: no limit."""
    reduction: Literal["none", "exact"] = "exact"
    """none: every position is searched; exact: only those without a free box, as what becomes of
    free boxes follows from the value of the position behind them."""

    def __post_init__(self):
        _require("search", self, ">= 1", "simulations", "considered")
        _require("search", self, ">= 0", "value_scale", "visit_offset", "win_weight", "max_depth")
        _require("search", self, "<= 1", "win_weight")
        if self.reduction == "exact" and self.win_weight:
            raise InputError(
                f"search.win_weight: {self.win_weight} needs search.reduction none, not exact"
            )


@dataclass(frozen=True)
class SelfplayConfig:
    """Games of the network against itself."""

    games: int = 1024
    """Games per iteration, all devices together."""
    opening_plies: int = 6
    """Each game starts with 0 to this many uniformly random moves."""
    sampled_plies: int = 8
    """Before this ply the move is drawn from the search policy, after it the best is taken."""
    deviations: float = 0.0
    """Share of the games in which one later move, at any point, is uniformly random: what both
    sides agree about is put to the test. Results teach the value only from there on."""
    surprise_weight: float = 0.0
    """Share of the positions that are picked in proportion to how far the search moved the policy
    away from the network's, the rest evenly (policy surprise weighting of KataGo)."""

    def __post_init__(self):
        _require("selfplay", self, ">= 1", "games")
        _require("selfplay", self, ">= 0", "opening_plies", "sampled_plies")
        _require("selfplay", self, ">= 0", "deviations", "surprise_weight")
        _require("selfplay", self, "<= 1", "deviations", "surprise_weight")


@dataclass(frozen=True)
class ReplayConfig:
    """The ring of recent positions, on the device."""

    capacity: int = 1_000_000
    """Positions kept, all devices together; rounded up to whole iterations."""

    def __post_init__(self):
        _require("replay", self, ">= 1", "capacity")


@dataclass(frozen=True)
class LearnerConfig:
    """Gradient descent: AdamW with clipping, warm-up and a late decay."""

    batch_size: int = 1024
    """Positions per update, all devices together."""
    updates_per_iteration: int = 64
    """Updates after each batch of games; sets the replay ratio."""
    learning_rate: float = 1e-3
    """Step size after the warm-up."""
    warmup_updates: int = 100
    """Updates over which the step size rises from zero."""
    decay_share: float = 0.5
    """Last share of the run over which the step size falls along a cosine; 0: never."""
    final_rate: float = 0.02
    """Step size at the end of the decay, as a share of learning_rate."""
    weight_decay: float = 1e-4
    """Decoupled weight decay of matrices and kernels (not of biases and scales)."""
    gradient_clip: float = 1.0
    """Largest global norm of a gradient."""
    ema_decay: float = 0.0
    """Self-play and evaluation use an average of the weights with this decay per update; 0: off."""
    policy_weight: float = 1.0
    """Weight of the policy's cross-entropy in the loss."""
    margin_weight: float = 1.0
    """Weight of the remaining margin's cross-entropy in the loss."""
    symmetries: bool = True
    """Show each sample under a random symmetry of the board."""

    def __post_init__(self):
        _require("learner", self, ">= 1", "batch_size")
        _require("learner", self, ">= 0", "updates_per_iteration", "warmup_updates", "weight_decay")
        _require("learner", self, "> 0", "learning_rate", "gradient_clip")
        _require("learner", self, ">= 0", "decay_share", "final_rate", "ema_decay")
        _require("learner", self, ">= 0", "policy_weight", "margin_weight")
        _require("learner", self, "<= 1", "decay_share", "final_rate")
        _require("learner", self, "< 1", "ema_decay")


@dataclass(frozen=True)
class EvaluationConfig:
    """Matches during and after training."""

    evaluate_every: int = 10
    """Iterations between evaluations; 0: only at the end."""
    games: int = 128
    """Games per match during training, in colour-swapped pairs."""
    final_games: int = 512
    """Games per match at the end of the run."""
    simulations: int = 64
    """Simulations per move of the network in matches; 0: the raw policy."""
    opening_plies: int = 4
    """Each pair of games starts with the same 0 to this many random moves."""
    opponents: str = "random,greedy"
    """Players to meet, separated by commas."""
    suite: str = "auto"
    """Solved positions to examine the network on: table, 5x5, ..., none; auto: the table on boards
    of up to 24 edges, else the stored suite of the board where there is one."""
    gate_threshold: float = 0.0
    """Self-play keeps the best weights until new ones take at least this share of the points of a
    match against them, at every evaluation; 0: always the newest."""

    def __post_init__(self):
        _require("evaluation", self, ">= 0", "evaluate_every", "simulations", "opening_plies")
        _require("evaluation", self, ">= 0", "gate_threshold")
        _require("evaluation", self, "<= 1", "gate_threshold")
        _require("evaluation", self, ">= 2", "games", "final_games")
        if self.gate_threshold and not self.evaluate_every:
            raise InputError(
                f"evaluation.gate_threshold: {self.gate_threshold} needs "
                "evaluation.evaluate_every of at least 1, not 0"
            )
        for name in ("games", "final_games"):
            if getattr(self, name) % 2:
                raise InputError(
                    f"evaluation.{name}: {getattr(self, name)} must be even (colour-swapped pairs)"
                )


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
        _require("", self, ">= 0", "seed", "devices")
        _require("", self, "<= 4294967295", "seed")
        _require("", self, ">= 1", "iterations", "checkpoint_every", "keep_checkpoints")
        if self.selfplay.surprise_weight and self.search.reduction != "exact":
            raise InputError(
                f"selfplay.surprise_weight: {self.selfplay.surprise_weight} needs "
                f"search.reduction exact, not {self.search.reduction}"
            )

    @property
    def positions_per_game(self) -> int:
        """Positions that self-play adds for each game: one an edge, or with the reduction `exact`
        one a decision, of which the few beyond the fewest there can be are left out."""
        board = self.game.board
        exact = self.search.reduction == "exact"
        return fewest_decisions(board) if exact else board.num_edges

    @property
    def steps_per_game(self) -> int:
        """Steps of self-play that there is room for, in each game."""
        board = self.game.board
        return most_decisions(board) if self.search.reduction == "exact" else board.num_edges

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
