"""The network: from drawn edges to a policy and a distribution of the remaining margin."""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxzero.agent.inputs import edge_inputs, grid_inputs
from jaxzero.agent.layers import (
    PREPARED,
    AttentionBlock,
    Conv3x3,
    ConvBlock,
    DenseBlock,
    pooled,
)
from jaxzero.config import NetworkConfig
from jaxzero.game import (
    DotsAndBoxes,
    edges_from_planes,
    margin_bins,
    margin_mask,
)

# Finite, because mctx subtracts maxima and -inf minus -inf is not a number.
IMPOSSIBLE = -1e9


class Prediction(NamedTuple):
    """What the network says about a batch of positions, for the side to move."""

    policy_logits: jax.Array  # [B, A] float32, drawn edges at IMPOSSIBLE
    margin_logits: jax.Array  # [B, M] float32, margins that cannot be at IMPOSSIBLE


class Network(nn.Module):
    """Residual network with a `conv` or a `dense` trunk. Batched: takes drawn edges [B, A] bool."""

    game: DotsAndBoxes
    config: NetworkConfig

    @nn.compact
    def __call__(self, drawn: jax.Array) -> Prediction:
        chex.assert_shape(drawn, (None, self.game.num_edges), custom_message="drawn")
        chex.assert_type(drawn, bool, custom_message="drawn")
        trunk = self._dense if self.config.trunk == "dense" else self._conv
        policy_logits, margin_logits = trunk(drawn)
        possible = jax.vmap(lambda board: margin_mask(self.game, board))(drawn)
        return Prediction(
            policy_logits=jnp.where(drawn, IMPOSSIBLE, policy_logits.astype(jnp.float32)),
            margin_logits=jnp.where(possible, margin_logits.astype(jnp.float32), IMPOSSIBLE),
        )

    def _dense(self, drawn: jax.Array) -> tuple[jax.Array, jax.Array]:
        dtype = compute_dtype(self.config)
        inputs = edge_inputs(self.game, self.config, drawn, dtype)
        x = nn.Dense(self.config.channels, dtype=dtype)(inputs)
        for _ in range(self.config.blocks):
            x = DenseBlock(self.config.channels, dtype)(x)
        x = nn.relu(nn.LayerNorm(dtype=dtype)(x))
        return (
            nn.Dense(self.game.num_edges, dtype=dtype, name="policy")(x),
            nn.Dense(2 * self.game.num_boxes + 1, dtype=dtype, name="margin")(x),
        )

    def _conv(self, drawn: jax.Array) -> tuple[jax.Array, jax.Array]:
        config, dtype = self.config, compute_dtype(self.config)
        form = convolution_form(config, len(drawn))
        planes, counts = grid_inputs(self.game, config, drawn, dtype)
        x = Conv3x3(config.channels, form, dtype)(planes)
        if counts.shape[-1]:
            x = x + nn.Dense(config.channels, dtype=dtype)(counts)[:, None, None]
        x = nn.relu(x)
        for block in range(config.blocks):
            pooling = config.pooling_every > 0 and (block + 1) % config.pooling_every == 0
            x = ConvBlock(config, form, dtype, pooling)(x)
        if config.attention_heads:
            x = AttentionBlock(config.attention_heads, dtype)(x)
        board = jnp.concatenate([pooled(x), counts], axis=-1)
        # Both heads see the whole board: parity is not local.
        hidden = nn.Dense(config.channels, dtype=dtype)(x)
        hidden = nn.relu(hidden + nn.Dense(config.channels, dtype=dtype)(board)[:, None, None])
        policy = nn.Dense(2, dtype=dtype, name="policy")(hidden)
        summary = nn.relu(nn.Dense(config.channels, dtype=dtype)(board))
        return (
            edges_from_planes(self.game, policy),
            nn.Dense(2 * self.game.num_boxes + 1, dtype=dtype, name="margin")(summary),
        )


def compute_dtype(config: NetworkConfig) -> jnp.dtype:
    """Return the number format of activations on the present device."""
    name = config.compute_dtype
    if name == "auto":
        name = "float32" if jax.default_backend() == "cpu" else "bfloat16"
    return jnp.dtype(name)


# Below it, transforming the kernels costs more than it saves.
WINOGRAD_BATCH = 32


def convolution_form(config: NetworkConfig, batch: int) -> str:
    """Return the form of the convolutions of a batch on the present device."""
    if config.convolution != "auto":
        return config.convolution
    if jax.default_backend() != "cpu":
        return "direct"
    exact = compute_dtype(config) == jnp.float32
    return "winograd" if exact and batch >= WINOGRAD_BATCH else "shifted"


def inference_copy(network: Network, params: chex.ArrayTree, batch: int) -> chex.ArrayTree:
    """Return variables that evaluate batches of `batch` positions like `params`, but faster.

    What each evaluation would do to the weights is done once: matrices and kernels are cast to the
    format of the activations, and kernels transformed where the convolution wants them so.
    """
    dtype = compute_dtype(network.config)
    drawn = jnp.zeros((batch, network.game.num_edges), bool)
    _, prepared = network.apply(params, drawn, mutable=[PREPARED])
    # Scales and biases of normalisations stay as they are: they act in float32.
    cast = jax.tree.map(lambda leaf: leaf.astype(dtype) if leaf.ndim > 1 else leaf, params)
    return {**cast, **prepared}


def init_params(network: Network, key: jax.Array) -> chex.ArrayTree:
    """Draw fresh float32 parameters."""
    return network.init(key, jnp.zeros((1, network.game.num_edges), bool))


def count_params(params: chex.ArrayTree) -> int:
    """Count the numbers in a tree of parameters."""
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def margin_probabilities(prediction: Prediction) -> jax.Array:
    """Return the distribution of the remaining margin: [B, M]."""
    return jax.nn.softmax(prediction.margin_logits, axis=-1)


def expected_margin(game: DotsAndBoxes, prediction: Prediction) -> jax.Array:
    """Return the expected remaining margin of the side to move, in boxes: [B]."""
    return margin_probabilities(prediction) @ margin_bins(game).astype(jnp.float32)


def win_balance(game: DotsAndBoxes, prediction: Prediction, margin: jax.Array) -> jax.Array:
    """Return P(win) - P(loss) of the side to move, which is `margin` [B] boxes ahead: [B]."""
    final = margin[:, None] + margin_bins(game)[None, :]
    return jnp.sum(margin_probabilities(prediction) * jnp.sign(final), axis=-1)
