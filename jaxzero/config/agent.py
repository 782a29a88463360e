"""Settings of an agent: its board, its network and its search."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any, Literal

from jsonargparse.typing import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    restricted_number_type,
)

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes

BoardSide = restricted_number_type("BoardSide", int, [(">=", 1), ("<=", 20)])


def check_number(field: str, value: Any, kind: type) -> int | float:
    """Return a value as a plain number of a type such as PositiveInt. Raises: InputError."""
    try:
        return (int if issubclass(kind, int) else float)(kind(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{field}: {value!r} is not a {kind.__name__} ({error})") from error


def check_types(settings: Any, section: str = "") -> None:
    """Check the fields of a frozen dataclass by their types, and make its numbers plain.

    Raises: InputError naming the field and its value.
    """
    for name, kind in typing.get_type_hints(type(settings)).items():
        value, field = getattr(settings, name), f"{section}.{name}".lstrip(".")
        if choices := typing.get_args(kind):  # of a Literal
            if value not in choices:
                raise InputError(f"{field}: {value!r} is not one of {', '.join(choices)}")
        elif issubclass(kind, int | float) and kind is not bool:
            object.__setattr__(settings, name, check_number(field, value, kind))
        elif not isinstance(value, kind):
            raise InputError(f"{field}: {value!r} is not a {kind.__name__}")


@dataclass(frozen=True)
class GameConfig:
    """The board."""

    rows: BoardSide = 5
    """Rows of boxes. A 5x5 board has 6x6 dots."""
    cols: BoardSide = 5
    """Columns of boxes."""

    def __post_init__(self):
        check_types(self, "game")

    @property
    def board(self) -> DotsAndBoxes:
        return DotsAndBoxes(self.rows, self.cols)


@dataclass(frozen=True)
class NetworkConfig:
    """The residual network."""

    trunk: Literal["conv", "dense"] = "conv"
    """Kind of network. conv: a ResNet on the grid of dots. dense: fully connected residual
    blocks; ten times cheaper per position on a CPU, where presets use it up to 3x3."""
    features: Literal["raw", "structure"] = "structure"
    """Input of the network. raw: only the edges. structure: also free boxes, chains, loops and
    their counts, computed from the edges on the device. structure learns several times faster."""
    channels: PositiveInt = 128
    """Width: channels per grid point (conv), units per layer (dense). Larger is stronger and
    slower."""
    blocks: PositiveInt = 10
    """Depth: number of residual blocks."""
    attention_heads: NonNegativeInt = 0
    """Heads of a self-attention layer over grid points after the last block; 0: no such layer. Must
    divide channels. For conv only."""
    safe_end: bool = False
    """Also predict the position without safe moves: who must open the first chain, and how many
    chains and loops of at least three boxes there are. The search does not use this prediction;
    the trunk learns from it what decides the game. For conv only."""
    compute_dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Number format of activations and matrix products; parameters are always float32. auto:
    float32 on a CPU, because bfloat16 is slow there, else bfloat16. Leave auto."""

    def __post_init__(self):
        check_types(self, "network")
        for name in ("attention_heads", "safe_end"):
            if getattr(self, name) and self.trunk != "conv":
                value = getattr(self, name)
                raise InputError(f"network.{name}: {value} needs network.trunk conv, not dense")
        if self.attention_heads and self.channels % self.attention_heads:
            raise InputError(
                f"network.attention_heads: {self.attention_heads} does not divide "
                f"network.channels {self.channels}"
            )


@dataclass(frozen=True)
class SearchConfig:
    """The tree search of self-play: Gumbel AlphaZero with sequential halving."""

    simulations: PositiveInt = 16
    """Simulations per move; each is one network evaluation. More simulations make better targets
    and slower games. The presets have 8 to 32."""
    max_considered_actions: PositiveInt = 16
    """Largest number of root moves that the search compares by sequential halving; never more than
    simulations."""
    value_scale_per_box: NonNegativeFloat = 0.05
    """Weight of values against the policy of the network (c_scale of Gumbel AlphaZero). One box
    more adds value_scale_per_box * (50 + visits of the most visited move) to the logit of a move,
    at first 2.5 with the defaults. The setting means the same on boards of any size."""
    nodes: Literal["all", "quiet"] = "quiet"
    """Positions in the search tree. quiet: only positions without a box to take; an exact rule
    plays the captures, so captures cost no simulations. Each round of simulations is one batch; a
    position with few moves gets fewer simulations. all: every position, for comparisons; the
    library mctx searches in self-play, one simulation after the other."""

    def __post_init__(self):
        check_types(self, "search")
