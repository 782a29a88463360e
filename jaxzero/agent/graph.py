"""The graph trunk: boxes tell each other what they know through the edges not yet drawn.

Nodes are the boxes and one outside of the board, which every edge of the rim leads to. Drawing an
edge cuts it, so what is connected here is what chains are made of. Nothing in it knows a direction
or a place: a position and its images get the same answers, unless it ends with attention.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxzero.agent.inputs import graph_inputs
from jaxzero.agent.layers import AttentionBlock, Dtype, compute_dtype
from jaxzero.config import NetworkConfig
from jaxzero.game import DotsAndBoxes
from jaxzero.game.structure import Structure


def graph(
    game: DotsAndBoxes, config: NetworkConfig, drawn: jax.Array, found: Structure | None
) -> tuple[jax.Array, jax.Array]:
    """Pass messages between boxes: drawn [B, A] bool to logits [B, A] and [B, M]."""
    dtype = compute_dtype(config)
    nodes, edges, counts = graph_inputs(game, drawn, found, dtype)
    x = nn.Dense(config.channels, dtype=dtype)(nodes)
    if counts.shape[-1]:
        x = x + nn.Dense(config.channels, dtype=dtype)(counts)[:, None]
    for block in range(config.blocks):
        x = GraphBlock(game, config.channels, dtype, config.pools_after(block))(x, edges, ~drawn)
    if config.attention_heads:
        x = AttentionBlock(config.attention_heads, dtype)(x[:, None])[:, 0]
    x = nn.relu(nn.LayerNorm(dtype=dtype)(x))
    board = jnp.concatenate([pooled_boxes(x), counts], axis=-1)
    # The two ends of an edge are read alike, and both heads see the whole board.
    hidden = sum(edge_ends(game, nn.Dense(config.channels, dtype=dtype)(x)))
    hidden = hidden + nn.Dense(config.channels, dtype=dtype)(board)[:, None]
    if edges.shape[-1]:
        hidden = hidden + nn.Dense(config.channels, dtype=dtype)(edges)
    policy = nn.Dense(1, dtype=jnp.float32, name="policy")(nn.relu(hidden))
    summary = nn.relu(nn.Dense(config.channels, dtype=dtype)(board))
    margin = nn.Dense(2 * game.num_boxes + 1, dtype=jnp.float32, name="margin")(summary)
    return policy[..., 0], margin


class GraphBlock(nn.Module):
    """Send a message through every open edge, both ways, and add what they change: [B, N, C]."""

    game: DotsAndBoxes
    channels: int
    dtype: Dtype
    pooling: bool  # add a function of all boxes to every node

    @nn.compact
    def __call__(self, x: jax.Array, edges: jax.Array, is_open: jax.Array) -> jax.Array:
        y = nn.LayerNorm(dtype=self.dtype)(x)
        first, second = edge_ends(self.game, self._dense(y))
        first_sent, second_sent = edge_ends(self.game, self._dense(y, use_bias=False))
        to_first, to_second = first + second_sent, second + first_sent
        if edges.shape[-1]:
            seen = self._dense(edges, use_bias=False)
            to_first, to_second = to_first + seen, to_second + seen
        through = is_open[..., None].astype(self.dtype)
        told = into_nodes(self.game, nn.relu(to_first) * through, nn.relu(to_second) * through)
        z = self._dense(jnp.concatenate([y, told], axis=-1))
        if self.pooling:
            z = z + self._dense(pooled_boxes(y))[:, None]
        last = nn.Dense(self.channels, dtype=self.dtype, kernel_init=nn.initializers.zeros)
        return x + last(nn.relu(z))

    def _dense(self, x: jax.Array, use_bias: bool = True) -> jax.Array:
        return nn.Dense(self.channels, use_bias=use_bias, dtype=self.dtype)(x)


def pooled_boxes(nodes: jax.Array) -> jax.Array:
    """Summarise nodes [B, N, C] by mean and maximum over the boxes: [B, 2 C]."""
    boxes = nodes[:, :-1]
    return jnp.concatenate([boxes.mean(axis=1), boxes.max(axis=1)], axis=-1)


def edge_ends(game: DotsAndBoxes, nodes: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the node above or left of every edge, and that below or right of it.

    Nodes [B, N, C], the outside last, to [B, A, C] each.
    """
    # Slices instead of a gather, whose gradient would be a scatter.
    batch, channels = len(nodes), nodes.shape[-1]
    boxes = nodes[:, :-1].reshape(batch, game.rows, game.cols, channels)
    outside = nodes[:, -1][:, None, None]
    row = jnp.broadcast_to(outside, (batch, 1, game.cols, channels))
    column = jnp.broadcast_to(outside, (batch, game.rows, 1, channels))
    above, below = jnp.concatenate([row, boxes], axis=1), jnp.concatenate([boxes, row], axis=1)
    left, right = jnp.concatenate([column, boxes], axis=2), jnp.concatenate([boxes, column], axis=2)
    return _flat(above, left), _flat(below, right)


def _flat(horizontal: jax.Array, vertical: jax.Array) -> jax.Array:
    batch, channels = len(horizontal), horizontal.shape[-1]
    parts = [horizontal.reshape(batch, -1, channels), vertical.reshape(batch, -1, channels)]
    return jnp.concatenate(parts, axis=1)


def into_nodes(game: DotsAndBoxes, to_first: jax.Array, to_second: jax.Array) -> jax.Array:
    """Add up what the edges [B, A, C] tell their two ends, of `edge_ends`: [B, N, C]."""
    above, left = _grids(game, to_first)
    below, right = _grids(game, to_second)
    boxes = above[:, 1:] + below[:, :-1] + left[:, :, 1:] + right[:, :, :-1]
    rim = [above[:, 0], below[:, -1], left[:, :, 0], right[:, :, -1]]
    outside = sum(side.sum(axis=1, keepdims=True) for side in rim)
    return jnp.concatenate([boxes.reshape(len(boxes), game.num_boxes, -1), outside], axis=1)


def _grids(game: DotsAndBoxes, edges: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Split edges [B, A, C] into [B, rows + 1, cols, C] and [B, rows, cols + 1, C]."""
    batch, channels = len(edges), edges.shape[-1]
    horizontal, vertical = edges[:, : game.num_horizontal], edges[:, game.num_horizontal :]
    return (
        horizontal.reshape(batch, game.rows + 1, game.cols, channels),
        vertical.reshape(batch, game.rows, game.cols + 1, channels),
    )
