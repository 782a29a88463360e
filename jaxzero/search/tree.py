"""Search trees of a batch of games, grown by whole rounds of simulations, in the words of mctx.

This differs from mctx in:

- The simulations of a round run at once. They lie below different actions of the root, so they do
  not depend on each other.
- `simulate` is a lookup, because every node keeps the leaf where the next simulation through it
  ends. `backward` updates these leaves.
- Reward and discount of an action may depend on the value of its child (`quiet_game`). `backward`
  refreshes them on the way up.
- The root is expanded like a leaf, from an embedding before it. Round 0 does this:

      before the root --NO_ACTION--> root = node 0 --action--> node 1 --action--> ...

Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel".
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.search.interface import NO_ACTION, Expand, Model, Outcome

ROOT_INDEX = 0
MAXVISIT_INIT = 50.0  # c_visit of Danihelka et al.


class NodeStats(NamedTuple):
    """The statistics of the actions of a node."""

    raw_value: jax.Array  # [...] float32, by the network
    children_prior_logits: jax.Array  # [..., A] float32
    children_visits: jax.Array  # [..., A] int32
    children_qvalues: jax.Array  # [..., A] float32, reward + discount * value of the child


# (stats [...], largest visit count of an action [..., 1]) to scaled Q-values [..., A]
QTransform = Callable[[NodeStats, jax.Array], jax.Array]


class Tree(NamedTuple):
    """The trees of a batch of games; node 0 is the root. Unused nodes are nobody's children."""

    embeddings: chex.ArrayTree  # [B, N, ...]
    parents: jax.Array  # [B, N] int32
    action_from_parent: jax.Array  # [B, N] int32
    rewards: jax.Array  # [B, N] float32, of the action from the parent
    discounts: jax.Array  # [B, N] float32, of the action from the parent
    raw_values: jax.Array  # [B, N] float32, by the network
    node_values: jax.Array  # [B, N] float32, mean of the raw value and of all visits below
    children_prior_logits: jax.Array  # [B, N, A] float32
    children_visits: jax.Array  # [B, N, A] int32
    children_qvalues: jax.Array  # [B, N, A] float32, reward + discount * value of the child
    children_index: jax.Array  # [B, N, A] int32; 0: no child
    next_leaf: jax.Array  # [B, N] int32, the node where the next simulation through here ends
    next_leaf_action: jax.Array  # [B, N] int32, the action that this simulation takes there
    evaluations: jax.Array  # [B] int32, positions that the network evaluated


class Simulations(NamedTuple):
    """The simulations of one round: W per game."""

    leaf: jax.Array  # [B, W] int32, the node to expand
    action: jax.Array  # [B, W] int32, the action to expand
    used: jax.Array  # [B, W] bool


def qtransform_completed_by_mix_value(
    value_scale: float, stats: NodeStats, max_visits: jax.Array
) -> jax.Array:
    """Return the scaled Q-values of actions [..., A], to be added to their logits.

    Actions without a visit get the mixed value (Danihelka 2022, appendix D): a mean of the raw
    value of the node and of the Q-values of the visited actions, weighted by their prior.
    `max_visits` [..., 1] is the largest visit count of an action.
    """
    visited, logits = stats.children_visits > 0, stats.children_prior_logits
    prior = jnp.maximum(jax.nn.softmax(logits), jnp.finfo(logits.dtype).tiny)
    of_visited = jnp.sum(jnp.where(visited, prior, 0.0), axis=-1, keepdims=True)
    shares = prior * stats.children_qvalues / jnp.where(visited, of_visited, 1.0)
    mean = jnp.sum(jnp.where(visited, shares, 0.0), axis=-1)
    count = jnp.sum(stats.children_visits, axis=-1, dtype=jnp.int32)
    mixed = (stats.raw_value + count * mean) / (count + 1)
    completed = jnp.where(visited, stats.children_qvalues, mixed[..., None])
    if isinstance(max_visits, jax.Array):
        max_visits = max_visits.astype(jnp.float32)
    return (MAXVISIT_INIT + max_visits) * value_scale * completed


def select_interior_action(qtransform: QTransform, stats: NodeStats) -> jax.Array:
    """Return the action that the next simulation takes in nodes [...]: [...] int32.

    Visits then approach the improved policy (Danihelka 2022, section 5).
    """
    max_visits = jnp.max(stats.children_visits, axis=-1, keepdims=True)
    policy = jax.nn.softmax(stats.children_prior_logits + qtransform(stats, max_visits))
    count = jnp.sum(stats.children_visits, axis=-1, dtype=jnp.int32, keepdims=True)
    return jnp.argmax(policy - stats.children_visits / (1 + count), axis=-1).astype(jnp.int32)


