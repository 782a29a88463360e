"""The same search by mctx: the reference that `gumbel` is held against, and a choice.

`mctx.gumbel_muzero_policy` runs one simulation after the other. Only this file knows mctx.

`backward` below replaces its backup for two reasons. mctx vmaps a loop whose carry holds the tree
and that ends at a different step in every game, so each level of each backup rewrites the whole
tree: O(B * N * A) instead of O(B). And in the quiet game, reward and discount of a move follow from
the value of the node behind it (the opponent takes or declines), so they are computed again
whenever that value changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import mctx

from jaxzero.config import SearchConfig
from jaxzero.search.gumbel import SearchResult
from jaxzero.search.tree import NO_MOVE, VISIT_OFFSET, Expand, Outcome, Root


def plan(
    settings: SearchConfig,
    value_scale: float,
    expand: Expand,
    outcome: Outcome,
    key: jax.Array,
    root: Root,
    gumbel_scale: float,
    changing_replies: bool,
) -> SearchResult:
    """Search a batch of positions, as `gumbel.plan` does.

    `changing_replies`: the outcome of a move depends on the value of the node behind it.
    """

    def recurrent(_params, _key, move, node):
        node, logits, value = expand(node, move)
        reward, discount = outcome(node, value)
        return mctx.RecurrentFnOutput(
            reward=reward, discount=discount, prior_logits=logits, value=value
        ), node

    no_move = jnp.full(len(root.legal), NO_MOVE)
    node, logits, value = root.expanded or expand(root.before, no_move)
    with in_place_backup(outcome if changing_replies else None):
        output = mctx.gumbel_muzero_policy(
            params=(),
            rng_key=key,
            root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=node),
            recurrent_fn=recurrent,
            num_simulations=settings.simulations,
            invalid_actions=~root.legal,
            qtransform=partial(
                mctx.qtransform_completed_by_mix_value,
                value_scale=value_scale,
                maxvisit_init=VISIT_OFFSET,
                rescale_values=False,
            ),
            max_num_considered_actions=min(settings.max_considered_actions, settings.simulations),
            gumbel_scale=gumbel_scale,
        )
    summary = output.search_tree.summary()
    games = jnp.arange(len(output.action))
    return SearchResult(
        edge=output.action.astype(jnp.int32),
        policy=output.action_weights,
        value=summary.qvalues[games, output.action],
        visits=summary.visit_counts,
        prior=jax.nn.softmax(logits),
        tree=output.search_tree,
    )


@contextmanager
def in_place_backup(reply: Outcome | None = None) -> Iterator[None]:
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


def backward(tree: mctx.Tree, leaf: jax.Array, reply: Outcome | None = None) -> mctx.Tree:
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
