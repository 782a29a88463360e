"""Learning from replay: losses and updates."""

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from jaxzero.config import Config, LearnerConfig
from jaxzero.game import automorphisms
from jaxzero.heads import heads_of
from jaxzero.network.network import Network, Prediction, for_learning, init_params
from jaxzero.training.optimizer import kernels, learning_rate, make_optimizer
from jaxzero.training.replay import Replay, sample
from jaxzero.training.targets import Positions, policy_entropy

# Weight of the squared log-sum-exp of the logits of policy and margin. The losses ignore a constant
# that all logits share. The constant drifts, and bfloat16 cannot tell large logits apart.
# Source: Chowdhery et al. 2022, "PaLM", section 5, auxiliary loss.
LOGIT_SIZE_WEIGHT, MAX_SIZE = 1e-4, 1e3


class Learner(NamedTuple):
    """The learnt state; the same on all devices."""

    params: chex.ArrayTree  # float32 weights
    opt_state: optax.OptState
    step: jax.Array  # [] int32, updates so far
    iteration: jax.Array  # [] int32, iterations so far


class Schedule(NamedTuple):
    """Numbers of an iteration that are data: one compiled program serves all their values."""

    progress: jax.Array  # [2] float32, of the run before and after the iteration, 0 to 1
    learning_rate: jax.Array  # [] float32, between warm-up and decay
    weight_decay: jax.Array  # [] float32
    gradient_clip: jax.Array  # [] float32, largest global norm of a gradient


def schedule_of(settings: LearnerConfig, progress: tuple[float, float]) -> Schedule:
    """Return the schedule of an iteration that brings the run from one progress to another."""
    numbers = progress, settings.learning_rate, settings.weight_decay, settings.gradient_clip
    return Schedule(*(np.array(number, np.float32) for number in numbers))


def init_learner(network: Network, config: Config) -> Learner:
    """Return a learner with fresh weights, drawn from `config.seed`."""
    params = init_params(network, jax.random.key(config.seed))
    zero = jnp.zeros((), jnp.int32)
    # Two counters, because donating one buffer twice is an error.
    return Learner(params, make_optimizer(config.learner).init(params), zero, jnp.copy(zero))


def sample_losses(
    network: Network, prediction: Prediction, target: Positions
) -> tuple[dict[str, jax.Array], dict[str, dict[str, jax.Array]]]:
    """Return losses and errors of ONE position; every field without its batch axis.

    The first dict is of the policy. The second has one for each head, 0 if its label is unknown.
    """
    board, edges = network.board, (network.board.num_edges,)
    chex.assert_shape(prediction.policy_logits, edges, custom_message="policy_logits")
    chex.assert_shape(target.policy, edges, custom_message="target.policy")
    policy_loss = optax.safe_softmax_cross_entropy(prediction.policy_logits, target.policy)
    of_heads = {}
    for name, head in heads_of(network.config).items():
        label = target.labels[name]
        chex.assert_shape(label, (), custom_message=f"label of {name}")
        parts = head.losses(board, prediction.head_logits[name], jnp.maximum(label, 0))
        of_heads[name] = {part: jnp.where(label >= 0, x, 0.0) for part, x in parts.items()}
    # Keep this last: another order changes fusion, hence rounding, hence bit-exact resume.
    # On a full board all policy logits mean impossible, so the log-sum-exp is clipped.
    logits = prediction.policy_logits, prediction.head_logits["margin"]
    sizes = (jnp.maximum(jax.nn.logsumexp(x), -MAX_SIZE) for x in logits)
    of_policy = {
        "policy_loss": policy_loss,
        "policy_divergence": policy_loss - policy_entropy(target.policy),
        "logit_size": sum(size**2 for size in sizes),
    }
    return of_policy, of_heads


def known_fractions(network: Network, positions: Positions) -> dict[str, jax.Array]:
    """Return the fraction of known labels [] of each head whose loss is a mean over these."""
    return {
        name: (positions.labels[name] >= 0).mean(dtype=jnp.float32)
        for name, head in heads_of(network.config).items()
        if head.mean_over_known
    }


