"""Look at one position: its structure, the opinion of the network, lines of play."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State, boxes_closed, is_over
from jaxzero.game.quiet import equivalence
from jaxzero.game.structure import Structure, find_structure
from jaxzero.heads import margin_bins
from jaxzero.host.programs import call
from jaxzero.network.network import (
    Agent,
    Network,
    expected_margin,
    inference_copy,
    margin_probabilities,
)
from jaxzero.players.network_player import call as call_network
from jaxzero.players.network_player import choose_edge
from jaxzero.search.search import game_of
from jaxzero.solver import small

LINE = 12  # most edges of a principal variation


class PositionEvaluation(NamedTuple):
    """One evaluation by the network of a position and of all positions one edge later."""

    prior: jax.Array  # [A] float32
    values: jax.Array  # [A] float32, boxes still to come after each edge, side to move
    value: jax.Array  # [] float32, boxes still to come, side to move
    margins: jax.Array  # [M] float32, possible values of the remaining margin, boxes
    chances: jax.Array  # [M] float32, probabilities of `margins`


def structure_of(board: DotsAndBoxes, drawn: np.ndarray) -> Structure:
    """Return the structure of one position [A] bool as NumPy arrays."""
    return Structure(*call(board, partial(find_structure, board), drawn))


def moves_of(board: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return the move of the quiet game for each edge of a quiet position: [A] int32.

    Drawn edges get -1. The outer edges of a chain of two get -1 too: its middle edge is better.
    """
    return call(board, partial(_moves, board), drawn)[0]


def look_at(agent: Agent, drawn: np.ndarray) -> PositionEvaluation:
    """Evaluate one position [A] bool and all positions one edge later: NumPy arrays."""
    return PositionEvaluation(*call_network(_look, agent, drawn))


def line_of_play(
    agent: Agent, drawn: np.ndarray, first: int | None = None, edges: int = LINE
) -> tuple[int, ...]:
    """Return a line of up to `edges`: `first`, then the network's choices for both sides."""
    drawn, line = drawn.copy(), []
    while len(line) < edges and not drawn.all():
        edge = first
        if line or first is None:
            edge = int(choose_edge(agent, drawn, simulations=0).edge)
        line.append(edge)
        drawn[edge] = True
    return tuple(line)


def exact_line(
    board: DotsAndBoxes, drawn: np.ndarray, first: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the edges `first` and perfect play to the end after them, where few edges are left."""
    line, drawn = [*first], drawn.copy()
    drawn[line] = True
    while not drawn.all():
        line.append(int(small.small_values(board, drawn).argmax()))
        drawn[line[-1]] = True
    return tuple(line)


def prepare(agent: Agent) -> None:
    """Compile the programs of the functions above."""
    board = agent.network.board
    for look in (
        partial(choose_edge, agent, simulations=1),  # first, because players use it too
        partial(structure_of, board),
        partial(moves_of, board),
        partial(look_at, agent),
        partial(line_of_play, agent, edges=1),
    ):
        look(np.zeros(board.num_edges, bool))


def _moves(board: DotsAndBoxes, drawn: jax.Array) -> tuple[jax.Array]:
    same = equivalence(board, find_structure(board, drawn))
    return (jnp.where(same.as_good, same.canonical, -1),)


def _look(
    network: Network, settings: SearchConfig, params: chex.ArrayTree, drawn: jax.Array
) -> PositionEvaluation:
    """Evaluate one position and the positions after each of its edges in one batch of A + 1."""
    board, rules = network.board, game_of(settings)
    boards = drawn[None] | jnp.eye(board.num_edges + 1, board.num_edges, -1, dtype=bool)
    zeros = jnp.zeros(len(boards), jnp.int32)
    structure = jax.vmap(partial(rules.find_structure, board))(boards)
    searched = jax.vmap(rules.searched)(State(boards, zeros, zeros), structure)
    prepared = inference_copy(network, params, len(boards))
    prediction = network.apply(prepared, searched.drawn, rules.structure_of_searched(structure))
    value = jnp.where(is_over(searched), 0.0, expected_margin(board, prediction))
    whole = jax.vmap(rules.total)(structure, value, value)
    closed = jax.vmap(partial(boxes_closed, board))(boards)
    closed = closed[1:] - closed[0]
    values = closed + jnp.where(closed > 0, whole[1:], -whole[1:])
    own = jax.tree.map(lambda field: field[0], structure)
    logits = rules.prior(board, own, prediction.policy_logits[0])
    bins = jax.vmap(partial(rules.total, own, value[0]))(margin_bins(board).astype(jnp.float32))
    return PositionEvaluation(
        prior=rules.target(board, own, jax.nn.softmax(logits)),
        values=jnp.where(drawn, -jnp.inf, values),
        value=whole[0],
        margins=bins,
        chances=margin_probabilities(prediction)[0],
    )
