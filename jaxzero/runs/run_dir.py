"""The directory of a run: whether a run may start or resume in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from jaxzero.cli import load_config
from jaxzero.config import Config
from jaxzero.errors import UNFINISHED, InputError
from jaxzero.files import locked_folder, make_folder
from jaxzero.interrupts import cleaned_up
from jaxzero.runs.metrics import read_metrics

CONFIG_FILE = "config.yaml"
CHECKPOINTS = "checkpoints"


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
        before = load_config(saved)
        refuse_contradiction(config, before, run_dir)
        refuse_lost_checkpoints(before, run_dir)


def refuse_lost_checkpoints(saved: Config, run_dir: Path) -> None:
    """Raise an InputError where a run has come so far that a checkpoint must have been there.

    To go on would be to begin anew. A run that died in its first save may do that.
    """
    folder = run_dir / CHECKPOINTS
    if finished_checkpoints(folder) or any(folder.glob(f"*{UNFINISHED}*")):
        return
    done = max((line["iteration"] for line in read_metrics(run_dir)), default=0)
    if done >= 2 * saved.checkpoint_every or (done and not folder.is_dir()):
        raise InputError(
            f"run_dir: {run_dir} has metrics of {done} iterations and no checkpoint to go on from: "
            f"put its folder {CHECKPOINTS} back, or name another directory to begin anew"
        )


def finished_checkpoints(folder: Path) -> list[int]:
    """Return the iterations that have a finished checkpoint, oldest first. Raises: InputError."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"run_dir: {folder} is no folder of checkpoints")
    names = (path.name for path in folder.glob("*"))
    return sorted(int(name) for name in names if re.fullmatch("[0-9]{1,10}", name))


@contextmanager
def new_run_dir(run_dir: Path) -> Iterator[None]:
    """Make and lock the directory of a run for a block.

    It goes again where the block refuses the run, with the folders made for it. Raises: InputError
    where it cannot be made, or where another process trains in it.
    """
    made = [folder for folder in (run_dir, *run_dir.parents) if not folder.exists()]
    make_folder("run_dir", run_dir)
    with cleaned_up(partial(remove_if_empty, made)), locked_folder("run_dir", run_dir):
        yield


def remove_if_empty(folders: list[Path]) -> None:
    """Remove folders, the innermost first, that nothing was written to."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()  # refused by the system for those that are not empty


def refuse_contradiction(config: Config, saved: Config, run_dir: Path) -> None:
    """Raise an InputError when board or network differ from those of the saved run."""
    for section in ("game", "network"):
        now, before = asdict(getattr(config, section)), asdict(getattr(saved, section))
        for name, value in now.items():
            if value != before[name]:
                raise InputError(
                    f"{section}.{name}: {value} contradicts {before[name]} of the run in {run_dir}"
                )
