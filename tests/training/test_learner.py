"""Losses and updates."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from compiled import any_params
from jax.flatten_util import ravel_pytree

from jaxzero.cli import load_config
from jaxzero.config import Config, LearnerConfig
from jaxzero.game import DotsAndBoxes, box_sides_table, edge_permutations
from jaxzero.heads import HEADS, heads_of
from jaxzero.network.network import IMPOSSIBLE, TRUNKS, Network, Prediction
from jaxzero.training import learner as learner_module
from jaxzero.training.learner import (
    LOGIT_SIZE_WEIGHT,
    Learner,
    augment,
    init_learner,
    learn,
    loss,
    mean_gradient,
    sample_losses,
    schedule_of,
    update,
)
from jaxzero.training.optimizer import FINAL_RATE, learning_rate
from jaxzero.training.replay import add, empty_replay
from jaxzero.training.targets import Positions

CONFIG = load_config("configs/tiny.yaml", "--network.channels=16", "--network.features=raw")
BOARD = CONFIG.game.board


NETWORK = Network(BOARD, CONFIG.network)
ONE_BOX = Network(DotsAndBoxes(1, 1), CONFIG.network)
loss_of = jax.jit(partial(loss, NETWORK))


def batch_of(count: int) -> Positions:
    drawn = np.random.default_rng(1).random((count, BOARD.num_edges)) < 0.4
    policy = (~drawn).astype(np.float32)
    policy /= np.maximum(policy.sum(-1, keepdims=True), 1.0)
    left = (~drawn[:, box_sides_table(BOARD)].all(-1)).sum(-1, dtype=np.int32)
    return Positions(drawn, policy, labels(left, np.arange(count) % 4 > 0))


def labels(margin, known, **others) -> dict:
    """Return labels of heads: a margin in boxes is a bin, or -1 where it is not known."""
    return {"margin": np.where(known, margin + BOARD.num_boxes, -1).astype(np.int32), **others}


@cache
def learner_of(config: Config) -> Learner:
    """Return a learner with random weights, on the host."""
    params = any_params(Network(BOARD, config.network))
    fresh = jax.eval_shape(lambda: init_learner(Network(BOARD, config.network), config))
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), fresh)
    return zeros._replace(params=params)


@cache
def step_of(config: Config):
    """Return the compiled update with the schedule of the settings."""
    schedule = schedule_of(config.learner, (0.0, 1.0))
    step = partial(update, Network(BOARD, config.network), config)
    return jax.jit(partial(step, schedule=schedule))


def test_losses_by_hand():
    logits = np.array([0.0, 0.0, IMPOSSIBLE, IMPOSSIBLE], np.float32)
    margins = np.array([np.log(0.25), IMPOSSIBLE, np.log(0.75)], np.float32)
    target = Positions(
        drawn=np.array([False, False, True, True]),
        policy=np.array([0.5, 0.5, 0.0, 0.0], np.float32),
        labels={"margin": np.int32(2)},  # the last of the three bins: a margin of 1
    )
    losses, said = jax.jit(partial(sample_losses, ONE_BOX)), Prediction(logits, {"margin": margins})
    of_policy, heads = losses(said, target)
    assert float(of_policy["policy_loss"]) == pytest.approx(np.log(2))
    assert float(of_policy["policy_divergence"]) == pytest.approx(0, abs=1e-6)
    assert float(heads["margin"]["loss"]) == pytest.approx(-np.log(0.75))
    assert float(heads["margin"]["error"]) == pytest.approx(0.5)
    _, unknown = losses(said, target._replace(labels={"margin": np.int32(-1)}))
    assert unknown["margin"]["loss"] == unknown["margin"]["error"] == 0


def test_the_loss_of_the_safe_end_by_hand():
    logits = np.log(np.array([0.2, 0.8, *[0.05] * 3, 0.65, *[0.05] * 4], np.float32))
    losses = jax.jit(partial(HEADS["safe_end"].losses, ONE_BOX.board))
    assert float(losses(logits, 2 * 3 + 1)["loss"]) == pytest.approx(-np.log(0.8) - np.log(0.65))


def test_learning_fits_a_batch_and_the_loss_is_the_sum_of_its_parts():
    config = replace(
        CONFIG, network=replace(CONFIG.network, trunk="conv", safe_end=True, channels=8)
    )
    learner, batch = learner_of(config), batch_of(64)
    safe_end = batch.drawn.sum(axis=-1, dtype=np.int32) // 3 % 16
    batch = batch._replace(labels={**batch.labels, "safe_end": safe_end})
    losses = []
    for _ in range(60):
        learner, metrics = step_of(config)(learner, batch)
        losses.append(metrics)
    first, last = losses[0], losses[-1]
    assert float(last["margin_loss"]) < 0.5 * float(first["margin_loss"])
    assert float(last["safe_end_loss"]) < 0.8 * float(first["safe_end_loss"])
    total = sum(float(last[name]) for name in ("policy_loss", "margin_loss"))
    extra = LOGIT_SIZE_WEIGHT * float(last["logit_size"])
    extra += HEADS["safe_end"].weight * float(last["safe_end_loss"])
    assert float(last["loss"]) == pytest.approx(total + extra, rel=1e-4)


def test_wrong_shapes_fail_with_the_name():
    prediction = Prediction(jnp.zeros(4), {"margin": jnp.zeros(3)})
    target = Positions(jnp.zeros(4, bool), jnp.zeros(5), {"margin": jnp.int32(0)})
    with pytest.raises(AssertionError, match=r"target\.policy"):
        sample_losses(ONE_BOX, prediction, target)


def test_the_learning_rate_rises_stays_and_falls():
    settings = LearnerConfig(warmup_updates=10, decay_fraction=0.4)
    steps = np.arange(101)
    rate = np.asarray(learning_rate(settings, 1.0, steps, steps / 100))
    np.testing.assert_allclose(rate[:10], np.arange(1, 11) / 10, rtol=1e-5)
    np.testing.assert_allclose(rate[10:60], 1)
    # The decay equals the cosine schedule of optax.
    cosine = optax.cosine_decay_schedule(1.0, 40, FINAL_RATE)
    np.testing.assert_allclose(rate[60:], [float(cosine(step)) for step in range(41)], rtol=1e-5)
    settings = replace(settings, warmup_updates=0, decay_fraction=0.0)
    np.testing.assert_array_equal(learning_rate(settings, 1.0, steps, steps / 100), 1)


def learning(progress: jax.Array, **settings) -> Learner:
    """Take one update from a fresh learner."""
    config = replace(CONFIG, learner=replace(CONFIG.learner, updates_per_iteration=1, **settings))
    replay = add(empty_replay(64, BOARD.num_edges, heads_of(CONFIG.network)), batch_of(64))
    key = jax.random.key(0)
    schedule = schedule_of(config.learner, (0.0, 0.0))._replace(progress=progress)
    return learn(NETWORK, config, learner_of(config), replay, key, 64, schedule)[0]


def test_steps_get_smaller_as_the_run_goes_on():
    one = jax.jit(partial(learning, warmup_updates=0, decay_fraction=1.0))
    start = ravel_pytree(learner_of(CONFIG).params)[0]
    first, last = (
        jnp.linalg.norm(ravel_pytree(one(jnp.full(2, done)).params)[0] - start)
        for done in (0.0, 1.0)
    )
    assert float(last / first) == pytest.approx(FINAL_RATE, rel=0.01)


def test_kernels_alone_decay():
    def updated(weight_decay: float):
        schedule = schedule_of(replace(CONFIG.learner, weight_decay=weight_decay), (0.0, 0.0))
        return step(learner_of(CONFIG), batch_of(64), schedule)[0].params

    step = jax.jit(partial(update, NETWORK, CONFIG))
    rate = learning_rate(CONFIG.learner, CONFIG.learner.learning_rate, 0, 0.0)
    decays = jax.tree.map(np.subtract, updated(0.0), updated(0.5))
    for (path, decay), weight in zip(
        jax.tree_util.tree_leaves_with_path(decays),
        jax.tree.leaves(learner_of(CONFIG).params),
        strict=True,
    ):
        expected = 0.5 * rate * weight if path[-1].key == "kernel" else np.zeros_like(weight)
        np.testing.assert_allclose(decay, expected, rtol=0.01, atol=1e-6, err_msg=str(path))


def test_sampled_positions_are_turned(monkeypatch):
    turned = []
    monkeypatch.setattr(
        learner_module, "augment", lambda _, key, batch: turned.append(key) or batch
    )
    jax.eval_shape(learning, jnp.zeros(2))
    assert len(turned) == 1


def test_a_step_without_a_finite_gradient_changes_nothing():
    learner, batch, step = learner_of(CONFIG), batch_of(64), step_of(CONFIG)
    policy = batch.policy.copy()
    policy[5, np.flatnonzero(~batch.drawn[5])[0]] = np.nan
    same, metrics = step(learner, batch._replace(policy=policy))
    jax.tree.map(np.testing.assert_array_equal, same, learner)
    assert metrics.pop("skipped") == 1 and metrics.pop("learning_rate") > 0
    assert all(value == 0 for value in metrics.values())
    other, metrics = step(learner, batch)
    assert metrics["skipped"] == 0 and metrics["loss"] > 0 and other.step == 1


def test_updates_skipped_at_the_end_are_counted(monkeypatch):
    flags = jnp.array([1.0, 0.0, 1.0, 1.0])

    def skipping(_network, _config, learner, _batch, _schedule, progress, _axis_name):
        skipped = flags[jnp.round(4 * progress).astype(int)]
        return learner, {"skipped": skipped, "learning_rate": progress}

    monkeypatch.setattr(learner_module, "update", skipping)
    config = replace(CONFIG, learner=replace(CONFIG.learner, updates_per_iteration=4))
    replay = add(empty_replay(64, BOARD.num_edges, heads_of(CONFIG.network)), batch_of(64))
    schedule = schedule_of(config.learner, (0.0, 1.0))
    _, metrics = learn(NETWORK, config, learner_of(config), replay, jax.random.key(0), 8, schedule)
    assert (metrics["learn/skipped_updates"], metrics["learn/skipped_at_end"]) == (3, 2)


@pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices")
def test_the_gradient_on_two_devices_is_that_of_the_joined_batch():
    learner, batch = learner_of(CONFIG), batch_of(64)
    # One margin is known, on one of the devices.
    batch = batch._replace(labels=labels(np.zeros(64, int), np.arange(64) == 5))
    joined, joined_metrics = step_of(CONFIG)(learner, batch)
    halves = jax.tree.map(lambda leaf: leaf.reshape(2, 32, *leaf.shape[1:]), batch)
    step = partial(update, NETWORK, CONFIG, schedule=schedule_of(CONFIG.learner, (0.0, 1.0)))
    split = jax.pmap(
        partial(step, axis_name="device"),
        axis_name="device",
        in_axes=(None, 0),
        out_axes=(None, None),
    )
    parallel, parallel_metrics = split(learner, halves)
    for name, value in joined_metrics.items():
        np.testing.assert_allclose(value, parallel_metrics[name], rtol=1e-4, err_msg=name)
    # The first moments of Adam are the gradient times a constant.
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6),
        jax.device_get(joined.opt_state),
        jax.device_get(parallel.opt_state),
    )


def test_the_gradient_in_steps_is_that_of_the_whole_batch():
    config = replace(CONFIG, network=replace(CONFIG.network, trunk="conv", channels=8))
    network, step = Network(BOARD, config.network), TRUNKS["conv"].cpu_chunk
    batch = batch_of(3 * step)
    # Few margins are known, all of them in the second step.
    few = np.arange(3 * step) // 8 == step // 8
    batch = batch._replace(labels=labels(np.zeros(len(few), int), few))
    params = any_params(network)
    whole = jax.jit(jax.grad(partial(loss, network), has_aux=True))
    steps = jax.jit(partial(mean_gradient, network))
    (expected, parts), (mean, means) = whole(params, batch), steps(params, batch)
    assert means.keys() == parts.keys()
    for name, value in parts.items():
        np.testing.assert_allclose(means[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-6), mean, expected)
    assert float(optax.tree.norm(mean)) > 0.01


def test_symmetries_move_edges_and_policy_together():
    batch = batch_of(256)
    marked = batch._replace(policy=batch.drawn.astype(np.float32))
    permutations = np.asarray(edge_permutations(BOARD))
    seen = jax.jit(augment)(permutations, jax.random.key(0), marked)
    np.testing.assert_array_equal(seen.policy, seen.drawn)
    images = np.asarray(batch.drawn)[:, np.asarray(permutations)]  # [B, S, A]
    hits = (images == np.asarray(seen.drawn)[:, None]).all(-1)
    assert hits.any(1).all()
    assert hits[:, 0].mean() < 0.6  # most are not the identity


def test_unknown_margins_do_not_weaken_the_loss_of_the_known():
    params, batch = any_params(NETWORK), batch_of(64)
    known = jax.tree.map(lambda leaf: leaf[batch.labels["margin"] >= 0], batch)
    assert len(known.drawn) == 48
    _, among = loss_of(params, batch)
    _, alone = loss_of(params, known)
    for name in ("margin_loss", "margin_error"):
        assert float(among[name]) == pytest.approx(float(alone[name]), rel=1e-5)
    nothing = batch._replace(labels=labels(np.zeros(64, int), np.zeros(64, bool)))
    total, parts = loss_of(params, nothing)
    rest = float(parts["policy_loss"]) + LOGIT_SIZE_WEIGHT * float(parts["logit_size"])
    assert float(parts["margin_loss"]) == 0 and float(total) == pytest.approx(rest, rel=1e-6)


def test_what_all_logits_share_does_not_drift_away():
    """A softmax ignores a shared offset, so without a penalty nothing would bring it back."""
    params, batch = any_params(NETWORK), batch_of(64)
    far = jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaf + np.float32(50) * ("policy" in str(path) and leaf.ndim == 1),
        params,
    )
    slope_of = jax.jit(jax.grad(partial(loss, NETWORK), has_aux=True))
    slope, parts = slope_of(far, batch)
    near = slope_of(params, batch)[1]
    assert float(parts["policy_loss"]) == pytest.approx(float(near["policy_loss"]), abs=1e-4)
    assert float(parts["logit_size"]) > 2000 > float(near["logit_size"])
    assert float(slope["params"]["policy"]["bias"].sum()) > LOGIT_SIZE_WEIGHT * 50
    finished = batch._replace(
        drawn=np.ones_like(batch.drawn), labels=labels(np.zeros(64, int), np.ones(64, bool))
    )
    assert np.isfinite(float(slope_of(params, finished)[1]["loss"]))
