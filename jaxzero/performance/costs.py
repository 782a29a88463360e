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
from jaxzero.training.learner import Learner, update
from jaxzero.training.selfplay import Positions


class Cost(NamedTuple):
    """Work of one call, per position."""

    flops: float  # additions and multiplications
    bytes_moved: float | None  # read and written by the compiled kernels; None: not known


def cost_of(call: Callable, *arguments: chex.ArrayTree, positions: int) -> Cost:
    """Count the work of `call` on arguments of `positions` positions, per position.

    The operations are those of the program as written, the bytes those of the compiled one, in
    which fused operations share their reads. Loops would count once: pass none.
    """
    lowered = jax.jit(call).lower(*arguments)
    written = lowered.cost_analysis() or {}
    compiled = lowered.compile().cost_analysis() or {}
    moved = compiled.get("bytes accessed")
    return Cost(written.get("flops", 0.0) / positions, moved and moved / positions)


def plain(network: Network) -> Network:
    """Return the network in the form whose operations are counted.

    All forms of the convolution compute the same function; the count is that of the plain one with
    its zero padding, so that a form that needs fewer operations shows as a higher share.
    """
    return Network(network.game, replace(network.config, convolution="shifted"))


def network_cost(network: Network, params: chex.ArrayTree, batch: int) -> Cost:
    """Count the work of one evaluation in a batch of `batch`."""
    drawn = jnp.zeros((batch, network.game.num_edges), bool)
    flops = cost_of(plain(network).apply, params, drawn, positions=batch).flops
    return cost_of(network.apply, params, drawn, positions=batch)._replace(flops=flops)


def update_cost(network: Network, config: Config, learner: Learner, batch: int) -> Cost:
    """Count the work of one sample of an update on `batch` positions."""
    edges = network.game.num_edges
    positions = Positions(
        drawn=jnp.zeros((batch, edges), bool),
        policy=jnp.full((batch, edges), 1 / edges),
        margin=jnp.zeros(batch, jnp.int32),
        margin_known=jnp.ones(batch, bool),
    )
    step, plain_step = (partial(update, form, config) for form in (network, plain(network)))
    flops = cost_of(plain_step, learner, positions, positions=batch).flops
    return cost_of(step, learner, positions, positions=batch)._replace(flops=flops)
