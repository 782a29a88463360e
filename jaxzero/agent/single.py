"""Positions as people ask for them: a few compiled programs for every number of simulations.

One position has one program. Many are searched together in batches of two sizes; what fills a batch
are finished games, which take no simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.agent.choosing import Choice, by_policy, by_search, choose, search_one
from jaxzero.agent.gumbel import Rounds, padded_rounds
from jaxzero.agent.network import Network, inference_copy
from jaxzero.agent.recent import of_board
from jaxzero.agent.search import network_evaluator
from jaxzero.agent.tree import ROOT
from jaxzero.config import SearchConfig
from jaxzero.game import State
from jaxzero.programs import kept_program

# Simulations of the program. Its tree has room for all of them, which costs a few MiB and no time;
# a longer search has a program of the next power of two.
MOST = 4096
BATCHES = (16, 256)  # positions


class Thought(NamedTuple):
    """What a search says about one position."""

    edge: jax.Array  # [] int32, the edge to draw
    value: jax.Array  # [] float32, boxes still to come, side to move
    policy: jax.Array  # [A] float32, over the moves of the position without its free boxes
    visits: jax.Array  # [A] int32, of these moves
    values: jax.Array  # [A] float32, of these moves, boxes


def think(
    network: Network,
    settings: SearchConfig,
    params: chex.ArrayTree,
    drawn: np.ndarray,
    simulations: int,
) -> Thought:
    """Search one position [A] bool: NumPy. The first call for a network compiles."""
    most = max(MOST, 1 << (simulations - 1).bit_length())
    # Whichever engine a network learnt with: both choose the same moves, only this has the values.
    settings = replace(settings, simulations=most, engine="rounds")
    rounds = tuple(padded_rounds(settings, simulations))
    return Thought(*call(_think, network, settings, params, drawn, rounds))


def _think(
    network: Network,
    settings: SearchConfig,
    params: chex.ArrayTree,
    drawn: jax.Array,
    rounds: tuple[jax.Array, ...],
) -> Thought:
    choice, found = search_one(network, settings, params, drawn, Rounds(*rounds))
    values = found.tree.moves.values[0, ROOT] * network.game.num_boxes
    return Thought(choice.edge, choice.value, found.policy[0], found.visits[0], values)


def choose_by_policy(
    network: Network, settings: SearchConfig, params: chex.ArrayTree, drawn: np.ndarray
) -> Choice:
    """Choose in one position [A] bool without a search: NumPy. The first call compiles."""
    settings = SearchConfig(nodes=settings.nodes)  # nothing else matters
    return Choice(*call(_choose_by_policy, network, settings, params, drawn))


def _choose_by_policy(
    network: Network, settings: SearchConfig, params: chex.ArrayTree, drawn: jax.Array
) -> Choice:
    chooser = by_policy(network, settings, inference_copy(network, params, 1))
    zero = jnp.zeros(1, jnp.int32)
    choice = choose(network.game, settings, chooser, State(drawn[None], zero, zero))
    return Choice(choice.edge[0], choice.value[0])


def choose_many(
    network: Network,
    settings: SearchConfig,
    params: chex.ArrayTree,
    drawn: np.ndarray,
    simulations: int,
) -> Choice:
    """Choose in positions [B, A] bool: NumPy [B]; 0 simulations: no search."""
    if simulations:
        # A batch of trees takes memory, so they have little more room than they need.
        most = max(64, 1 << (simulations - 1).bit_length())
        settings = replace(settings, simulations=most, engine="rounds", win_weight=0.0)
        rounds = tuple(padded_rounds(settings, simulations))
    else:
        settings, rounds = SearchConfig(nodes=settings.nodes), ()
    size = BATCHES[0] if len(drawn) <= BATCHES[0] else BATCHES[1]
    parts = []
    for begin in range(0, len(drawn), size):
        rows = drawn[begin : begin + size]
        padded = np.ones((size, drawn.shape[1]), bool)
        padded[: len(rows)] = rows
        choice = call(_choose_many, network, settings, params, padded, rounds)
        parts.append([field[: len(rows)] for field in choice])
    return Choice(*map(np.concatenate, zip(*parts, strict=True)))


def _choose_many(
    network: Network,
    settings: SearchConfig,
    params: chex.ArrayTree,
    drawn: jax.Array,
    rounds: tuple[jax.Array, ...],
) -> Choice:
    params = inference_copy(network, params, len(drawn))
    chooser = by_policy(network, settings, params)
    if rounds:
        evaluate = network_evaluator(network, settings)
        known = Rounds(*rounds)
        chooser = by_search(network.game, settings, evaluate, params, rounds=known)
    zeros = jnp.zeros(len(drawn), jnp.int32)
    return choose(network.game, settings, chooser, State(drawn, zeros, zeros))


def call(function: Callable, network: Network, settings: SearchConfig, *inputs: Any) -> Any:
    """Return the NumPy arrays of `function(network, settings, *inputs)`, a tuple.

    It is compiled once for a network and for inputs of these shapes, as long as its board is kept.
    """
    shapes = jax.tree.map(jax.api_util.shaped_abstractify, inputs)
    key = function, network, settings, *map(str, jax.tree.leaves(shapes[1:]))
    bound = partial(function, network, settings)
    kept = of_board(network.game)
    program = kept.get(key, lambda: kept_program(bound, *shapes).lower(*shapes).compile())
    return jax.device_get(program(*inputs))
