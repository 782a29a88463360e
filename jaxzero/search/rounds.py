"""Gumbel tree search, all simulations of a round at once.

Sequential halving visits every considered action of the root once per round, and drops some actions
between rounds. Below the root a node chooses by its own statistics alone. So the simulations of one
round, which lie below different actions of the root, do not depend on each other: their positions
go through the network in ONE batch. A search of 32 simulations with 16 considered actions has four
rounds, of 16, 8, 4 and 4. Before them round 0 evaluates the root.

`tree` grows the tree. An action of the root has one node below it per visit, so no node is deeper
than there are rounds. On a GPU a backup has that many steps, a length known at compile time, so the
host never waits for it. On a CPU, and if the rounds are data, it ends where its last path ends.

Compiling is expensive. Only used nodes are evaluated, so one loop with the width of the widest
round serves all rounds. With `Rounds` as an argument of the program, one program serves every
number of simulations.

Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel". `mctx_search` does the
same with `mctx.gumbel_muzero_policy`; both choose the same actions after the same visits.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import SearchConfig
from jaxzero.network.parts import CPU_SIZES, in_parts
from jaxzero.search.interface import NO_ACTION, Expand, Expanded, Model, SearchResult
from jaxzero.search.tree import (
    ROOT_INDEX,
    NodeStats,
    QTransform,
    Tree,
    backward,
    expand,
    instantiate_tree,
    qtransform_completed_by_mix_value,
    simulate,
    stats_at,
)

LOWEST_SCORE = -1e9  # lowest score of an eligible action
# Positions. The results of a larger convolution do not fit in the cache of a core. Measured on one
# core, conv 64 x 4 on 5x5: 123 us a position in batches of 256, 167 us in batches of 1024.
CPU_BATCH = 256
MIN_CPU_BATCH = 8  # positions; smaller parts cost more than they save


class Rounds(NamedTuple):
    """The rounds of a search. As a program's argument they are data: see `padded_rounds`."""

    visits: np.ndarray | jax.Array  # [m + 1, R] int32, visits, by number of considered actions
    first_new: np.ndarray | jax.Array  # [R] int32, the first new node of each round
    count: int | jax.Array  # [] int32, rounds played, including round 0 of the root


def search_by_rounds(
    model: Model,
    settings: SearchConfig,
    key: jax.Array,
    gumbel_scale: float,
    rounds: Rounds | None = None,
) -> SearchResult:
    """Search a batch of positions by `rounds`; None: those of the settings."""
    gumbel = root_noise(model, key, gumbel_scale)
    return search_result(model, grow_trees(model, settings, gumbel, rounds), gumbel)


def root_noise(model: Model, key: jax.Array, gumbel_scale: float) -> jax.Array:
    """Return the Gumbel noise of the actions of the root: [B, A] float32."""
    if not gumbel_scale:
        return jnp.zeros(model.legal.shape, jnp.float32)
    # Split the key as mctx does, so that the same key gives the same noise.
    key = jax.random.split(key)[1]
    return gumbel_scale * jax.random.gumbel(key, model.legal.shape, jnp.float32)


def grow_trees(
    model: Model, settings: SearchConfig, gumbel: jax.Array, rounds: Rounds | None = None
) -> Tree:
    """Return the trees of a batch of positions after all rounds; `gumbel` [B, A] is root noise."""
    rounds = rounds_of(settings) if rounds is None else rounds
    qtransform = partial(qtransform_completed_by_mix_value, model.value_scale)
    chex.assert_rank(model.legal, 2)
    on_cpu, static = model.platform == "cpu", isinstance(rounds.count, int)
    width = min(settings.max_considered_actions, settings.simulations)
    max_depth = None if on_cpu or not static else rounds.count - 1
    expand_nodes = model.expand
    if on_cpu:
        expand_nodes = partial(expand_in_parts, len(model.legal), expand_nodes)
    considered = jnp.sum(model.legal, axis=-1, dtype=jnp.int32)
    considered = jnp.minimum(considered, len(rounds.visits) - 1)
    round_visits = jnp.asarray(rounds.visits)[considered]  # [B, R]
    first_new = jnp.asarray(rounds.first_new)

    def play_round(number: jax.Array, tree: Tree) -> Tree:
        actions, valid = select_root_actions(
            qtransform, tree, model.legal, gumbel, number - 1, width
        )
        actions = jnp.where(number == 0, NO_ACTION, actions)
        slots = jnp.arange(width, dtype=jnp.int32)[None, :]
        used = (valid | (number == 0)) & (slots < round_visits[:, number][:, None])
        simulations = simulate(tree, actions, used)
        tree = expand(expand_nodes, model.outcome, tree, simulations, first_new[number])
        part = CPU_BATCH if on_cpu and used.size > max(CPU_SIZES) else None
        return backward(
            qtransform, model.outcome, tree, simulations, first_new[number], max_depth, part
        )

    # The next round overwrites unused slots of a round; the last round needs room for all slots.
    tree = instantiate_tree(model, 1 + settings.simulations + width)
    return jax.lax.fori_loop(0, rounds.count, play_round, tree)


