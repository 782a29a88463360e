"""Every setting of a run, with its default, unit and meaning.

The dataclasses are the single source of defaults and of help texts. Each type states the range of
its setting; values are checked once, at construction. Counts of games, positions and samples are
totals over all devices.
"""

from jaxzero.config.agent import BoardSide, GameConfig, NetworkConfig, SearchConfig, check_number
from jaxzero.config.training import (
    Config,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfplayConfig,
)

__all__ = [
    "BoardSide",
    "Config",
    "EvaluationConfig",
    "GameConfig",
    "LearnerConfig",
    "NetworkConfig",
    "ReplayConfig",
    "SearchConfig",
    "SelfplayConfig",
    "check_number",
]
