"""The folder of a run: whether a run may start or go on in it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from jaxzero.cli import load_config
from jaxzero.config import Config
from jaxzero.errors import InputError

CONFIG_FILE = "config.yaml"


def check_run_dir(config: Config, run_dir: Path, resume: bool) -> None:
    """Raise an InputError unless a run may start, or with `resume` go on, in `run_dir`."""
    saved = run_dir / CONFIG_FILE
    if saved.exists() and not resume:
        raise InputError(
            f"run_dir: {run_dir} holds a run; continue it with --resume or name another directory"
        )
    if resume and not saved.exists():
        raise InputError(f"run_dir: {run_dir} holds no run to resume")
    if resume:
        refuse_contradiction(config, load_config(saved), run_dir)


def make_run_dir(run_dir: Path) -> None:
    """Create a run directory. Raises: InputError where that cannot be."""
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"run_dir: {run_dir} cannot be made ({error.strerror})") from error


def remove_if_empty(run_dir: Path) -> None:
    """Take back a run directory that nothing was written to."""
    if not any(run_dir.iterdir()):
        run_dir.rmdir()


def refuse_contradiction(config: Config, saved: Config, run_dir: Path) -> None:
    """Raise an InputError when board or network differ from those of the saved run."""
    for section in ("game", "network"):
        now, before = asdict(getattr(config, section)), asdict(getattr(saved, section))
        for name, value in now.items():
            if value != before[name]:
                raise InputError(
                    f"{section}.{name}: {value} contradicts {before[name]} of the run in {run_dir}"
                )
