"""Targets from the decisions of self-play, and the choice of the positions to store.

The policy target is the improved policy of the search. The margin target is the result of the game,
or early in a game a lambda-return: a mean of the result and the values of the next searches.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config, SelfplayConfig
from jaxzero.game import DotsAndBoxes, boxes_closed
from jaxzero.game.structure import first_boxes, structure
from jaxzero.network.network import CHAIN_CLASSES

TICKETS = 2**30  # about the sum of resampling weights; whole numbers have exact sums
LONG = 3  # boxes; the side that must open a chain this long loses control of the game
TINY = 1e-30  # smaller priors count as this; keeps the divergence finite


class Positions(NamedTuple):
    """Positions to learn from: P of them."""

    drawn: jax.Array  # [P, A] bool, edges on the board
    policy: jax.Array  # [P, A] float32, improved search policy
    margin: jax.Array  # [P] int32, boxes the side to move wins from here on minus those it loses
    margin_known: jax.Array  # [P] bool, no random move between here and the source of the margin
    # [P] int32 with `network.safe_end`, else (): twice the long chains plus the side to move (0: as
    # here) at the first later decision without a safe edge; -1: unknown, or no safe edge here.
    safe_end: jax.Array | tuple = ()


class Decisions(NamedTuple):
    """The decisions in all lanes, step by step; `played` is False past the end of a game."""

    drawn: jax.Array  # [T, B, A] bool, edges of the searched position
    policy: jax.Array  # [T, B, A] float32, improved policy, split evenly over the edges of one move
    player: jax.Array  # [T, B] int32, side to move
    ahead: jax.Array  # [T, B] int32, boxes of the first player minus those of the second
    entropy: jax.Array  # [T, B] float32, of the improved policy over moves, in nats
    surprise: jax.Array  # [T, B] float32, its divergence from the network's policy, in nats
    random: jax.Array  # [T, B] bool, the move was a random one
    played: jax.Array  # [T, B] bool, the game was not over
    game: jax.Array  # [T, B] int32, number of the game, 0 to N - 1
    simulations: jax.Array  # [T, B] int32, of the search
    value: jax.Array  # [T, B] float32, margin to come for the side to move, by the search, in boxes


def label(
    config: Config, decisions: Decisions, first_margin: jax.Array, key: jax.Array
) -> Positions:
    """Return all decisions [T * B] as positions, given the first player's final margins [N]."""
    total, known = totals(config.selfplay, decisions, first_margin)
    to_come = total - decisions.ahead
    to_come = jnp.where(decisions.player == 0, to_come, -to_come)
    uniform = jax.random.uniform(key, to_come.shape, jnp.float32)
    closed = jax.vmap(jax.vmap(partial(boxes_closed, config.game.board)))(decisions.drawn)
    positions = Positions(
        drawn=decisions.drawn,
        policy=decisions.policy,
        margin=possible_margin(to_come, config.game.board.num_boxes - closed, uniform),
        margin_known=known,
        safe_end=safe_ends(config, decisions),
    )
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), positions)


