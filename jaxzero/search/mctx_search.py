"""The search of the plain game by the library mctx, one simulation after the other.

It is the reference for the search by rounds (`gumbel`): both choose the same moves after the same
visits. The setting `search.engine mctx` selects it. mctx needs fixed rewards and discounts of
moves. In the plain game the reward is the boxes that a move closes, and the discount is 1 if the
mover moves again, -1 if the opponent moves. In the quiet game both depend on the value after the
move, so mctx cannot search it. Only this file uses mctx.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import mctx

from jaxzero.config import SearchConfig
from jaxzero.search.gumbel import SearchResult
from jaxzero.search.tree import NO_MOVE, VISIT_OFFSET, Expand, Outcome, Root


def plan(
    settings: SearchConfig,
    value_scale: float,
    expand: Expand,
    outcome: Outcome,
    key: jax.Array,
    root: Root,
    gumbel_scale: float,
) -> SearchResult:
    """Search a batch of positions, as `gumbel.plan` does."""

    def recurrent(_params, _key, move, node):
        node, logits, value = expand(node, move)
        reward, discount = outcome(node, value)
        return mctx.RecurrentFnOutput(
            reward=reward, discount=discount, prior_logits=logits, value=value
        ), node

    no_move = jnp.full(len(root.legal), NO_MOVE, jnp.int32)
    node, logits, value = root.expanded or expand(root.before, no_move)
    output = mctx.gumbel_muzero_policy(
        params=(),
        rng_key=key,
        root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=node),
        recurrent_fn=recurrent,
        num_simulations=settings.simulations,
        invalid_actions=~root.legal,
        qtransform=partial(
            mctx.qtransform_completed_by_mix_value,
            value_scale=value_scale,
            maxvisit_init=VISIT_OFFSET,
            rescale_values=False,
        ),
        max_num_considered_actions=min(settings.max_considered_actions, settings.simulations),
        gumbel_scale=gumbel_scale,
    )
    summary = output.search_tree.summary()
    games = jnp.arange(len(output.action), dtype=jnp.int32)
    return SearchResult(
        edge=output.action.astype(jnp.int32),
        policy=output.action_weights,
        value=summary.qvalues[games, output.action],
        visits=summary.visit_counts,
        prior=jax.nn.softmax(logits),
        tree=output.search_tree,
    )
