"""An agent: a network with its weights and search settings."""

from __future__ import annotations

from dataclasses import dataclass, field

import chex

from jaxzero.config import SearchConfig
from jaxzero.network.network import Network


@dataclass(frozen=True, eq=False)  # arrays do not compare to one truth value
class Agent:
    """A network, its weights and its search settings, for the players that use a network."""

    network: Network
    params: chex.ArrayTree = field(repr=False)
    settings: SearchConfig
    temperature: float = 0.0  # of `policy` and `search`; above 0 they sample their moves
