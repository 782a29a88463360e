"""Gumbel tree search, all simulations of a round at once.

Sequential halving visits every considered move of the root once per round, and drops some moves
between rounds. Below the root a node chooses by its own statistics alone. So the simulations of one
round, which lie below different moves of the root, do not depend on each other: their positions go
through the network in ONE batch. A search of 32 simulations with 16 considered moves has four
rounds, of 16, 8, 4 and 4. Before them round 0 evaluates the root.

`tree` grows the tree. A move of the root has one node below it per visit, so no path climbs more
levels than there are rounds. A GPU climbs that many, a length known at compile time, so the host
never waits for it. On a CPU, and if the rounds are data, a climb ends where its last path ends.

Compiling is expensive. Only used nodes are evaluated, so one loop with the width of the widest
round serves all rounds. With `Rounds` as an argument of the program, one program serves every
number of simulations.

Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel". `mctx_search` does the
same with `mctx.gumbel_muzero_policy`; both choose the same moves after the same visits.
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
from jaxzero.network.parts import SIZES, Sizes, in_parts
from jaxzero.search.tree import (
    NO_MOVE,
    ROOT,
    Expand,
    Expanded,
    Moves,
    Outcome,
    Root,
    Tree,
    Weigh,
    backward,
    expand,
    plant,
    simulate,
    weighted_values,
)

LOWEST_SCORE = -1e9  # lowest score of an eligible move
# Positions. The results of a larger convolution do not fit in the cache of a core. Measured on one
# core, conv 64 x 4 on 5x5: 123 us a position in batches of 256, 167 us in batches of 1024.
CPU_BATCH = 256
CPU_LEAST = 8  # positions; smaller parts cost more than they save


class SearchResult(NamedTuple):
    """What a search found for a batch of positions."""

    edge: jax.Array  # [B] int32, the chosen move
    policy: jax.Array  # [B, A] float32, improved policy, the target of learning
    value: jax.Array  # [B] float32, utility of the chosen move after the search
    visits: jax.Array  # [B, A] int32, visit counts at the root
    prior: jax.Array  # [B, A] float32, the network's policy at the root
    evaluations: jax.Array  # [B] int32, by the network: none of a finished game
    tree: chex.ArrayTree  # the whole tree: `Tree`, or the tree of mctx


def halving(considered: int, simulations: int) -> list[int]:
    """Return how many moves each round of sequential halving visits (Danihelka 2022, figure 1)."""
    return [visits for visits, rounds in phases(considered, simulations) for _ in range(rounds)]


def phases(considered: int, simulations: int) -> Iterator[tuple[int, int]]:
    """Yield (moves visited per round, number of such rounds) for every phase of `halving`."""
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


@lru_cache
def schedule(settings: SearchConfig) -> np.ndarray:
    """Return the visits of each round, by the number of considered moves: [m + 1, R] int32.

    Every search takes the R rounds of a root with enough moves. A root with fewer moves than
    `max_considered_actions` gets as many simulations as its own halving fits into these rounds.
    """
    most = min(settings.max_considered_actions, settings.simulations)
    full = np.array(halving(most, settings.simulations))
    table = np.zeros((most + 1, len(full)), np.int32)
    for considered in range(1, most + 1):
        for simulations in range(settings.simulations, 0, -1):
            own = list(phases(considered, simulations))
            ends = np.cumsum([rounds for _, rounds in own])
            # Rounds never grow, so checking the last round of each phase is enough.
            if ends[-1] <= len(full) and all(full[ends - 1] >= [visits for visits, _ in own]):
                table[considered, : ends[-1]] = np.repeat(*np.array(own).T)
                break
    table.flags.writeable = False  # callers share it
    return table


class Rounds(NamedTuple):
    """The rounds of a search. As a program's argument they are data: see `padded_rounds`."""

    visits: np.ndarray | jax.Array  # [m + 1, R] int32, moves visited, by number of considered moves
    first: np.ndarray | jax.Array  # [R] int32, the first node of each round
    count: int | jax.Array  # [] int32, rounds played, including round 0 of the root


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
    length = 1 + settings.simulations - len(rounds.first)
    visits = np.pad(rounds.visits, ((0, considered - len(rounds.visits)), (0, 0)), mode="edge")
    visits = np.pad(visits, ((0, 0), (0, length)))
    return Rounds(visits, np.pad(rounds.first, (0, length)), np.int32(rounds.count))


