"""Weights to begin with: those of a trained network, of the same board or of another.

What does not depend on the size of the board carries over: the kernels of a convolutional trunk,
the inner blocks of a dense one. The rest, inputs and heads of another board, starts fresh.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.training.learner import Learner


class Transfer(NamedTuple):
    """The weights of one network with what another could give."""

    params: chex.ArrayTree  # float32, shaped like the weights of the network that takes
    taken: int  # arrays that came from the other
    arrays: int  # arrays in all


def transfer(source: chex.ArrayTree, target: chex.ArrayTree) -> Transfer:
    """Return `target` with every array that `source` has under the same name in the same shape."""
    given = dict(jax.tree_util.tree_leaves_with_path(source))
    paths, structure = jax.tree_util.tree_flatten_with_path(target)
    fits = [path in given and given[path].shape == leaf.shape for path, leaf in paths]
    leaves = [
        jnp.asarray(given[path], leaf.dtype) if fit else leaf
        for (path, leaf), fit in zip(paths, fits, strict=True)
    ]
    return Transfer(jax.tree_util.tree_unflatten(structure, leaves), sum(fits), len(fits))


def begin_with(learner: Learner, params: chex.ArrayTree) -> Learner:
    """Return a fresh learner that starts from `params`, its average and its best included."""
    copies = {
        name: jax.tree.map(jnp.copy, params)
        for name in ("average", "best")
        if getattr(learner, name)
    }
    return learner._replace(params=params, **copies)
