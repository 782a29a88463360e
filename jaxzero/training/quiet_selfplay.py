"""Self-play in the quiet game: one loop over decisions, until the last game is over.

A step first searches the quiet position P behind what the side to move faces. The value it finds
decides about the free boxes, which gives P its side to move and its margin; then the move of the
search opens the next position. Games differ a little in length: of what was played a block of
fixed size is picked, as many positions a game as the shortest has.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.agent.search import Evaluator, search
from jaxzero.config import Config
from jaxzero.game import DotsAndBoxes, State, is_over
from jaxzero.game.closing import declines, open_up, settle
from jaxzero.game.quiet import equivalence, spread
from jaxzero.game.structure import Structure
from jaxzero.training.openings import open_games
from jaxzero.training.positions import (
    Positions,
    policy_divergence,
    policy_entropy,
    random_moves,
    results,
    results_known,
    to_first,
)

TICKETS = 2**30  # weights of picking become so many whole numbers: their sums are exact


class Decisions(NamedTuple):
    """The decisions of all games, step by step; those past the end of a game count for nothing."""

    drawn: jax.Array  # [T, B, A] bool, edges of the quiet position
    policy: jax.Array  # [T, B, A] float32, improved policy, shared among the edges of one move
    player: jax.Array  # [T, B] int32, side to move
    ahead: jax.Array  # [T, B] int32, boxes of the first player minus those of the second
    entropy: jax.Array  # [T, B] float32, of the improved policy over moves, in nats
    surprise: jax.Array  # [T, B] float32, its divergence from that of the network, in nats
    random: jax.Array  # [T, B] bool, the move was a random one
    played: jax.Array  # [T, B] bool, the game was not over


class Play(NamedTuple):
    """Games between two decisions."""

    number: jax.Array  # [] int32, decisions so far
    facing: State  # [B], positions with free boxes or without
    found: Structure  # [B], their structure
    decisions: Decisions


def play_quiet_games(
    game: DotsAndBoxes,
    config: Config,
    evaluate: Evaluator,
    params: chex.ArrayTree,
    key: jax.Array,
    games: int,
    most: int = 0,
) -> tuple[Positions, dict[str, jax.Array]]:
    """Play `games` games of the quiet game and return positions to learn from and scalar metrics.

    There are `config.positions_per_game` positions a game, evenly from all that were played or as
    `config.selfplay.surprise_weight` says. With `most` the games are cut after so many decisions;
    that is for measuring speed alone.
    """
    random_key, play_key, pick_key = jax.random.split(key, 3)
    keys = (random_key, play_key)
    decisions, end = play_decisions(game, config, evaluate, params, *keys, games, most)
    first_margin = to_first(end)
    count = jnp.sum(decisions.played)
    positions = pick_positions(
        learnable(decisions, first_margin),
        picking_weights(decisions, config.selfplay.surprise_weight),
        config.positions_per_game * games,
        jax.random.uniform(pick_key),
    )
    return positions, {
        "selfplay/policy_entropy": jnp.sum(decisions.entropy * decisions.played) / count,
        "selfplay/policy_surprise": jnp.sum(decisions.surprise * decisions.played) / count,
        **results(first_margin),
        "selfplay/decisions": count / games,
        "selfplay/longest": jnp.sum(jnp.any(decisions.played, axis=1), dtype=jnp.float32),
    }


def play_decisions(
    game: DotsAndBoxes,
    config: Config,
    evaluate: Evaluator,
    params: chex.ArrayTree,
    random_key: jax.Array,
    play_key: jax.Array,
    games: int,
    most: int = 0,
) -> tuple[Decisions, State]:
    """Play all games to their end and return what was decided, and the end: State [B].

    With `most` they end after so many decisions.
    """
    open_key, random_key = jax.random.split(random_key)
    opened = open_games(game, open_key, games, config.selfplay.start_ply)
    random = random_moves(config.selfplay, random_key, games, config.positions_per_game)

    def decide(play: Play) -> Play:
        keys = jax.random.split(jax.random.fold_in(play_key, play.number), 3)
        search_key, uniform_key, sample_key = keys
        # The search looks at edges only: margin and player follow from what it finds.
        behind = play.facing._replace(drawn=play.found.quiet)
        searched = search(game, config.search, evaluate, params, search_key, behind)
        over = is_over(behind)
        value = jnp.where(over, 0.0, searched.value * game.num_boxes)
        state = jax.vmap(settle)(play.facing, play.found, declines(play.found, value))
        same = jax.vmap(partial(equivalence, game))(play.found)
        sampled = jax.random.categorical(sample_key, jnp.log(searched.policy)).astype(jnp.int32)
        chosen = jnp.where(play.number < config.selfplay.sampled_plies, sampled, searched.edge)
        uniform = jnp.where(same.moves, 0.0, -jnp.inf)
        is_random = random.at(play.number)
        edge = jnp.where(is_random, jax.random.categorical(uniform_key, uniform), chosen)
        facing, found = jax.vmap(partial(open_up, game))(state, edge.astype(jnp.int32))
        decision = Decisions(
            drawn=state.drawn,
            policy=jax.vmap(partial(spread, game))(play.found, same, searched.policy),
            player=state.player,
            ahead=to_first(state),
            entropy=policy_entropy(searched.policy),
            surprise=policy_divergence(searched.policy, searched.prior),
            # A game that is over has no moves, so no random one that would make its result unknown.
            random=is_random & ~over,
            played=~over,
        )
        decisions = jax.tree.map(
            lambda all_, new: all_.at[play.number].set(new), play.decisions, decision
        )
        return Play(play.number + 1, facing, found, decisions)

    none = empty_decisions(config.steps_per_game, games, game.num_edges)
    play = Play(jnp.zeros((), jnp.int32), *opened, none)

    def unfinished(play: Play) -> jax.Array:
        going_on = ~jnp.all(play.found.quiet)
        return going_on & (play.number < most) if most else going_on

    play = jax.lax.while_loop(unfinished, decide, play)
    take_all = jnp.zeros(games, bool)
    return play.decisions, jax.vmap(settle)(play.facing, play.found, take_all)


def empty_decisions(steps: int, games: int, num_edges: int) -> Decisions:
    """Return room for the decisions of `games` games, with nothing played."""
    shape = (steps, games)
    return Decisions(
        drawn=jnp.zeros((*shape, num_edges), bool),
        policy=jnp.zeros((*shape, num_edges), jnp.float32),
        player=jnp.zeros(shape, jnp.int32),
        ahead=jnp.zeros(shape, jnp.int32),
        entropy=jnp.zeros(shape, jnp.float32),
        surprise=jnp.zeros(shape, jnp.float32),
        random=jnp.zeros(shape, bool),
        played=jnp.zeros(shape, bool),
    )


def learnable(decisions: Decisions, first_margin: jax.Array) -> Positions:
    """Return all decisions as positions, given the final margins [B] of the first player."""
    to_come = first_margin[None, :] - decisions.ahead
    positions = Positions(
        drawn=decisions.drawn,
        policy=decisions.policy,
        margin=jnp.where(decisions.player == 0, to_come, -to_come),
        margin_known=results_known(decisions.random),
    )
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), positions)


def picking_weights(decisions: Decisions, surprise_weight: float) -> jax.Array:
    """Return the weight of every decision when positions are picked: [P] bool or int32.

    A share `surprise_weight` of all weight goes by the policy's surprise, the rest is even; what
    was not played has none. Source: Wu 2019 and KataGo's documents, "policy surprise weighting".
    """
    played = decisions.played.ravel()
    if not surprise_weight:
        return played
    surprise = jnp.where(played, decisions.surprise.ravel(), 0.0)
    count, total = played.sum(), surprise.sum()
    # Where nothing surprises all is even.
    relative = jnp.where(total > 0, surprise / jnp.maximum(total, 1e-30), played / count)
    share = (1 - surprise_weight) * played / count + surprise_weight * relative
    return (share * TICKETS).astype(jnp.int32)


def pick_positions(
    positions: Positions, weights: jax.Array, count: int, offset: jax.Array
) -> Positions:
    """Pick `count` positions in proportion to whole-number `weights` [P], by even distances.

    This is systematic resampling: where the weights, one after the other, make up a line, the
    picks lie at even distances on it, from `offset` [], 0 to 1, in the first stretch on.
    """
    rank = jnp.cumsum(weights)
    there = rank[-1]
    wanted = (jnp.arange(count) + offset) * (there / count)
    wanted = jnp.minimum(wanted.astype(jnp.int32), there - 1)
    rows = jnp.searchsorted(rank, wanted + 1)
    return jax.tree.map(lambda x: x[rows], positions)
