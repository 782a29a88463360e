"""Warnings about a run, read off its metrics: what looks wrong, and which setting to change.

The limits were chosen so that complete runs of `quick.yaml`, `cpu.yaml` and `gpu_80gb.yaml` give no
warning, and a run that fell apart gives one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean, median
from typing import Any, NamedTuple

from jaxzero.config import Config

Metrics = list[dict[str, Any]]  # one dict per iteration, oldest first

EARLY = 5  # iterations before any trend is judged
WINDOW = 5  # iterations of a mean
COLLAPSED = 0.15  # nats of the policy's entropy
RISE = 1.3  # of a loss above its lowest mean
FLAT = 0.97  # of the first mean: the lowest since is no lower; noise alone takes off 1 %
FLAT_AFTER = 30  # iterations
STEEP = 8.0  # times the usual gradient
LARGE_LOGITS = 32.0  # nats: bfloat16 has steps of 0.25 from here on
MOST_REPLAY = 9.0  # times that a position is sampled
SLOW = 0.4  # of the usual speed
IDLE = 0.75  # of the lanes hold games in play
WAITING = 0.3  # of an iteration: the device waits for the solver
UNSOLVED = 0.2  # of the games stop at a position that is too hard for the solver
ONE_SIDED = 0.99  # of the games end the same way
WORSE = 0.03  # more wrong moves than at the best evaluation
JUDGED = (  # what a whole record has in every iteration
    "selfplay/policy_entropy",
    "selfplay/used",
    "learn/margin_loss",
    "learn/gradient_norm",
    "speed/evaluations_per_second",
)


class Warning(NamedTuple):
    """Something that looks wrong in a run."""

    name: str
    words: str  # what was seen
    change: str  # what to do


def warnings_of(config: Config, metrics: Metrics) -> list[Warning]:
    """Return what looks wrong in a run with these metrics; none before a few iterations."""
    judged = [replay_ratio(config)]
    if len(metrics) >= EARLY:
        judged += [check(metrics) for check in CHECKS]
        judged += losses(config, metrics)
        judged += evaluations(metrics)
    return [warning for warning in judged if warning is not None]


def not_judged(metrics: Metrics) -> str:
    """Return what the checks could not see in a record, in words; empty where they saw all."""
    if len(metrics) < EARLY:
        return f"Not judged yet: that takes {EARLY} iterations, {len(metrics)} are recorded."
    missing = [key for key in JUDGED if not _values(metrics[-WINDOW:], key)]
    return f"Not judged: the record lacks {', '.join(missing)}." if missing else ""


def replay_ratio(config: Config) -> Warning | None:
    if config.replay_ratio <= MOST_REPLAY:
        return None
    return Warning(
        "replay ratio too high",
        f"each position is sampled {config.replay_ratio:.1f} times; the network learns noise",
        "lower learner.updates_per_iteration or learner.batch_size",
    )


def entropy_collapse(metrics: Metrics) -> Warning | None:
    entropy = _recent(metrics, "selfplay/policy_entropy")
    if entropy is None or entropy >= COLLAPSED:
        return None
    return Warning(
        "entropy collapse",
        f"the policy of the search has {entropy:.2f} nats of entropy: games are all alike",
        "raise selfplay.opening_plies and selfplay.sampled_plies",
    )


def large_logits(metrics: Metrics) -> Warning | None:
    squares = _recent(metrics, "learn/logit_size")  # of both heads, added
    if squares is None or squares <= LARGE_LOGITS**2:
        return None
    return Warning(
        "logits grow together",
        f"their log-sum-exp is {squares**0.5:.3g}: bfloat16 cannot tell logits of this size apart",
        "lower learner.learning_rate; go on from a checkpoint before the growth",
    )


def steep_gradient(metrics: Metrics) -> Warning | None:
    norms = _values(metrics, "learn/gradient_norm")
    if len(norms) < 2 * WINDOW or fmean(norms[-WINDOW:]) <= STEEP * median(norms):
        return None
    return Warning(
        "gradient explodes",
        f"its norm is {fmean(norms[-WINDOW:]):.3g}, usually {median(norms):.3g}",
        "lower learner.learning_rate, or raise learner.warmup_updates",
    )


def skipped_updates(metrics: Metrics) -> Warning | None:
    skipped = sum(_values(metrics[-WINDOW:], "learn/skipped_updates"))
    if not skipped:
        return None
    return Warning(
        "updates skipped",
        f"{skipped:.0f} updates of the last {WINDOW} iterations had a gradient that is not finite",
        "lower learner.learning_rate",
    )


def one_sided(metrics: Metrics) -> Warning | None:
    draws = _recent(metrics, "selfplay/draws")
    first = _recent(metrics, "selfplay/first_wins")
    if draws is None or first is None:
        return None
    for share, words in (
        (draws, "games are drawn"),
        (first, "games are won by the first player"),
        (1 - draws - first, "games are won by the second player"),
    ):
        if share >= ONE_SIDED:
            return Warning(
                "all games end alike",
                f"{share:.0%} of the {words}",
                "raise selfplay.opening_plies, selfplay.sampled_plies or selfplay.deviations",
            )
    return None


def idle_lanes(metrics: Metrics) -> Warning | None:
    used = _recent(metrics, "selfplay/used")
    if used is None or used >= IDLE:
        return None
    return Warning(
        "lanes idle",
        f"{1 - used:.0%} of the lanes hold games that are over",
        "raise selfplay.games, or lower selfplay.start_ply",
    )


def slow(metrics: Metrics) -> Warning | None:
    speeds = _values(metrics, "speed/evaluations_per_second")
    if len(speeds) < 2 * WINDOW or fmean(speeds[-WINDOW:]) >= SLOW * median(speeds):
        return None
    return Warning(
        "slower than before",
        f"{fmean(speeds[-WINDOW:]):,.0f} evaluations/s, usually {median(speeds):,.0f}",
        "look for other programs on the device, its temperature and its power limit",
    )


def solver(metrics: Metrics) -> Warning | None:
    unsolved = _recent(metrics, "selfplay/unsolved")
    if unsolved is None:
        return None
    waited = sum(_values(metrics[-WINDOW:], "speed/solver_wait_seconds"))
    share = waited / max(sum(_values(metrics[-WINDOW:], "speed/seconds")), 1e-9)
    if unsolved <= UNSOLVED and share <= WAITING:
        return None
    return Warning(
        "solver too slow",
        f"{unsolved:.0%} of the games stop where it finds no value, and the device waits for it "
        f"{share:.0%} of the time",
        "lower selfplay.adjudicate_below",
    )


CHECKS: tuple[Callable[[Metrics], Warning | None], ...] = (
    entropy_collapse,
    large_logits,
    steep_gradient,
    skipped_updates,
    one_sided,
    idle_lanes,
    slow,
    solver,
)


def losses(config: Config, metrics: Metrics) -> Iterator[Warning]:
    """Yield warnings about a loss that rises or stays flat.

    While the start of games falls, positions become harder, and a loss may rise.
    """
    metrics = [line for line in metrics if _fraction(config, line) >= config.selfplay.start_falls]
    for key, name, change in (
        ("learn/margin_loss", "value", "lower learner.updates_per_iteration"),
        # Not its loss: that holds the entropy of the target, which changes with the start.
        ("learn/policy_divergence", "policy", "lower learner.learning_rate"),
    ):
        values = _values(metrics, key)
        if len(values) < 2 * WINDOW:
            continue
        means = [fmean(values[end - WINDOW : end]) for end in range(WINDOW, len(values) + 1)]
        if means[-1] > RISE * min(means):
            yield Warning(
                f"{name} error rises",
                f"{key} is {means[-1]:.2f} on replay, after {min(means):.2f} at its best",
                change,
            )
        elif name == "value" and len(means) > FLAT_AFTER and min(means) > FLAT * means[0]:
            yield Warning(
                "value error flat",
                f"{key} is {means[-1]:.2f} on replay, {means[0]:.2f} at the start",
                "begin games later: raise selfplay.start_ply, and let selfplay.start_falls lower it"
                if not config.selfplay.start_ply
                else "raise learner.learning_rate or network.channels",
            )


def evaluations(metrics: Metrics) -> Iterator[Warning]:
    """Yield warnings about exact play that has become worse."""
    keys = {key for line in metrics for key in line}
    for key in sorted(k for k in keys if k.startswith("suite/") and k.endswith("/optimal_share")):
        shares = _values(metrics, key)
        if max(shares) - shares[-1] > WORSE:
            yield Warning(
                "more wrong moves",
                f"{1 - shares[-1]:.1%} of {key.split('/')[1]} on solved positions, after "
                f"{1 - max(shares):.1%}",
                "lower learner.learning_rate, or take an earlier checkpoint",
            )


def _fraction(config: Config, line: dict[str, Any]) -> float:
    return config.fraction_done(line["iteration"], line.get("speed/minutes", 0.0))


def _values(metrics: Metrics, key: str) -> list[float]:
    return [float(line[key]) for line in metrics if isinstance(line.get(key), int | float)]


def _recent(metrics: Metrics, key: str) -> float | None:
    values = _values(metrics, key)[-WINDOW:]
    return fmean(values) if values else None
