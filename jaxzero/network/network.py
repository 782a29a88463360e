"""The network: from drawn edges to a policy and the predictions of the heads (`heads.py`).

A trunk turns its inputs (`features.py`) into logits of the edges [B, A] and of every head [B, K].
In every trunk policy and heads read the output of the blocks and a summary of the whole board,
because parity is not local. Their last layers always compute in float32.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxzero.config import NetworkConfig, SearchConfig
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.game.structure import Structure, find_structure
from jaxzero.heads import Head, heads_of, is_last_layer, margin_bins
from jaxzero.network.features import edge_inputs, edges_from_planes, grid_inputs, grid_planes
from jaxzero.network.layers import (
    PREPARED,
    AttentionBlock,
    Conv3x3,
    ConvBlock,
    DenseBlock,
    convolution_form,
    pooled,
    relu,
)
from jaxzero.network.parts import in_parts, part_sizes, worth_dividing

Inputs = tuple[jax.Array, ...]  # [B, ...]
Outputs = tuple[jax.Array, jax.Array]  # [B, A] logits of the edges; [B, C] summary for the heads
Logits = tuple[jax.Array, dict[str, jax.Array]]  # [B, A] of the edges; [B, K] of each head


class Trunk(NamedTuple):
    """A trunk: its inputs, its layers, and what it can do. The layers are called in a module."""

    inputs: Callable[[DotsAndBoxes, jax.Array, Structure | None, jnp.dtype], Inputs]
    layers: Callable[..., Outputs]  # (board, config, platform, *inputs)
    options: frozenset[str] = frozenset()  # optional settings of the network that it takes
    fits_all_boards: bool = False  # without attention, which has an embedding of the grid
    convolves: bool = False
    # Positions per step of the gradient on a CPU, so that activations stay in its cache; 0: all.
    cpu_chunk: int = 0


def dense(board: DotsAndBoxes, config: NetworkConfig, platform: str, edges: jax.Array) -> Outputs:
    """Apply fully connected residual blocks to inputs [B, K]."""
    dtype = edges.dtype
    x = nn.Dense(config.channels, dtype=dtype, name="input")(edges)
    for block in range(config.blocks):
        x = DenseBlock(config.channels, dtype, name=f"block_{block}")(x)
    x = relu(nn.LayerNorm(dtype=dtype, name="norm")(x))
    return nn.Dense(board.num_edges, dtype=jnp.float32, name="policy")(x), x


def conv(
    board: DotsAndBoxes,
    config: NetworkConfig,
    platform: str,
    planes: jax.Array,
    counts: jax.Array,
) -> Outputs:
    """Convolve on the grid of dots; a square gives logits of the edges to its right and below."""
    dtype, form = planes.dtype, convolution_form(platform, planes.dtype, len(planes))
    structure_seen = counts.shape[-1] > 0
    used = grid_planes(structure_seen)
    x = Conv3x3(config.channels, form, dtype, inputs=used, name="planes")(planes)
    if structure_seen:
        x = x + nn.Dense(config.channels, dtype=dtype, name="counts")(counts)[:, None, None]
    x = relu(x)
    for block in range(config.blocks):
        pooling = (block + 1) % POOLING_EVERY == 0
        x = ConvBlock(config, form, dtype, pooling, name=f"block_{block}")(x)
    if config.attention_heads:
        x = AttentionBlock(config.attention_heads, dtype, name="attention")(x)
    global_features = jnp.concatenate([pooled(x), counts], axis=-1)
    # Policy and heads see the whole board: parity is not local.
    hidden = nn.Dense(config.channels, dtype=dtype, name="policy_hidden")(x)
    whole = nn.Dense(config.channels, dtype=dtype, name="policy_board")(global_features)
    hidden = relu(hidden + whole[:, None, None])
    policy = nn.Dense(2, dtype=jnp.float32, name="policy")(hidden)
    summary = relu(nn.Dense(config.channels, dtype=dtype, name="margin_hidden")(global_features))
    return edges_from_planes(board, policy), summary


POOLING_EVERY = 3  # blocks; local layers need summaries of the board to count chains
TRUNKS = {
    "conv": Trunk(
        grid_inputs,
        conv,
        options=frozenset(["attention_heads", "safe_end"]),
        fits_all_boards=True,
        convolves=True,
        cpu_chunk=64,
    ),
    "dense": Trunk(edge_inputs, dense),
}


# Finite: searches subtract maxima, and -inf minus -inf is not a number.
IMPOSSIBLE = -1e9


class Prediction(NamedTuple):
    """The outputs of the network for a batch of positions, for the side to move."""

    policy_logits: jax.Array  # [B, A] float32, drawn edges at IMPOSSIBLE
    head_logits: dict[str, jax.Array]  # [B, K] float32 by name, impossible labels at IMPOSSIBLE


def present_platform() -> str:
    """Return "cpu" or "gpu", whichever JAX computes on. All other code gets it passed."""
    return "cpu" if jax.default_backend() == "cpu" else "gpu"


def fast_gpu_dtype() -> str:
    """Return the number format that the GPU here computes fast; bfloat16 if it is not NVIDIA's.

    GPUs before Ampere have no bfloat16: XLA computes it in float32 or slower.
    """
    capability = str(getattr(jax.devices()[0], "compute_capability", ""))
    if not re.fullmatch(r"\d+\.\d+", capability) or float(capability) >= 8:
        return "bfloat16"
    return "float16" if float(capability) >= 7 else "float32"


def present_cores() -> int:
    """Return the cores (streaming multiprocessors) of the GPU here; else those of an H200."""
    return getattr(jax.devices()[0], "core_count", None) or 132


class Network(nn.Module):
    """Residual network with one of the `TRUNKS`. Batched: takes drawn edges [B, A] bool.

    The platform chooses between forms of the same computation, for the network and its users.
    """

    board: DotsAndBoxes
    config: NetworkConfig
    platform: str = field(default_factory=present_platform)  # "cpu" or "gpu"
    cores: int = field(default_factory=present_cores)  # of a GPU
    head_names: tuple[str, ...] | None = None  # those its weights have; None: all that are on

    def __post_init__(self):
        for name in ("attention_heads", "safe_end"):
            value = getattr(self.config, name)
            if value and name not in self.trunk.options:
                raise InputError(
                    f"network.{name}: {value} does not fit network.trunk {self.config.trunk}"
                )
        if self.head_names is None:  # a head that is added later belongs to other networks
            self.head_names = tuple(heads_of(self.config))
        super().__post_init__()
        for name, head in self.heads.items():
            size, labels = head.size(self.board), jnp.iinfo(head.dtype)
            if not labels.min < 0 < size <= labels.max + 1:  # -1 is a label too
                raise InputError(
                    f"head {name}: {labels.dtype} does not hold labels -1 to {size - 1} of a "
                    f"{self.board} board"
                )

    @property
    def trunk(self) -> Trunk:
        return TRUNKS[self.config.trunk]

    @property
    def part_sizes(self) -> tuple[int, ...]:
        """The sizes of the parts of a batch; a convolution has a row for each square."""
        rows = (self.board.rows + 1) * (self.board.cols + 1) if self.trunk.convolves else 1
        return part_sizes(self.platform, self.cores, rows)

    @property
    def heads(self) -> dict[str, Head]:
        """The heads by name."""
        return {
            name: head for name, head in heads_of(self.config).items() if name in self.head_names
        }

    @property
    def dtype(self) -> jnp.dtype:
        """The number format of activations, except in learning: see `for_learning`."""
        if self.config.compute_dtype != "auto":
            return jnp.dtype(self.config.compute_dtype)
        return jnp.dtype("float32" if self.platform == "cpu" else fast_gpu_dtype())

    def __call__(self, drawn: jax.Array, structure: Structure | None = None) -> Prediction:
        """Evaluate positions; `structure` [B] is computed if None."""
        return self.predict(drawn, self.layers(*self.inputs(drawn, structure)))

    def inputs(self, drawn: jax.Array, structure: Structure | None) -> Inputs:
        """Return the inputs of the layers; they do not depend on the parameters."""
        chex.assert_shape(drawn, (None, self.board.num_edges), custom_message="drawn")
        chex.assert_type(drawn, bool, custom_message="drawn")
        if self.config.features == "raw":
            structure = None
        elif structure is None:
            structure = jax.vmap(partial(find_structure, self.board))(drawn)
        return self.trunk.inputs(self.board, drawn, structure, self.dtype)

    @nn.compact
    def layers(self, *inputs: jax.Array) -> Logits:
        """Return the logits of positions from their inputs."""
        policy, summary = self.trunk.layers(self.board, self.config, self.platform, *inputs)
        return policy, {
            name: nn.Dense(head.size(self.board), dtype=jnp.float32, name=name)(summary)
            for name, head in self.heads.items()
        }

    def predict(self, drawn: jax.Array, logits: Logits) -> Prediction:
        """Mask drawn edges and impossible labels in the logits of positions."""
        policy_logits, head_logits = logits
        for name, head in self.heads.items():
            if head.possible:
                possible = jax.vmap(partial(head.possible, self.board))(drawn)
                head_logits = head_logits | {
                    name: jnp.where(possible, head_logits[name], IMPOSSIBLE)
                }
        return Prediction(jnp.where(drawn, IMPOSSIBLE, policy_logits), head_logits)


def for_learning(network: Network) -> Network:
    """The network for gradients: float16 is replaced by float32 (no loss scaling)."""
    if network.dtype != jnp.float16:
        return network
    return network.clone(config=replace(network.config, compute_dtype="float32"))


@dataclass(frozen=True, eq=False)  # arrays do not compare to one truth value
class Agent:
    """A network, its weights and its search settings, for the players that use a network."""

    network: Network
    params: chex.ArrayTree = field(repr=False)
    settings: SearchConfig
    temperature: float = 0.0  # of `policy` and `search`; above 0 they sample their moves


def evaluate_used(
    network: Network,
    params: chex.ArrayTree,
    drawn: jax.Array,
    structure: Structure | None,
    used: jax.Array,
) -> Prediction:
    """Evaluate positions [B, A]; positions that are not `used` [B] bool may get any logits.

    The layers take the used positions in parts. Inputs are cheap, and on a GPU they take hardly
    longer for many positions than for few, so all positions get them.
    """

    def layers(*inputs: jax.Array) -> Logits:
        return network.apply(params, *inputs, method="layers")

    sizes = network.part_sizes
    if not worth_dividing(network.platform, sizes, len(drawn)):
        return network.apply(params, drawn, structure)
    inputs = network.apply(params, drawn, structure, method="inputs")
    logits = in_parts(sizes, layers, inputs, used)
    return network.apply(params, drawn, logits, method="predict")


def inference_copy(network: Network, params: chex.ArrayTree, batch: int) -> chex.ArrayTree:
    """Return variables that evaluate batches of `batch` positions like `params`, but faster.

    Work that every evaluation would repeat on the weights is done once: matrices, kernels and
    biases are cast to the format of the activations, and kernels are transformed for Winograd's
    convolution.
    """
    drawn = jnp.zeros((batch, network.board.num_edges), bool)
    _, prepared = network.apply(params, drawn, mutable=[PREPARED])
    paths, _ = jax.tree.flatten_with_path(params)
    with_kernel = {path[:-1] for path, _ in paths if path[-1].key == "kernel"}

    def cast_one(path: tuple, leaf: jax.Array) -> jax.Array:
        # Normalisations and the last layers act in float32.
        wide = is_last_layer(path) or (leaf.ndim < 2 and path[:-1] not in with_kernel)
        return leaf if wide else leaf.astype(network.dtype)

    cast = jax.tree_util.tree_map_with_path(cast_one, params)
    return {**cast, **prepared}


def init_params(network: Network, key: jax.Array) -> chex.ArrayTree:
    """Return random initial parameters in float32."""
    drawn = jnp.zeros((1, network.board.num_edges), bool)
    if isinstance(key, jax.core.Tracer):  # compiled by the caller, if at all
        return network.init(key, drawn)
    # Compiled, because the compiler leaves out the evaluation itself: 1 s instead of 12. It runs
    # once, so a low optimisation level is enough.
    return _init_program(network)(key, drawn)


@lru_cache(maxsize=8)
def _init_program(network: Network) -> Callable:
    return jax.jit(network.init, compiler_options={"xla_backend_optimization_level": 1})


def param_shapes(network: Network) -> chex.ArrayTree:
    """Return the shapes of the parameters of a network."""
    return jax.eval_shape(partial(init_params, network), jax.random.key(0))


def count_params(params: chex.ArrayTree) -> int:
    """Count the numbers in a tree of parameters."""
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def margin_probabilities(prediction: Prediction) -> jax.Array:
    """Return the distribution of the remaining margin: [B, M]."""
    return jax.nn.softmax(prediction.head_logits["margin"], axis=-1)


def expected_margin(board: DotsAndBoxes, prediction: Prediction) -> jax.Array:
    """Return the expected remaining margin of the side to move, in boxes: [B]."""
    return margin_probabilities(prediction) @ margin_bins(board).astype(jnp.float32)
