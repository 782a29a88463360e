"""The graph trunk: boxes exchange messages through the edges that are not drawn.

Nodes are the boxes and one node for the outside of the board, which every edge of the rim leads to.
A drawn edge carries no messages, so the boxes of a chain are connected. No layer knows directions
or places, so symmetric positions get symmetric outputs, except with attention at the end.

All sums along edges are matrix products with `incidence`, and all layers act on one matrix of the
nodes of all positions: on a CPU this is several times faster than slices of the board.
"""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from jaxzero.config import NetworkConfig
from jaxzero.game import DotsAndBoxes, box_neighbours
from jaxzero.network.layers import AttentionBlock, Dtype, pooled


def graph(
    game: DotsAndBoxes,
    config: NetworkConfig,
    nodes: jax.Array,
    edges: jax.Array,
    counts: jax.Array,
    drawn: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Pass messages between boxes: from the result of `graph_inputs` to logits [B, A], [B, M]."""
    dtype = nodes.dtype
    ends = jnp.asarray(incidence(game), dtype)  # [A, N]
    paths = open_paths(ends, drawn)
    if edges.shape[-1]:
        nodes = jnp.concatenate([nodes, ends.T @ edges], axis=-1)
    x = _project(nodes, config.channels, dtype)
    if counts.shape[-1]:
        x = x + nn.Dense(config.channels, dtype=dtype)(counts)[:, None]
    for block in range(config.blocks):
        x = GraphBlock(config.channels, dtype, config.pools_after(block))(x, paths)
    if config.attention_heads:
        x = AttentionBlock(config.attention_heads, dtype)(x[:, None])[:, 0]
    x = nn.relu(nn.LayerNorm(dtype=dtype)(x))
    # The outside is pooled too: to leave it out, a CPU would copy all boxes.
    board = jnp.concatenate([pooled(x), counts], axis=-1)
    # The two ends of an edge are read alike, and both heads see the whole board.
    seen = _project(x, config.channels, dtype)
    seen = seen + nn.Dense(config.channels, dtype=dtype)(board)[:, None]
    reads = jnp.broadcast_to(ends, (len(x), *ends.shape))
    if classes := edges.shape[-1]:
        # Every edge class acts as one more node, with the same row on every board.
        rows = nn.Dense(config.channels, use_bias=False, dtype=dtype)(jnp.eye(classes, dtype=dtype))
        rows = jnp.broadcast_to(rows, (len(x), *rows.shape))
        reads = jnp.concatenate([reads, edges], axis=-1)
        seen = jnp.concatenate([seen, rows], axis=1)
    policy = _project(nn.relu(reads @ seen), 1, jnp.float32, name="policy")
    summary = nn.relu(nn.Dense(config.channels, dtype=dtype)(board))
    margin = nn.Dense(2 * game.num_boxes + 1, dtype=jnp.float32, name="margin")(summary)
    return policy[..., 0], margin


class GraphBlock(nn.Module):
    """Send messages both ways through every open edge, and add the resulting change: [B, N, C]."""

    channels: int
    dtype: Dtype
    pooling: bool  # add a function of all boxes to every node

    @nn.compact
    def __call__(self, x: jax.Array, paths: jax.Array) -> jax.Array:
        # One matrix product for both: on a CPU one wide product is cheaper than two.
        own, sent = jnp.split(_project(x, 2 * self.channels, self.dtype), 2, axis=-1)
        y = own + paths @ sent
        if self.pooling:
            y = y + nn.Dense(self.channels, dtype=self.dtype)(pooled(x))[:, None]
        zeros = nn.initializers.zeros
        return x + _project(nn.relu(y), self.channels, self.dtype, kernel_init=zeros)


def _project(x: jax.Array, channels: int, dtype: Dtype, **settings) -> jax.Array:
    """Apply one `nn.Dense` to [B, N, C] as one matrix, so its gradient needs no transposition."""
    rows = nn.Dense(channels, dtype=dtype, **settings)(x.reshape(-1, x.shape[-1]))
    return rows.reshape(*x.shape[:-1], channels)


def open_paths(ends: jax.Array, drawn: jax.Array) -> jax.Array:
    """Count the open edges between every two nodes, given the `incidence` [A, N]: [B, N, N]."""
    is_open = ~drawn[:, None]
    joined = (ends.T[None] * is_open.astype(ends.dtype)) @ ends
    return joined * (1 - jnp.eye(ends.shape[1], dtype=ends.dtype))[None]


@lru_cache
def incidence(game: DotsAndBoxes) -> np.ndarray:
    """Return the nodes that every edge joins, the outside last: [A, N], 1 at both ends, else 0."""
    return np.eye(game.num_boxes + 1)[box_neighbours(game)].sum(axis=1)
