"""Gumbel tree search, all simulations of a round at once.

Sequential halving visits the considered moves of the root once each in every round, and drops some
of them between rounds. Below the root a node chooses by its own statistics alone. So the
simulations of one round, which lie below different moves of the root, do not depend on each other:
their positions go through the network in ONE batch. A search of 32 simulations with 16 considered
moves has four rounds, of 16, 8, 4 and 4.

`simulate`, `expand` and `backward` are the steps of a round. Every node remembers the leaf where
the next simulation through it ends, so `simulate` is a lookup; `backward` renews what changes. A
move of the root has as many nodes below it as visits, so round r has at most r levels to climb: no
loop depends on the data, which a GPU would have to ask back.

Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel". `mctx_search` does the
same with `mctx.gumbel_muzero_policy`; both choose the same moves after the same visits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import SearchConfig

LOWEST_SCORE = -1e9  # of a move that may be chosen
ROOT = 0
CPU_BATCH = 1024  # positions; the inputs of more do not stay in the cache

Expanded = tuple[chex.ArrayTree, jax.Array, jax.Array]  # nodes [P], logits [P, A], values [P]
Expand = Callable[[chex.ArrayTree, jax.Array], Expanded]  # (nodes [P], moves [P])
# (nodes [P], their values [P]) to reward [P] and discount [P] of the moves that lead to them
Outcome = Callable[[chex.ArrayTree, jax.Array], tuple[jax.Array, jax.Array]]


class Root(NamedTuple):
    """The positions to search."""

    node: chex.ArrayTree  # [B, ...]
    legal: jax.Array  # [B, A] bool
    logits: jax.Array  # [B, A] float32, prior
    value: jax.Array  # [B] float32


class SearchResult(NamedTuple):
    """What a search found for a batch of positions."""

    edge: jax.Array  # [B] int32, the chosen move
    policy: jax.Array  # [B, A] float32, improved policy, the target of learning
    value: jax.Array  # [B] float32, utility of the chosen move after the search
    visits: jax.Array  # [B, A] int32, visit counts at the root
    prior: jax.Array  # [B, A] float32, the network's policy at the root
    tree: chex.ArrayTree  # the whole tree: `Tree`, or that of mctx


class Moves(NamedTuple):
    """The moves of nodes."""

    logits: jax.Array  # [..., A] float32, prior
    visits: jax.Array  # [..., A] int32
    values: jax.Array  # [..., A] float32, reward + discount * value behind the move


class Tree(NamedTuple):
    """The trees of a batch of games; node 0 is the root, unused nodes are all zero."""

    nodes: chex.ArrayTree  # [B, N, ...], positions
    parents: jax.Array  # [B, N] int32
    move_to: jax.Array  # [B, N] int32, the move that leads here
    rewards: jax.Array  # [B, N] float32, of that move
    discounts: jax.Array  # [B, N] float32, of that move
    first_values: jax.Array  # [B, N] float32, by the network
    values: jax.Array  # [B, N] float32, mean of the first value and of all visits below
    moves: Moves  # [B, N, A]
    children: jax.Array  # [B, N, A] int32, the node behind a move; 0: none
    leaf: jax.Array  # [B, N] int32, the node where the next simulation through here ends
    leaf_move: jax.Array  # [B, N] int32, and the move that it tries there


class Paths(NamedTuple):
    """The simulations of one round: W of each game."""

    node: jax.Array  # [B, W] int32, the leaf
    move: jax.Array  # [B, W] int32, its move to expand
    used: jax.Array  # [B, W] bool


def halving(considered: int, simulations: int) -> list[int]:
    """Return how many moves each round of sequential halving visits (Danihelka 2022, figure 1)."""
    if considered <= 1:
        return [considered] * (simulations if considered else 0)
    phases, left, rounds = math.ceil(math.log2(considered)), simulations, []
    while left:
        for _ in range(max(1, int(simulations / (phases * considered)))):
            rounds.append(min(considered, left))
            left -= rounds[-1]
            if not left:
                break
        considered = max(2, considered // 2)
    return rounds


def schedule(settings: SearchConfig) -> np.ndarray:
    """Return the visits in each round by how many moves are considered: [m + 1, R] int32.

    Every search takes R rounds, those of a full root. With fewer moves than
    `max_considered_actions`, a game has as many simulations as its own halving fits into R rounds.
    """
    most = min(settings.max_considered_actions, settings.simulations)
    full = np.array(halving(most, settings.simulations))
    table = np.zeros((most + 1, len(full)), np.int32)
    for considered in range(1, most + 1):
        for simulations in range(settings.simulations, 0, -1):
            own = halving(considered, simulations)
            if len(own) <= len(full) and np.all(own <= full[: len(own)]):
                table[considered, : len(own)] = own
                break
    return table


def plan(
    settings: SearchConfig,
    value_scale: float,
    expand_nodes: Expand,
    outcome: Outcome,
    key: jax.Array,
    root: Root,
    gumbel_scale: float,
) -> SearchResult:
    """Search a batch of positions; `value_scale` is that of the paper, values are -1 to 1."""
    expand_nodes = partial(in_parts, settings.evaluation_batch, expand_nodes)
    weigh = partial(weighted_values, settings.visit_offset, value_scale)
    logits = root.logits - jnp.max(root.logits, axis=-1, keepdims=True)
    logits = jnp.where(root.legal, logits, jnp.finfo(logits.dtype).min)
    # The split is that of mctx, for the same noise from the same key.
    noise = jax.random.gumbel(jax.random.split(key)[1], logits.shape, logits.dtype)
    gumbel = gumbel_scale * noise

    table = schedule(settings)
    considered = jnp.minimum(jnp.sum(root.legal, axis=-1), len(table) - 1)
    quota = jnp.asarray(table)[considered]  # [B, R]
    tree = plant(root._replace(logits=logits), 1 + int(table[-1].sum()))

    def play_round(number: jax.Array, tree: Tree, width: int, first: jax.Array, levels: int):
        chosen, used = choose(weigh, tree, root.legal, gumbel, number, width)
        used &= jnp.arange(width)[None, :] < quota[:, number][:, None]
        paths = simulate(tree, chosen, used)
        tree = expand(expand_nodes, outcome, tree, paths, first)
        return backward(weigh, outcome, tree, paths, first, levels)

    number = nodes = 0
    # Rounds of the same width are one loop, so that they are compiled once.
    for width, alike in groupby(table[-1].tolist()):
        rounds = len(list(alike))

        def body(i, tree, width=width, begin=number, node=1 + nodes, levels=number + rounds - 1):
            return play_round(begin + i, tree, width, node + i * width, levels)

        tree = body(0, tree) if rounds == 1 else jax.lax.fori_loop(0, rounds, body, tree)
        number, nodes = number + rounds, nodes + rounds * width

    moves = jax.tree.map(lambda field: field[:, ROOT], tree.moves)
    most_visits = jnp.max(moves.visits, axis=-1, keepdims=True)
    weights = weigh(moves, tree.first_values[:, ROOT], most_visits)
    best = score(root.legal & (moves.visits == most_visits), gumbel, moves.logits, weights)
    edge = jnp.argmax(best, axis=-1).astype(jnp.int32)
    # What has no visits keeps its share of the prior, completed by the mixed value.
    improved = jnp.where(root.legal, moves.logits + weights, jnp.finfo(weights.dtype).min)
    return SearchResult(
        edge=edge,
        policy=jax.nn.softmax(improved),
        value=jnp.take_along_axis(moves.values, edge[:, None], axis=-1)[:, 0],
        visits=moves.visits,
        prior=jax.nn.softmax(root.logits),
        tree=tree,
    )


def weighted_values(
    visit_offset: float, scale: float, moves: Moves, first_value: jax.Array, most_visits: jax.Array
) -> jax.Array:
    """Return what the values of moves [..., A] add to their logits.

    Moves without a visit count with the mixed value (Danihelka 2022, appendix D): the first value
    [...] of the node and the values of the visited moves, these by their prior.
    `most_visits` [..., 1] is the largest number of visits of one move.
    """
    visited = moves.visits > 0
    prior = jnp.maximum(jax.nn.softmax(moves.logits), jnp.finfo(moves.logits.dtype).tiny)
    of_visited = jnp.sum(jnp.where(visited, prior, 0.0), axis=-1, keepdims=True)
    shares = prior * moves.values / jnp.where(visited, of_visited, 1.0)
    mean = jnp.sum(jnp.where(visited, shares, 0.0), axis=-1)
    count = jnp.sum(moves.visits, axis=-1)
    mixed = (first_value + count * mean) / (count + 1)
    completed = jnp.where(visited, moves.values, mixed[..., None])
    return (visit_offset + most_visits) * scale * completed


def score(
    eligible: jax.Array, gumbel: jax.Array, logits: jax.Array, weights: jax.Array
) -> jax.Array:
    """Return the score of root moves [B, A]; the best of those that are eligible is chosen."""
    return jnp.where(eligible, jnp.maximum(LOWEST_SCORE, gumbel + logits + weights), -jnp.inf)


def choose(
    weigh: Callable, tree: Tree, legal: jax.Array, gumbel: jax.Array, number: jax.Array, width: int
) -> tuple[jax.Array, jax.Array]:
    """Choose the moves of the root that round `number` visits: [B, W], and which there are.

    In every round so far a move that is still considered had one visit. One after the other, as in
    mctx, the first choice raises the most visits by one, and so the weight of values for the rest.
    """
    moves = jax.tree.map(lambda field: field[:, ROOT], tree.moves)
    eligible = legal & (moves.visits == number)

    def scores(eligible: jax.Array, most_visits: jax.Array) -> jax.Array:
        weights = weigh(moves, tree.first_values[:, ROOT], most_visits)
        return score(eligible, gumbel, moves.logits, weights)

    best = jnp.argmax(scores(eligible, number), axis=-1).astype(jnp.int32)[:, None]
    others = eligible & (jnp.arange(eligible.shape[-1])[None, :] != best)
    values, rest = jax.lax.top_k(scores(others, number + 1), min(width, eligible.shape[-1]) - 1)
    chosen = jnp.concatenate([best, rest], axis=-1)
    there = jnp.concatenate([jnp.any(eligible, axis=-1, keepdims=True), values > -jnp.inf], axis=-1)
    missing = ((0, 0), (0, width - chosen.shape[-1]))
    return jnp.pad(chosen, missing), jnp.pad(there, missing)


def next_move(weigh: Callable, moves: Moves, first_value: jax.Array) -> jax.Array:
    """Return the move that the next simulation tries in nodes [...]: [...] int32.

    Visits then approach the improved policy (Danihelka 2022, section 5).
    """
    most_visits = jnp.max(moves.visits, axis=-1, keepdims=True)
    policy = jax.nn.softmax(moves.logits + weigh(moves, first_value, most_visits))
    count = jnp.sum(moves.visits, axis=-1, keepdims=True)
    return jnp.argmax(policy - moves.visits / (1 + count), axis=-1).astype(jnp.int32)


def plant(root: Root, size: int) -> Tree:
    """Return trees with room for `size` nodes and nothing but the root."""
    games, edges = root.legal.shape

    def grow(first: jax.Array) -> jax.Array:
        room = jnp.zeros((games, size, *first.shape[1:]), first.dtype)
        return room.at[:, ROOT].set(first)

    whole = jnp.zeros((games, size), jnp.int32)
    numbers = jnp.zeros((games, size), jnp.float32)
    by_move = jnp.zeros((games, size, edges), jnp.int32)
    return Tree(
        nodes=jax.tree.map(grow, root.node),
        parents=whole,
        move_to=whole,
        rewards=numbers,
        discounts=numbers,
        first_values=grow(root.value),
        values=grow(root.value),
        moves=Moves(grow(root.logits), by_move, jnp.zeros((games, size, edges), jnp.float32)),
        children=by_move,
        leaf=whole,
        leaf_move=whole,
    )


def simulate(tree: Tree, chosen: jax.Array, used: jax.Array) -> Paths:
    """Return where the simulations through these moves of the root [B, W] end."""
    games = jnp.arange(len(chosen))[:, None]
    child = tree.children[games, ROOT, chosen]
    inside = child > 0
    node = jnp.where(inside, tree.leaf[games, child], ROOT)
    return Paths(node, jnp.where(inside, tree.leaf_move[games, child], chosen), used)


def expand(
    expand_nodes: Expand, outcome: Outcome, tree: Tree, paths: Paths, first: jax.Array
) -> Tree:
    """Add the positions behind the leaves as nodes `first`, `first` + 1, ..."""
    games, slots = jnp.arange(len(paths.node))[:, None], paths.node.shape[1]

    def flat(field: jax.Array) -> jax.Array:
        return field.reshape(-1, *field.shape[2:])

    before = jax.tree.map(lambda field: flat(field[games, paths.node]), tree.nodes)
    nodes, logits, values = expand_nodes(before, flat(paths.move))
    rewards, discounts = outcome(nodes, values)

    def put(field: jax.Array, new: jax.Array) -> jax.Array:
        new = new.reshape(-1, slots, *new.shape[1:]).astype(field.dtype)
        return jax.lax.dynamic_update_slice_in_dim(field, new, first, axis=1)

    number = (first + jnp.arange(slots, dtype=jnp.int32))[None, :]
    parent = jnp.where(paths.used, paths.node, tree.parents.shape[1])  # a slot not used is dropped
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
        leaf_move=put(tree.leaf_move, jnp.argmax(logits, axis=-1)),  # all moves have one value
    )


def in_parts(
    largest: int, expand_nodes: Expand, nodes: chex.ArrayTree, moves: jax.Array
) -> Expanded:
    """Expand nodes [P] in equal parts of `largest` at most; 0: as many as suit the device."""
    count = len(moves)
    largest = largest or (CPU_BATCH if jax.default_backend() == "cpu" else count)
    parts = next(n for n in range(1, count + 1) if count % n == 0 and count // n <= largest)
    if parts == 1:
        return expand_nodes(nodes, moves)

    def split(field: jax.Array) -> jax.Array:
        return field.reshape(parts, -1, *field.shape[1:])

    done = jax.lax.map(lambda part: expand_nodes(*part), jax.tree.map(split, (nodes, moves)))
    return jax.tree.map(lambda field: field.reshape(count, *field.shape[2:]), done)


def backward(
    weigh: Callable, outcome: Outcome, tree: Tree, paths: Paths, first: jax.Array, levels: int
) -> Tree:
    """Add the values of the nodes from `first` on to those above them, `levels` below the root.

    Keeps this law at every node: its value times its visits is its first value plus, over its
    moves, visits times (reward + discount * value of the child). In the quiet game reward and
    discount follow from the value of the child, so they are computed again when it changes.
    """
    games, slots = jnp.arange(len(paths.node))[:, None], paths.node.shape[1]
    nowhere = tree.parents.shape[1]  # writes there are dropped

    def climb(tree: Tree, node: jax.Array, added: jax.Array, active: jax.Array, at_root: bool):
        """Add a visit of nodes [B, W] to their parents."""
        parent, move = tree.parents[games, node], tree.move_to[games, node]
        before = Moves(*(field[games, parent] for field in tree.moves))  # [B, W, A]
        value, reward, discount = (
            field[games, node] for field in (tree.values, tree.rewards, tree.discounts)
        )
        count = before.visits[games, jnp.arange(slots)[None, :], move]
        old = before.values[games, jnp.arange(slots)[None, :], move]
        embedding = jax.tree.map(
            lambda field: field[games, node].reshape(-1, *field.shape[2:]), tree.nodes
        )
        new_reward, new_discount = (
            field.reshape(node.shape) for field in outcome(embedding, value.ravel())
        )
        worth = new_reward + new_discount * value
        changed = (new_reward != reward) | (new_discount != discount)
        # The visits before this one count with the new reply too.
        above = jnp.where(changed, (count + 1) * worth - count * old, reward + discount * added)
        here = jnp.arange(before.visits.shape[-1])[None, None, :] == move[..., None]
        after = before._replace(
            visits=before.visits + here, values=jnp.where(here, worth[..., None], before.values)
        )
        visits = 1 + jnp.sum(before.visits, axis=-1)
        mean = (tree.values[games, parent] * visits + above) / (visits + 1.0)
        up, own = (jnp.where(active, index, nowhere) for index in (parent, node))
        tree = tree._replace(
            rewards=tree.rewards.at[games, own].set(new_reward, mode="drop"),
            discounts=tree.discounts.at[games, own].set(new_discount, mode="drop"),
            moves=tree.moves._replace(
                visits=tree.moves.visits.at[games, up, move].set(count + 1, mode="drop"),
                values=tree.moves.values.at[games, up, move].set(worth, mode="drop"),
            ),
        )
        if at_root:
            return tree
        follow = next_move(weigh, after, tree.first_values[games, parent])
        child = tree.children[games, parent, follow]
        leaf = jnp.where(child > 0, tree.leaf[games, child], parent)
        leaf_move = jnp.where(child > 0, tree.leaf_move[games, child], follow)
        tree = tree._replace(
            values=tree.values.at[games, up].set(mean, mode="drop"),
            leaf=tree.leaf.at[games, up].set(leaf, mode="drop"),
            leaf_move=tree.leaf_move.at[games, up].set(leaf_move, mode="drop"),
        )
        return tree, jnp.where(active, parent, node), jnp.where(active, above, added)

    def level(_, carry: tuple) -> tuple:
        tree, node, added = carry
        return climb(tree, node, added, paths.used & (tree.parents[games, node] > 0), False)

    node = jnp.broadcast_to(first + jnp.arange(slots, dtype=jnp.int32)[None, :], paths.node.shape)
    carry = tree, node, tree.values[games, node]
    if levels:
        carry = jax.lax.fori_loop(0, levels, level, carry)
    tree, node, added = carry
    return climb(tree, node, added, paths.used, True)
