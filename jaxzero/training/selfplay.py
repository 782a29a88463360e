"""Self-play: all games of a batch on the device, one decision of every game at a time.

A step searches the position of every game, decides captures by the value it finds, and plays a
move. Which positions are searched and which moves there are is up to `plain_game` or `quiet_game`
(the setting `search.nodes`). Games differ in length, so a mask marks the steps that were played,
and a block of fixed size is resampled from them.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.agent.search import Evaluate, game_of, search
from jaxzero.config import Config, SelfplayConfig
from jaxzero.game import State, is_over
from jaxzero.training.openings import open_games

TICKETS = 2**30  # weights of resampling are rounded to whole numbers, whose sums are exact
TINY = 1e-30  # smaller priors count as this; keeps the divergence finite


class Positions(NamedTuple):
    """Positions to learn from: P of them."""

    drawn: jax.Array  # [P, A] bool, edges on the board
    policy: jax.Array  # [P, A] float32, improved policy of the search
    margin: jax.Array  # [P] int32, boxes the side to move won from here on minus those it lost
    margin_known: jax.Array  # [P] bool, no random move comes here or after


class RandomMoves(NamedTuple):
    """When the games of a batch have uniformly random moves instead of those of the search."""

    opening: jax.Array  # [B] int32, random moves at the start
    deviation: jax.Array  # [B] int32, number of a later random move; -1: none

    def at(self, number: jax.Array) -> jax.Array:
        """Return whether move `number` [] is random in each game: [B] bool."""
        return (number < self.opening) | (number == self.deviation)


class Decisions(NamedTuple):
    """The decisions of all games, step by step; `played` masks those past the end of a game."""

    drawn: jax.Array  # [T, B, A] bool, edges of the searched position
    policy: jax.Array  # [T, B, A] float32, improved policy, split evenly over the edges of one move
    player: jax.Array  # [T, B] int32, side to move
    ahead: jax.Array  # [T, B] int32, boxes of the first player minus those of the second
    entropy: jax.Array  # [T, B] float32, of the improved policy over moves, in nats
    surprise: jax.Array  # [T, B] float32, its divergence from the network's policy, in nats
    random: jax.Array  # [T, B] bool, the move was a random one
    played: jax.Array  # [T, B] bool, the game was not over


class Play(NamedTuple):
    """All games between two decisions."""

    number: jax.Array  # [] int32, decisions so far
    state: State  # [B], before its free boxes are taken
    view: chex.ArrayTree  # [B, ...], what the rules say about it
    random: RandomMoves
    decisions: Decisions


def play_games(
    config: Config, evaluate: Evaluate, params: chex.ArrayTree, key: jax.Array, games: int
) -> tuple[Positions, dict[str, jax.Array]]:
    """Play `games` games; return their positions to learn from and scalar metrics.

    There are `config.positions_per_game` positions a game, resampled evenly from all that were
    played or as `config.selfplay.surprise_weight` says.
    """
    random_key, play_key, sample_key = jax.random.split(key, 3)
    decisions, end = play_to_the_end(config, evaluate, params, random_key, play_key, games)
    first_margin = first_player_margin(end)
    played = jnp.sum(decisions.played)
    positions = resample(
        label(decisions, first_margin),
        sampling_weights(decisions, config.selfplay.surprise_weight),
        config.positions_per_game * games,
        jax.random.uniform(sample_key),
    )
    return positions, {
        "selfplay/policy_entropy": jnp.sum(decisions.entropy * decisions.played) / played,
        "selfplay/policy_surprise": jnp.sum(decisions.surprise * decisions.played) / played,
        "selfplay/first_margin": first_margin.mean(dtype=jnp.float32),
        "selfplay/first_wins": jnp.mean(first_margin > 0),
        "selfplay/draws": jnp.mean(first_margin == 0),
        "selfplay/decisions": played / games,
        "selfplay/longest": jnp.sum(jnp.any(decisions.played, axis=1), dtype=jnp.float32),
    }


def play_to_the_end(
    config: Config,
    evaluate: Evaluate,
    params: chex.ArrayTree,
    random_key: jax.Array,
    play_key: jax.Array,
    games: int,
) -> tuple[Decisions, State]:
    """Play all games to their end; return their decisions and the end: State [B]."""
    searched = jax.vmap(game_of(config.search).searched)

    def unfinished(play: Play) -> jax.Array:
        return ~jnp.all(is_over(searched(play.state, play.view)))

    step = partial(play_step, config, evaluate, params, play_key)
    play = jax.lax.while_loop(unfinished, step, begin_play(config, random_key, games))
    return play.decisions, searched(play.state, play.view)


def begin_play(config: Config, key: jax.Array, games: int) -> Play:
    """Return `games` games before their first decision."""
    game, settings = config.game.board, config.selfplay
    open_key, random_key = jax.random.split(key)
    state = open_games(game, open_key, games, settings.start_ply)
    steps = (config.steps_per_game, games)
    return Play(
        number=jnp.zeros((), jnp.int32),
        state=state,
        view=jax.vmap(partial(game_of(config.search).view, game))(state.drawn),
        random=draw_random_moves(settings, random_key, games, config.positions_per_game),
        decisions=Decisions(
            drawn=jnp.zeros((*steps, game.num_edges), bool),
            policy=jnp.zeros((*steps, game.num_edges), jnp.float32),
            player=jnp.zeros(steps, jnp.int32),
            ahead=jnp.zeros(steps, jnp.int32),
            entropy=jnp.zeros(steps, jnp.float32),
            surprise=jnp.zeros(steps, jnp.float32),
            random=jnp.zeros(steps, bool),
            played=jnp.zeros(steps, bool),
        ),
    )


def play_step(
    config: Config, evaluate: Evaluate, params: chex.ArrayTree, play_key: jax.Array, play: Play
) -> Play:
    """Make one decision in every game."""
    game, rules = config.game.board, game_of(config.search)
    step_key = jax.random.fold_in(play_key, play.number)
    search_key, uniform_key, sample_key = jax.random.split(step_key, 3)
    position = jax.vmap(rules.searched)(play.state, play.view)
    over = is_over(position)
    found = search(game, config.search, evaluate, params, search_key, position)
    value = jnp.where(over, 0.0, found.value * game.num_boxes)
    state = jax.vmap(rules.resolve)(play.state, play.view, value)

    sampled = jax.random.categorical(sample_key, jnp.log(found.policy)).astype(jnp.int32)
    move = jnp.where(play.number < config.selfplay.sampled_plies, sampled, found.edge)
    legal = jax.vmap(partial(rules.legal, game))(play.view)
    uniform = jax.random.categorical(uniform_key, jnp.where(legal, 0.0, -jnp.inf))
    is_random = play.random.at(play.number)
    move = jnp.where(is_random, uniform, move).astype(jnp.int32)

    decision = Decisions(
        drawn=state.drawn,
        policy=jax.vmap(partial(rules.target, game))(play.view, found.policy),
        player=state.player,
        ahead=first_player_margin(state),
        entropy=policy_entropy(found.policy),
        surprise=policy_divergence(found.policy, found.prior),
        # A finished game has no moves, so no random one that would hide its result.
        random=is_random & ~over,
        played=~over,
    )
    state, view = jax.vmap(partial(rules.play, game))(state, move)
    return play._replace(
        number=play.number + 1,
        state=state,
        view=view,
        decisions=jax.tree.map(lambda a, b: a.at[play.number].set(b), play.decisions, decision),
    )


def draw_random_moves(
    settings: SelfplayConfig, key: jax.Array, games: int, moves: int
) -> RandomMoves:
    """Choose when `games` games of `moves` moves each have random moves."""
    opening_key, game_key, move_key = jax.random.split(key, 3)
    longest = min(settings.opening_plies, moves)
    opening = jax.random.randint(opening_key, (games,), 0, longest + 1)
    deviates = jax.random.bernoulli(game_key, settings.deviations, (games,))
    later = jax.random.randint(move_key, (games,), opening, moves)
    return RandomMoves(opening, jnp.where(deviates, later, -1))


def label(decisions: Decisions, first_margin: jax.Array) -> Positions:
    """Return all decisions [T * B] as positions, given the first player's final margins [B]."""
    to_come = first_margin[None, :] - decisions.ahead
    positions = Positions(
        drawn=decisions.drawn,
        policy=decisions.policy,
        margin=jnp.where(decisions.player == 0, to_come, -to_come),
        margin_known=results_known(decisions.random),
    )
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), positions)


