"""The search of the plain game by the library mctx, one simulation after the other.

Self-play uses it where every position is a node (`search.nodes all`). It is also the reference for
the search by rounds: both choose the same actions after the same visits. mctx needs fixed rewards
and discounts of actions. In the plain game the reward is the boxes that an action closes, and the
discount is 1 if the mover moves again, -1 if the opponent moves. In the quiet game both depend on
the value after the action, so mctx cannot search it. Only this file uses mctx.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import mctx

from jaxzero.config import SearchConfig
from jaxzero.game import is_over
from jaxzero.search.interface import NO_ACTION, Model, SearchResult
from jaxzero.search.tree import MAXVISIT_INIT


def search_by_mctx(
    model: Model, settings: SearchConfig, key: jax.Array, gumbel_scale: float
) -> SearchResult:
    """Search a batch of positions."""
    root, recurrent_fn = mctx_inputs(model)
    output = mctx.gumbel_muzero_policy(
        params=(),
        rng_key=key,
        root=root,
        recurrent_fn=recurrent_fn,
        num_simulations=settings.simulations,
        invalid_actions=~model.legal,
        qtransform=partial(
            mctx.qtransform_completed_by_mix_value,
            value_scale=model.value_scale,
            maxvisit_init=MAXVISIT_INIT,
            rescale_values=False,
        ),
        max_num_considered_actions=min(settings.max_considered_actions, settings.simulations),
        gumbel_scale=gumbel_scale,
    )
    return mctx_result(output, root)


def mctx_inputs(model: Model) -> tuple[mctx.RootFnOutput, Callable]:
    """Return the root and the `recurrent_fn` of any policy of mctx."""

    def recurrent_fn(_params, _key, action, embedding):
        embedding, logits, value, _ = model.expand(embedding, action, None)
        reward, discount = jax.vmap(model.outcome)(embedding, value)
        return mctx.RecurrentFnOutput(
            reward=reward, discount=discount, prior_logits=logits, value=value
        ), embedding

    no_action = jnp.full(len(model.legal), NO_ACTION, jnp.int32)
    embedding, logits, value, _ = model.expand(model.before_root, no_action, None)
    return mctx.RootFnOutput(prior_logits=logits, value=value, embedding=embedding), recurrent_fn


def mctx_result(output: mctx.PolicyOutput, root: mctx.RootFnOutput) -> SearchResult:
    """Return the output of a policy of mctx as a result of our search."""
    summary = output.search_tree.summary()
    games = jnp.arange(len(output.action), dtype=jnp.int32)
    evaluated = ~is_over(output.search_tree.embeddings.state)  # every simulation adds a node
    return SearchResult(
        action=output.action.astype(jnp.int32),
        policy=output.action_weights,
        value=summary.qvalues[games, output.action],
        visits=summary.visit_counts,
        prior=jax.nn.softmax(root.prior_logits),
        qvalues=summary.qvalues,
        evaluations=jnp.sum(evaluated, axis=-1, dtype=jnp.int32),
    )
