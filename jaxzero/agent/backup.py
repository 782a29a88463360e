"""Backing up values in mctx's trees without copying them, and with replies that change.

mctx vmaps a while loop whose carry holds the tree. A vmapped loop that ends at a different step
in every game selects between the old and the new carry at each step, so every level of every
backup rewrites all of the tree: O(B * N * A) instead of O(B). Here one loop serves the batch and
finished games write back what is there. Without `reply` the results equal mctx's to the last bit.

In the quiet game reward and discount of a move follow from the value of the node it leads to: the
opponent takes or declines. `reply` decides anew whenever that value changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import mctx

# (embedding of nodes [B], values of these nodes [B]) to reward [B] and discount [B] of the moves
# that lead to them
ReplyOf = Callable[[chex.ArrayTree, jax.Array], tuple[jax.Array, jax.Array]]


@contextmanager
def in_place_backup(reply: ReplyOf | None = None) -> Iterator[None]:
    """Let searches that are traced in this context use `backward` below."""
    with mock.patch("mctx._src.search.backward", partial(backward, reply=reply)):
        yield


class Moves(NamedTuple):
    """What a tree keeps of moves, those of all nodes [B, N, A] or one of every game [B]."""

    values: jax.Array  # float32, of the node a move leads to
    visits: jax.Array  # int32
    rewards: jax.Array  # float32
    discounts: jax.Array  # float32

    def total(self) -> jax.Array:
        """Return what the visits of a move add up to at its parent."""
        return self.visits * (self.rewards + self.discounts * self.values)


def backward(tree: mctx.Tree, leaf: jax.Array, reply: ReplyOf | None = None) -> mctx.Tree:
    """Add the values of the new leaves ([B] int32) to all their ancestors. Batched.

    Keeps this law at every node: its value times its visits is its first value plus, over its
    moves, visits times (reward + discount * value of the child).
    """
    games = jnp.arange(leaf.shape[0])
    root = mctx.Tree.ROOT_INDEX

    def climbing(carry: tuple) -> jax.Array:
        return jnp.any(carry[-1] != root)

    def climb(carry: tuple) -> tuple:
        values, visits, moves, added, node = carry
        active = node != root
        parent = jnp.where(active, tree.parents[games, node], root)
        action = jnp.where(active, tree.action_from_parent[games, node], 0)
        before = Moves(*(field[games, parent, action] for field in moves))
        value = values[games, node]
        after = before._replace(values=value, visits=before.visits + 1)
        # What the visit adds to the sum of the parent.
        above = before.rewards + before.discounts * added
        if reply is not None:
            embedding = jax.tree.map(lambda field: field[games, node], tree.embeddings)
            rewards, discounts = reply(embedding, value)
            after = after._replace(rewards=rewards, discounts=discounts)
            changed = (rewards != before.rewards) | (discounts != before.discounts)
            # The visits before this one count with the new reply too.
            above = jnp.where(changed, after.total() - before.total(), above)

        def write(array: jax.Array, new: jax.Array, *where: jax.Array) -> jax.Array:
            old = array[(games, *where)]
            return array.at[(games, *where)].set(jnp.where(active, new, old))

        count = visits[games, parent]
        mean = (values[games, parent] * count + above) / (count + 1.0)
        written = (
            # Without replies nothing but values and visits is touched.
            old
            if reply is None and name in ("rewards", "discounts")
            else write(old, new, parent, action)
            for name, old, new in zip(Moves._fields, moves, after, strict=True)
        )
        return (
            write(values, mean, parent),
            write(visits, count + 1, parent),
            Moves(*written),
            jnp.where(active, above, added),
            parent,
        )

    leaf = leaf.astype(jnp.int32)
    moves = Moves(
        tree.children_values, tree.children_visits, tree.children_rewards, tree.children_discounts
    )
    start = tree.node_values, tree.node_visits, moves, tree.node_values[games, leaf], leaf
    values, visits, moves, _, _ = jax.lax.while_loop(climbing, climb, start)
    return tree.replace(
        node_values=values,
        node_visits=visits,
        children_values=moves.values,
        children_visits=moves.visits,
        children_rewards=moves.rewards,
        children_discounts=moves.discounts,
    )