def instantiate_tree(model: Model, num_nodes: int) -> Tree:
    """Return trees with room for `num_nodes` nodes; the first round adds the root."""
    batch, num_actions = model.legal.shape

    def with_room(embedding: jax.Array) -> jax.Array:
        room = jnp.zeros((batch, num_nodes, *embedding.shape[1:]), embedding.dtype)
        return room.at[:, ROOT_INDEX].set(embedding)

    of_nodes = jnp.zeros((batch, num_nodes), jnp.int32)
    values = jnp.zeros((batch, num_nodes), jnp.float32)
    of_actions = jnp.zeros((batch, num_nodes, num_actions), jnp.int32)
    action_values = jnp.zeros((batch, num_nodes, num_actions), jnp.float32)
    return Tree(
        embeddings=jax.tree.map(with_room, model.before_root),
        parents=of_nodes,
        action_from_parent=of_nodes,
        rewards=values,
        discounts=values,
        raw_values=values,
        node_values=values,
        children_prior_logits=action_values,
        children_visits=of_actions,
        children_qvalues=action_values,
        children_index=of_actions,
        next_leaf=of_nodes,
        next_leaf_action=of_nodes,
        evaluations=jnp.zeros(batch, jnp.int32),
    )


def stats_at(tree: Tree, games: jax.Array | slice, node: jax.Array | int) -> NodeStats:
    """Return the statistics of nodes in the trees of `games`."""
    return NodeStats(
        raw_value=tree.raw_values[games, node],
        children_prior_logits=tree.children_prior_logits[games, node],
        children_visits=tree.children_visits[games, node],
        children_qvalues=tree.children_qvalues[games, node],
    )


def simulate(tree: Tree, root_actions: jax.Array, used: jax.Array) -> Simulations:
    """Return the leaves where the simulations through actions of the root [B, W] end."""
    chex.assert_equal_shape([root_actions, used])
    games = jnp.arange(len(root_actions), dtype=jnp.int32)[:, None]
    child = tree.children_index[games, ROOT_INDEX, root_actions]
    inside = (child > 0) & (root_actions != NO_ACTION)
    leaf = jnp.where(inside, tree.next_leaf[games, child], ROOT_INDEX)
    action = jnp.where(inside, tree.next_leaf_action[games, child], root_actions)
    return Simulations(leaf, action, used)


def expand(
    expand_nodes: Expand,
    outcome: Outcome,
    tree: Tree,
    simulations: Simulations,
    first_new: jax.Array,
) -> Tree:
    """Add the positions after the actions of the leaves as nodes `first_new` [] and following."""
    leaf, action, used = simulations
    games, width = jnp.arange(len(leaf), dtype=jnp.int32)[:, None], leaf.shape[1]

    def flat(field: jax.Array) -> jax.Array:
        return field.reshape(-1, *field.shape[2:])

    before = jax.tree.map(lambda field: flat(field[games, leaf]), tree.embeddings)
    embeddings, logits, values, evaluated = expand_nodes(before, flat(action), flat(used))
    rewards, discounts = jax.vmap(outcome)(embeddings, values)
    num_actions = tree.children_index.shape[-1]
    chex.assert_shape(logits, (leaf.size, num_actions), custom_message="logits")
    chex.assert_shape([values, rewards, discounts], (leaf.size,))

    def put(field: jax.Array, new: jax.Array) -> jax.Array:
        new = new.reshape(-1, width, *new.shape[1:]).astype(field.dtype)
        return jax.lax.dynamic_update_slice_in_dim(field, new, first_new, axis=1)

    index = (first_new + jnp.arange(width, dtype=jnp.int32))[None, :]
    evaluated = evaluated.reshape(used.shape) & used
    # Unused slots and the root have no parent.
    is_child = used & (action != NO_ACTION)
    parent = jnp.where(is_child, leaf, tree.parents.shape[1])
    return tree._replace(
        embeddings=jax.tree.map(put, tree.embeddings, embeddings),
        parents=put(tree.parents, flat(leaf)),
        action_from_parent=put(tree.action_from_parent, flat(action)),
        rewards=put(tree.rewards, rewards),
        discounts=put(tree.discounts, discounts),
        raw_values=put(tree.raw_values, values),
        node_values=put(tree.node_values, values),
        children_prior_logits=put(tree.children_prior_logits, logits),
        children_index=tree.children_index.at[games, parent, action].set(index, mode="drop"),
        next_leaf=put(tree.next_leaf, jnp.broadcast_to(index, leaf.shape).ravel()),
        # No visits yet: the prior decides.
        next_leaf_action=put(tree.next_leaf_action, jnp.argmax(logits, axis=-1)),
        evaluations=tree.evaluations + jnp.sum(evaluated, axis=-1, dtype=jnp.int32),
    )


