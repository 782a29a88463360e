"""Games of self-play before a decision: how they begin, and how they share the lanes.

A lane is one place in the batch of parallel games; it holds one game at a time. Whole games have
similar lengths, and each has its own lane. The lengths of late games (`selfplay.late_start_moves`)
differ a lot, so each lane plays several, one after the other: from a queue, the longest first. When
the game of a lane has ended, the lane takes the next game that is certain to end in the remaining
steps.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config, SelfplayConfig, plan, shortest_game
from jaxzero.game import State, boxes_closed
from jaxzero.network.heads import Decisions
from jaxzero.search.search import game_of
from jaxzero.training.openings import first_ply, open_games


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
    view: chex.ArrayTree  # [B, ...], what the rules compute from the state
    random: RandomMoves  # [B]


class Play(NamedTuple):
    """All lanes between two decisions."""

    step: jax.Array  # [] int32, decisions in every lane so far
    games: Games  # [B], in the lanes
    decisions: Decisions


def new_games(config: Config, key: jax.Array, count: int, fraction: chex.Numeric = 0.0) -> Games:
    """Return `count` games before their first decision, at `fraction` [] of the run."""
    board, settings = config.game.board, config.selfplay
    open_key, random_key = jax.random.split(key)
    plies = first_ply(settings, fraction)
    state = open_games(board, open_key, count, plies)
    moves = shortest_game(config) - plies
    return Games(
        number=jnp.arange(count, dtype=jnp.int32),
        ply=jnp.zeros(count, jnp.int32),
        state=state,
        view=jax.vmap(partial(game_of(config.search).view, board))(state.drawn),
        random=draw_random_moves(settings, random_key, count, moves),
    )


def draw_random_moves(
    settings: SelfplayConfig, key: jax.Array, games: int, moves: chex.Numeric
) -> RandomMoves:
    """Choose the random moves of `games` games that have `moves` [] moves each."""
    uniform = jax.random.uniform(key, (3, games), jnp.float32)  # one draw: each compiles slowly
    longest = jnp.minimum(settings.random_opening_moves, moves)
    opening = jnp.floor(uniform[0] * (longest + 1)).astype(jnp.int32)
    deviates = uniform[1] < settings.random_move_fraction
    later = opening + jnp.floor(uniform[2] * (moves - opening)).astype(jnp.int32)
    return RandomMoves(opening, jnp.where(deviates, later, -1))


def start_lanes(config: Config, games: Games) -> Play:
    """Return lanes with these games [B] before their first decision."""
    steps, edges = (plan(config).steps, len(games.ply)), config.game.board.num_edges
    chex.assert_shape(games.state.drawn, (steps[1], edges), custom_message="games.state.drawn")
    chex.assert_shape([games.number, *games.random], steps[1:])
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
        evaluations=jnp.zeros(steps, jnp.int32),
        value=jnp.zeros(steps, jnp.float32),
    )
    return Play(jnp.zeros((), jnp.int32), games, decisions)


def positions_to_search(config: Config, games: Games) -> State:
    """Return the positions [B] that are searched next."""
    return jax.vmap(game_of(config.search).searched)(games.state, games.view)


def has_ended(position: State) -> jax.Array:
    """Return whether games [B] are over at the positions that are searched next: [B] bool."""
    return jnp.all(position.drawn, axis=-1)


def first_player_margin(state: State) -> jax.Array:
    """Return the boxes of the first player minus those of the second."""
    return jnp.where(state.player == 0, state.margin, -state.margin)


class Queue(NamedTuple):
    """All games of an iteration, longest first; those before `next` have begun or are skipped."""

    games: Games  # [N]
    longest: jax.Array  # [N] int32, most decisions of each game, in falling order
    next: jax.Array  # [] int32


def play_queue(
    config: Config, step: Callable[[Play], Play], games: Games
) -> tuple[Decisions, jax.Array]:
    """Play a queue of games [N] in the lanes; return the same as `play_to_the_end`."""
    chex.assert_rank([games.number, games.ply], 1)
    queue = make_queue(config, games)
    sizes = plan(config, len(games.ply))
    head = jnp.minimum(too_long(queue, sizes.steps), len(games.ply) - sizes.lanes)
    first = jax.tree.map(
        partial(jax.lax.dynamic_slice_in_dim, start_index=head, slice_size=sizes.lanes), queue.games
    )
    play = start_lanes(config, first)
    margins = jnp.zeros(len(games.ply), jnp.int32)

    def refill_and_step(carry: tuple[Play, Queue, jax.Array], _: None) -> tuple:
        play, queue, margins = carry
        margins = note_margins(config, play.games, margins)
        lanes, queue = refill(config, play, queue)
        return (step(play._replace(games=lanes)), queue, margins), None

    begin = play, queue._replace(next=head + sizes.lanes), margins
    (play, _, margins), _ = jax.lax.scan(refill_and_step, begin, None, sizes.steps)
    # A game that was cut because nearly all were too long has no result: it counts as not played.
    ended = has_ended(positions_to_search(config, play.games))
    kept = play.decisions.played & (ended[None] | (play.decisions.game != play.games.number[None]))
    return play.decisions._replace(played=kept), note_margins(config, play.games, margins)


def make_queue(config: Config, games: Games) -> Queue:
    """Sort games [N] by their most decisions, longest first: short games fill the last steps."""
    position = positions_to_search(config, games)
    open_edges = jnp.sum(~position.drawn, axis=1, dtype=jnp.int32)
    board = config.game.board
    open_boxes = board.num_boxes - jax.vmap(partial(boxes_closed, board))(position.drawn)
    # As `most_decisions`, for the open part of the board.
    longest = open_edges - open_boxes + open_boxes // 4
    order = jnp.argsort(-longest)
    games, longest = jax.tree.map(lambda x: x[order], (games, longest))
    numbered = games._replace(number=jnp.arange(len(order), dtype=jnp.int32))
    return Queue(numbered, longest, jnp.int32(0))


def refill(config: Config, play: Play, queue: Queue) -> tuple[Games, Queue]:
    """Refill finished lanes with the next games that are certain to end in the remaining steps."""
    over = has_ended(positions_to_search(config, play.games))
    chex.assert_equal_shape([over, play.games.ply])
    chex.assert_tree_shape_prefix(queue.games, queue.longest.shape)
    head = jnp.maximum(queue.next, too_long(queue, plan(config).steps - play.step))
    place = head + jnp.cumsum(over, dtype=jnp.int32) - 1
    begins = over & (place < len(queue.longest))
    fresh = jax.tree.map(lambda x: x[place], queue.games)  # rows beyond the end are not used
    select = jax.vmap(lambda new, a, b: jax.tree.map(partial(jnp.where, new), a, b))
    lanes = select(begins, fresh, play.games)
    return lanes, queue._replace(next=head + jnp.sum(begins, dtype=jnp.int32))


def too_long(queue: Queue, steps: chex.Numeric) -> jax.Array:
    """Return how many games, at the head of a queue, may have more decisions than `steps`."""
    return jnp.sum(queue.longest > steps, dtype=jnp.int32)


def note_margins(config: Config, lanes: Games, margins: jax.Array) -> jax.Array:
    """Write the first player's margins of the games that have ended into `margins` [N]."""
    position, numbers = positions_to_search(config, lanes), lanes.number
    own = jnp.where(has_ended(position), first_player_margin(position), margins[numbers])
    return margins.at[numbers].set(own)