class Problem(NamedTuple):
    """A batch of positions to search, and how to search them."""

    settings: SearchConfig
    rounds: Rounds  # those of the settings; or data, for at most `settings.simulations`
    platform: str  # "cpu" or "gpu"
    root: Root
    expand: Expand  # evaluates positions
    outcome: Outcome
    value_scale: float  # c_scale of the paper; values are -1 to 1
    gumbel_scale: float  # 1: with noise at the root, 0: without
    key: jax.Array


def search_by_rounds(problem: Problem) -> SearchResult:
    """Search a batch of positions by rounds."""
    rounds, root, settings = problem.rounds, problem.root, problem.settings
    on_cpu, known = problem.platform == "cpu", isinstance(rounds.count, int)
    width = min(settings.max_considered_actions, settings.simulations)
    levels = None if on_cpu or not known else rounds.count - 1
    weigh, gumbel = partial(weighted_values, problem.value_scale), root_noise(problem)
    expand_nodes = problem.expand
    if on_cpu:
        expand_nodes = partial(expand_in_parts, len(root.legal), expand_nodes)
    chex.assert_rank(root.legal, 2)
    considered = jnp.sum(root.legal, axis=-1, dtype=jnp.int32)
    considered = jnp.minimum(considered, len(rounds.visits) - 1)
    quota = jnp.asarray(rounds.visits)[considered]  # [B, R]
    first = jnp.asarray(rounds.first)

    def play_round(number: jax.Array, tree: Tree) -> Tree:
        chosen, there = choose_moves(weigh, tree, root.legal, gumbel, number - 1, width)
        chosen = jnp.where(number == 0, NO_MOVE, chosen)
        slots = jnp.arange(width, dtype=jnp.int32)[None, :]
        used = (there | (number == 0)) & (slots < quota[:, number][:, None])
        paths = simulate(tree, chosen, used)
        tree = expand(expand_nodes, problem.outcome, tree, paths, first[number])
        part = CPU_BATCH if on_cpu and paths.used.size > max(SIZES["cpu"].sizes) else None
        return backward(weigh, problem.outcome, tree, paths, first[number], levels, part)

    # The next round overwrites unused slots of a round; the last round needs room for all slots.
    tree = plant(root, 1 + settings.simulations + width)
    tree = jax.lax.fori_loop(0, rounds.count, play_round, tree)
    return search_result(weigh, tree, root.legal, gumbel)


def root_noise(problem: Problem) -> jax.Array:
    """Return the Gumbel noise of the moves of the root: [B, A] float32."""
    if not problem.gumbel_scale:
        return jnp.zeros(problem.root.legal.shape, jnp.float32)
    # Split the key as mctx does, so that the same key gives the same noise.
    key = jax.random.split(problem.key)[1]
    return problem.gumbel_scale * jax.random.gumbel(key, problem.root.legal.shape, jnp.float32)