class Backup(NamedTuple):
    """Backup state of the simulations of a round."""

    games: jax.Array  # [P] int32
    node: jax.Array  # [P] int32, where the backup stands
    added: jax.Array  # [P] float32, the value that the visit adds to this node
    used: jax.Array  # [P] bool


def backward(
    qtransform: QTransform,
    outcome: Outcome,
    tree: Tree,
    simulations: Simulations,
    first_new: jax.Array,
    max_depth: int | None,
    part: int | None = None,
) -> Tree:
    """Add the values of the new nodes, `first_new` [] and following, to all nodes above them.

    `max_depth` is a static bound of the depth of the new nodes (fori_loop); None: while_loop until
    every path is at the root. With `part`, the used simulations are backed up in groups of `part`.

    Invariant of every node: its value times its visits is its raw value plus, summed over its
    actions, visits times (reward + discount * value of the child). In the quiet game reward and
    discount depend on the value of the child, so they are refreshed when this value changes.
    """
    leaf, _, used = simulations
    node = first_new + jnp.arange(leaf.shape[1], dtype=jnp.int32)[None, :]
    games = jnp.arange(len(leaf), dtype=jnp.int32)[:, None]
    games, node = (jnp.broadcast_to(index, leaf.shape).ravel() for index in (games, node))
    backup = Backup(games, node, tree.node_values[games, node], used.ravel())
    step = partial(backup_one_level, qtransform, outcome)

    def below_root(backup: Backup) -> jax.Array:
        return backup.used & (backup.node != ROOT_INDEX)

    def to_root(tree: Tree, backup: Backup) -> Tree:
        def one_level(carry: tuple[Tree, Backup]) -> tuple[Tree, Backup]:
            return step(*carry, below_root(carry[1]))

        def unfinished(carry: tuple[Tree, Backup]) -> jax.Array:
            return jnp.any(below_root(carry[1]))

        begin = tree, backup
        if max_depth is None:
            return jax.lax.while_loop(unfinished, one_level, begin)[0]
        return jax.lax.fori_loop(0, max_depth, lambda _, carry: one_level(carry), begin)[0]

    if part is not None:
        return backup_in_groups(part, to_root, tree, backup)
    return to_root(tree, backup)


def backup_in_groups(part: int, to_root: Callable, tree: Tree, backup: Backup) -> Tree:
    """Back up the used simulations, `part` at a time; no two share a node below the root."""
    count = jnp.sum(backup.used, dtype=jnp.int32)
    (order,) = jnp.nonzero(backup.used, size=len(backup.used) + part, fill_value=0)

    def one_group(carry: tuple[jax.Array, Tree]) -> tuple[jax.Array, Tree]:
        begin, tree = carry
        rows = jax.lax.dynamic_slice_in_dim(order, begin, part)
        group = jax.tree.map(lambda field: field[rows], backup)
        group = group._replace(used=begin + jnp.arange(part, dtype=jnp.int32) < count)
        return begin + part, to_root(tree, group)

    return jax.lax.while_loop(lambda carry: carry[0] < count, one_group, (jnp.int32(0), tree))[1]


class ChildStats(NamedTuple):
    """A node and the action to it, before the parent counts a visit."""

    embedding: chex.ArrayTree
    value: jax.Array  # [] float32
    reward: jax.Array  # [] float32, of the action, as stored at the last visit
    discount: jax.Array  # [] float32, of the action, as stored at the last visit
    visits: jax.Array  # [] int32, of the action
    qvalue: jax.Array  # [] float32, of the action


class RefreshedTransition(NamedTuple):
    """The action to a child after the value of the child has changed."""

    reward: jax.Array  # [] float32
    discount: jax.Array  # [] float32
    qvalue: jax.Array  # [] float32
    added: jax.Array  # [] float32, the value that the visit adds to the parent


