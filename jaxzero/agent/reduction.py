"""Search in the quiet game: nodes are quiet positions, moves are safe edges and openings.

What a move opens is given out on the way to the next node by what the search knows of that node,
so that no simulation is spent on taking free boxes. When the search changes its mind about the
node, it decides anew.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.agent.network import IMPOSSIBLE
from jaxzero.game import DotsAndBoxes, State, is_over
from jaxzero.game.closing import FreeBoxes, captured, declines, free_boxes, open_up, settle
from jaxzero.game.quiet import equivalence, fold
from jaxzero.game.structure import Structure

TINY = 1e-30  # a prior below it is none; keeps the logarithm finite


class QuietNode(NamedTuple):
    """A quiet position of one game in the tree, and the free boxes on the way to it."""

    state: State  # margin and player are those of taking all; the search reads edges only
    free: FreeBoxes


class Reply(NamedTuple):
    """What the opponent makes of the free boxes that a move gave away, seen by the mover."""

    reward: jax.Array  # [] float32, utility gained by the mover
    discount: jax.Array  # [] float32, 1: the mover moves again, -1: the opponent, 0: the end


def open_move(game: DotsAndBoxes, state: State, edge: jax.Array) -> tuple[QuietNode, Structure]:
    """Draw `edge` in a quiet position of one game.

    Returns the next quiet position and the structure of the position before it.
    """
    facing, found = open_up(game, state, edge)
    return QuietNode(settle(facing, found, jnp.asarray(False)), free_boxes(found)), found


def best_reply(game: DotsAndBoxes, node: QuietNode, value: jax.Array) -> Reply:
    """Let the opponent take or decline the free boxes before `node`, whichever is worth more.

    `value` [] is that of `node` for its side to move, in boxes by the boxes on the board. The move
    is then worth -(cnt + V), or where s of the cnt free boxes can be declined -(cnt - s + |V + s|).
    """
    decline = declines(node.free, value * game.num_boxes)
    sign = jnp.where(decline, 1.0, -1.0)
    return Reply(
        reward=-captured(node.free, decline) / game.num_boxes,
        discount=jnp.where(is_over(node.state), 0.0, sign),
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
