"""Self-play: a batch of games on the device, one decision of every game at a time.

A step searches the position of every game, decides captures by the value it finds, and plays a
move. Which positions are searched and which moves there are is up to `plain_game` or `quiet_game`
(the setting `search.nodes`). Games differ in length, so a mask marks the steps that were played,
and a block of fixed size is resampled from them.

Whole games differ little in length: each has a lane of the batch to itself. Games that begin late
(`selfplay.start_ply`) differ much: a lane plays several, one after the other (`refill`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config, SelfplayConfig
from jaxzero.game import State, boxes_closed, is_over
from jaxzero.game.quiet import free_boxes
from jaxzero.search.search import Evaluate, game_of, search
from jaxzero.training.adjudication import Stops, Waiting, no_stops, postpone
from jaxzero.training.openings import first_ply, open_games
from jaxzero.training.targets import (
    Decisions,
    Positions,
    label,
    policy_divergence,
    policy_entropy,
    resample,
    result_metrics,
    sampling_weights,
)


class RandomMoves(NamedTuple):
    """When games have uniformly random moves instead of those of the search."""

    opening: jax.Array  # [B] int32, random moves at the start
    deviation: jax.Array  # [B] int32, number of a later random move; -1: none

    def at(self, number: jax.Array) -> jax.Array:
        """Return whether move `number` ([] or [B]) is random in each game: [B] bool."""
        return (number < self.opening) | (number == self.deviation)


class Games(NamedTuple):
    """Games before a decision: B in the lanes, or N that wait."""

    number: jax.Array  # [B] int32, of the game
    ply: jax.Array  # [B] int32, decisions of this game so far
    state: State  # [B], before its free boxes are taken
    view: chex.ArrayTree  # [B, ...], what the rules say about it
    random: RandomMoves  # [B]


class Play(NamedTuple):
    """All lanes between two decisions."""

    step: jax.Array  # [] int32, decisions in every lane so far
    games: Games  # [B], in the lanes
    decisions: Decisions


class Queue(NamedTuple):
    """All games of an iteration, longest first; those before `next` have begun."""

    games: Games  # [N]
    longest: jax.Array  # [N] int32, decisions that each may have, falling
    next: jax.Array  # [] int32


def play_games(
    config: Config,
    evaluate: Evaluate,
    params: chex.ArrayTree,
    key: jax.Array,
    games: int,
    fraction: chex.Numeric = 0.0,
) -> tuple[Positions, dict[str, jax.Array]]:
    """Play `games` games; return their positions to learn from and scalar metrics.

    `fraction` [] of the run is done. There are `config.positions_per_game` positions a game,
    resampled evenly from all that were played or as `config.selfplay.surprise_weight` says.
    """
    positions, _, metrics = play_block(config, evaluate, params, key, games, fraction)
    return positions, metrics


def play_block(
    config: Config,
    evaluate: Evaluate,
    params: chex.ArrayTree,
    key: jax.Array,
    games: int,
    fraction: chex.Numeric = 0.0,
) -> tuple[Positions, Waiting | tuple, dict[str, jax.Array]]:
    """As `play_games`; return also what adjudicated games wait for, () without adjudication.

    No margin of adjudicated games is known yet.
    """
    random_key, play_key, sample_key = jax.random.split(key, 3)
    begin = new_games(config, random_key, games, fraction)
    decisions, ends = play_to_the_end(config, evaluate, params, play_key, begin)
    played, late = jnp.sum(decisions.played), config.selfplay.start_ply > 0
    steps = config.steps if late else jnp.sum(jnp.any(decisions.played, axis=1))
    begun = jnp.zeros(games, bool).at[decisions.game].max(decisions.played)
    count = jnp.sum(begun)
    label_key, sample_key = jax.random.split(sample_key)
    adjudicated = config.selfplay.adjudicate_below > 0
    if adjudicated:
        rows = postpone(config, decisions, games)
    else:
        rows = label(config, decisions, ends, label_key)
    stored = resample(
        rows,
        sampling_weights(decisions, config.selfplay.surprise_weight),
        config.positions_per_game * games,
        jax.random.uniform(sample_key),
    )
    if adjudicated:
        positions, waiting = stored[0], Waiting(stored[1], ends, begun)
    else:
        positions, waiting = stored, ()
    metrics = {
        "selfplay/policy_entropy": jnp.sum(decisions.entropy * decisions.played) / played,
        "selfplay/policy_surprise": jnp.sum(decisions.surprise * decisions.played) / played,
        **({} if adjudicated else result_metrics(ends, begun, count)),
        "selfplay/decisions": played / count,
        "selfplay/steps": jnp.float32(steps),
        # Of a move: fewer where a position has fewer moves than are considered.
        "selfplay/simulations": jnp.sum(decisions.simulations * decisions.played) / played,
        # The share of the decisions of all lanes in which a game was in play.
        "selfplay/used": played / (steps * decisions.played.shape[1]),
        "selfplay/games": count,
        "selfplay/moves": played,
        # Of the network, that the searches asked for: one for each simulation and one for the root.
        "selfplay/evaluations": jnp.sum((decisions.simulations + 1) * decisions.played),
    }
    return positions, waiting, metrics


def play_to_the_end(
    config: Config, evaluate: Evaluate, params: chex.ArrayTree, play_key: jax.Array, games: Games
) -> tuple[Decisions, jax.Array | Stops]:
    """Play games [N] to their end.

    Returns their decisions and their ends [N], as `ends_of`. Where lanes are refilled, the last of
    the queue may not begin: they have no decision.
    """
    step = partial(play_step, config, evaluate, params, play_key)
    if config.selfplay.start_ply:
        return play_queue(config, step, games)

    def unfinished(play: Play) -> jax.Array:
        return ~jnp.all(finished(config, searched(config, play.games)))

    play = jax.lax.while_loop(unfinished, step, start_lanes(config, games))
    return play.decisions, ends_of(config, play.games)


def play_queue(
    config: Config, step: Callable[[Play], Play], games: Games
) -> tuple[Decisions, jax.Array | Stops]:
    """Play a queue of games [N] in the lanes; return as `play_to_the_end`."""
    queue = make_queue(config, games)
    lanes = config.lanes(len(games.ply))
    # An opening that stops before `start_ply` for the solver's sake may leave too many decisions.
    head = jnp.minimum(too_long(queue, config.steps), len(games.ply) - lanes)
    first = jax.tree.map(
        partial(jax.lax.dynamic_slice_in_dim, start_index=head, slice_size=lanes), queue.games
    )
    play = start_lanes(config, first)
    ends = no_ends(config, len(games.ply))

    def refill_and_step(carry: tuple[Play, Queue, jax.Array | Stops], _: None) -> tuple:
        play, queue, ends = carry
        ends = note_ends(config, play.games, ends)
        lanes, queue = refill(config, play, queue)
        return (step(play._replace(games=lanes)), queue, ends), None

    begin = play, queue._replace(next=head + lanes), ends
    (play, _, ends), _ = jax.lax.scan(refill_and_step, begin, None, config.steps)
    return play.decisions, note_ends(config, play.games, ends)


def make_queue(config: Config, games: Games) -> Queue:
    """Sort games [N] by the decisions they may have, so that short ones fill what is left."""
    position = searched(config, games)
    open_edges = jnp.sum(~position.drawn, axis=1, dtype=jnp.int32)
    game = config.game.board
    open_boxes = game.num_boxes - jax.vmap(partial(boxes_closed, game))(position.drawn)
    # As `most_decisions`, of what is open.
    longest = open_edges - open_boxes + open_boxes // 4
    if config.selfplay.adjudicate_below:
        longest = jnp.minimum(longest, open_edges - config.selfplay.adjudicate_below)
    order = jnp.argsort(-longest)
    games, longest = jax.tree.map(lambda x: x[order], (games, longest))
    numbered = games._replace(number=jnp.arange(len(order), dtype=jnp.int32))
    return Queue(numbered, longest, jnp.int32(0))


def refill(config: Config, play: Play, queue: Queue) -> tuple[Games, Queue]:
    """Give the lanes whose game is over the next games that surely end within the steps left."""
    over = finished(config, searched(config, play.games))
    head = jnp.maximum(queue.next, too_long(queue, config.steps - play.step))
    place = head + jnp.cumsum(over, dtype=jnp.int32) - 1
    begins = over & (place < len(queue.longest))
    fresh = jax.tree.map(lambda x: x[place], queue.games)  # what lies beyond is not taken
    select = jax.vmap(lambda new, a, b: jax.tree.map(partial(jnp.where, new), a, b))
    lanes = select(begins, fresh, play.games)
    return lanes, queue._replace(next=head + jnp.sum(begins, dtype=jnp.int32))


def too_long(queue: Queue, steps: chex.Numeric) -> jax.Array:
    """Return how many games of a queue, the first ones, may have more decisions than `steps`."""
    return jnp.sum(queue.longest > steps, dtype=jnp.int32)


def finished(config: Config, position: State) -> jax.Array:
    """Return whether games [B] stop at the positions that are searched next: [B] bool."""
    if config.selfplay.adjudicate_below:
        return jnp.sum(~position.drawn, axis=-1) <= config.selfplay.adjudicate_below
    return is_over(position)


def ends_of(config: Config, games: Games) -> jax.Array | Stops:
    """Return the first player's final margins [B] int32, or what the solver needs for them."""
    position = searched(config, games)
    if not config.selfplay.adjudicate_below:
        return first_player_margin(position)
    ahead = first_player_margin(games.state)
    return Stops(position.drawn, ahead, games.state.player, free_boxes(games.view))


