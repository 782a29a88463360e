"""Settings of the player: its board, its network and its search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxzero.config.checks import require
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes


@dataclass(frozen=True)
class GameConfig:
    """The board."""

    rows: int = 5
    """Rows of boxes."""
    cols: int = 5
    """Columns of boxes."""

    def __post_init__(self):
        require("game", self, ">= 1", "rows", "cols")
        require("game", self, "<= 20", "rows", "cols")

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
        require("network", self, ">= 1", "channels", "blocks")
        require("network", self, ">= 0", "pooling_every", "attention_heads")
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
    value_scale_per_box: float = 0.05
    """Weight of values in boxes against priors (c_scale of Gumbel AlphaZero): one box adds
    value_scale_per_box * (visit_offset + visits of the most visited move) to the logit of a move,
    at first 2.5 nats with the defaults. The same on boards of any size. With win_weight a win
    counts as much as all boxes of the board."""
    visit_offset: float = 50.0
    """Visits added to those of the most visited move before values are scaled (c_visit)."""
    win_weight: float = 0.0
    """Utility: 0 is the margin in boxes, 1 the win probability, between them a mixture."""
    max_depth: int = 0
    """Deepest descent below the root, in plies; 0: no limit."""
    reduction: Literal["none", "exact"] = "exact"
    """none: every position is searched; exact: only those without a free box, as what becomes of
    free boxes follows from the value of the position behind them."""

    def __post_init__(self):
        require("search", self, ">= 1", "simulations", "considered")
        require(
            "search", self, ">= 0", "value_scale_per_box", "visit_offset", "win_weight", "max_depth"
        )
        require("search", self, "<= 1", "win_weight")
        if self.reduction == "exact" and self.win_weight:
            raise InputError(
                f"search.win_weight: {self.win_weight} needs search.reduction none, not exact"
            )