def results_known(random: jax.Array) -> jax.Array:
    """Return where the result follows from searched moves: no random one [T, B] here or after."""
    return ~(jnp.cumsum(random[::-1], axis=0)[::-1] > 0)


def sampling_weights(decisions: Decisions, surprise_weight: float) -> jax.Array:
    """Return the weight of every decision in resampling: [T * B] bool or int32.

    A share `surprise_weight` of the total weight is in proportion to the policy's surprise, the
    rest is even; what was not played weighs nothing.
    Source: Wu 2019 and KataGo's documents, "policy surprise weighting".
    """
    played = decisions.played.ravel()
    if not surprise_weight:
        return played
    surprise = jnp.where(played, decisions.surprise.ravel(), 0.0)
    count, total = played.sum(), surprise.sum()
    # Even weights where the total surprise is 0.
    relative = jnp.where(total > 0, surprise / jnp.maximum(total, TINY), played / count)
    share = (1 - surprise_weight) * played / count + surprise_weight * relative
    return (share * TICKETS).astype(jnp.int32)


def resample(positions: Positions, weights: jax.Array, count: int, offset: jax.Array) -> Positions:
    """Sample `count` positions in proportion to whole-number `weights` [T * B], in their order.

    Systematic resampling: the weights, laid end to end, form a line; samples lie on it at equal
    distances, the first `offset` [], 0 to 1, of a distance from its start.
    """
    rank = jnp.cumsum(weights)
    total = rank[-1]
    wanted = (jnp.arange(count) + offset) * (total / count)
    wanted = jnp.minimum(wanted.astype(jnp.int32), total - 1)
    rows = jnp.searchsorted(rank, wanted + 1)
    return jax.tree.map(lambda x: x[rows], positions)


def policy_entropy(policy: jax.Array) -> jax.Array:
    """Return the entropy of policies, in nats: [..., A] to [...]."""
    return -jnp.sum(jax.scipy.special.xlogy(policy, policy), axis=-1)


def policy_divergence(policy: jax.Array, prior: jax.Array) -> jax.Array:
    """Return KL(policy || prior) in nats: [..., A] to [...]."""
    return jnp.sum(jax.scipy.special.rel_entr(policy, jnp.maximum(prior, TINY)), axis=-1)


def first_player_margin(state: State) -> jax.Array:
    """Return the boxes of the first player minus those of the second."""
    return jnp.where(state.player == 0, state.margin, -state.margin)
