"""What `import jaxzero` offers: engines that choose and analyse moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.agent.choosing import Choice, by_policy, by_search, choose
from jaxzero.agent.network import Network, inference_copy
from jaxzero.agent.players import Agent
from jaxzero.agent.search import network_evaluator
from jaxzero.config import SearchConfig
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, State, parse_edge
from jaxzero.game.text import parse_picture
from jaxzero.play.analysis import Analysis, analyse
from jaxzero.runs.resize import asked_board, resize
from jaxzero.runs.weights import load_weights

# Drawn edges: numbers or names such as h2,1; names in a text; a picture; or [A] bool.
Position = Sequence[int | str] | str | np.ndarray


@dataclass(frozen=True)
class Engine:
    """A trained network that plays one board. Moves are numbers of edges, values are boxes."""

    agent: Agent

    @property
    def board(self) -> DotsAndBoxes:
        """The board it plays; `jaxzero.game.edge_name` names its edges."""
        return self.agent.network.game

    def on_board(self, rows: int, cols: int) -> Engine:
        """Return the engine for another board.

        Raises: InputError where its network has one size; convolutional ones, as 5x5, have none.
        """
        board = asked_board(rows, cols, self.board)
        return Engine(resize(self.agent, board, "engine: this network"))

    def best_move(self, position: Position = (), simulations: int = 64) -> int:
        """Return the edge to draw in a position; `[]` is the empty board.

        With 0 simulations the network answers without search. The first call compiles.
        Raises: ValueError for what is no position of the board, or where no edge is left.
        """
        return self.best_moves([position], simulations)[0]

    def best_moves(self, positions: Sequence[Position], simulations: int = 64) -> list[int]:
        """Return the edge to draw in each of many positions, searched together."""
        return self._choose(positions, simulations)[0]

    def values(self, positions: Sequence[Position], simulations: int = 64) -> list[float]:
        """Return the boxes still to come, of the side to move minus the other, in positions."""
        return self._choose(positions, simulations)[1]

    def analyse(
        self, position: Position = (), simulations: int = 256, seconds: float = 0.0
    ) -> Analysis:
        """Return what is known about each edge of a position: prior, visits, value, boxes lost.

        The exact solver gets `seconds`; what it proves is marked exact. Raises: as `best_move`.
        """
        return analyse(self.agent, self.drawn(position), 0, simulations, seconds)

    def analyse_many(
        self, positions: Sequence[Position], simulations: int = 256, seconds: float = 0.0
    ) -> list[Analysis]:
        """Return the analysis of each of many positions."""
        return [self.analyse(position, simulations, seconds) for position in positions]

    def drawn(self, position: Position) -> np.ndarray:
        """Return the drawn edges of a position: [A] bool. Raises: ValueError."""
        game = self.board
        if isinstance(position, np.ndarray) and position.dtype == bool:
            if position.shape != (game.num_edges,):
                raise InputError(f"position: shape {position.shape} must be ({game.num_edges},)")
            return position
        if isinstance(position, str) and "+" in position:
            board, edges = parse_picture(position)
            if board != game:
                raise InputError(f"position: a picture of {board}, not {game}")
        else:
            names = position.split() if isinstance(position, str) else position
            edges = [parse_edge(game, str(name)) for name in names]
        drawn = np.zeros(game.num_edges, bool)
        drawn[list(edges)] = True
        return drawn

    def _choose(
        self, positions: Sequence[Position], simulations: int
    ) -> tuple[list[int], list[float]]:
        if len(positions) == 0:  # an array has no truth of its own
            return [], []
        boards = np.stack([self.drawn(position) for position in positions])
        if boards.all(axis=1).any():
            raise InputError(f"position: no edge is left on a {self.board} board")
        # Batches of a few sizes, since each size compiles.
        size = 1 << (len(boards) - 1).bit_length()
        padded = np.concatenate([boards, np.repeat(boards[:1], size - len(boards), axis=0)])
        # Edges do not say the score, so the search values boxes, as in `search_one`.
        settings = replace(self.agent.settings, simulations=simulations or 1, win_weight=0.0)
        act = _chooser(self.agent.network, settings, bool(simulations))
        zeros = np.zeros(size, np.int32)
        choice = jax.device_get(act(self.agent.params, State(padded, zeros, zeros)))
        count = len(boards)
        return choice.edge[:count].tolist(), choice.value[:count].tolist()


def load(name: str) -> Engine:
    """Load a network that is shipped, such as "5x5", or an exported one by its path.

    Raises: InputError naming the networks there are.
    """
    return Engine(load_weights(name).agent)


@lru_cache
def _chooser(
    network: Network, settings: SearchConfig, searches: bool
) -> Callable[[chex.ArrayTree, State], Choice]:
    """Return a compiled choice of edges, made once for each network and settings."""
    evaluate = network_evaluator(network, settings)

    def choose_edges(params: chex.ArrayTree, state: State) -> Choice:
        state = jax.tree.map(jnp.asarray, state)
        prepared = inference_copy(network, params, len(state.drawn))
        chooser = by_policy(network, settings, prepared)
        if searches:
            chooser = by_search(network.game, settings, evaluate, prepared)
        return choose(network.game, settings, chooser, state)

    return jax.jit(choose_edges)
