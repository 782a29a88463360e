"""Warnings about a run in progress: what looks wrong, and which setting to change.

The limits are chosen so that complete runs of `quick.yaml`, `cpu.yaml` and `gpu_80gb.yaml` give no
warning.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from statistics import fmean

from jaxzero.config import Config

WINDOW = 5  # iterations of a mean; nothing but the replay ratio is judged before
COLLAPSED = 0.15  # nats of the policy's entropy
RISE = 1.3  # times the lowest mean of a loss,
LEAST_RISE = 0.05  # and at least so many nats
MAX_REPLAY_RATIO = 9.0
ALIKE = 0.99  # fraction of games with the same result

OPENINGS = "raise selfplay.random_opening_moves and selfplay.sampled_moves"
# The policy loss includes the entropy of the target, which changes with the start of games.
LOSSES = {
    "learn/margin_loss": ("value error rises", "lower learner.updates_per_iteration"),
    "learn/policy_divergence": ("policy error rises", "lower learner.learning_rate"),
}
MEANS = (*LOSSES, "selfplay/policy_entropy", "selfplay/draws", "selfplay/first_wins")


class Warnings:
    """Watches the metrics of a run and reports each kind of problem once."""

    def __init__(self, config: Config):
        self._config = config
        self._recent = {name: deque(maxlen=WINDOW) for name in MEANS}
        self._lowest: dict[str, float] = {}  # means of a loss
        self._reported: set[str] = set()

    def add(self, metrics: Mapping[str, float]) -> list[str]:
        """Take the metrics of an iteration; return the warnings that hold for the first time."""
        for name, values in self._recent.items():
            if name in metrics:
                values.append(metrics[name])
        new = [one for one in self._problems(metrics) if one[0] not in self._reported]
        self._reported |= {name for name, _ in new}
        return [f"{name}: {words}" for name, words in new]

    def _problems(self, metrics: Mapping[str, float]) -> Iterator[tuple[str, str]]:
        """Yield the name and the text of each warning that holds now."""
        config, ratio = self._config, self._config.replay_ratio
        if ratio > MAX_REPLAY_RATIO:
            yield (
                "replay ratio too high",
                f"each position is sampled {ratio:.1f} times; the network learns noise. "
                "Lower learner.updates_per_iteration or learner.batch_size",
            )
        if skipped := metrics.get("learn/skipped_updates"):
            yield (
                "updates skipped",
                f"{skipped:.0f} updates had a gradient that is not finite. "
                "Lower learner.learning_rate",
            )
        means = {
            name: fmean(values) for name, values in self._recent.items() if len(values) == WINDOW
        }
        if (entropy := means.get("selfplay/policy_entropy", 1.0)) < COLLAPSED:
            yield (
                "policy collapsed",
                f"the policy of the search has {entropy:.2f} nats of entropy: games are all "
                f"alike. To mend it, {OPENINGS}",
            )
        if {"selfplay/draws", "selfplay/first_wins"} <= means.keys():
            draws, first = means["selfplay/draws"], means["selfplay/first_wins"]
            share = max(draws, first, 1 - draws - first)
            if share >= ALIKE:
                yield (
                    "games all alike",
                    f"{share:.0%} of the games have the same result. To mend it, {OPENINGS}",
                )
        # Late starts move earlier, which may raise a loss: judge losses afterwards.
        done = config.progress(metrics["iteration"], metrics.get("speed/minutes", 0.0))
        if done >= config.selfplay.late_start_until:
            for key in LOSSES.keys() & means.keys():
                mean = means[key]
                lowest = self._lowest[key] = min(mean, self._lowest.get(key, mean))
                if mean > max(RISE * lowest, LEAST_RISE + lowest):
                    name, change = LOSSES[key]
                    yield name, f"{key} is {mean:.2f}, after {lowest:.2f} at its best: {change}"