def no_ends(config: Config, games: int) -> jax.Array | Stops:
    """Return the ends of so many games of which none has begun."""
    if not config.selfplay.adjudicate_below:
        return jnp.zeros(games, jnp.int32)
    return no_stops(config, games)


def note_ends(config: Config, lanes: Games, ends: jax.Array | Stops) -> jax.Array | Stops:
    """Write the ends of the games that have finished into `ends` [N]."""
    done, numbers = finished(config, searched(config, lanes)), lanes.number
    select = jax.vmap(partial(jnp.where))
    return jax.tree.map(
        lambda all_, own: all_.at[numbers].set(select(done, own, all_[numbers])),
        ends,
        ends_of(config, lanes),
    )


def searched(config: Config, games: Games) -> State:
    """Return the positions [B] that are searched next."""
    return jax.vmap(game_of(config.search).searched)(games.state, games.view)


def new_games(config: Config, key: jax.Array, count: int, fraction: chex.Numeric = 0.0) -> Games:
    """Return `count` games before their first decision, at `fraction` [] of the run."""
    game, settings = config.game.board, config.selfplay
    open_key, random_key = jax.random.split(key)
    plies = first_ply(settings, fraction)
    state = open_games(game, open_key, count, plies, settings.adjudicate_below)
    moves = config.shortest_whole_game - plies
    return Games(
        number=jnp.arange(count, dtype=jnp.int32),
        ply=jnp.zeros(count, jnp.int32),
        state=state,
        view=jax.vmap(partial(game_of(config.search).view, game))(state.drawn),
        random=draw_random_moves(settings, random_key, count, moves),
    )


