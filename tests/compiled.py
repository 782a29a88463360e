"""Share among tests functions that are compiled once, small networks and random positions.

Without jit, jax compiles every operation separately.
"""

from __future__ import annotations

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from tablebase import build_table, move_values, table_value

from jaxzero.config import NetworkConfig, SearchConfig
from jaxzero.game import DotsAndBoxes, State
from jaxzero.game.structure import find_structure
from jaxzero.network.network import Agent, Network
from jaxzero.search.interface import Evaluation, PositionEvaluator


@cache
def analyse(board: DotsAndBoxes):
    """Return the structure of boards [B, A], compiled."""
    return jax.jit(jax.vmap(partial(find_structure, board)))


@cache
def worths(board: DotsAndBoxes):
    """Return the exact values of all moves [B, A] of boards [B, A], compiled."""
    return jax.jit(jax.vmap(partial(move_values, board, build_table(board))))


def planted(board: DotsAndBoxes, prior_weight: float) -> PositionEvaluator:
    """Return an evaluator with exact values and the logit `prior_weight` on every best edge."""
    table = build_table(board)

    def evaluate(state: State, _structure) -> Evaluation:
        value = jax.vmap(partial(table_value, table))(state.drawn)
        worth = jax.vmap(partial(move_values, board, table))(state.drawn)
        best = worth == jnp.max(worth, axis=-1, keepdims=True)
        logits = jnp.where(state.drawn, -1e9, prior_weight * best)
        return Evaluation(logits, value / board.num_boxes)

    return PositionEvaluator(evaluate, "cpu")


@cache
def apply(network: Network):
    """Return the network as a compiled function of parameters and boards."""
    return jax.jit(network.apply)


@cache
def any_params(network: Network):
    """Return random parameters, none of them zero, without compiling the initialisation."""
    rng = np.random.default_rng(7)
    drawn = np.zeros((1, network.board.num_edges), bool)
    shapes = jax.eval_shape(network.init, jax.random.key(0), drawn)

    def fill(path, leaf):
        spread = 0.3 if leaf.ndim == 1 else float(np.prod(leaf.shape[:-1])) ** -0.5
        about = 1.0 if "scale" in jax.tree_util.keystr(path) else 0.0
        return (about + spread * rng.normal(size=leaf.shape)).astype(leaf.dtype)

    return jax.tree_util.tree_map_with_path(fill, shapes)


@cache
def tiny_agent(board: DotsAndBoxes, channels: int = 16, **settings) -> Agent:
    """Return an agent that compiles fast; `settings` are those of its search."""
    config = NetworkConfig(trunk="dense", channels=channels, blocks=1, features="raw")
    network = Network(board, config)
    return Agent(network, any_params(network), SearchConfig(**settings))


def random_positions(
    board: DotsAndBoxes, count: int, fewest: int, most: int, seed: int = 0
) -> np.ndarray:
    """Return random positions [count, A] bool with `fewest` to `most` undrawn edges."""
    rng = np.random.default_rng(seed)
    ranks = rng.permuted(np.tile(np.arange(board.num_edges), (count, 1)), axis=1)
    return ranks >= rng.integers(fewest, most + 1, (count, 1))
