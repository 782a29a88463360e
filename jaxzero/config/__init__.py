"""Every setting of a run, with its default, unit and meaning.

The dataclasses are the single source of defaults and of help texts. Each type states the range of
its setting; values are checked once, at construction. Counts of games, positions and samples are
totals over all devices.
"""

from jaxzero.config.agent import GameConfig, NetworkConfig, SearchConfig
from jaxzero.config.training import (
    Config,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfplayConfig,
)

__all__ = [
    "Config",
    "EvaluationConfig",
    "GameConfig",
    "LearnerConfig",
    "NetworkConfig",
    "ReplayConfig",
    "SearchConfig",
    "SelfplayConfig",
]
