"""Report a training that diverged, and its last good checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jaxzero.config import Config
from jaxzero.errors import RunError
from jaxzero.runs.checkpoint import Checkpoints


@contextmanager
def divergence(
    config: Config, checkpoints: Checkpoints | None = None, resume_command: str = ""
) -> Iterator[None]:
    """Turn a FloatingPointError into a RunError that explains what is left and what to do."""
    try:
        yield
    except FloatingPointError as error:
        rate = config.learner.learning_rate
        message = f"learner.learning_rate: {rate:g} made the training diverge: {error}."
        if checkpoints is not None:
            checkpoints.wait()
            found = checkpoints.iterations()
            left = f"checkpoint {found[-1]} stays" if found else "there was no checkpoint yet"
            message += f" Nothing of this is saved, {left}. To go on with smaller steps: "
            message += f"{resume_command} --learner.learning_rate {min(0.3 * rate, 1e-3):g}"
        raise RunError(message) from error
