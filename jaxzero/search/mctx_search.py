"""The search of the plain game by the library mctx, one simulation after the other.

Self-play uses it where every position is a node (`search.nodes all`). It is also the reference for
the search by rounds: both choose the same moves after the same visits. mctx needs fixed rewards and
discounts of moves. In the plain game the reward is the boxes that a move closes, and the discount
is 1 if the mover moves again, -1 if the opponent moves. In the quiet game both depend on the value
after the move, so mctx cannot search it. Only this file uses mctx.
"""

from functools import partial

import jax
import jax.numpy as jnp
import mctx

from jaxzero.game import is_over
from jaxzero.search.rounds import Problem, SearchResult
from jaxzero.search.tree import NO_MOVE, VISIT_OFFSET


def search_by_mctx(problem: Problem) -> SearchResult:
    """Search a batch of positions."""
    root, settings = problem.root, problem.settings

    def recurrent(_params, _key, move, node):
        node, logits, value, _ = problem.expand(node, move, None)
        reward, discount = jax.vmap(problem.outcome)(node, value)
        return mctx.RecurrentFnOutput(
            reward=reward, discount=discount, prior_logits=logits, value=value
        ), node

    no_move = jnp.full(len(root.legal), NO_MOVE, jnp.int32)
    node, logits, value, _ = problem.expand(root.before, no_move, None)
    output = mctx.gumbel_muzero_policy(
        params=(),
        rng_key=problem.key,
        root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=node),
        recurrent_fn=recurrent,
        num_simulations=settings.simulations,
        invalid_actions=~root.legal,
        qtransform=partial(
            mctx.qtransform_completed_by_mix_value,
            value_scale=problem.value_scale,
            maxvisit_init=VISIT_OFFSET,
            rescale_values=False,
        ),
        max_num_considered_actions=min(settings.max_considered_actions, settings.simulations),
        gumbel_scale=problem.gumbel_scale,
    )
    summary = output.search_tree.summary()
    evaluated = ~is_over(output.search_tree.embeddings.state)  # every simulation adds a node
    games = jnp.arange(len(output.action), dtype=jnp.int32)
    return SearchResult(
        edge=output.action.astype(jnp.int32),
        policy=output.action_weights,
        value=summary.qvalues[games, output.action],
        visits=summary.visit_counts,
        prior=jax.nn.softmax(logits),
        evaluations=jnp.sum(evaluated, axis=-1, dtype=jnp.int32),
        tree=output.search_tree,
    )