def begin_play(config: Config, key: jax.Array, lanes: int) -> Play:
    """Return a game in each of so many lanes before its first decision."""
    return start_lanes(config, new_games(config, key, lanes))


def start_lanes(config: Config, games: Games) -> Play:
    """Return lanes with these games [B] before their first decision."""
    steps, edges = (config.steps, len(games.ply)), config.game.board.num_edges
    decisions = Decisions(
        drawn=jnp.zeros((*steps, edges), bool),
        policy=jnp.zeros((*steps, edges), jnp.float32),
        player=jnp.zeros(steps, jnp.int32),
        ahead=jnp.zeros(steps, jnp.int32),
        entropy=jnp.zeros(steps, jnp.float32),
        surprise=jnp.zeros(steps, jnp.float32),
        random=jnp.zeros(steps, bool),
        played=jnp.zeros(steps, bool),
        game=jnp.broadcast_to(games.number, steps),
        simulations=jnp.zeros(steps, jnp.int32),
        value=jnp.zeros(steps, jnp.float32),
    )
    return Play(jnp.zeros((), jnp.int32), games, decisions)


def play_step(
    config: Config, evaluate: Evaluate, params: chex.ArrayTree, play_key: jax.Array, play: Play
) -> Play:
    """Make one decision in every lane."""
    game, rules, games = config.game.board, game_of(config.search), play.games
    step_key = jax.random.fold_in(play_key, play.step)
    search_key, uniform_key, sample_key = jax.random.split(step_key, 3)
    position = searched(config, games)
    over = finished(config, position)
    found = search(game, config.search, evaluate, params, search_key, position, view=games.view)
    value = jnp.where(over, 0.0, found.value * game.num_boxes)
    state = jax.vmap(rules.resolve)(games.state, games.view, value)

    sampled = jax.random.categorical(sample_key, jnp.log(found.policy)).astype(jnp.int32)
    move = jnp.where(games.ply < config.selfplay.sampled_plies, sampled, found.edge)
    legal = jax.vmap(partial(rules.legal, game))(games.view)
    uniform = jax.random.categorical(uniform_key, jnp.where(legal, 0.0, -jnp.inf))
    is_random = games.random.at(games.ply)
    move = jnp.where(is_random, uniform, move).astype(jnp.int32)

    decision = Decisions(
        drawn=state.drawn,
        policy=jax.vmap(partial(rules.target, game))(games.view, found.policy),
        player=state.player,
        ahead=first_player_margin(state),
        entropy=policy_entropy(found.policy),
        surprise=policy_divergence(found.policy, found.prior),
        # A finished game has no moves, so no random one that would hide its result.
        random=is_random & ~over,
        played=~over,
        game=games.number,
        simulations=jnp.sum(found.visits, axis=-1, dtype=jnp.int32),
        value=value,
    )
    state, view = jax.vmap(partial(rules.play, game))(state, move)
    if config.selfplay.adjudicate_below:  # a stopped game stays; one that is over does anyway
        stay = jax.vmap(lambda over, a, b: jax.tree.map(partial(jnp.where, over), a, b))
        state, view = stay(over, (games.state, games.view), (state, view))
    return Play(
        step=play.step + 1,
        games=games._replace(ply=games.ply + 1, state=state, view=view),
        decisions=jax.tree.map(lambda a, b: a.at[play.step].set(b), play.decisions, decision),
    )


def draw_random_moves(
    settings: SelfplayConfig, key: jax.Array, games: int, moves: chex.Numeric
) -> RandomMoves:
    """Choose when `games` games of `moves` [] moves each have random moves."""
    opening_key, game_key, move_key = jax.random.split(key, 3)
    longest = jnp.minimum(settings.opening_plies, moves)
    opening = jax.random.randint(opening_key, (games,), 0, longest + 1)
    deviates = jax.random.bernoulli(game_key, settings.deviations, (games,))
    later = jax.random.randint(move_key, (games,), opening, moves)
    return RandomMoves(opening, jnp.where(deviates, later, -1))


def first_player_margin(state: State) -> jax.Array:
    """Return the boxes of the first player minus those of the second."""
    return jnp.where(state.player == 0, state.margin, -state.margin)
