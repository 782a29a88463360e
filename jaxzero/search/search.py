"""Entry point of the search: the network as evaluator, and the table of algorithms."""

from functools import partial
from types import ModuleType

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State, is_over
from jaxzero.game.structure import Structure
from jaxzero.network.network import Network, evaluate_used, expected_margin
from jaxzero.search import plain_game, quiet_game
from jaxzero.search.interface import (
    Evaluation,
    Expanded,
    Model,
    PositionEvaluator,
    SearchAlgorithm,
    SearchedGame,
    SearchResult,
)
from jaxzero.search.mctx_search import search_by_mctx
from jaxzero.search.rounds import Rounds, search_by_rounds

# The algorithm of self-play, by `search.nodes`.
SEARCHES: dict[str, SearchAlgorithm] = {"quiet": search_by_rounds, "all": search_by_mctx}


def search(
    board: DotsAndBoxes,
    settings: SearchConfig,
    evaluator: PositionEvaluator,
    key: jax.Array,
    state: State,
    *,
    rounds: Rounds | None = None,
    structure: Structure | None = None,
    gumbel_scale: float = 1.0,
) -> SearchResult:
    """Search a batch of positions (State [B]) with Gumbel MuZero planning on the true rules.

    `SEARCHES` has the algorithm for `settings.nodes`. With `rounds` of `padded_rounds` as data, the
    search is always by rounds: one program serves all numbers of simulations up to
    `settings.simulations`. `structure` is that of the positions, or of the positions before their
    free boxes were taken; computed if None. `gumbel_scale` 1 explores at the root; 0 is
    deterministic. With `settings.nodes` quiet the positions must be quiet, and the actions are the
    moves of the quiet game.
    Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel".
    """
    model = model_of(board, settings, evaluator, state, structure)
    by_rounds = partial(search_by_rounds, rounds=rounds)
    algorithm = SEARCHES[settings.nodes] if rounds is None else by_rounds
    return algorithm(model, settings, key, gumbel_scale)


def model_of(
    board: DotsAndBoxes,
    settings: SearchConfig,
    evaluator: PositionEvaluator,
    state: State,
    structure: Structure | None,
) -> Model:
    """Return a batch of positions as an algorithm searches them."""
    chex.assert_shape(state.drawn, (None, board.num_edges), custom_message="state.drawn")
    chex.assert_equal_shape([state.margin, state.player], custom_message="margin and player")
    rules = game_of(settings)

    def expand(embedding: chex.ArrayTree, action: jax.Array, used: jax.Array | None) -> Expanded:
        embedding, structure = jax.vmap(partial(rules.expand, board))(embedding, action)
        state = embedding.state
        if used is not None:  # an unused position counts as over, so it is not evaluated
            state = state._replace(drawn=state.drawn | ~used[:, None])
        of_searched = rules.structure_of_searched(structure)
        evaluation = evaluator.evaluate(state, of_searched)
        chex.assert_shape(evaluation.prior_logits, (len(action), board.num_edges))
        chex.assert_shape(evaluation.value, (len(action),))
        prior = jax.vmap(partial(rules.prior, board))(structure, evaluation.prior_logits)
        return embedding, prior, evaluation.value, ~is_over(state)

    if structure is None:
        structure = jax.vmap(partial(rules.find_structure, board))(state.drawn)
    # NO_ACTION draws nothing and passes the turn, so it leads from `passed` to the root.
    passed = State(state.drawn, -state.margin, 1 - state.player)
    return Model(
        before_root=jax.vmap(rules.embed)(passed, structure),
        legal=jax.vmap(partial(rules.legal, board))(state.drawn, structure),
        expand=expand,
        outcome=partial(rules.outcome, board),
        platform=evaluator.platform,
        value_scale=settings.value_scale_per_box * board.num_boxes,  # values are in shares of them
    )


def game_of(settings: SearchConfig) -> type[SearchedGame] | ModuleType:
    """Return the module that defines which positions are nodes."""
    return quiet_game if settings.nodes == "quiet" else plain_game


def network_evaluator(network: Network, params: chex.ArrayTree) -> PositionEvaluator:
    """Return an evaluator; its value is the expected margin divided by the boxes of the board.

    Call it inside a traced function, or the weights become constants of the program.
    """
    board = network.board

    def evaluate(state: State, structure: Structure | None) -> Evaluation:
        unfinished = ~is_over(state)
        prediction = evaluate_used(network, params, state.drawn, structure, unfinished)
        value = expected_margin(board, prediction) / board.num_boxes
        # Nothing is left to win once the game is over.
        return Evaluation(prediction.policy_logits, jnp.where(unfinished, value, 0.0))

    return PositionEvaluator(evaluate, network.platform)
