"""Search the quiet game with mctx, as a reference for the search by rounds.

Reward and discount of an action depend on the value of the position after it. The backup of mctx is
replaced by a backup that recomputes reward and discount, and every mean from its definition.
"""

from __future__ import annotations

from functools import partial
from unittest import mock

import jax
import mctx

from jaxzero.config import SearchConfig
from jaxzero.search import mctx_search
from jaxzero.search.interface import Model, SearchResult


def search_by_mctx(
    model: Model, settings: SearchConfig, key: jax.Array, gumbel_scale: float
) -> SearchResult:
    """Search as `search_by_rounds` does."""
    with mock.patch("mctx._src.search.backward", jax.vmap(partial(backward, model.outcome))):
        return mctx_search.search_by_mctx(model, settings, key, gumbel_scale)


def backward(outcome, tree: mctx.Tree, leaf: jax.Array) -> mctx.Tree:
    """Update the ancestors of a new leaf of ONE tree.

    A node's value times its visits is its raw value plus, over its actions, visits times (reward +
    discount * value of the child).
    """

    def one_level(carry: tuple[mctx.Tree, jax.Array]) -> tuple[mctx.Tree, jax.Array]:
        tree, node = carry
        branch = tree.parents[node], tree.action_from_parent[node]
        value = tree.node_values[node]
        embedding = jax.tree.map(lambda field: field[node], tree.embeddings)
        reward, discount = outcome(embedding, value)
        tree = tree.replace(
            children_values=tree.children_values.at[branch].set(value),
            children_visits=tree.children_visits.at[branch].add(1),
            children_rewards=tree.children_rewards.at[branch].set(reward),
            children_discounts=tree.children_discounts.at[branch].set(discount),
        )
        parent, _ = branch
        visits = tree.children_visits[parent]
        qvalues = tree.children_rewards + tree.children_discounts * tree.children_values
        total = tree.raw_values[parent] + (visits * qvalues[parent]).sum()
        tree = tree.replace(
            node_values=tree.node_values.at[parent].set(total / (1 + visits.sum())),
            node_visits=tree.node_visits.at[parent].add(1),
        )
        return tree, parent

    return jax.lax.while_loop(lambda carry: carry[1] != tree.ROOT_INDEX, one_level, (tree, leaf))[0]
