"""Choose edges with a network, with or without search.

All users (players, API, analysis, evaluation) call one traced function, `answer`. Its compiled
programs differ in the batch (1, 16 or 512 positions) and in whether they search. The rounds of a
search are data, so one program serves all numbers of simulations up to `room`. Finished games fill
a batch, because they take no simulations.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import SearchConfig
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, State, is_over
from jaxzero.host import programs
from jaxzero.network.network import Agent, Network, inference_copy
from jaxzero.runs.memory import mebibytes, memory_limit_bytes
from jaxzero.search.interface import PositionEvaluator, SearchResult
from jaxzero.search.rounds import Rounds, padded_rounds
from jaxzero.search.search import game_of, network_evaluator, search

BATCHES = (1, 16, 512)  # positions of a program
# Positions that take the largest batch, by searches or not. A search evaluates only what is used,
# and matches of 32 games (16 decide at once) then share the program of the suites.
MIN_OF_LARGE = {True: 16, False: 129}
# Simulations that a program has room for, at least: a few MiB, and no extra time.
MIN_ROOM = {1: 4096, 16: 64, 512: 64}
BYTES_PER_EDGE = 4 * 4  # of a node: child, logit, visits, Q-value
MAX_ROOM = 99_999  # as `search.simulations`
# Simulations in the largest batch, at most: its trees take 0.5 GiB on 5x5.
MAX_OF_LARGE = 1024


class Choice(NamedTuple):
    """Choices in a batch of positions."""

    edge: jax.Array  # [B] int32, the edge to draw
    value: jax.Array | None = None  # [B] float32, remaining margin of the side to move, in boxes
    # The choices for the quiet positions, which hold until this edge is drawn or the turn passes.
    quiet: Choice | None = None


class Answer(NamedTuple):
    """The answer of a network to a batch of positions; of `choose_edge` without the axis B.

    Actions are those of the searched position (`search/interface.py`).
    """

    edge: jax.Array  # [B] int32, the edge to draw
    value: jax.Array  # [B] float32, remaining margin of the side to move, in boxes
    action: jax.Array  # [B] int32, the best action
    searched_value: jax.Array  # [B] float32, remaining margin of the searched position, in boxes
    policy: jax.Array  # [B, A] float32, over the actions
    visits: jax.Array  # [B, A] int32, of the actions; 0 without search
    qvalues: jax.Array  # [B, A] float32, of the actions, in boxes; 0 without search


def choose_edge(agent: Agent, drawn: np.ndarray, simulations: int) -> Answer:
    """Answer one position [A] bool: NumPy arrays. The first call for a network compiles."""
    return Answer(*(field[0] for field in choose_edges(agent, drawn[None], simulations)))


def choose_edges(
    agent: Agent, drawn: np.ndarray, simulations: int, noise: np.ndarray | None = None
) -> Answer:
    """Answer positions [B, A] bool: NumPy arrays; 0 simulations: no search.

    With Gumbel `noise` [B, A] the actions are samples of the policy.
    """
    searches, answers = simulations > 0, []
    noise = np.zeros(drawn.shape, np.float32) if noise is None else noise
    large = len(drawn) >= MIN_OF_LARGE[searches] and simulations <= MAX_OF_LARGE
    size = BATCHES[2] if large else BATCHES[len(drawn) > 1]
    settings, rounds = settings_of(agent.settings, simulations, room_for(simulations, size))
    for begin in range(0, len(drawn), size):
        rows = slice(begin, begin + size)
        missing = ((0, size - len(drawn[rows])), (0, 0))
        batch = np.pad(drawn[rows], missing, constant_values=True)
        answer = call(
            _answer, replace(agent, settings=settings), batch, np.pad(noise[rows], missing), rounds
        )
        answers.append([field[: len(drawn[rows])] for field in answer])
    return Answer(*map(np.concatenate, zip(*answers, strict=True)))


def settings_of(settings: SearchConfig, simulations: int, room: int) -> tuple[SearchConfig, tuple]:
    """Return the settings of a program with room for the simulations, and their rounds as data."""
    if not simulations:
        # Default settings but `nodes`: agents that differ in the others share a program.
        return SearchConfig(nodes=settings.nodes), ()
    settings = replace(settings, simulations=room)
    return settings, tuple(padded_rounds(settings, simulations))


def room_for(simulations: int, size: int) -> int:
    """Return the simulations that a program for `size` positions has room for.

    It is at least the next power of two, so that few programs are compiled.
    """
    return min(max(MIN_ROOM[size], 1 << max(simulations - 1, 0).bit_length()), MAX_ROOM)


def check_search_memory(board: DotsAndBoxes, simulations: int) -> None:
    """Raise an InputError if the trees of a batch of searches do not fit in the memory."""
    size = BATCHES[2] if simulations <= MAX_OF_LARGE else BATCHES[1]
    needed = size * room_for(simulations, size) * board.num_edges * BYTES_PER_EDGE
    limit = memory_limit_bytes(jax.local_devices()[:1])
    if limit is not None and needed > limit:
        raise InputError(
            f"simulations: {simulations} take {mebibytes(needed)} for {size} positions at once, "
            f"the device has {mebibytes(limit)}: lower it"
        )


def call(function: Any, agent: Agent, *inputs: Any) -> Any:
    """Return the NumPy arrays of `function(network, settings, params, *inputs)`, a tuple."""
    bound = partial(function, agent.network, agent.settings)
    return programs.call(agent.network.board, bound, agent.params, *inputs)


def _answer(
    network: Network,
    settings: SearchConfig,
    params: chex.ArrayTree,
    drawn: jax.Array,
    noise: jax.Array,
    rounds: tuple[jax.Array, ...],
) -> Answer:
    params = inference_copy(network, params, len(drawn))
    evaluator = network_evaluator(network, params)
    return answer(network.board, settings, evaluator, drawn, noise, rounds)


def answer(
    board: DotsAndBoxes,
    settings: SearchConfig,
    evaluator: PositionEvaluator,
    drawn: jax.Array,
    noise: jax.Array,
    rounds: tuple[jax.Array, ...],
) -> Answer:
    """Answer positions [B, A] by a search with `rounds`, or without rounds by the evaluator alone.

    With `noise` [B, A] the action has the largest sum of log-policy and noise.
    """
    chex.assert_shape([drawn, noise], (None, board.num_edges), custom_message="drawn and noise")
    rules, zeros = game_of(settings), jnp.zeros(len(drawn), jnp.int32)
    state = State(drawn, zeros, zeros)
    structure = jax.vmap(partial(rules.find_structure, board))(drawn)
    position = jax.vmap(rules.searched)(state, structure)
    if rounds:
        key = jax.random.key(0)  # unused: no noise at the root
        result = search(
            board,
            settings,
            evaluator,
            key,
            position,
            rounds=Rounds(*rounds),
            structure=structure,
            gumbel_scale=0.0,
        )
    else:
        result = without_search(board, settings, evaluator, position, structure)
    sampled = jnp.argmax(jnp.log(result.policy) + noise, axis=-1).astype(jnp.int32)
    action = jnp.where(jnp.any(noise != 0, axis=-1), sampled, result.action)
    value = jnp.where(is_over(position), 0.0, result.value * board.num_boxes)
    edge_to_draw = jax.vmap(partial(rules.edge_to_draw, board))
    return Answer(
        edge=edge_to_draw(drawn, structure, value, action),
        value=jax.vmap(rules.total)(structure, value, value),
        action=action,
        searched_value=value,
        policy=result.policy,
        visits=result.visits,
        qvalues=result.qvalues * board.num_boxes,
    )


def without_search(
    board: DotsAndBoxes,
    settings: SearchConfig,
    evaluator: PositionEvaluator,
    position: State,
    structure: chex.ArrayTree,
) -> SearchResult:
    """Return the evaluation of searched positions [B] as the result of a search without visits."""
    rules = game_of(settings)
    of_searched = rules.structure_of_searched(structure)
    evaluation = evaluator.evaluate(position, of_searched)
    logits = jax.vmap(partial(rules.prior, board))(structure, evaluation.prior_logits)
    policy = jax.nn.softmax(logits)
    return SearchResult(
        action=jnp.argmax(logits, axis=-1).astype(jnp.int32),
        policy=policy,
        value=evaluation.value,
        visits=jnp.zeros(logits.shape, jnp.int32),
        prior=policy,
        qvalues=jnp.zeros_like(logits),
        evaluations=jnp.ones(len(logits), jnp.int32),
    )
