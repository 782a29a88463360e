"""Queue of games that begin late: each lane of the batch plays several, one after the other.

The lengths of these games differ a lot. The longest games begin first. When the game of a lane has
ended, the lane takes the next game that is certain to end in the remaining steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config
from jaxzero.game import boxes_closed
from jaxzero.network.heads import Decisions
from jaxzero.training.games import (
    Games,
    Play,
    first_player_margin,
    has_ended,
    positions_to_search,
    start_lanes,
)


class Queue(NamedTuple):
    """All games of an iteration, longest first; those before `next` have begun or are skipped."""

    games: Games  # [N]
    longest: jax.Array  # [N] int32, most decisions of each game, in falling order
    next: jax.Array  # [] int32


def play_queue(
    config: Config, step: Callable[[Play], Play], games: Games
) -> tuple[Decisions, jax.Array]:
    """Play a queue of games [N] in the lanes; return the same as `play_to_the_end`."""
    queue = make_queue(config, games)
    lanes = config.lanes(len(games.ply))
    head = jnp.minimum(too_long(queue, config.lane_steps), len(games.ply) - lanes)
    first = jax.tree.map(
        partial(jax.lax.dynamic_slice_in_dim, start_index=head, slice_size=lanes), queue.games
    )
    play = start_lanes(config, first)
    margins = jnp.zeros(len(games.ply), jnp.int32)

    def refill_and_step(carry: tuple[Play, Queue, jax.Array], _: None) -> tuple:
        play, queue, margins = carry
        margins = note_margins(config, play.games, margins)
        lanes, queue = refill(config, play, queue)
        return (step(play._replace(games=lanes)), queue, margins), None

    begin = play, queue._replace(next=head + lanes), margins
    (play, _, margins), _ = jax.lax.scan(refill_and_step, begin, None, config.lane_steps)
    # A game that was cut because nearly all were too long has no result: it counts as not played.
    ended = has_ended(positions_to_search(config, play.games))
    kept = play.decisions.played & (ended[None] | (play.decisions.game != play.games.number[None]))
    return play.decisions._replace(played=kept), note_margins(config, play.games, margins)


def make_queue(config: Config, games: Games) -> Queue:
    """Sort games [N] by their most decisions, longest first: short games fill the last steps."""
    position = positions_to_search(config, games)
    open_edges = jnp.sum(~position.drawn, axis=1, dtype=jnp.int32)
    game = config.game.board
    open_boxes = game.num_boxes - jax.vmap(partial(boxes_closed, game))(position.drawn)
    # As `most_decisions`, for the open part of the board.
    longest = open_edges - open_boxes + open_boxes // 4
    order = jnp.argsort(-longest)
    games, longest = jax.tree.map(lambda x: x[order], (games, longest))
    numbered = games._replace(number=jnp.arange(len(order), dtype=jnp.int32))
    return Queue(numbered, longest, jnp.int32(0))


def refill(config: Config, play: Play, queue: Queue) -> tuple[Games, Queue]:
    """Refill finished lanes with the next games that are certain to end in the remaining steps."""
    over = has_ended(positions_to_search(config, play.games))
    head = jnp.maximum(queue.next, too_long(queue, config.lane_steps - play.step))
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