def refresh_transition(
    outcome: Outcome, child: ChildStats, added: jax.Array
) -> RefreshedTransition:
    """Recompute reward and discount of ONE action after its child's value changed by `added` []."""
    chex.assert_rank([child.value, child.visits, child.qvalue, added], 0)
    reward, discount = outcome(child.embedding, child.value)
    qvalue = reward + discount * child.value
    changed = (reward != child.reward) | (discount != child.discount)
    # A changed outcome also applies to the earlier visits of the action.
    whole = (child.visits + 1) * qvalue - child.visits * child.qvalue
    added = jnp.where(changed, whole, child.reward + child.discount * added)
    return RefreshedTransition(reward, discount, qvalue, added)


def add_visit(
    qtransform: QTransform,
    value: jax.Array,
    stats: NodeStats,
    action: jax.Array,
    transition: RefreshedTransition,
) -> tuple[jax.Array, jax.Array]:
    """Count a visit of `action` [] in ONE node; return its new value [] and its next action []."""
    chex.assert_rank([value, action, stats.raw_value], 0)
    chex.assert_rank([stats.children_visits, stats.children_qvalues], 1)
    visited = jax.nn.one_hot(action, len(stats.children_visits), dtype=bool)
    visits = 1 + jnp.sum(stats.children_visits, dtype=jnp.int32)
    value = (value * visits + transition.added) / (visits + jnp.float32(1))
    after = stats._replace(
        children_visits=stats.children_visits + visited,
        children_qvalues=jnp.where(visited, transition.qvalue, stats.children_qvalues),
    )
    return value, select_interior_action(qtransform, after)


def backup_one_level(
    qtransform: QTransform, outcome: Outcome, tree: Tree, backup: Backup, active: jax.Array
) -> tuple[Tree, Backup]:
    """Add one visit of each `active` [P] node to its parent, and step up to the parent."""
    games, node, added, _ = backup
    parent, action = tree.parents[games, node], tree.action_from_parent[games, node]
    child = ChildStats(
        embedding=jax.tree.map(lambda field: field[games, node], tree.embeddings),
        value=tree.node_values[games, node],
        reward=tree.rewards[games, node],
        discount=tree.discounts[games, node],
        visits=tree.children_visits[games, parent, action],
        qvalue=tree.children_qvalues[games, parent, action],
    )
    transition = jax.vmap(partial(refresh_transition, outcome))(child, added)
    nowhere = tree.parents.shape[1]  # writes there are dropped
    active_parent, active_node = (jnp.where(active, at, nowhere) for at in (parent, node))

    def write(field: jax.Array, new: jax.Array, *where: jax.Array) -> jax.Array:
        return field.at[games, *where].set(new, mode="drop")

    def after_reading(old: jax.Array, new: jax.Array) -> jax.Array:
        # Otherwise XLA does not see that `old` is read before the write, and copies the whole tree.
        return jnp.where(new == old, old, new)

    qvalue = after_reading(child.qvalue, transition.qvalue)
    updated = tree._replace(
        rewards=write(tree.rewards, after_reading(child.reward, transition.reward), active_node),
        discounts=write(
            tree.discounts, after_reading(child.discount, transition.discount), active_node
        ),
        children_visits=write(tree.children_visits, child.visits + 1, active_parent, action),
        children_qvalues=write(tree.children_qvalues, qvalue, active_parent, action),
    )
    value, next_action = jax.vmap(partial(add_visit, qtransform))(
        tree.node_values[games, parent], stats_at(tree, games, parent), action, transition
    )
    next_child = tree.children_index[games, parent, next_action]
    leaf = jnp.where(next_child > 0, tree.next_leaf[games, next_child], parent)
    leaf_action = jnp.where(next_child > 0, tree.next_leaf_action[games, next_child], next_action)
    # The root needs no leaf, and several nodes would write there at once.
    inner_parent = jnp.where(parent == ROOT_INDEX, nowhere, active_parent)
    updated = updated._replace(
        node_values=write(tree.node_values, value, inner_parent),
        next_leaf=write(tree.next_leaf, leaf, inner_parent),
        next_leaf_action=write(tree.next_leaf_action, leaf_action, inner_parent),
    )
    return updated, backup._replace(
        node=jnp.where(active, parent, node), added=jnp.where(active, transition.added, added)
    )
