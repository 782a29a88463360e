"""Self-play: a batch of games on the device, one decision of every game at a time.

A step searches the position of every game, decides captures by the value of the search, and plays
a move. `plain_game` or `quiet_game` (the setting `search.nodes`) defines the searched positions and
the moves. Games differ in length, so a mask marks the steps that were played. A block of fixed size
is resampled from these steps. Each whole game has its own lane of the batch; late games
(`selfplay.late_start_moves`) come from a `queue`.
"""

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config, Plan, SelfplayConfig, shortest_game
from jaxzero.game import State, boxes_closed
from jaxzero.game.structure import Structure
from jaxzero.heads import Decisions
from jaxzero.search.interface import PositionEvaluator
from jaxzero.search.search import game_of, search
from jaxzero.training.openings import first_ply, open_games
from jaxzero.training.queue import refill, start_queue
from jaxzero.training.targets import (
    Positions,
    label,
    policy_divergence,
    policy_entropy,
    resample,
    result_metrics,
    sampling_weights,
)


class RandomMoves(NamedTuple):
    """When games play uniformly random moves instead of the moves of the search."""

    opening: jax.Array  # [B] int32, random moves at the start
    deviation: jax.Array  # [B] int32, number of a later random move; -1: none

    def at(self, number: jax.Array) -> jax.Array:
        """Return whether move `number` ([] or [B]) is random in each game: [B] bool."""
        return (number < self.opening) | (number == self.deviation)


class Games(NamedTuple):
    """Games before a decision: B in the lanes, or N in a queue."""

    number: jax.Array  # [B] int32, number of the game
    ply: jax.Array  # [B] int32, decisions of this game so far
    state: State  # [B], before its free boxes are taken
    structure: Structure | None  # [B, ...], of the state; None in the plain game
    random: RandomMoves  # [B]


class Play(NamedTuple):
    """All lanes between two decisions."""

    step: jax.Array  # [] int32, decisions in every lane so far
    games: Games  # [B], in the lanes
    decisions: Decisions


def play_block(
    config: Config,
    sizes: Plan,
    evaluator: PositionEvaluator,
    key: jax.Array,
    progress: chex.Numeric = 0.0,
) -> tuple[Positions, dict[str, jax.Array]]:
    """Play the games of one device; return their positions to learn from, and metrics.

    `progress` [] is 0 at the start of the run, 1 at its end. Positions are resampled from all
    played ones, evenly or weighted by `config.selfplay.surprise_weight`.
    """
    total = partial(jnp.sum, dtype=jnp.int32)
    begin_key, play_key, label_key, sample_key = jax.random.split(key, 4)
    begin = new_games(config, begin_key, sizes.games, progress)
    decisions, margins = play_to_the_end(config, sizes, evaluator, play_key, begin)
    chex.assert_equal_shape([decisions.played, decisions.game, decisions.simulations])
    chex.assert_shape(margins, (sizes.games,), custom_message="margins")
    played, late = total(decisions.played), config.selfplay.late_start_moves > 0
    steps = sizes.steps if late else total(jnp.any(decisions.played, axis=1))
    begun = jnp.zeros(sizes.games, bool).at[decisions.game].max(decisions.played)
    count = total(begun)
    positions = resample(
        label(config, decisions, margins, label_key),
        sampling_weights(decisions, config.selfplay.surprise_weight),
        sizes.positions,
        jax.random.uniform(sample_key, (), jnp.float32),
    )
    metrics = {
        "selfplay/policy_entropy": jnp.sum(decisions.entropy * decisions.played) / played,
        "selfplay/policy_surprise": jnp.sum(decisions.surprise * decisions.played) / played,
        **result_metrics(margins, begun, count),
        "selfplay/decisions": played / count,
        "selfplay/steps": jnp.float32(steps),
        # Per decision; fewer if a position has fewer moves than `max_considered_actions`.
        "selfplay/simulations": total(decisions.simulations * decisions.played) / played,
        # Fraction of the steps of all lanes in which a game was in play.
        "selfplay/used": played / (steps * decisions.played.shape[1]),
        "selfplay/games": count,
        "selfplay/moves": played,
        # By the network. A simulation that ends in a finished game needs none.
        "selfplay/evaluations": total(decisions.evaluations * decisions.played),
    }
    return positions, metrics


