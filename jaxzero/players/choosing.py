"""Choose edges with a network, with or without search.

Any position is decided in the searched position that stands for it. Requests for positions need few
compiled programs: one program searches a single position with up to `MOST` simulations; many
positions are searched in batches of two sizes. Finished games fill the last batch, because they
take no simulations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State, is_over
from jaxzero.host import programs
from jaxzero.network.network import Agent, Network, expected_margin, inference_copy
from jaxzero.search.rounds import Rounds, padded_rounds
from jaxzero.search.search import PositionEvaluator, game_of, network_evaluator, search
from jaxzero.search.tree import ROOT

# Least room for simulations in the program for one position: a few MiB, and no extra time.
MOST = 4096
MAX_OF_MANY = 64  # the same for a batch; its trees take more memory
BATCHES = (16, 256)  # positions
# Most simulations in a large batch: its 256 trees take 260 MiB on 5x5.
MAX_OF_LARGE = 1024


class Choice(NamedTuple):
    """Choices in a batch of positions."""

    edge: jax.Array  # [B] int32, the edge to draw
    value: jax.Array | None = None  # [B] float32, remaining margin of the side to move, in boxes
    # The choices for the quiet positions, which hold until this edge is drawn or the turn passes.
    quiet: Choice | None = None


class SearchOutput(NamedTuple):
    """The result of a search of one position."""

    edge: jax.Array  # [] int32, the edge to draw
    value: jax.Array  # [] float32, boxes still to come, side to move
    policy: jax.Array  # [A] float32, over the moves of the searched position
    visits: jax.Array  # [A] int32, visits of these moves
    values: jax.Array  # [A] float32, values of these moves, boxes


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


# Requested positions


def think(agent: Agent, drawn: np.ndarray, simulations: int) -> SearchOutput:
    """Search one position [A] bool: NumPy arrays. The first call for a network compiles."""
    agent, rounds = with_rounds(agent, simulations, MOST)
    return SearchOutput(*call(_think, agent, drawn, rounds))


def with_rounds(agent: Agent, simulations: int, least: int) -> tuple[Agent, tuple]:
    """Return an agent whose program has room for the simulations, and their rounds as data."""
    # Room for `least` or the next power of two, so that few programs are compiled.
    most = max(least, 1 << (simulations - 1).bit_length())
    settings = replace(agent.settings, simulations=most)
    return replace(agent, settings=settings), tuple(padded_rounds(settings, simulations))


def _think(
    network: Network,
    settings: SearchConfig,
    params: chex.ArrayTree,
    drawn: jax.Array,
    rounds: tuple[jax.Array, ...],
) -> SearchOutput:
    board, evaluator, seen = network.board, network_evaluator(network), []
    params = inference_copy(network, params, 1)
    known, key = Rounds(*rounds), jax.random.key(0)  # unused: no noise

    def chooser(state: State, view: chex.ArrayTree) -> Choice:
        seen.append(
            search(
                board, settings, evaluator, params, key, state, known, view=view, gumbel_scale=0.0
            )
        )
        return Choice(seen[0].edge, seen[0].value * board.num_boxes)

    zero = jnp.zeros(1, jnp.int32)
    choice = choose(board, settings, chooser, State(drawn[None], zero, zero))
    (found,) = seen
    values = found.tree.moves.values[0, ROOT] * board.num_boxes
    return SearchOutput(choice.edge[0], choice.value[0], found.policy[0], found.visits[0], values)


def choose_many(
    agent: Agent, drawn: np.ndarray, simulations: int, noise: np.ndarray | None = None
) -> Choice:
    """Choose edges in positions [B, A] bool: NumPy [B]; 0 simulations: no search.

    Without search, `noise` [A] is added to the policy logits of every position.
    """
    if simulations:
        agent, rounds = with_rounds(agent, simulations, MAX_OF_MANY)
        added = ()
    else:
        # Default settings but `nodes`: agents that differ in the others share a program.
        agent, rounds = replace(agent, settings=SearchConfig(nodes=agent.settings.nodes)), ()
        added = (np.zeros(drawn.shape[1], np.float32) if noise is None else noise,)
    size = BATCHES[len(drawn) > BATCHES[0] and simulations <= MAX_OF_LARGE]
    if len(drawn) == 1 and not simulations:
        size = 1
    parts = []
    for begin in range(0, len(drawn), size):
        rows = drawn[begin : begin + size]
        padded = np.ones((size, drawn.shape[1]), bool)
        padded[: len(rows)] = rows
        choice = call(_choose_many, agent, padded, rounds, *added)
        parts.append([field[: len(rows)] for field in choice])
    return Choice(*map(np.concatenate, zip(*parts, strict=True)))


def _choose_many(
    network: Network,
    settings: SearchConfig,
    params: chex.ArrayTree,
    drawn: jax.Array,
    rounds: tuple[jax.Array, ...],
    noise: jax.Array | None = None,
) -> Choice:
    def pick(logits: jax.Array) -> jax.Array:
        return jnp.argmax(logits + noise[None], axis=-1).astype(jnp.int32)

    params = inference_copy(network, params, len(drawn))
    chooser = by_policy(network, settings, params, pick)
    if rounds:
        evaluator, known = network_evaluator(network), Rounds(*rounds)
        chooser = by_search(network.board, settings, evaluator, params, known)
    zeros = jnp.zeros(len(drawn), jnp.int32)
    return choose(network.board, settings, chooser, State(drawn, zeros, zeros))[:2]


def call(function: Callable, agent: Agent, *inputs: Any) -> Any:
    """Return the NumPy arrays of `function(network, settings, params, *inputs)`, a tuple."""
    bound = partial(function, agent.network, agent.settings)
    return programs.call(agent.network.board, bound, agent.params, *inputs)
