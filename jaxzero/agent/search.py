"""Gumbel tree search over batches of games. Only this file knows mctx.

The search itself is `mctx.gumbel_muzero_policy`. `backward` below replaces its backup for two
reasons. mctx vmaps a loop whose carry holds the tree and that ends at a different step in every
game, so each level of each backup rewrites the whole tree: O(B * N * A) instead of O(B). And in the
quiet game, reward and discount of a move follow from the value of the node behind it (the opponent
takes or declines), so they are computed again whenever that value changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import NamedTuple
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import mctx

from jaxzero.agent import plain_game, quiet_game
from jaxzero.agent.network import Network, expected_margin, win_balance
from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State, is_over

# (embedding of nodes [B], values of these nodes [B]) to reward [B] and discount [B] of the moves
# that lead to them
ReplyOf = Callable[[chex.ArrayTree, jax.Array], tuple[jax.Array, jax.Array]]


class Evaluation(NamedTuple):
    """Prior and value of a batch of positions, for the side to move."""

    prior_logits: jax.Array  # [B, A] float32, illegal edges hugely negative
    value: jax.Array  # [B] float32, utility still to come, -1 to 1


Evaluate = Callable[[chex.ArrayTree, State], Evaluation]  # (params, State [B])


class SearchResult(NamedTuple):
    """What a search found for a batch of positions."""

    edge: jax.Array  # [B] int32, the chosen move
    policy: jax.Array  # [B, A] float32, improved policy, the target of learning
    value: jax.Array  # [B] float32, utility of the chosen move after the search
    visits: jax.Array  # [B, A] float32, visit counts at the root
    prior: jax.Array  # [B, A] float32, the network's policy at the root
    tree: mctx.Tree  # [B, N, ...], the whole tree


def game_of(settings: SearchConfig) -> ModuleType:
    """Return the module that says which positions are nodes."""
    return quiet_game if settings.nodes == "quiet" else plain_game


def network_evaluator(network: Network, settings: SearchConfig) -> Evaluate:
    """Return an evaluator that mixes margin and win probability as `settings.win_weight` says."""
    game = network.game

    def evaluate(params: chex.ArrayTree, state: State) -> Evaluation:
        prediction = network.apply(params, state.drawn)
        value = expected_margin(game, prediction) / game.num_boxes
        if settings.win_weight:
            balance = win_balance(game, prediction, state.margin)
            value = (1 - settings.win_weight) * value + settings.win_weight * balance
        # Nothing is left to win once the game is over; the masked margins say so already,
        # but the sign of the final margin was paid out as a reward.
        return Evaluation(prediction.policy_logits, jnp.where(is_over(state), 0.0, value))

    return evaluate


def search(
    game: DotsAndBoxes,
    settings: SearchConfig,
    evaluate: Evaluate,
    params: chex.ArrayTree,
    key: jax.Array,
    state: State,
    *,
    gumbel_scale: float = 1.0,
) -> SearchResult:
    """Search a batch of positions (State [B]) with Gumbel MuZero planning on the true rules.

    `gumbel_scale` 1 explores at the root, 0 is deterministic play. With `settings.nodes` quiet the
    positions must be quiet, and edge, policy and visits are over the moves of the quiet game.
    Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel".
    """
    chex.assert_shape(state.drawn, (None, game.num_edges), custom_message="state.drawn")
    chex.assert_equal_shape([state.margin, state.player], custom_message="margin and player")
    rules = game_of(settings)
    outcome = jax.vmap(partial(rules.outcome, game))
    expand = jax.vmap(partial(rules.expand, game, settings.win_weight))
    prior = jax.vmap(partial(rules.prior, game))

    def expand_and_evaluate(params, _key, move, node):
        node, view = expand(node, move)
        evaluation = evaluate(params, node.state)
        reward, discount = outcome(node, evaluation.value)
        return mctx.RecurrentFnOutput(
            reward=reward,
            discount=discount,
            prior_logits=prior(view, evaluation.prior_logits),
            value=evaluation.value,
        ), node

    evaluation = evaluate(params, state)
    chex.assert_shape(evaluation.prior_logits, state.drawn.shape, custom_message="prior_logits")
    chex.assert_shape(evaluation.value, state.margin.shape, custom_message="value")
    view = jax.vmap(partial(rules.view, game))(state.drawn)
    root = mctx.RootFnOutput(
        prior_logits=prior(view, evaluation.prior_logits),
        value=evaluation.value,
        embedding=jax.vmap(rules.root)(state, view),
    )
    # mctx decides which moves get visits: sequential halving at the root, improved policy below.
    with in_place_backup(outcome if rules.OUTCOME_DEPENDS_ON_VALUE else None):
        output = mctx.gumbel_muzero_policy(
            params=params,
            rng_key=key,
            root=root,
            recurrent_fn=expand_and_evaluate,
            num_simulations=settings.simulations,
            invalid_actions=~jax.vmap(partial(rules.legal, game))(view),
            max_depth=settings.max_depth or None,
            qtransform=partial(
                mctx.qtransform_completed_by_mix_value,
                # Values are in boxes by the boxes on the board.
                value_scale=settings.value_scale_per_box * game.num_boxes,
                maxvisit_init=settings.visit_offset,
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
        prior=jax.nn.softmax(root.prior_logits),
        tree=output.search_tree,
    )


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
