"""A training whose numbers are not finite goes on once from its checkpoint, with smaller steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from jaxzero.config import Config
from jaxzero.errors import RunError
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.run_dir import CHECKPOINTS, finished_checkpoints, resume_command
from jaxzero.runs.weights import InitialWeights
from jaxzero.training.parallel import gather

SMALLER = 0.3  # times the learning rate, after a training that diverged


class Diverged(RunError):
    """Too many skipped updates, or a metric or weight not finite; the message says what is left."""


def train_twice(
    train: Callable[[Config, bool, InitialWeights | None], bool],
    config: Config,
    run_dir: Path,
    resume: bool,
    initial: InitialWeights | None,
) -> bool:
    """Train, and after a divergence once more from the newest checkpoint, with smaller steps.

    Raises: RunError when it diverges again, or before its first checkpoint.
    """
    before = config.learner.learning_rate
    try:
        return train(config, resume, initial)
    except Diverged as error:
        if not gather([len(finished_checkpoints(run_dir / CHECKPOINTS))])[0, 0]:
            raise RunError(f"{error} {_slower_command(run_dir, before)}") from error
        rate = SMALLER * before
        print(f"{error} It goes on from there with learner.learning_rate {rate:g}.", flush=True)
    smaller = replace(config, learner=replace(config.learner, learning_rate=rate))
    try:
        return train(smaller, True, None)
    except Diverged as error:
        again = f"It had diverged before, with {before:g}."
        raise RunError(f"{error} {again} {_slower_command(run_dir, rate)}") from error


@contextmanager
def divergence(config: Config, checkpoints: Checkpoints | None = None) -> Iterator[None]:
    """Turn a FloatingPointError into `Diverged`: what is not finite, and what is left."""
    try:
        yield
    except FloatingPointError as error:
        rate = config.learner.learning_rate
        message = f"learner.learning_rate: {rate:g} made the training diverge: {error}."
        if checkpoints is not None:
            checkpoints.wait()
            found = checkpoints.iterations()
            left = f"checkpoint {found[-1]} stays" if found else "there was no checkpoint yet"
            message += f" Nothing of this is saved, {left}."
        raise Diverged(message) from error


def _slower_command(run_dir: Path, rate: float) -> str:
    smaller = min(rate / 10, 1e-3)
    return f"To go on slower: {resume_command(run_dir)} --learner.learning_rate {smaller:g}"