def search_result(weigh: Weigh, tree: Tree, legal: jax.Array, gumbel: jax.Array) -> SearchResult:
    """Return what a search has found, given its tree, and the root's moves and noise [B, A]."""
    moves = root_moves(tree, legal)
    most_visits = jnp.max(moves.visits, axis=-1, keepdims=True)
    weights = weigh(moves, tree.first_values[:, ROOT], most_visits)
    best = move_scores(legal & (moves.visits == most_visits), gumbel, moves.logits, weights)
    edge = jnp.argmax(best, axis=-1).astype(jnp.int32)
    # Moves without visits keep their prior; the mixed value replaces their value.
    improved = jnp.where(legal, moves.logits + weights, jnp.finfo(weights.dtype).min)
    return SearchResult(
        edge=edge,
        policy=jax.nn.softmax(improved),
        value=jnp.take_along_axis(moves.values, edge[:, None], axis=-1)[:, 0],
        visits=moves.visits,
        prior=jax.nn.softmax(tree.moves.logits[:, ROOT]),
        evaluations=tree.evaluations,
        tree=tree,
    )


def root_moves(tree: Tree, legal: jax.Array) -> Moves:
    """Return the moves of the root [B, A], with logits shifted so that the largest is 0."""
    moves = jax.tree.map(lambda field: field[:, ROOT], tree.moves)
    logits = moves.logits - jnp.max(moves.logits, axis=-1, keepdims=True)
    return moves._replace(logits=jnp.where(legal, logits, jnp.finfo(logits.dtype).min))


def choose_moves(
    weigh: Weigh, tree: Tree, legal: jax.Array, gumbel: jax.Array, visits: jax.Array, width: int
) -> tuple[jax.Array, jax.Array]:
    """Choose the root moves of the next round: [B, W], and whether each exists: [B, W] bool.

    Moves that are still considered have `visits` [] visits, one from every round so far. mctx
    chooses moves one after the other: the first choice raises the largest number of visits by one,
    and so the weight of values for the other choices. The scores here follow mctx.
    """
    chex.assert_equal_shape([legal, gumbel])
    moves = root_moves(tree, legal)
    eligible = legal & (moves.visits == visits)

    def scores(eligible: jax.Array, most_visits: jax.Array) -> jax.Array:
        weights = weigh(moves, tree.first_values[:, ROOT], most_visits)
        return move_scores(eligible, gumbel, moves.logits, weights)

    best = jnp.argmax(scores(eligible, visits), axis=-1).astype(jnp.int32)[:, None]
    others = eligible & (jnp.arange(eligible.shape[-1], dtype=jnp.int32)[None, :] != best)
    values, rest = jax.lax.top_k(scores(others, visits + 1), min(width, eligible.shape[-1]) - 1)
    chosen = jnp.concatenate([best, rest], axis=-1)
    there = jnp.concatenate([jnp.any(eligible, axis=-1, keepdims=True), values > -jnp.inf], axis=-1)
    missing = ((0, 0), (0, width - chosen.shape[-1]))
    chosen, there = jnp.pad(chosen, missing), jnp.pad(there, missing)
    chex.assert_shape([chosen, there], (len(legal), width))
    return chosen, there


def move_scores(
    eligible: jax.Array, gumbel: jax.Array, logits: jax.Array, weights: jax.Array
) -> jax.Array:
    """Return the scores of root moves: [B, A]; moves that are not eligible get -inf."""
    return jnp.where(eligible, jnp.maximum(LOWEST_SCORE, gumbel + logits + weights), -jnp.inf)


def expand_in_parts(
    games: int, expand_nodes: Expand, nodes: chex.ArrayTree, moves: jax.Array, used: jax.Array
) -> Expanded:
    """Expand those of the nodes [P] that are `used` [P], in parts, as suits a CPU.

    The nodes belong to `games` games. Few nodes are expanded together; the network then skips the
    unused nodes.
    """
    if len(moves) <= max(SIZES["cpu"].sizes):
        return expand_nodes(nodes, moves, used)
    # Most games visit equally many moves in a round, so dividing the games evenly gives full
    # parts. Two cores, 128 games, rounds of 16: 30 % faster than with parts of 256.
    size = max(-(-games // -(-games // CPU_BATCH)), CPU_LEAST)
    return in_parts(Sizes((size,), above=()), expand_nodes, (nodes, moves, used), used)