def play_to_the_end(
    config: Config, sizes: Plan, evaluator: PositionEvaluator, key: jax.Array, games: Games
) -> tuple[Decisions, jax.Array]:
    """Play games [N] to their end.

    Returns their decisions and the final margins of the first player [N] int32. With a queue some
    games may never begin: they have no decision.
    """
    step = partial(play_step, config, evaluator, key)
    if config.selfplay.late_start_moves:
        return play_queue(config, sizes, step, games)

    def unfinished(play: Play) -> jax.Array:
        return ~jnp.all(has_ended(positions_to_search(config, play.games)))

    play = jax.lax.while_loop(unfinished, step, start_lanes(config, sizes, games))
    return play.decisions, first_player_margin(positions_to_search(config, play.games))


def play_step(config: Config, evaluator: PositionEvaluator, key: jax.Array, play: Play) -> Play:
    """Make one decision in every lane."""
    board, rules, games = config.game.board, game_of(config.search), play.games
    step_key = jax.random.fold_in(key, play.step)
    search_key, sample_key = jax.random.split(step_key)
    position = positions_to_search(config, games)
    ended = has_ended(position)
    result = search(
        board, config.search, evaluator, search_key, position, structure=games.structure
    )
    chex.assert_equal_shape([result.policy, result.visits, position.drawn])
    chex.assert_equal_shape([result.value, result.action, ended])
    value = jnp.where(ended, 0.0, result.value * board.num_boxes)
    state = jax.vmap(rules.resolve)(games.state, games.structure, value)

    is_random = games.random.at(games.ply)
    legal = jax.vmap(partial(rules.legal, board))(position.drawn, games.structure)
    policy = jnp.where(is_random[:, None], legal, result.policy)
    sampled = jax.random.categorical(sample_key, jnp.log(policy))
    is_sampled = is_random | (games.ply < config.selfplay.sampled_moves)
    move = jnp.where(is_sampled, sampled, result.action).astype(jnp.int32)

    decision = Decisions(
        drawn=state.drawn,
        policy=jax.vmap(partial(rules.target, board))(games.structure, result.policy),
        player=state.player,
        ahead=first_player_margin(state),
        entropy=policy_entropy(result.policy),
        surprise=policy_divergence(result.policy, result.prior),
        # No random move in a finished game: it would mask the result.
        random=is_random & ~ended,
        played=~ended,
        game=games.number,
        simulations=jnp.sum(result.visits, axis=-1, dtype=jnp.int32),
        evaluations=result.evaluations,
        value=value,
    )
    chex.assert_tree_shape_prefix(decision, ended.shape)
    state, structure = jax.vmap(partial(rules.play, board))(state, move)
    return Play(
        step=play.step + 1,
        games=games._replace(ply=games.ply + 1, state=state, structure=structure),
        decisions=jax.tree.map(lambda a, b: a.at[play.step].set(b), play.decisions, decision),
    )


def new_games(config: Config, key: jax.Array, count: int, progress: chex.Numeric = 0.0) -> Games:
    """Return `count` games before their first decision, at `progress` [] of the run, 0 to 1."""
    board, settings = config.game.board, config.selfplay
    open_key, random_key = jax.random.split(key)
    plies = first_ply(settings, progress)
    state = open_games(board, open_key, count, plies)
    moves = shortest_game(config) - plies
    return Games(
        number=jnp.arange(count, dtype=jnp.int32),
        ply=jnp.zeros(count, jnp.int32),
        state=state,
        structure=jax.vmap(partial(game_of(config.search).find_structure, board))(state.drawn),
        random=draw_random_moves(settings, random_key, count, moves),
    )


def draw_random_moves(
    settings: SelfplayConfig, key: jax.Array, games: int, moves: chex.Numeric
) -> RandomMoves:
    """Choose the random moves of `games` games that have `moves` [] moves each."""
    uniform = jax.random.uniform(key, (3, games), jnp.float32)  # one draw: each compiles slowly
    max_opening = jnp.minimum(settings.random_opening_moves, moves)
    opening = jnp.floor(uniform[0] * (max_opening + 1)).astype(jnp.int32)
    deviates = uniform[1] < settings.random_move_fraction
    later = opening + jnp.floor(uniform[2] * (moves - opening)).astype(jnp.int32)
    return RandomMoves(opening, jnp.where(deviates, later, -1))


