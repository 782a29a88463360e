"""The tree search of a batch of games, with the nodes of the settings."""

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State, is_over
from jaxzero.game.structure import Structure
from jaxzero.network.network import Network, evaluate_some, expected_margin
from jaxzero.network.parts import SIZES
from jaxzero.search import plain_game, quiet_game
from jaxzero.search.mctx_search import search_by_mctx
from jaxzero.search.rounds import Problem, Rounds, SearchResult, rounds_of, search_by_rounds
from jaxzero.search.tree import Expanded, Root


class Evaluation(NamedTuple):
    """Prior and value of a batch of positions, for the side to move."""

    prior_logits: jax.Array  # [B, A] float32, illegal edges hugely negative
    value: jax.Array  # [B] float32, utility still to come, -1 to 1


class PositionEvaluator(NamedTuple):
    """How positions are evaluated, and where: the search suits the platform too."""

    # (params, State [B], their structure [B], or None: not known)
    evaluate: Callable[[chex.ArrayTree, State, Structure | None], Evaluation]
    platform: str  # "cpu" or "gpu"


def game_of(settings: SearchConfig) -> ModuleType:
    """Return the module that defines which positions are nodes."""
    return quiet_game if settings.nodes == "quiet" else plain_game


def network_evaluator(network: Network) -> PositionEvaluator:
    """Return an evaluator; its value is the expected margin divided by the boxes of the board."""
    board = network.board

    def evaluate(params: chex.ArrayTree, state: State, found: Structure | None) -> Evaluation:
        needed, sizes = ~is_over(state), SIZES[network.platform].sizes
        # A CPU divides large batches before, in `rounds`; a GPU evaluates small ones at once.
        if len(needed) <= max(sizes) if network.platform == "cpu" else len(needed) > min(sizes):
            prediction = evaluate_some(network, params, state.drawn, found, needed)
        else:
            prediction = network.apply(params, state.drawn, found)
        value = expected_margin(board, prediction) / board.num_boxes
        # Nothing is left to win once the game is over.
        return Evaluation(prediction.policy_logits, jnp.where(needed, value, 0.0))

    return PositionEvaluator(evaluate, network.platform)


def search(
    board: DotsAndBoxes,
    settings: SearchConfig,
    evaluator: PositionEvaluator,
    params: chex.ArrayTree,
    key: jax.Array,
    state: State,
    rounds: Rounds,
    *,
    view: chex.ArrayTree | None = None,
    gumbel_scale: float = 1.0,
) -> SearchResult:
    """Search a batch of positions (State [B]) with Gumbel MuZero planning on the true rules.

    `rounds` are `rounds_of(settings)`. With those of `padded_rounds` as data, one program serves
    all numbers of simulations up to `settings.simulations`.
    `view` is the view of the positions, or of the positions before their free boxes were taken.
    Passing a known view saves work. `gumbel_scale` 1 explores at the root; 0 is deterministic.
    With `settings.nodes` quiet the positions must be quiet, and edge, policy and visits are over
    the moves of the quiet game.
    Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel".
    """
    problem = make_problem(board, settings, evaluator, params, key, state, rounds, view)
    return search_by_rounds(problem._replace(gumbel_scale=gumbel_scale))


def selfplay_search(
    board: DotsAndBoxes,
    settings: SearchConfig,
    evaluator: PositionEvaluator,
    params: chex.ArrayTree,
    key: jax.Array,
    state: State,
    view: chex.ArrayTree | None = None,
) -> SearchResult:
    """Search a batch of positions as `search` does, by mctx where every position is a node."""
    rounds = rounds_of(settings)
    problem = make_problem(board, settings, evaluator, params, key, state, rounds, view)
    return search_by_mctx(problem) if settings.nodes == "all" else search_by_rounds(problem)


def make_problem(
    board: DotsAndBoxes,
    settings: SearchConfig,
    evaluator: PositionEvaluator,
    params: chex.ArrayTree,
    key: jax.Array,
    state: State,
    rounds: Rounds,
    view: chex.ArrayTree | None,
) -> Problem:
    """Return the search of a batch of positions, with noise at the root."""
    chex.assert_shape(state.drawn, (None, board.num_edges), custom_message="state.drawn")
    chex.assert_equal_shape([state.margin, state.player], custom_message="margin and player")
    rules = game_of(settings)
    prior = jax.vmap(partial(rules.prior, board))
    structure_of = jax.vmap(rules.structure_of_searched)

    def expand(node: chex.ArrayTree, move: jax.Array, used: jax.Array | None) -> Expanded:
        node, view = jax.vmap(partial(rules.expand, board))(node, move)
        state = node.state
        if used is not None:  # an unused position counts as over, so it is not evaluated
            state = state._replace(drawn=state.drawn | ~used[:, None])
        evaluation = evaluator.evaluate(params, state, structure_of(view))
        count = len(move)
        chex.assert_shape(evaluation.prior_logits, (count, board.num_edges))
        chex.assert_shape(evaluation.value, (count,))
        logits = prior(view, evaluation.prior_logits)
        return node, logits, evaluation.value, ~is_over(state)

    if view is None:
        view = jax.vmap(partial(rules.view, board))(state.drawn)
    # NO_MOVE draws nothing and passes the turn, so it leads from `passed` to the root. Round 0
    # then expands the root like any other node.
    passed = State(state.drawn, -state.margin, 1 - state.player)
    root = Root(
        before=jax.vmap(rules.root)(passed, view),
        legal=jax.vmap(partial(rules.legal, board))(view),
    )
    return Problem(
        settings,
        rounds,
        evaluator.platform,
        root,
        expand,
        outcome=partial(rules.outcome, board),
        value_scale=settings.value_scale_per_box * board.num_boxes,  # values are in shares of them
        gumbel_scale=1.0,
        key=key,
    )