def select_root_actions(
    qtransform: QTransform,
    tree: Tree,
    legal: jax.Array,
    gumbel: jax.Array,
    visits: jax.Array,
    width: int,
) -> tuple[jax.Array, jax.Array]:
    """Choose the root actions of the next round: [B, W], and whether each is valid: [B, W] bool.

    Actions that are still considered have `visits` [] visits, one from every round so far. mctx
    chooses actions one after the other: the first choice raises the largest visit count by one,
    and so the weight of values for the other choices. The scores here follow mctx.
    """
    chex.assert_equal_shape([legal, gumbel])
    stats = root_stats(tree, legal)
    eligible = legal & (stats.children_visits == visits)

    def scores(eligible: jax.Array, max_visits: jax.Array) -> jax.Array:
        qvalues = qtransform(stats, max_visits)
        return root_scores(eligible, gumbel, stats.children_prior_logits, qvalues)

    best = jnp.argmax(scores(eligible, visits), axis=-1).astype(jnp.int32)[:, None]
    others = eligible & (jnp.arange(eligible.shape[-1], dtype=jnp.int32)[None, :] != best)
    values, rest = jax.lax.top_k(scores(others, visits + 1), min(width, eligible.shape[-1]) - 1)
    actions = jnp.concatenate([best, rest], axis=-1)
    valid = jnp.concatenate([jnp.any(eligible, axis=-1, keepdims=True), values > -jnp.inf], axis=-1)
    missing = ((0, 0), (0, width - actions.shape[-1]))
    actions, valid = jnp.pad(actions, missing), jnp.pad(valid, missing)
    chex.assert_shape([actions, valid], (len(legal), width))
    return actions, valid


def root_stats(tree: Tree, legal: jax.Array) -> NodeStats:
    """Return the statistics of the root [B], with logits shifted so that the largest is 0."""
    stats = stats_at(tree, slice(None), ROOT_INDEX)
    logits = stats.children_prior_logits
    logits = logits - jnp.max(logits, axis=-1, keepdims=True)
    return stats._replace(
        children_prior_logits=jnp.where(legal, logits, jnp.finfo(logits.dtype).min)
    )


def root_scores(
    eligible: jax.Array, gumbel: jax.Array, logits: jax.Array, qvalues: jax.Array
) -> jax.Array:
    """Return the scores of root actions: [B, A]; actions that are not eligible get -inf."""
    return jnp.where(eligible, jnp.maximum(LOWEST_SCORE, gumbel + logits + qvalues), -jnp.inf)


def search_result(model: Model, tree: Tree, gumbel: jax.Array) -> SearchResult:
    """Return the result of a search, given its trees and the noise of the root [B, A]."""
    qtransform = partial(qtransform_completed_by_mix_value, model.value_scale)
    legal = model.legal
    stats = root_stats(tree, legal)
    logits, visits = stats.children_prior_logits, stats.children_visits
    max_visits = jnp.max(visits, axis=-1, keepdims=True)
    qvalues = qtransform(stats, max_visits)
    best = root_scores(legal & (visits == max_visits), gumbel, logits, qvalues)
    action = jnp.argmax(best, axis=-1).astype(jnp.int32)
    # Actions without visits keep their prior; the mixed value replaces their value.
    improved = jnp.where(legal, logits + qvalues, jnp.finfo(qvalues.dtype).min)
    return SearchResult(
        action=action,
        policy=jax.nn.softmax(improved),
        value=jnp.take_along_axis(stats.children_qvalues, action[:, None], axis=-1)[:, 0],
        visits=visits,
        prior=jax.nn.softmax(tree.children_prior_logits[:, ROOT_INDEX]),
        qvalues=stats.children_qvalues,
        evaluations=tree.evaluations,
    )