def start_lanes(config: Config, sizes: Plan, games: Games) -> Play:
    """Return lanes with these games [B] before their first decision."""
    shape, edges = (sizes.steps, len(games.ply)), config.game.board.num_edges
    chex.assert_shape(games.state.drawn, (shape[1], edges), custom_message="games.state.drawn")
    chex.assert_shape([games.number, *games.random], shape[1:])
    decisions = Decisions(
        drawn=jnp.zeros((*shape, edges), bool),
        policy=jnp.zeros((*shape, edges), jnp.float32),
        player=jnp.zeros(shape, jnp.int32),
        ahead=jnp.zeros(shape, jnp.int32),
        entropy=jnp.zeros(shape, jnp.float32),
        surprise=jnp.zeros(shape, jnp.float32),
        random=jnp.zeros(shape, bool),
        played=jnp.zeros(shape, bool),
        game=jnp.broadcast_to(games.number, shape),
        simulations=jnp.zeros(shape, jnp.int32),
        evaluations=jnp.zeros(shape, jnp.int32),
        value=jnp.zeros(shape, jnp.float32),
    )
    return Play(jnp.zeros((), jnp.int32), games, decisions)


def positions_to_search(config: Config, games: Games) -> State:
    """Return the positions [B] that are searched next."""
    return jax.vmap(game_of(config.search).searched)(games.state, games.structure)


def has_ended(position: State) -> jax.Array:
    """Return whether games [B] are over at the positions that are searched next: [B] bool."""
    return jnp.all(position.drawn, axis=-1)


def first_player_margin(state: State) -> jax.Array:
    """Return the boxes of the first player minus those of the second."""
    return jnp.where(state.player == 0, state.margin, -state.margin)


# Late games


def play_queue(
    config: Config, sizes: Plan, step: partial, games: Games
) -> tuple[Decisions, jax.Array]:
    """Play a queue of games [N] in the lanes; return the same as `play_to_the_end`."""
    chex.assert_rank([games.number, games.ply], 1)
    lanes, queue = start_queue(*longest_first(config, games), sizes.lanes, sizes.steps)
    margins = jnp.zeros(len(games.ply), jnp.int32)

    def refill_and_step(carry: tuple, _: None) -> tuple:
        play, queue, margins = carry
        margins = note_margins(config, play.games, margins)
        finished = has_ended(positions_to_search(config, play.games))
        lanes, queue = refill(queue, play.games, finished, sizes.steps - play.step)
        return (step(play._replace(games=lanes)), queue, margins), None

    begin = start_lanes(config, sizes, lanes), queue, margins
    (play, _, margins), _ = jax.lax.scan(refill_and_step, begin, None, sizes.steps)
    # A game that was cut because nearly all were too long has no result: it counts as not played.
    ended = has_ended(positions_to_search(config, play.games))
    kept = play.decisions.played & (ended[None] | (play.decisions.game != play.games.number[None]))
    return play.decisions._replace(played=kept), note_margins(config, play.games, margins)


def longest_first(config: Config, games: Games) -> tuple[Games, jax.Array]:
    """Sort games [N] by their largest number of decisions [N], longest first; return both."""
    position = positions_to_search(config, games)
    open_edges = jnp.sum(~position.drawn, axis=1, dtype=jnp.int32)
    board = config.game.board
    open_boxes = board.num_boxes - jax.vmap(partial(boxes_closed, board))(position.drawn)
    # As `max_decisions` of the quiet game, for the open part of the board.
    longest = open_edges - open_boxes + open_boxes // 4
    order = jnp.argsort(-longest)
    games, longest = jax.tree.map(lambda x: x[order], (games, longest))
    return games._replace(number=jnp.arange(len(order), dtype=jnp.int32)), longest


def note_margins(config: Config, lanes: Games, margins: jax.Array) -> jax.Array:
    """Write the first player's margins of the games that have ended into `margins` [N]."""
    position, numbers = positions_to_search(config, lanes), lanes.number
    own = jnp.where(has_ended(position), first_player_margin(position), margins[numbers])
    return margins.at[numbers].set(own)
