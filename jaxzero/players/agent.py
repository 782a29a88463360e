"""A trained network as it plays."""

from __future__ import annotations

from dataclasses import dataclass, field

import chex

from jaxzero.config import SearchConfig
from jaxzero.network.network import Network


@dataclass(frozen=True, eq=False)  # arrays have no truth of their own
class Agent:
    """What the learning players need: a network, its weights and the settings of the search."""

    network: Network
    params: chex.ArrayTree = field(repr=False)
    settings: SearchConfig
    temperature: float = 0.0  # of `policy` and `search`; above 0 their moves are random
