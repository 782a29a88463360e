"""Choose edges in any position by deciding in the searched position that stands for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State, is_over
from jaxzero.network.network import Network, expected_margin
from jaxzero.search.rounds import Rounds
from jaxzero.search.search import PositionEvaluator, game_of, search


class Choice(NamedTuple):
    """Choices in a batch of positions."""

    edge: jax.Array  # [B] int32, the edge to draw
    value: jax.Array | None = None  # [B] float32, remaining margin of the side to move, in boxes
    # The choices for the quiet positions, which hold until this edge is drawn or the turn passes.
    quiet: Choice | None = None


Pick = Callable[[jax.Array], jax.Array]  # logits of the moves [B, A] to moves [B] int32
Chooser = Callable[[State, chex.ArrayTree], Choice]  # (searched positions [B], their views [B])


def choose(board: DotsAndBoxes, settings: SearchConfig, chooser: Chooser, state: State) -> Choice:
    """Choose an edge in every position of a batch (State [B]), with or without free boxes."""
    chex.assert_shape(state.drawn, (None, board.num_edges), custom_message="state.drawn")
    rules = game_of(settings)
    view = jax.vmap(partial(rules.view, board))(state.drawn)
    searched = jax.vmap(rules.searched)(state, view)
    move, value, _ = chooser(searched, view)
    value = jnp.where(is_over(searched), 0.0, value)
    edge = jax.vmap(partial(rules.edge_to_draw, board))(state.drawn, view, value, move)
    quiet = Choice(move, value) if settings.nodes == "quiet" else None
    return Choice(edge, jax.vmap(rules.total)(view, value, value), quiet)


def by_search(
    board: DotsAndBoxes,
    settings: SearchConfig,
    evaluator: PositionEvaluator,
    params: chex.ArrayTree,
    rounds: Rounds,
    pick: Pick | None = None,
) -> Chooser:
    """Return a chooser by search without noise; `pick` chooses a move from the search policy."""
    key = jax.random.key(0)  # unused: no noise

    def chooser(state: State, view: chex.ArrayTree) -> Choice:
        found = search(
            board, settings, evaluator, params, key, state, rounds, view=view, gumbel_scale=0.0
        )
        move = found.edge if pick is None else pick(jnp.log(found.policy))
        return Choice(move, found.value * board.num_boxes)

    return chooser


def by_policy(
    network: Network, settings: SearchConfig, params: chex.ArrayTree, pick: Pick | None = None
) -> Chooser:
    """Return a chooser by the network without search: the likeliest move, or that of `pick`."""
    board, rules = network.board, game_of(settings)

    def chooser(state: State, view: chex.ArrayTree) -> Choice:
        found = jax.vmap(rules.structure_of_searched)(view)
        prediction = network.apply(params, state.drawn, found)
        logits = jax.vmap(partial(rules.prior, board))(view, prediction.policy_logits)
        move = jnp.argmax(logits, axis=-1).astype(jnp.int32) if pick is None else pick(logits)
        return Choice(move, expected_margin(board, prediction))

    return chooser
