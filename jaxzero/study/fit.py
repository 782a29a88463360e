"""Fit a network to exact labels within a budget, and score it on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config
from jaxzero.errors import RunError
from jaxzero.host.status import doing
from jaxzero.measure.scoring import answer_suite, compile_answers, score
from jaxzero.network.network import Network
from jaxzero.study.labels import Labels
from jaxzero.training.learner import Learner, init_learner, update

SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the budget, when to score
CALL_SHARE = 1 / 200  # of the budget, spent in one call
GROWTH = 4  # largest factor of updates from one call to the next


@dataclass(frozen=True)
class Budget:
    """How long a network may learn; the first limit that is reached ends it."""

    minutes: float  # of learning, without compiling and scoring
    positions: int = 0  # to learn from, repetitions counted; 0: no limit

    def spent(self, seconds: float, positions: int) -> float:
        """Return the share of the budget that is spent, at most 1."""
        of_positions = positions / self.positions if self.positions else 0.0
        return min(1.0, max(seconds / (60 * self.minutes), of_positions))


class CurvePoint(NamedTuple):
    """The scores of a network after some learning."""

    seconds: float  # of learning
    positions: int  # learnt from, repetitions counted
    updates: int
    loss: float | None  # mean over the updates taken since the previous point
    scores: dict[str, Any]  # from `evaluation.scoring.score`, on held-out positions


class Fit(NamedTuple):
    """A fitted network."""

    learner: Learner
    curve: list[CurvePoint]
    compile_seconds: float


# (learner, data, updates before, updates, share of the budget) to the learner, the sum of the
# losses of the updates taken and how many these were
Advance = Callable[[Learner, chex.ArrayTree, int, int, float], tuple[Learner, jax.Array, jax.Array]]


def compile_advance(
    network: Network, config: Config, labels: Labels, learner: Learner
) -> tuple[Advance, float]:
    """Compile an `Advance`; return it and the seconds that took.

    One program takes any number of updates and draws the positions of each.
    """
    settings, key = config.learner, jax.random.key(config.seed + 1)

    @partial(jax.jit, donate_argnums=0)
    def advance(learner: Learner, data: chex.ArrayTree, before, updates, spent: jax.Array):
        def one(number, carry: tuple[Learner, jax.Array, jax.Array]):
            learner, total, taken = carry
            drawing = jax.random.fold_in(key, before + number)  # others after a skipped update
            batch = labels.draw(data, drawing, settings.batch_size)
            learner, metrics = update(network, config, learner, batch, fraction=spent)
            return learner, total + metrics["loss"], taken + 1 - metrics["skipped"]

        return jax.lax.fori_loop(0, updates, one, (learner, jnp.float32(0), jnp.float32(0)))

    began = time.perf_counter()
    counts = (jnp.int32(0), jnp.int32(1))
    with doing("compiling an update"):
        compiled = advance.lower(learner, labels.data, *counts, jnp.float32(0)).compile()
    seconds = time.perf_counter() - began

    def call(learner: Learner, data: chex.ArrayTree, before: int, updates: int, spent: float):
        return compiled(learner, data, jnp.int32(before), jnp.int32(updates), jnp.float32(spent))

    return call, seconds


def fit(config: Config, labels: Labels, budget: Budget, say: Callable[[CurvePoint], None]) -> Fit:
    """Train a fresh network until the budget is spent; compiling and scoring cost nothing.

    Calls `say` with every point of the curve. Raises: RunError where as many updates in a row as
    the setting says had no finite gradient.
    """
    network, batch = Network(labels.test.game, config.network), config.learner.batch_size
    learner = jax.jit(partial(init_learner, network, config))()
    advance, compile_seconds = compile_advance(network, config, labels, learner)
    answer = compile_answers(network, config.search, 0)

    def look(loss: float | None) -> CurvePoint:
        with doing("scoring on the positions held out"):
            scores = score(labels.test, answer_suite(labels.test, answer, learner.params))
        point = CurvePoint(seconds, updates * batch, updates, loss, scores)
        say(point)
        return point

    seconds, updates, count, skipped = 0.0, 0, 1, 0
    curve, loss_sum, taken = [look(None)], 0.0, 0.0
    while (spent := budget.spent(seconds, updates * batch)) < 1:
        began = time.perf_counter()
        given = labels.data, updates, count, spent
        with doing(f"learning, {spent:.0%} of the budget spent"):
            learner, total, count_taken = jax.block_until_ready(advance(learner, *given))
        elapsed = time.perf_counter() - began
        seconds, updates = seconds + elapsed, updates + count
        skipped = 0 if count_taken else skipped + count
        if skipped >= config.learner.skipped_updates:
            rate = f"learner.learning_rate: {config.learner.learning_rate:g}"
            raise RunError(f"{rate} made it diverge: {skipped} updates had no finite gradient")
        loss_sum, taken = loss_sum + float(total), taken + float(count_taken)
        now = budget.spent(seconds, updates * batch)
        if any(spent < share <= now for share in SHARES):
            curve.append(look(loss_sum / taken if taken else None))
            loss_sum, taken = 0.0, 0.0
        count = next_count(budget, batch, updates, count, elapsed)
    return Fit(learner, curve, compile_seconds)


def next_count(budget: Budget, batch: int, updates: int, count: int, elapsed: float) -> int:
    """Return the updates of the next call, given the updates and seconds of the last call."""
    within = int(CALL_SHARE * 60 * budget.minutes * count / elapsed)
    most = min(within, GROWTH * count)
    if budget.positions:
        left = -(-budget.positions // batch) - updates
        most = min(most, left, int(CALL_SHARE * budget.positions / batch))
    return max(1, most)
