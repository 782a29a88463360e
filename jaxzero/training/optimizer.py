"""AdamW and Muon, and the schedule of the learning rate.

Muon moves each matrix of a layer equally far in all directions. Adam updates the other arrays, such
as biases, scales and the last layers. A GPU kernel for each array would cost more than
what it computes, so Adam gets one long vector and Muon all matrices of one shape at once.
"""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
from optax.contrib import MuonDimensionNumbers, scale_by_muon

from jaxzero.config import LearnerConfig
from jaxzero.heads import is_last_layer

# Steps of Muon are scaled to the usual size of Adam's steps, so both share a learning rate.
# Source: Liu et al. 2025, "Muon is scalable for LLM training", section 2.2.
ADAM_SIZE = 0.2
NEWTON_SCHULZ = np.array([3.4445, -4.7750, 2.0315], np.float32)  # as Jordan et al. below
FINAL_RATE = 0.02  # learning rate after the decay, as a fraction of the rate before it


def make_optimizer(settings: LearnerConfig) -> optax.GradientTransformation:
    """Return the direction of a step: that of Adam, or of Muon for the matrices of layers.

    Clipping, weight decay and learning rate are in `learner.update`, because they are data.
    """
    if settings.optimizer == "adamw":
        return optax.flatten(optax.scale_by_adam())
    steps = {"muon": by_shape(muon_step()), "adam": optax.flatten(optax.scale_by_adam())}
    return optax.partition(steps, which_step)


def learning_rate(
    settings: LearnerConfig, rate: chex.Numeric, step: chex.Numeric, progress: chex.Numeric
) -> chex.Numeric:
    """Return the learning rate [] of update `step` []: linear warm-up, `rate`, cosine decay.

    The warm-up counts updates; the decay follows `progress` [] of the run, 0 to 1.
    """
    # Count from 1, or the first update would do nothing.
    rise = (step + 1) / max(1, settings.warmup_updates)
    late = (progress - (1 - settings.decay_fraction)) / max(settings.decay_fraction, 1e-9)
    fall = 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip(late, 0, 1)))
    fall = FINAL_RATE + (1 - FINAL_RATE) * fall
    if not settings.decay_fraction:
        fall = 1.0
    return rate * jnp.minimum(jnp.minimum(rise, 1.0), fall)


def kernels(params: chex.ArrayTree) -> chex.ArrayTree:
    """Return whether each array is a kernel, not a bias, a scale or a positional embedding."""
    return jax.tree_util.tree_map_with_path(lambda path, _: path[-1].key == "kernel", params)


def which_step(params: chex.ArrayTree) -> chex.ArrayTree:
    """Return "muon" for the kernels of dense and convolutional layers, else "adam".

    Kernels of attention take Adam: each holds several matrices, with inputs on differing axes.
    """

    def of(path: tuple, leaf: jax.Array, kernel: bool) -> str:
        return "muon" if kernel and leaf.ndim != 3 and not is_last_layer(path) else "adam"

    return jax.tree_util.tree_map_with_path(of, params, kernels(params))


def muon_step() -> optax.GradientTransformation:
    """Return Muon for stacks of matrices [K, M, N], with steps of the size that Adam takes.

    Five Newton-Schulz iterations turn the momentum U S V^T into about U V^T.
    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".
    """
    matrices = partial(jax.tree.map, lambda _: MuonDimensionNumbers(1, 2))
    sized = partial(jax.tree.map, lambda x: ADAM_SIZE * max(x.shape[1:]) ** 0.5 * x)
    return optax.chain(
        scale_by_muon(NEWTON_SCHULZ, weight_dimension_numbers=matrices),
        optax.stateless(lambda updates, _: sized(updates)),
    )


def by_shape(inner: optax.GradientTransformation) -> optax.GradientTransformation:
    """Apply `inner` to the arrays of a tree as stacks of matrices [K, M, N], one per shape.

    The last axis of an array is the outputs of its layer; all other axes together are the inputs.
    """

    def stacks(tree: chex.ArrayTree) -> dict[str, jax.Array]:
        groups: dict[str, list[jax.Array]] = {}
        for leaf in jax.tree.leaves(tree):
            groups.setdefault(shape_of(leaf), []).append(leaf.reshape(-1, leaf.shape[-1]))
        return {shape: jnp.stack(matrices) for shape, matrices in groups.items()}

    def shape_of(leaf: jax.Array) -> str:
        return f"{leaf.size // leaf.shape[-1]}x{leaf.shape[-1]}"

    def init(params: chex.ArrayTree) -> optax.OptState:
        return inner.init(stacks(params))

    def update(
        updates: chex.ArrayTree, state: optax.OptState, _: chex.ArrayTree | None = None
    ) -> tuple[chex.ArrayTree, optax.OptState]:
        stepped, state = inner.update(stacks(updates), state)
        rows = {shape: iter(stack) for shape, stack in stepped.items()}
        back = jax.tree.map(lambda leaf: next(rows[shape_of(leaf)]).reshape(leaf.shape), updates)
        return back, state

    return optax.GradientTransformation(init, update)
