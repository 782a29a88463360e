"""The trunks: from drawn edges to logits of the edges and of the remaining margin.

Each is a function of (game, config, drawn [B, A] bool) to logits [B, A] and [B, M], to be called
inside a module. All see the same, lead it through residual blocks, and read margin and policy from
the blocks' output and a view of the whole board: parity is not local.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxzero.agent.forms import compute_dtype, convolution_form
from jaxzero.agent.graph import graph
from jaxzero.agent.inputs import edge_inputs, grid_inputs, lattice_inputs
from jaxzero.agent.layers import AttentionBlock, Conv3x3, ConvBlock, DenseBlock, pooled
from jaxzero.config import NetworkConfig
from jaxzero.game import DotsAndBoxes, edges_from_lattice, edges_from_planes

Logits = tuple[jax.Array, jax.Array]  # [B, A] of the edges, [B, M] of the margin
Trunk = Callable[[DotsAndBoxes, NetworkConfig, jax.Array], Logits]


def dense(game: DotsAndBoxes, config: NetworkConfig, drawn: jax.Array) -> Logits:
    """Connect everything with everything."""
    dtype = compute_dtype(config)
    x = nn.Dense(config.channels, dtype=dtype)(edge_inputs(game, config, drawn, dtype))
    for _ in range(config.blocks):
        x = DenseBlock(config.channels, dtype)(x)
    x = nn.relu(nn.LayerNorm(dtype=dtype)(x))
    return (
        nn.Dense(game.num_edges, dtype=dtype, name="policy")(x),
        nn.Dense(2 * game.num_boxes + 1, dtype=dtype, name="margin")(x),
    )


def conv(game: DotsAndBoxes, config: NetworkConfig, drawn: jax.Array) -> Logits:
    """Convolve on the grid of dots; a square speaks for the edges to its right and below."""
    planes, counts = grid_inputs(game, config, drawn, compute_dtype(config))
    policy, margin = _convolved(game, config, planes, counts, outputs=2)
    return edges_from_planes(game, policy), margin


def lattice(game: DotsAndBoxes, config: NetworkConfig, drawn: jax.Array) -> Logits:
    """Convolve on the lattice in which every dot, edge and box has a square of its own."""
    planes, counts = lattice_inputs(game, config, drawn, compute_dtype(config))
    policy, margin = _convolved(game, config, planes, counts, outputs=1)
    return edges_from_lattice(game, policy[..., 0]), margin


def _convolved(
    game: DotsAndBoxes, config: NetworkConfig, planes: jax.Array, counts: jax.Array, outputs: int
) -> Logits:
    """Return `outputs` logits for every square [B, H, W, outputs], and those of the margin."""
    dtype, form = planes.dtype, convolution_form(config, len(planes))
    x = Conv3x3(config.channels, form, dtype)(planes)
    if counts.shape[-1]:
        x = x + nn.Dense(config.channels, dtype=dtype)(counts)[:, None, None]
    x = nn.relu(x)
    for block in range(config.blocks):
        x = ConvBlock(config, form, dtype, config.pools_after(block))(x)
    if config.attention_heads:
        x = AttentionBlock(config.attention_heads, dtype)(x)
    board = jnp.concatenate([pooled(x), counts], axis=-1)
    # Both heads see the whole board: parity is not local.
    hidden = nn.Dense(config.channels, dtype=dtype)(x)
    hidden = nn.relu(hidden + nn.Dense(config.channels, dtype=dtype)(board)[:, None, None])
    policy = nn.Dense(outputs, dtype=dtype, name="policy")(hidden)
    summary = nn.relu(nn.Dense(config.channels, dtype=dtype)(board))
    return policy, nn.Dense(2 * game.num_boxes + 1, dtype=dtype, name="margin")(summary)


TRUNKS: dict[str, Trunk] = {"conv": conv, "dense": dense, "lattice": lattice, "graph": graph}
