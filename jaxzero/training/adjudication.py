"""Adjudication: the exact solver ends games early, as tablebases do in chess.

The setting `selfplay.solver_below_edges` turns it on; at 0, the default, games are played to their
end. Self-play calls `has_ended`, `ends_of` and `label`, the iteration calls `store`, and the host
runs `adjudicator`. Also, openings leave more edges undrawn (`openings`), and a stopped game stays
where it is (`selfplay.play_step`).

The cores of the host solve while the device plays on. Iteration i hands over the positions at which
its games stopped. The host solves them during iteration i + 1. Iteration i + 2 takes the answers:
it writes the margins of iteration i, which were unknown so far, into the replay. It also adds the
solved positions themselves, with the best moves as policy.

When a run stops and resumes, the margins of its last two iterations stay unknown.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import Config
from jaxzero.game import State, boxes_closed
from jaxzero.game.quiet import FreeBoxes, declines, whole_value
from jaxzero.training import targets
from jaxzero.training.games import Games, first_player_margin
from jaxzero.training.replay import Replay, add, relabel
from jaxzero.training.targets import (
    Decisions,
    Positions,
    possible_margin,
    resample,
    result_metrics,
    safe_ends,
    totals,
)

OF_ENDS = tuple(
    f"selfplay/{name}"
    for name in ("first_margin", "first_wins", "draws", "adjudicated", "unsolved")
)


class Stops(NamedTuple):
    """Where N games stopped; `ahead` and `player` are as before any free box is taken."""

    drawn: jax.Array  # [N, A] bool, with all free boxes taken; all drawn: over or never begun
    ahead: jax.Array  # [N] int32, boxes of the first player minus those of the second
    player: jax.Array  # [N] int32, side to move
    free: FreeBoxes  # [N]


class Postponed(NamedTuple):
    """Unknown margins of P stored positions; each is slope * result of the game + offset."""

    game: jax.Array  # [P] int32
    slope: jax.Array  # [P] float32, 0 if the target comes from searches alone
    offset: jax.Array  # [P] float32
    known: jax.Array  # [P] bool, the margin is known once the result is
    left: jax.Array  # [P] int32, boxes not closed yet


# Final margins of the first player [N] int32 if games are played to their end, else `Stops`.
Ends = jax.Array | Stops


class Waiting(NamedTuple):
    """The results that the positions of one iteration wait for."""

    postponed: Postponed | None  # [P]; None: results are known at once
    ends: Ends  # [N]
    begun: jax.Array  # [N] bool, the game was played


class Answers(NamedTuple):
    """Answers of the solver for N games: K positions of each; the game stopped at position 0."""

    drawn: jax.Array  # [N, K, A] bool, quiet positions
    best: jax.Array  # [N, K, A] bool, all moves that keep the value
    value: jax.Array  # [N, K] int32, margin of the side to move, in boxes
    solved: jax.Array  # [N, K] bool, solved within the node limit


class Adjudication(NamedTuple):
    """Games of one device that wait for the solver; the host puts the answers here."""

    older: Waiting  # from two iterations ago; `answers` belong to it
    newer: Waiting  # from the last iteration
    answers: Answers


def has_ended(config: Config, position: State) -> jax.Array:
    """Return whether games [B] end at the positions that are searched next: [B] bool.

    A game ends when it is over or has few enough edges left (`selfplay.solver_below_edges`).
    """
    return jnp.sum(~position.drawn, axis=-1) <= config.selfplay.solver_below_edges


def ends_of(config: Config, position: State, games: Games) -> Ends:
    """Return how games [B] end at the positions that are searched next."""
    if not config.selfplay.solver_below_edges:
        return first_player_margin(position)
    ahead = first_player_margin(games.state)
    free = FreeBoxes(games.view.taken, games.view.declined)
    return Stops(position.drawn, ahead, games.state.player, free)


def no_ends(config: Config, games: int) -> Ends:
    """Return the ends of `games` games before any of them has begun."""
    zeros = jnp.zeros(games, jnp.int32)
    if not config.selfplay.solver_below_edges:
        return zeros
    drawn = jnp.ones((games, config.game.board.num_edges), bool)
    return Stops(drawn, zeros, zeros, FreeBoxes(zeros, zeros))


def label(
    config: Config, decisions: Decisions, ends: Ends, begun: jax.Array, key: jax.Array
) -> tuple[tuple[Positions, Postponed | None], dict[str, jax.Array]]:
    """Return all decisions [T * B] as positions, their postponed margins, and metrics."""
    if config.selfplay.solver_below_edges:
        return postpone(config, decisions, len(begun)), {}
    metrics = result_metrics(ends, begun, jnp.sum(begun))
    return (targets.label(config, decisions, ends, key), None), metrics


def init_adjudication(config: Config, games: int) -> Adjudication | None:
    """Return the initial state of a device with `games` games; None without adjudication."""
    if not config.selfplay.solver_below_edges:
        return None
    count = config.positions_per_game * games
    whole, real = jnp.zeros(count, jnp.int32), jnp.zeros(count, jnp.float32)
    postponed = Postponed(whole, real, real, jnp.zeros(count, bool), whole)
    waiting = Waiting(postponed, no_ends(config, games), jnp.zeros(games, bool))
    answers = jax.tree.map(jnp.asarray, no_answers(config, games))
    return Adjudication(waiting, waiting, answers)


def no_answers(config: Config, games: int) -> Answers:
    """Return NumPy answers for `games` games, with no position solved."""
    rows, edges = (games, config.solver_positions_per_game), config.game.board.num_edges
    boards = np.zeros((2, *rows, edges), bool)
    return Answers(*boards, np.zeros(rows, np.int32), np.zeros(rows, bool))


def postpone(config: Config, decisions: Decisions, games: int) -> tuple[Positions, Postponed]:
    """Return all decisions [T * B] as positions without margins, and the postponed margins."""
    # The target is a linear function of the result: its values at 0 and 1 determine it.
    two = jnp.array([[0], [1]]).repeat(games, axis=1)
    target, known = jax.vmap(partial(totals, config.selfplay, decisions))(two)
    sign = jnp.where(decisions.player == 0, 1.0, -1.0)
    closed = jax.vmap(jax.vmap(partial(boxes_closed, config.game.board)))(decisions.drawn)
    postponed = Postponed(
        game=decisions.game,
        slope=sign * (target[1] - target[0]),
        offset=sign * (target[0] - decisions.ahead),
        known=known[0],
        left=config.game.board.num_boxes - closed,
    )
    nothing = jnp.zeros(decisions.game.shape, jnp.int32)
    no, safe_end = nothing > 0, safe_ends(config, decisions)
    positions = Positions(decisions.drawn, decisions.policy, nothing, no, no, safe_end)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (positions, postponed))


def store(
    config: Config,
    replay: Replay,
    state: Adjudication | None,
    positions: Positions,
    waiting: Waiting,
    key: jax.Array,
) -> tuple[Replay, Adjudication | None, dict[str, jax.Array]]:
    """Add the positions of an iteration to the replay; return replay, state and metrics.

    Also take the answers for the games of two iterations ago: write their margins into the replay
    and add their solved positions [N * K].
    """
    if state is None:
        return add(replay, positions), None, {}
    # Keys 0 and 1 of the split belong to self-play and learning.
    uniform_key, offset_key = jax.random.split(jax.random.fold_in(key, 2))
    newer, (due, stops, begun), answers = waiting, state.older, state.answers
    result, known = results(stops, answers), answers.solved[:, 0]
    uniform = jax.random.uniform(uniform_key, due.left.shape)
    to_come = due.slope * result[due.game] + due.offset
    replay = relabel(
        replay,
        2 * config.positions_per_iteration * len(begun) // config.selfplay.games_per_iteration,
        possible_margin(to_come, due.left, uniform),
        due.known & (known[due.game] | (due.slope == 0)),
    )
    stopped = begun & ~jnp.all(stops.drawn, axis=-1)
    count = jnp.maximum(1, jnp.sum(begun))
    counted = begun & known
    metrics = result_metrics(result, counted, jnp.maximum(1, jnp.sum(counted))) | {
        "selfplay/adjudicated": jnp.sum(stopped & known) / count,
        "selfplay/unsolved": jnp.sum(stopped & ~known) / count,
        "selfplay/solved": jnp.sum(_usable(answers)),
    }
    solved = solved_positions(config, answers, jax.random.uniform(offset_key))
    positions = jax.tree.map(lambda *x: jnp.concatenate(x), positions, solved)
    return add(replay, positions), state._replace(older=state.newer, newer=newer), metrics


def results(stops: Stops, answers: Answers) -> jax.Array:
    """Return the first player's final margins [N] int32; valid where position 0 is solved."""
    value = answers.value[:, 0]
    to_come = whole_value(stops.free, value, declines(stops.free, value))
    return stops.ahead + jnp.where(stops.player == 0, to_come, -to_come)


def solved_positions(config: Config, answers: Answers, offset: jax.Array) -> Positions:
    """Return answers [N, K] as positions [N * K]; copies of usable ones replace all others.

    If no answer is usable, the positions have no policy and no known margin.
    """
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), answers)
    usable = _usable(flat)
    best = flat.best & usable[:, None]
    several = jnp.sum(best, axis=-1) > 1
    safe_end = jnp.full_like(flat.value, -1) if config.network.safe_end else ()
    policy = best.astype(jnp.float32)
    positions = Positions(flat.drawn, policy, flat.value, usable, several, safe_end)
    return resample(positions, usable, len(usable), offset)


def _usable(answers: Answers) -> jax.Array:
    """Return which answers have a position that is solved and not over: [..., K] bool."""
    return answers.solved & jnp.any(answers.best, axis=-1)
