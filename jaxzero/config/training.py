"""Settings of learning: self-play, replay, gradient descent and the matches that measure it."""

from __future__ import annotations

from dataclasses import dataclass

from jaxzero.config.checks import require
from jaxzero.errors import InputError


@dataclass(frozen=True)
class SelfplayConfig:
    """Games of the network against itself."""

    games: int = 1024
    """Games per iteration, all devices together."""
    start_ply: int = 0
    """Games begin after this many random moves, half of them after more, and nothing is learnt of
    these: the nearer to the end, the more games a second, and the clearer what they teach."""
    opening_plies: int = 6
    """After `start_ply` each game has 0 to this many uniformly random moves."""
    sampled_plies: int = 8
    """Before this ply, counted from `start_ply`, the move is drawn from the search policy, after it
    the best is taken."""
    deviations: float = 0.0
    """Fraction of games with one uniformly random move after the opening. Value targets before it
    are masked. It lets self-play refute what both sides agree on. A game that ends before the move
    it was drawn for has none."""
    surprise_weight: float = 0.0
    """Share of the positions that are picked in proportion to how far the search moved the policy
    away from the network's, the rest evenly (policy surprise weighting of KataGo)."""

    def __post_init__(self):
        require("selfplay", self, ">= 1", "games")
        require("selfplay", self, ">= 0", "start_ply", "opening_plies", "sampled_plies")
        require("selfplay", self, ">= 0", "deviations", "surprise_weight")
        require("selfplay", self, "<= 1", "deviations", "surprise_weight")


@dataclass(frozen=True)
class ReplayConfig:
    """The ring of recent positions, on the device."""

    capacity: int = 1_000_000
    """Positions kept, all devices together; rounded up to whole iterations."""

    def __post_init__(self):
        require("replay", self, ">= 1", "capacity")


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
    """Self-play and evaluation use a moving average of the weights with this decay per update; 0:
    off. The decay rises to it as min(ema_decay, (1 + t) / (10 + t)) over the updates t."""
    policy_weight: float = 1.0
    """Weight of the policy's cross-entropy in the loss."""
    margin_weight: float = 1.0
    """Weight of the remaining margin's cross-entropy in the loss, a mean over the positions of the
    batch whose margin is known."""
    symmetries: bool = True
    """Show each sample under a random symmetry of the board."""

    def __post_init__(self):
        require("learner", self, ">= 1", "batch_size")
        require("learner", self, ">= 0", "updates_per_iteration", "warmup_updates", "weight_decay")
        require("learner", self, "> 0", "learning_rate", "gradient_clip")
        require("learner", self, ">= 0", "decay_share", "final_rate", "ema_decay")
        require("learner", self, ">= 0", "policy_weight", "margin_weight")
        require("learner", self, "<= 1", "decay_share", "final_rate")
        require("learner", self, "< 1", "ema_decay")


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
        require("evaluation", self, ">= 0", "evaluate_every", "simulations", "opening_plies")
        require("evaluation", self, ">= 0", "gate_threshold")
        require("evaluation", self, "<= 1", "gate_threshold")
        require("evaluation", self, ">= 2", "games", "final_games")
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
