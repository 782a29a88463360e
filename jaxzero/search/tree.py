"""Search trees of a batch of games, grown by whole rounds of simulations.

`simulate`, `expand` and `backward` are the steps of a round. The simulations of a round lie below
different moves of the root, so they do not depend on each other. Every node stores the leaf where
the next simulation through it ends, so `simulate` is a lookup; `backward` updates these leaves.

Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel".
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

ROOT = 0
VISIT_OFFSET = 50.0  # c_visit of Danihelka et al.
NO_MOVE = -1  # leads from `Root.before` to the root

# nodes [P], logits [P, A], values [P], which of them the network evaluated [P] bool
Expanded = tuple[chex.ArrayTree, jax.Array, jax.Array, jax.Array]
# (nodes [P], moves [P], which of them are used [P] bool, or None: all)
Expand = Callable[[chex.ArrayTree, jax.Array, jax.Array | None], Expanded]
# (ONE node, its value []) to reward [] and discount [] of the move to this node
Outcome = Callable[[chex.ArrayTree, jax.Array], tuple[jax.Array, jax.Array]]
# (moves [..., A], first value [...], most visits of a move [..., 1]) to weighted values [..., A]
Weigh = Callable[["Moves", jax.Array, jax.Array], jax.Array]


class Root(NamedTuple):
    """The positions to search."""

    before: chex.ArrayTree  # [B, ...], nodes from which `NO_MOVE` leads to the positions
    legal: jax.Array  # [B, A] bool


class Moves(NamedTuple):
    """The moves of nodes."""

    logits: jax.Array  # [..., A] float32, prior
    visits: jax.Array  # [..., A] int32
    values: jax.Array  # [..., A] float32, reward + discount * value after the move


class Tree(NamedTuple):
    """The trees of a batch of games; node 0 is the root. No child is an unused node."""

    nodes: chex.ArrayTree  # [B, N, ...], positions
    parents: jax.Array  # [B, N] int32
    move_to: jax.Array  # [B, N] int32, the move that leads here
    rewards: jax.Array  # [B, N] float32, of that move
    discounts: jax.Array  # [B, N] float32, of that move
    first_values: jax.Array  # [B, N] float32, by the network
    values: jax.Array  # [B, N] float32, mean of the first value and of all visits below
    moves: Moves  # [B, N, A]
    children: jax.Array  # [B, N, A] int32, the node after a move; 0: none
    leaf: jax.Array  # [B, N] int32, the node where the next simulation through here ends
    leaf_move: jax.Array  # [B, N] int32, the move that this simulation tries at the leaf
    evaluations: jax.Array  # [B] int32, positions that the network evaluated


class Paths(NamedTuple):
    """The simulations of one round: W per game."""

    node: jax.Array  # [B, W] int32, the leaf
    move: jax.Array  # [B, W] int32, the move of the leaf to expand
    used: jax.Array  # [B, W] bool


def weighted_values(
    scale: float, moves: Moves, first_value: jax.Array, most_visits: jax.Array
) -> jax.Array:
    """Return the weighted values of moves [..., A], to be added to their logits.

    Moves without a visit get the mixed value (Danihelka 2022, appendix D): a mean of the first
    value [...] of the node and of the values of the visited moves, weighted by their prior.
    `most_visits` [..., 1] is the largest number of visits of one move.
    """
    visited = moves.visits > 0
    prior = jnp.maximum(jax.nn.softmax(moves.logits), jnp.finfo(moves.logits.dtype).tiny)
    of_visited = jnp.sum(jnp.where(visited, prior, 0.0), axis=-1, keepdims=True)
    shares = prior * moves.values / jnp.where(visited, of_visited, 1.0)
    mean = jnp.sum(jnp.where(visited, shares, 0.0), axis=-1)
    count = jnp.sum(moves.visits, axis=-1, dtype=jnp.int32)
    mixed = (first_value + count * mean) / (count + 1)
    completed = jnp.where(visited, moves.values, mixed[..., None])
    if isinstance(most_visits, jax.Array):
        most_visits = most_visits.astype(jnp.float32)
    return (VISIT_OFFSET + most_visits) * scale * completed


def next_move(weigh: Weigh, moves: Moves, first_value: jax.Array) -> jax.Array:
    """Return the move that the next simulation tries in nodes [...]: [...] int32.

    Visits then approach the improved policy (Danihelka 2022, section 5).
    """
    most_visits = jnp.max(moves.visits, axis=-1, keepdims=True)
    policy = jax.nn.softmax(moves.logits + weigh(moves, first_value, most_visits))
    count = jnp.sum(moves.visits, axis=-1, dtype=jnp.int32, keepdims=True)
    return jnp.argmax(policy - moves.visits / (1 + count), axis=-1).astype(jnp.int32)


def plant(root: Root, size: int) -> Tree:
    """Return trees with room for `size` nodes; the first round adds the root."""
    games, edges = root.legal.shape

    def grow(first: jax.Array) -> jax.Array:
        room = jnp.zeros((games, size, *first.shape[1:]), first.dtype)
        return room.at[:, ROOT].set(first)

    whole = jnp.zeros((games, size), jnp.int32)
    numbers = jnp.zeros((games, size), jnp.float32)
    by_move = jnp.zeros((games, size, edges), jnp.int32)
    by_value = jnp.zeros((games, size, edges), jnp.float32)
    return Tree(
        nodes=jax.tree.map(grow, root.before),
        parents=whole,
        move_to=whole,
        rewards=numbers,
        discounts=numbers,
        first_values=numbers,
        values=numbers,
        moves=Moves(by_value, by_move, by_value),
        children=by_move,
        leaf=whole,
        leaf_move=whole,
        evaluations=jnp.zeros(games, jnp.int32),
    )


def simulate(tree: Tree, chosen: jax.Array, used: jax.Array) -> Paths:
    """Return the leaves where the simulations through these moves of the root [B, W] end."""
    chex.assert_equal_shape([chosen, used])
    games = jnp.arange(len(chosen), dtype=jnp.int32)[:, None]
    child = tree.children[games, ROOT, chosen]
    inside = (child > 0) & (chosen != NO_MOVE)
    node = jnp.where(inside, tree.leaf[games, child], ROOT)
    return Paths(node, jnp.where(inside, tree.leaf_move[games, child], chosen), used)


def expand(
    expand_nodes: Expand, outcome: Outcome, tree: Tree, paths: Paths, first: jax.Array
) -> Tree:
    """Add the positions after the moves of the leaves as nodes `first`, `first` + 1, ..."""
    games, slots = jnp.arange(len(paths.node), dtype=jnp.int32)[:, None], paths.node.shape[1]

    def flat(field: jax.Array) -> jax.Array:
        return field.reshape(-1, *field.shape[2:])

    before = jax.tree.map(lambda field: flat(field[games, paths.node]), tree.nodes)
    nodes, logits, values, evaluated = expand_nodes(before, flat(paths.move), flat(paths.used))
    rewards, discounts = jax.vmap(outcome)(nodes, values)
    chex.assert_shape(logits, (paths.node.size, tree.children.shape[-1]), custom_message="logits")
    chex.assert_shape([values, rewards, discounts], (paths.node.size,))

    def put(field: jax.Array, new: jax.Array) -> jax.Array:
        new = new.reshape(-1, slots, *new.shape[1:]).astype(field.dtype)
        return jax.lax.dynamic_update_slice_in_dim(field, new, first, axis=1)

    number = (first + jnp.arange(slots, dtype=jnp.int32))[None, :]
    evaluated = evaluated.reshape(paths.used.shape) & paths.used
    # Unused slots and the root have no parent.
    is_child = paths.used & (paths.move != NO_MOVE)
    parent = jnp.where(is_child, paths.node, tree.parents.shape[1])
    return tree._replace(
        nodes=jax.tree.map(put, tree.nodes, nodes),
        parents=put(tree.parents, flat(paths.node)),
        move_to=put(tree.move_to, flat(paths.move)),
        rewards=put(tree.rewards, rewards),
        discounts=put(tree.discounts, discounts),
        first_values=put(tree.first_values, values),
        values=put(tree.values, values),
        moves=tree.moves._replace(logits=put(tree.moves.logits, logits)),
        children=tree.children.at[games, parent, paths.move].set(number, mode="drop"),
        leaf=put(tree.leaf, jnp.broadcast_to(number, paths.node.shape).ravel()),
        leaf_move=put(tree.leaf_move, jnp.argmax(logits, axis=-1)),  # no visits: the prior decides
        evaluations=tree.evaluations + jnp.sum(evaluated, axis=-1, dtype=jnp.int32),
    )


class Climb(NamedTuple):
    """Simulations on their way from new nodes to the root."""

    games: jax.Array  # [P] int32
    node: jax.Array  # [P] int32, reached so far
    added: jax.Array  # [P] float32, the value that the visit adds to this node
    used: jax.Array  # [P] bool


def backward(
    weigh: Weigh,
    outcome: Outcome,
    tree: Tree,
    paths: Paths,
    first: jax.Array,
    levels: int | None,
    part: int | None = None,
) -> Tree:
    """Add the values of the nodes from `first` on to all nodes above them.

    The new nodes are at most `levels` below the root, and a loop of this length climbs; None: it
    ends where the last path ends. With `part`, the used paths climb in groups of `part`.

    Every node keeps this property: its value times its visits is its first value plus, summed over
    its moves, visits times (reward + discount * value of the child). In the quiet game reward and
    discount depend on the value of the child, so they are computed again when this value changes.
    """
    games, slots = paths.node.shape
    node = first + jnp.arange(slots, dtype=jnp.int32)[None, :]
    games = jnp.arange(games, dtype=jnp.int32)[:, None]
    games, node = (jnp.broadcast_to(index, paths.node.shape).ravel() for index in (games, node))
    climbing = Climb(games, node, tree.values[games, node], paths.used.ravel())
    step = partial(climb_one_level, weigh, outcome)

    def to_root(climbing: Climb) -> jax.Array:
        return climbing.used & (climbing.node != ROOT)

    def climb(tree: Tree, climbing: Climb) -> Tree:
        def one_level(carry: tuple[Tree, Climb]) -> tuple[Tree, Climb]:
            return step(*carry, to_root(carry[1]))

        def goes_on(carry: tuple[Tree, Climb]) -> jax.Array:
            return jnp.any(to_root(carry[1]))

        begin = tree, climbing
        if levels is None:
            return jax.lax.while_loop(goes_on, one_level, begin)[0]
        return jax.lax.fori_loop(0, levels, lambda _, carry: one_level(carry), begin)[0]

    if part is not None:
        return in_turns(part, climb, tree, climbing)
    return climb(tree, climbing)


def in_turns(part: int, climb: Callable, tree: Tree, climbing: Climb) -> Tree:
    """Let the used simulations climb, `part` at a time; no two share a node below the root."""
    count = jnp.sum(climbing.used, dtype=jnp.int32)
    (order,) = jnp.nonzero(climbing.used, size=len(climbing.used) + part, fill_value=0)

    def climb_some(carry: tuple[jax.Array, Tree]) -> tuple[jax.Array, Tree]:
        begin, tree = carry
        rows = jax.lax.dynamic_slice_in_dim(order, begin, part)
        some = jax.tree.map(lambda field: field[rows], climbing)
        some = some._replace(used=begin + jnp.arange(part, dtype=jnp.int32) < count)
        return begin + part, climb(tree, some)

    return jax.lax.while_loop(lambda carry: carry[0] < count, climb_some, (jnp.int32(0), tree))[1]


class Link(NamedTuple):
    """A node and the move to it, before the parent counts a visit."""

    position: chex.ArrayTree  # of the node
    value: jax.Array  # [] float32, of the node
    reward: jax.Array  # [] float32, of the move, as decided last
    discount: jax.Array  # [] float32, of the move, as decided last
    visits: jax.Array  # [] int32, of the move
    worth: jax.Array  # [] float32, value of the move


class Reply(NamedTuple):
    """The decision of the opponent after a move, and the values that follow from it."""

    reward: jax.Array  # [] float32
    discount: jax.Array  # [] float32
    worth: jax.Array  # [] float32, value of the move
    added: jax.Array  # [] float32, the value that the visit adds to the parent


def decide_reply(outcome: Outcome, link: Link, added: jax.Array) -> Reply:
    """Decide the reply to ONE move again, after a visit added `added` [] to the node behind it."""
    chex.assert_rank([link.value, link.visits, link.worth, added], 0)
    reward, discount = outcome(link.position, link.value)
    worth = reward + discount * link.value
    changed = (reward != link.reward) | (discount != link.discount)
    # If the reply of the opponent changed, the earlier visits of this move get the new value too.
    whole = (link.visits + 1) * worth - link.visits * link.worth
    added = jnp.where(changed, whole, link.reward + link.discount * added)
    return Reply(reward, discount, worth, added)


class Parent(NamedTuple):
    """A node before it counts a visit of one of its moves."""

    value: jax.Array  # [] float32
    first_value: jax.Array  # [] float32
    moves: Moves  # [A]


def add_visit(
    weigh: Weigh, parent: Parent, move: jax.Array, reply: Reply
) -> tuple[jax.Array, jax.Array]:
    """Count a visit of `move` [] in ONE node; return its new value [] and its next move []."""
    chex.assert_rank([parent.value, move], 0)
    chex.assert_rank(list(parent.moves), 1)
    moves, here = parent.moves, jax.nn.one_hot(move, len(parent.moves.visits), dtype=bool)
    visits = 1 + jnp.sum(moves.visits, dtype=jnp.int32)
    value = (parent.value * visits + reply.added) / (visits + jnp.float32(1))
    after = moves._replace(
        visits=moves.visits + here, values=jnp.where(here, reply.worth, moves.values)
    )
    return value, next_move(weigh, after, parent.first_value)


def climb_one_level(
    weigh: Weigh,
    outcome: Outcome,
    tree: Tree,
    climbing: Climb,
    active: jax.Array,
) -> tuple[Tree, Climb]:
    """Add one visit of each `active` [P] node to its parent, and climb to the parent."""
    games, node, added, _ = climbing
    above, move = tree.parents[games, node], tree.move_to[games, node]
    link = Link(
        position=jax.tree.map(lambda field: field[games, node], tree.nodes),
        value=tree.values[games, node],
        reward=tree.rewards[games, node],
        discount=tree.discounts[games, node],
        visits=tree.moves.visits[games, above, move],
        worth=tree.moves.values[games, above, move],
    )
    reply = jax.vmap(partial(decide_reply, outcome))(link, added)
    nowhere = tree.parents.shape[1]  # writes there are dropped
    up, own = (jnp.where(active, index, nowhere) for index in (above, node))

    def write(field: jax.Array, new: jax.Array, *where: jax.Array) -> jax.Array:
        return field.at[games, *where].set(new, mode="drop")

    def after_reading(old: jax.Array, new: jax.Array) -> jax.Array:
        # Otherwise XLA does not see that `old` is read before the write, and copies the whole tree.
        return jnp.where(new == old, old, new)

    moves = tree.moves._replace(
        visits=write(tree.moves.visits, link.visits + 1, up, move),
        values=write(tree.moves.values, after_reading(link.worth, reply.worth), up, move),
    )
    climbed = tree._replace(
        rewards=write(tree.rewards, after_reading(link.reward, reply.reward), own),
        discounts=write(tree.discounts, after_reading(link.discount, reply.discount), own),
        moves=moves,
    )
    parent = Parent(
        value=tree.values[games, above],
        first_value=tree.first_values[games, above],
        moves=Moves(*(field[games, above] for field in tree.moves)),
    )
    value, follow = jax.vmap(partial(add_visit, weigh))(parent, move, reply)
    child = tree.children[games, above, follow]
    leaf = jnp.where(child > 0, tree.leaf[games, child], above)
    leaf_move = jnp.where(child > 0, tree.leaf_move[games, child], follow)
    # The root needs no leaf, and several nodes would write there at once.
    up = jnp.where(above == ROOT, nowhere, up)
    climbed = climbed._replace(
        values=write(tree.values, value, up),
        leaf=write(tree.leaf, leaf, up),
        leaf_move=write(tree.leaf_move, leaf_move, up),
    )
    return climbed, climbing._replace(
        node=jnp.where(active, above, node), added=jnp.where(active, reply.added, added)
    )
