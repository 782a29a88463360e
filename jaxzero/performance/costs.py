"""What the work takes: floating point operations and bytes, counted from the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.agent.network import Network
from jaxzero.config import Config
from jaxzero.performance.inputs import random_positions
from jaxzero.training.learner import Learner, update


class Cost(NamedTuple):
    """Work of one call, per position."""

    flops: float  # additions and multiplications
    bytes_moved: float | None  # read and written by the compiled kernels; None: not known


def flops_of(call: Callable, *arguments: chex.ArrayTree) -> float:
    """Count the operations of `call` as written. Loops would count once: pass none."""
    return (jax.jit(call).lower(*arguments).cost_analysis() or {}).get("flops", 0.0)


def bytes_of(call: Callable, *arguments: chex.ArrayTree) -> float | None:
    """Count the bytes that the compiled `call` moves; fused operations share their reads."""
    compiled = jax.jit(call).lower(*arguments).compile()
    return (compiled.cost_analysis() or {}).get("bytes accessed")


def plain(network: Network) -> Network:
    """Return the network in the form whose operations are counted.

    All forms of the convolution compute the same function; the count is that of the plain one with
    its zero padding, so that a form that needs fewer operations shows as a higher share.
    """
    return Network(network.game, replace(network.config, convolution="shifted"))


def network_flops(network: Network, params: chex.ArrayTree, batch: int) -> float:
    """Count the operations of one evaluation in a batch of `batch`."""
    drawn = jnp.zeros((batch, network.game.num_edges), bool)
    return flops_of(plain(network).apply, params, drawn) / batch


def network_cost(network: Network, params: chex.ArrayTree, batch: int) -> Cost:
    """Count the work of one evaluation in a batch of `batch`."""
    drawn = jnp.zeros((batch, network.game.num_edges), bool)
    moved = bytes_of(network.apply, params, drawn)
    return Cost(network_flops(network, params, batch), moved and moved / batch)


def update_flops(network: Network, config: Config, learner: Learner, batch: int) -> float:
    """Count the operations of one sample of an update on `batch` positions."""
    positions = random_positions(network.game, batch)
    return flops_of(partial(update, plain(network), config), learner, positions) / batch


def update_cost(network: Network, config: Config, learner: Learner, batch: int) -> Cost:
    """Count the work of one sample of an update on `batch` positions."""
    positions = random_positions(network.game, batch)
    moved = bytes_of(partial(update, network, config), learner, positions)
    return Cost(update_flops(network, config, learner, batch), moved and moved / batch)
