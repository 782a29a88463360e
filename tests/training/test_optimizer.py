"""Test the steps of both optimizers, AdamW and Muon."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.config import LearnerConfig
from jaxzero.training.optimizer import ADAM_SIZE, learning_rate, make_optimizer, which_step

MUON = LearnerConfig(optimizer="muon", warmup_updates=0, decay_fraction=1.0)
WEIGHTS = {
    "conv_a": {"kernel": (3, 3, 4, 8), "bias": (8,)},
    "conv_b": {"kernel": (3, 3, 4, 8), "bias": (8,)},
    "dense": {"kernel": (5, 16), "bias": (16,)},
    "attention": {"kernel": (4, 2, 8), "bias": (2, 8), "places": (1, 4, 4)},
    "policy": {"kernel": (16, 2), "bias": (2,)},
}


def arrays(seed: int) -> chex.ArrayTree:
    """Return arrays shaped as `WEIGHTS`; their matrices have strong and weak directions."""

    rng = np.random.default_rng(seed)

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        scale = 10.0 ** -(3 * np.arange(shape[-1]) / shape[-1])
        return (rng.normal(size=shape) * scale).astype(np.float32)

    return jax.tree.map(draw, WEIGHTS, is_leaf=lambda x: isinstance(x, tuple))


@cache
def steps(settings: LearnerConfig, count: int = 3) -> chex.ArrayTree:
    """Return the direction of the last of `count` steps along fixed gradients."""
    optimizer, params = make_optimizer(settings), arrays(0)
    state, update = jax.jit(optimizer.init)(params), jax.jit(optimizer.update)
    for seed in range(1, count + 1):
        direction, state = update(arrays(seed), state, params)
    return jax.device_get(direction)


def test_a_step_of_muon_is_as_large_in_all_directions():
    directions, names = steps(MUON), which_step(arrays(0))
    sizes = []
    for step, name in zip(jax.tree.leaves(directions), jax.tree.leaves(names), strict=True):
        matrix = np.asarray(step).reshape(-1, step.shape[-1])
        assert np.sqrt((matrix**2).mean()) < 1.5  # no larger than steps of Adam
        if name == "muon":
            singular = np.linalg.svd(matrix, compute_uv=False)
            sizes.append(singular / (ADAM_SIZE * max(matrix.shape) ** 0.5))
    assert len(sizes) == 3
    # Five rounds make the sizes equal up to some tenths; sizes of the gradients differ 400-fold.
    assert min(map(min, sizes)) > 0.3
    assert max(map(max, sizes)) < 1.4


def test_heads_and_biases_go_by_adam():
    by_muon, by_adam = steps(MUON), steps(replace(MUON, optimizer="adamw"))
    for name, layer in WEIGHTS.items():
        for part in layer:
            same = np.array_equal(by_muon[name][part], by_adam[name][part])
            muon = part == "kernel" and name not in ("policy", "attention")
            assert same != muon, (name, part)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_both_find_the_minimum_of_a_quadratic(optimizer):
    settings = replace(MUON, optimizer=optimizer)
    goal, params = arrays(7), arrays(8)
    state = make_optimizer(settings).init(params)

    @jax.jit
    def take_step(carry: tuple, progress: jax.Array) -> tuple:
        params, state = carry
        gradient = jax.tree.map(jnp.subtract, params, goal)
        direction, state = make_optimizer(settings).update(gradient, state, params)
        rate = learning_rate(settings, 0.1, 0, progress)
        return (jax.tree.map(lambda x, step: x - rate * step, params, direction), state), None

    (end, _), _ = jax.lax.scan(take_step, (params, state), jnp.linspace(0, 1, 300))
    distances = [
        np.abs(a - b).max()
        for a, b in zip(jax.tree.leaves(end), jax.tree.leaves(goal), strict=True)
    ]
    assert max(distances) < 0.1