def expand_in_parts(
    games: int,
    expand_nodes: Expand,
    embeddings: chex.ArrayTree,
    actions: jax.Array,
    used: jax.Array,
) -> Expanded:
    """Expand the `used` [P] ones of the leaves [P] in parts, as suits a CPU.

    The leaves belong to `games` games. Few leaves are expanded together; the network then skips the
    unused ones.
    """
    if len(actions) <= max(CPU_SIZES):
        return expand_nodes(embeddings, actions, used)
    # Most games visit equally many actions in a round, so dividing the games evenly gives full
    # parts. Two cores, 128 games, rounds of 16: 30 % faster than with parts of 256.
    size = max(-(-games // -(-games // CPU_BATCH)), MIN_CPU_BATCH)
    return in_parts((size,), expand_nodes, (embeddings, actions, used), used)


def rounds_of(settings: SearchConfig) -> Rounds:
    """Return the rounds of a search: round 0 of the root, then the rounds of `schedule`."""
    visits = np.pad(schedule(settings), ((0, 0), (1, 0)), constant_values=1)
    widest = visits[-1]
    return Rounds(visits, np.cumsum(widest, dtype=np.int32) - widest, len(widest))


@lru_cache
def padded_rounds(settings: SearchConfig, simulations: int) -> Rounds:
    """Return the rounds of `simulations`, at most `settings.simulations`, as data.

    The shapes depend on `settings` only, not on `simulations`. Callers share the arrays.
    """
    rounds = rounds_of(replace(settings, simulations=simulations))
    considered = 1 + min(settings.max_considered_actions, settings.simulations)
    # A round has at least one visit. The number of rounds may fall with more simulations.
    length = 1 + settings.simulations - len(rounds.first_new)
    visits = np.pad(rounds.visits, ((0, considered - len(rounds.visits)), (0, 0)), mode="edge")
    visits = np.pad(visits, ((0, 0), (0, length)))
    return Rounds(visits, np.pad(rounds.first_new, (0, length)), np.int32(rounds.count))


@lru_cache
def schedule(settings: SearchConfig) -> np.ndarray:
    """Return the visits of each round, by the number of considered actions: [m + 1, R] int32.

    Every search takes the R rounds of a root with enough actions. A root with fewer actions than
    `max_considered_actions` gets as many simulations as its own halving fits into these rounds.
    """
    width = min(settings.max_considered_actions, settings.simulations)
    full = np.array(halving(width, settings.simulations))
    table = np.zeros((width + 1, len(full)), np.int32)
    for considered in range(1, width + 1):
        for simulations in range(settings.simulations, 0, -1):
            own = list(phases(considered, simulations))
            ends = np.cumsum([rounds for _, rounds in own])
            # Rounds never grow, so checking the last round of each phase is enough.
            if ends[-1] <= len(full) and all(full[ends - 1] >= [visits for visits, _ in own]):
                table[considered, : ends[-1]] = np.repeat(*np.array(own).T)
                break
    table.flags.writeable = False  # callers share it
    return table


def halving(considered: int, simulations: int) -> list[int]:
    """Return the visits of each round of sequential halving (Danihelka 2022, figure 1)."""
    return [visits for visits, rounds in phases(considered, simulations) for _ in range(rounds)]


def phases(considered: int, simulations: int) -> Iterator[tuple[int, int]]:
    """Yield (actions visited per round, number of such rounds) for every phase of `halving`."""
    if considered <= 1:
        if considered and simulations:
            yield 1, simulations
        return
    halvings, left = math.ceil(math.log2(considered)), simulations
    while left:
        rounds = max(1, int(simulations / (halvings * considered)))
        whole = min(rounds, left // considered)
        if whole:
            yield considered, whole
            left -= whole * considered
        if whole < rounds and left:  # not enough for a whole round
            yield left, 1
            left = 0
        considered = max(2, considered // 2)
