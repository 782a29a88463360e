"""One position at a time, as people ask: one compiled program for every number of simulations."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import chex
import jax
import numpy as np

from jaxzero.agent.choosing import search_one
from jaxzero.agent.gumbel import Rounds, padded_rounds
from jaxzero.agent.network import Network
from jaxzero.agent.tree import ROOT
from jaxzero.config import SearchConfig
from jaxzero.programs import kept_program

# Simulations of the program. Its tree has room for all of them, which costs a few MiB and no time;
# a longer search has a program of the next power of two.
MOST = 4096


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


def call(function: Callable, network: Network, settings: SearchConfig, *inputs: Any) -> Any:
    """Return the NumPy arrays of `function(network, settings, *inputs)`, compiled once.

    Whoever asks for what another thread compiles waits for it, in place of compiling it again.
    """
    shapes = jax.tree.map(jax.api_util.shaped_abstractify, inputs)
    leaves, tree = jax.tree.flatten(shapes)
    what = function, network, settings, tuple(leaves), tree
    with _compiling.setdefault(what, threading.Lock()):
        program = _compiled(*what)
    return jax.device_get(program(*inputs))


_compiling: dict[tuple, threading.Lock] = {}


@lru_cache(maxsize=256)
def _compiled(
    function: Callable, network: Network, settings: SearchConfig, leaves: tuple, tree: Any
) -> Callable:
    shapes = jax.tree.unflatten(tree, leaves)
    return kept_program(partial(function, network, settings), *shapes).lower(*shapes).compile()
