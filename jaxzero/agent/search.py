"""Gumbel tree search over batches of games. Only this file and `backup.py` know mctx."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import mctx

from jaxzero.agent.backup import ReplyOf, in_place_backup
from jaxzero.agent.network import Network, expected_margin, win_balance
from jaxzero.agent.reduction import QuietNode, best_reply, open_move, quiet_priors
from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State, boxes_gained, discount, is_over, legal_edges, step
from jaxzero.game.closing import free_boxes
from jaxzero.game.structure import structure


class Evaluation(NamedTuple):
    """Prior and value of a batch of positions, for the side to move."""

    prior_logits: jax.Array  # [B, A] float32, illegal edges hugely negative
    value: jax.Array  # [B] float32, utility still to come, -1 to 1


class SearchResult(NamedTuple):
    """What a search found for a batch of positions."""

    edge: jax.Array  # [B] int32, the chosen edge
    policy: jax.Array  # [B, A] float32, the improved policy, the target of learning
    value: jax.Array  # [B] float32, utility of the chosen edge after the search
    visits: jax.Array  # [B, A] int32, visit counts at the root
    prior: jax.Array  # [B, A] float32, the network's policy at the root


class Transition(NamedTuple):
    """One move of one game as the search sees it."""

    state: State
    reward: jax.Array  # [] float32, utility gained by the mover
    discount: jax.Array  # [] float32, -1, 0 or 1


Evaluator = Callable[[chex.ArrayTree, State], Evaluation]  # (params, State [B])


def network_evaluator(network: Network, settings: SearchConfig) -> Evaluator:
    """Return an evaluator that mixes margin and win probability as `settings.win_weight` says."""
    game = network.game

    def evaluate(params: chex.ArrayTree, state: State) -> Evaluation:
        prediction = network.apply(params, state.drawn)
        value = expected_margin(game, prediction) / game.num_boxes
        if settings.win_weight:
            balance = win_balance(game, prediction, state.margin)
            value = (1 - settings.win_weight) * value + settings.win_weight * balance
        # Nothing is left to win once the game is over; the masked margins say so already,
        # but the sign of the final margin was paid out as a reward.
        return Evaluation(prediction.policy_logits, jnp.where(is_over(state), 0.0, value))

    return evaluate


def transition(game: DotsAndBoxes, win_weight: float, state: State, edge: jax.Array) -> Transition:
    """Play `edge` in one game. Past the end nothing is gained and nothing follows."""
    already_over = is_over(state)
    next_state, again = step(game, state, edge)
    boxes = boxes_gained(state, next_state, again) / game.num_boxes
    won = jnp.where(is_over(next_state), jnp.sign(next_state.margin), 0)
    reward = (1 - win_weight) * boxes + win_weight * won
    return Transition(
        state=next_state,
        reward=jnp.where(already_over, 0.0, reward),
        discount=jnp.where(already_over, 0.0, discount(next_state, again)),
    )


class Growth(NamedTuple):
    """How a tree begins and grows, for a batch. `at` evaluates a batch of positions."""

    # (at, State [B]) to the evaluation of the root, what is legal [B, A] and the root's embedding
    start: Callable
    expand: Callable  # (at, edges [B], embedding) to what mctx wants to know of the next nodes
    reply: ReplyOf | None = None  # what the opponent answers to a move, where values decide it


def _plain_growth(game: DotsAndBoxes, win_weight: float) -> Growth:
    """Return the growth in which every position is a node."""

    def start(at, state):
        return at(state), legal_edges(state), state

    def expand(at, edge, state):
        moved = jax.vmap(partial(transition, game, win_weight))(state, edge)
        return _grown(moved.reward, moved.discount, at(moved.state)), moved.state

    return Growth(start, expand)


def _quiet_growth(game: DotsAndBoxes) -> Growth:
    """Return the growth in which only quiet positions are nodes."""
    priors = jax.vmap(partial(quiet_priors, game))
    reply = jax.vmap(partial(best_reply, game))

    def start(at, state):
        there = at(state)
        found = jax.vmap(partial(structure, game))(state.drawn)
        logits, legal = priors(found, there.prior_logits)
        return there._replace(prior_logits=logits), legal, QuietNode(state, free_boxes(found))

    def expand(at, edge, node):
        node, found = jax.vmap(partial(open_move, game))(node.state, edge)
        there = at(node.state)
        logits, _ = priors(found, there.prior_logits)
        return _grown(*reply(node, there.value), there._replace(prior_logits=logits)), node

    return Growth(start, expand, reply)


def _grown(reward: jax.Array, discount: jax.Array, there: Evaluation) -> mctx.RecurrentFnOutput:
    return mctx.RecurrentFnOutput(
        reward=reward,
        discount=discount,
        prior_logits=there.prior_logits,
        value=there.value,
    )


def search(
    game: DotsAndBoxes,
    settings: SearchConfig,
    evaluate: Evaluator,
    params: chex.ArrayTree,
    key: jax.Array,
    state: State,
    *,
    gumbel_scale: float = 1.0,
) -> SearchResult:
    """Search a batch of positions (State [B]) with Gumbel MuZero planning on the true rules.

    `gumbel_scale` 1 explores at the root, 0 is deterministic play. With the reduction `exact` the
    positions must be quiet, and edge, policy and visits are of the moves of the quiet game.
    Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel".
    """
    chex.assert_shape(state.drawn, (None, game.num_edges), custom_message="state.drawn")
    chex.assert_equal_shape([state.margin, state.player], custom_message="margin and player")

    root, output = plan(game, settings, evaluate, params, key, state, gumbel_scale)
    summary = output.search_tree.summary()
    games = jnp.arange(len(output.action))
    return SearchResult(
        edge=output.action.astype(jnp.int32),
        policy=output.action_weights,
        value=summary.qvalues[games, output.action],
        visits=summary.visit_counts,
        prior=jax.nn.softmax(root.prior_logits),
    )


def plan(
    game: DotsAndBoxes,
    settings: SearchConfig,
    evaluate: Evaluator,
    params: chex.ArrayTree,
    key: jax.Array,
    state: State,
    gumbel_scale: float,
) -> tuple[Evaluation, mctx.PolicyOutput]:
    """Grow the trees of `search`; return the evaluation of the roots and mctx's output."""
    reduced = settings.reduction == "exact"
    growth = _quiet_growth(game) if reduced else _plain_growth(game, settings.win_weight)

    def expand(params, _key, edge, embedding):
        return growth.expand(partial(evaluate, params), edge, embedding)

    root, legal, embedding = growth.start(partial(evaluate, params), state)
    chex.assert_shape(root.prior_logits, state.drawn.shape, custom_message="prior_logits")
    chex.assert_shape(root.value, state.margin.shape, custom_message="value")
    with in_place_backup(growth.reply):
        return root, mctx.gumbel_muzero_policy(
            params=params,
            rng_key=key,
            root=mctx.RootFnOutput(
                prior_logits=root.prior_logits, value=root.value, embedding=embedding
            ),
            recurrent_fn=expand,
            num_simulations=settings.simulations,
            invalid_actions=~legal,
            max_depth=settings.max_depth or None,
            qtransform=partial(
                mctx.qtransform_completed_by_mix_value,
                # Values are in boxes by the boxes on the board.
                value_scale=settings.value_scale_per_box * game.num_boxes,
                maxvisit_init=settings.visit_offset,
                rescale_values=False,
            ),
            max_num_considered_actions=min(settings.considered, settings.simulations),
            gumbel_scale=gumbel_scale,
        )