def safe_ends(config: Config, decisions: Decisions) -> jax.Array | tuple:
    """Return `Positions.safe_end` of all decisions: [T, B] int32, or () where it is not learnt.

    It is known if a later decision of the same game has no safe edge, and no random move comes
    before the first such decision.
    """
    if not config.network.safe_end:
        return ()
    chains, some = jax.vmap(jax.vmap(partial(long_chains, config.game.board)))(decisions.drawn)
    own = 2 * chains + decisions.player

    def back(behind: tuple, here: tuple) -> tuple[tuple, jax.Array]:
        """Take one step back; an end is twice the chains plus the player to move."""
        game, end = behind
        number, played, random, player, some, own = here
        later = jnp.where((game == number) & ~random, end, -1)
        end = jnp.where(played, jnp.where(some, later, own), -1)
        told = some & (end >= 0)
        return (number, end), jnp.where(told, end // 2 * 2 + (end + player) % 2, -1)

    steps = decisions.game, decisions.played, decisions.random, decisions.player, some, own
    last = jnp.full(decisions.game.shape[1], -1, jnp.int32)
    return jax.lax.scan(back, (last, last), steps, reverse=True)[1]


def long_chains(game: DotsAndBoxes, drawn: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Count chains and loops of at least `LONG` boxes; return also whether any edge is safe."""
    found = structure(game, drawn)
    count = jnp.sum(first_boxes(found) & (found.length >= LONG), dtype=jnp.int32)
    return jnp.minimum(count, CHAIN_CLASSES - 1), jnp.any(found.safe)


def totals(
    settings: SelfplayConfig, decisions: Decisions, first_margin: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return targets of the first player's final margin, and where they are known: [T, B] each.

    A target is the result [N] of the game; it is unknown at and before a random move. At more
    than `td_above_edges` undrawn edges it is a lambda-return: the fraction 1 - `td_lambda` is the
    value of the search after the next move; if the later target is unknown, all of it is.
    """
    value = jnp.where(decisions.player == 0, decisions.value, -decisions.value)
    expected = decisions.ahead + value
    early = jnp.sum(~decisions.drawn, axis=-1, dtype=jnp.int32) > settings.td_above_edges
    share = jnp.where(early, settings.td_lambda, jnp.float32(1))
    result = first_margin[decisions.game].astype(jnp.float32)

    def back(behind: tuple, here: tuple) -> tuple[tuple, tuple[jax.Array, jax.Array]]:
        """Take one step back; `behind` is what is known about the decision after this one."""
        game, played, total, known, expected = behind
        decision, result, share, own = here
        goes_on = (game == decision.game) & played
        weight = jnp.where(known | (share == 1), share, 0.0)
        # At weight 1 nothing is added, so a result stays a whole number.
        mixed = jnp.where(weight == 1, total, weight * total + (1 - weight) * expected)
        total = jnp.where(goes_on, mixed, result)
        known = ~decision.random & (known | (share < 1) | ~goes_on)
        return (decision.game, decision.played, total, known, own), (total, known)

    lanes = decisions.played.shape[1]
    nothing, zeros = jnp.zeros(lanes, bool), jnp.zeros(lanes, jnp.float32)
    last = jnp.full(lanes, -1, jnp.int32), nothing, zeros, nothing, zeros
    steps = decisions._replace(drawn=None, policy=None), result, share, expected
    return jax.lax.scan(back, last, steps, reverse=True)[1]


def possible_margin(margin: jax.Array, left: jax.Array, uniform: jax.Array) -> jax.Array:
    """Round margins [...] float32 to possible ones with `left` [...] boxes to come: [...] int32.

    Possible margins are -left to left in steps of two. Rounding is up or down at random, by
    `uniform` [...] 0 to 1, so the mean does not change.
    """
    steps = jnp.floor((margin + left) / 2 + jnp.minimum(uniform, 0.999)).astype(jnp.int32)
    return 2 * jnp.clip(steps, 0, left) - left


def sampling_weights(decisions: Decisions, surprise_weight: float) -> jax.Array:
    """Return the weight of every decision in resampling: [T * B] bool or int32.

    A fraction `surprise_weight` of the total weight is proportional to the policy's surprise; the
    rest is even. Decisions that were not played have weight 0.
    Source: Wu 2019 and KataGo's documents, "policy surprise weighting".
    """
    played = decisions.played.ravel()
    if not surprise_weight:
        return played
    surprise = jnp.where(played, decisions.surprise.ravel(), 0.0)
    count, total = played.sum(dtype=jnp.int32), surprise.sum()
    # Even weights where the total surprise is 0.
    relative = jnp.where(total > 0, surprise / jnp.maximum(total, TINY), played / count)
    share = jnp.float32(1 - surprise_weight) * played / count + surprise_weight * relative
    return (share * TICKETS).astype(jnp.int32)


def resample(
    positions: chex.ArrayTree, weights: jax.Array, count: int, offset: jax.Array
) -> chex.ArrayTree:
    """Sample `count` rows [T * B] in proportion to whole-number `weights` [T * B], in their order.

    Systematic resampling: the weights, laid end to end, form a line, and samples lie on it at equal
    distances. The first sample is `offset` [], 0 to 1, of a distance from the start of the line.
    """
    rank = jnp.cumsum(weights, dtype=jnp.int32)
    total = rank[-1]
    wanted = (jnp.arange(count, dtype=jnp.int32) + offset) * (total / count)
    wanted = jnp.minimum(wanted.astype(jnp.int32), total - 1)
    rows = jnp.searchsorted(rank, wanted + 1)
    return jax.tree.map(lambda x: x[rows], positions)


def result_metrics(
    first_margin: jax.Array, counted: jax.Array, count: jax.Array
) -> dict[str, jax.Array]:
    """Return means of the first player's final margins [N] over the `count` games of `counted`."""

    def mean(values: jax.Array) -> jax.Array:
        return jnp.sum(values * counted, dtype=jnp.int32) / count.astype(jnp.int32)

    return {
        "selfplay/first_margin": mean(first_margin),
        "selfplay/first_wins": mean(first_margin > 0),
        "selfplay/draws": mean(first_margin == 0),
    }


def policy_entropy(policy: jax.Array) -> jax.Array:
    """Return the entropy of policies, in nats: [..., A] to [...]; no gradient where one is 0."""
    return -jnp.sum(jax.scipy.special.xlogy(policy, policy), axis=-1)


def policy_divergence(policy: jax.Array, prior: jax.Array) -> jax.Array:
    """Return KL(policy || prior) in nats: [..., A] to [...]."""
    return jnp.sum(jax.scipy.special.rel_entr(policy, jnp.maximum(prior, TINY)), axis=-1)