def loss(
    network: Network,
    params: chex.ArrayTree,
    positions: Positions,
    known: dict[str, jax.Array] | None = None,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Return the loss of positions and its parts, each a mean: scalars.

    If the positions are a part of a batch, `known` holds the `known_fractions` of the whole batch.
    """
    prediction = for_learning(network).apply(params, positions.drawn)
    losses = jax.vmap(partial(sample_losses, network))(prediction, positions)
    metrics, of_heads = jax.tree.map(jnp.mean, losses)
    fractions = known_fractions(network, positions)
    total = metrics["policy_loss"]
    for name, head in heads_of(network.config).items():
        parts = of_heads[name]
        if name in fractions:
            fraction = (known or fractions)[name]
            share = jnp.where(fraction > 0, fraction, 1.0)  # without a known label all are 0
            parts = {part: x / share for part, x in parts.items()}
            metrics[f"{name}_known"] = fractions[name]
        metrics |= {f"{name}_{part}": x for part, x in parts.items()}
        total = total + head.weight * parts["loss"]
    total = total + LOGIT_SIZE_WEIGHT * metrics["logit_size"]
    return total, {"loss": total, **metrics}


def mean_gradient(
    network: Network,
    params: chex.ArrayTree,
    batch: Positions,
    axis_name: str | None = None,
) -> tuple[chex.ArrayTree, dict[str, jax.Array]]:
    """Return the gradient of the loss of a batch, shaped as `params`, and the parts of the loss.

    With `axis_name` both are means over the batches of all devices. A CPU processes a batch in
    steps of `cpu_chunk` positions of the trunk if this number divides the batch.
    """
    known = known_fractions(network, batch)
    if axis_name is not None:
        known = jax.lax.pmean(known, axis_name)
    gradient_of = jax.grad(partial(loss, network), has_aux=True)
    size = len(batch.drawn)
    chunk = network.trunk.cpu_chunk or size

    def in_steps(params: chex.ArrayTree, batch: Positions, known: jax.Array) -> tuple:
        chunks = jax.tree.map(lambda leaf: leaf.reshape(-1, chunk, *leaf.shape[1:]), batch)
        first = jax.tree.map(lambda leaf: leaf[0], chunks)
        shapes = jax.eval_shape(gradient_of, params, first, known)
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

        def add(total: tuple, chunk: Positions) -> tuple[tuple, None]:
            return jax.tree.map(jnp.add, total, gradient_of(params, chunk, known)), None

        total, _ = jax.lax.scan(add, zeros, chunks)
        return jax.tree.map(lambda leaf: leaf * (chunk / size), total)

    if network.platform != "cpu" or chunk == size or size % chunk:
        mean = gradient_of(params, batch, known)
    else:
        mean = in_steps(params, batch, known)
    return mean if axis_name is None else jax.lax.pmean(mean, axis_name)


def augment(permutations: jax.Array, key: jax.Array, batch: Positions) -> Positions:
    """Apply a random one of the symmetries [S, A] of the rules to each position of a batch.

    S is 128 on square boards, else 64, because the outer edges of a corner box may be swapped too.
    """
    picks = jax.random.bits(key, batch.drawn.shape[:1], jnp.uint32) % len(permutations)
    gather = permutations[picks]
    return batch._replace(
        drawn=jnp.take_along_axis(batch.drawn, gather, axis=-1),
        policy=jnp.take_along_axis(batch.policy, gather, axis=-1),
    )


def update(
    network: Network,
    config: Config,
    learner: Learner,
    batch: Positions,
    schedule: Schedule,
    progress: chex.Numeric = 0.0,
    axis_name: str | None = None,
) -> tuple[Learner, dict[str, jax.Array]]:
    """Take one step on a batch; with `axis_name`, on the mean gradient over that axis.

    `progress` [] is that of the run. If the loss or gradient is not finite, the learner does not
    change, the metric `skipped` is 1, and all others but `learning_rate` are 0.
    """
    gradient, metrics = mean_gradient(network, learner.params, batch, axis_name)
    norm = jnp.linalg.norm(ravel_pytree(gradient)[0])
    rate = learning_rate(config.learner, schedule.learning_rate, learner.step, progress)
    metrics["gradient_norm"] = norm
    clip = schedule.gradient_clip
    gradient = jax.tree.map(lambda leaf: jnp.where(norm < clip, leaf, leaf / norm * clip), gradient)
    direction, opt_state = make_optimizer(config.learner).update(
        gradient, learner.opt_state, learner.params
    )

    def step(param: jax.Array, direction: jax.Array, is_kernel: bool) -> jax.Array:
        decay = schedule.weight_decay * param if is_kernel else 0.0
        return param - rate * (direction + decay)

    params = jax.tree.map(step, learner.params, direction, kernels(learner.params))
    stepped = learner._replace(params=params, opt_state=opt_state, step=learner.step + 1)
    finite = jnp.isfinite(norm) & jnp.isfinite(metrics["loss"])
    metrics = {name: jnp.where(finite, value, 0.0) for name, value in metrics.items()}
    metrics |= {"skipped": 1 - finite.astype(jnp.float32), "learning_rate": rate}
    return jax.tree.map(partial(jnp.where, finite), stepped, learner), metrics


def learn(
    network: Network,
    config: Config,
    learner: Learner,
    replay: Replay,
    key: jax.Array,
    batch_size: int,
    schedule: Schedule,
    axis_name: str | None = None,
) -> tuple[Learner, dict[str, jax.Array]]:
    """Take `updates_per_iteration` steps on `batch_size` positions each.

    Most metrics are means over the steps taken; some count the steps skipped.
    """
    updates = config.learner.updates_per_iteration
    permutations = jnp.asarray(automorphisms(network.board))
    begin, end = schedule.progress
    progress = begin + (end - begin) * jnp.arange(updates, dtype=jnp.float32) / max(1, updates)

    def one_update(
        learner: Learner, at: tuple[jax.Array, jax.Array]
    ) -> tuple[Learner, dict[str, jax.Array]]:
        (sample_key, symmetry_key), progress = at
        batch = augment(permutations, symmetry_key, sample(replay, sample_key, batch_size))
        return update(network, config, learner, batch, schedule, progress, axis_name)

    if not updates:
        return learner, {}
    keys = jax.random.split(key, (updates, 2))
    learner, metrics = jax.lax.scan(one_update, learner, (keys, progress))
    skipped, rates = metrics.pop("skipped"), metrics.pop("learning_rate")
    taken = jnp.maximum(updates - skipped.sum(), 1.0)
    means = {name: values.sum() / taken for name, values in metrics.items()}
    means["skipped_updates"] = skipped.sum()
    means["skipped_at_end"] = jnp.cumprod(skipped[::-1]).sum()  # the last ones, in a row
    means["learning_rate"] = rates[-1]
    return learner, {f"learn/{name}": value for name, value in means.items()}
