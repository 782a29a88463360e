"""Search in the quiet game: nodes are quiet positions, moves are safe edges and openings.

What a move opens is given out on the way to the next node by what the evaluation says about it,
so that no simulation is spent on taking free boxes.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.agent.network import IMPOSSIBLE
from jaxzero.game import DotsAndBoxes, State, is_over
from jaxzero.game.closing import captured, declines, open_up, settle
from jaxzero.game.quiet import equivalence, fold
from jaxzero.game.structure import Structure

TINY = 1e-30  # a prior below it is none; keeps the logarithm finite


class Opened(NamedTuple):
    """What a move from a quiet position of one game leads to, before the boxes are given out."""

    facing: State  # the position after the move, the other side to move
    found: Structure  # its structure, with the next quiet position


class Transition(NamedTuple):
    """One move of one game as the search sees it."""

    state: State
    reward: jax.Array  # [] float32, utility gained by the mover
    discount: jax.Array  # [] float32, -1, 0 or 1


def open_move(game: DotsAndBoxes, state: State, edge: jax.Array) -> Opened:
    """Draw `edge` in a quiet position of one game."""
    return Opened(*open_up(game, state, edge))


def next_quiet(opened: Opened) -> State:
    """Return the next quiet position as the side that faces the free boxes would have it.

    It is what to evaluate, as only its edges count; margin and player are those of taking all.
    """
    return settle(opened.facing, opened.found, jnp.asarray(False))


def close_move(game: DotsAndBoxes, opened: Opened, value: jax.Array) -> Transition:
    """Give out the free boxes of one game, given the `value` [] of the next quiet position.

    The value is that for its side to move, in boxes by the boxes on the board.
    """
    decline = declines(opened.found, value * game.num_boxes)
    state = settle(opened.facing, opened.found, decline)
    sign = jnp.where(decline, 1.0, -1.0)
    return Transition(
        state=state,
        reward=-captured(opened.found, decline) / game.num_boxes,
        discount=jnp.where(is_over(state), 0.0, sign),
    )


def quiet_priors(
    game: DotsAndBoxes, found: Structure, prior_logits: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Fold the priors of one quiet position: logits [A] float32 of its moves, and the moves [A].

    Edges that are one move count together.
    """
    same = equivalence(game, found)
    together = fold(same, jax.nn.softmax(prior_logits))
    logits = jnp.where(same.moves, jnp.log(jnp.maximum(together, TINY)), IMPOSSIBLE)
    return logits, same.moves
