"""What a run begins with, when not from zero: weights, and what has gone into them before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import chex

from jaxzero.errors import InputError
from jaxzero.files import write_json
from jaxzero.training.checkpoint import Checkpoints
from jaxzero.training.loading import LoadedAgent
from jaxzero.training.run_folder import CHECKPOINTS, CONFIG_FILE, finished_checkpoints
from jaxzero.training.shipping import read_record
from jaxzero.training.source import Source

FILE = "begun_with.json"


class Past(NamedTuple):
    """What has gone into weights, from zero on."""

    games: int = 0
    minutes: float = 0.0  # of self-play and learning


class Beginning(NamedTuple):
    """Weights to begin with."""

    params: chex.ArrayTree
    name: str  # of the folder of a run, or of what is shipped
    past: Past


def beginning_from(name: str) -> Beginning:
    """Read the weights of a run, where `name` is its folder, or of a network in a file.

    Raises: InputError.
    """
    folder = Path(name)
    source = Source(folder, None) if (folder / CONFIG_FILE).is_file() else Source(None, name)
    try:
        loaded = source.load()
    except InputError as error:  # here the folder of a run is no --run_dir
        raise InputError(str(error).replace("run_dir:", "weights:", 1)) from error
    training = training_record(source, loaded)
    return Beginning(loaded.agent.params, name, Past(training["games"], training["minutes"]))


def training_record(source: Source, loaded: LoadedAgent) -> dict[str, Any]:
    """Return what went into a network, its beginning included, and the version that made it."""
    if source.run_dir is None:
        return read_record(source.weights)["training"]
    with Checkpoints(source.run_dir) as checkpoints:
        saved = checkpoints.record(loaded.iteration)
    past = read_past(source.run_dir)
    return {
        "minutes": past.minutes + saved["minutes"],
        "games": past.games + saved["games"],
        "version": saved["version"],
    }


def write_beginning(run_dir: Path, beginning: Beginning) -> None:
    """Note in the folder of a run what it begins with."""
    note = {"weights": beginning.name, **beginning.past._asdict()}
    write_json(run_dir / FILE, note)


def beginning_of(run_dir: Path) -> Beginning | None:
    """Return what a run without a checkpoint had begun with, None for a run from zero.

    Raises: InputError where it is not there any more.
    """
    if not (run_dir / FILE).exists() or finished_checkpoints(run_dir / CHECKPOINTS):
        return None
    return beginning_from(json.loads((run_dir / FILE).read_text())["weights"])


def read_past(run_dir: Path) -> Past:
    """Return what had gone into the weights a run began with, nothing where it began at zero."""
    if not (run_dir / FILE).exists():
        return Past()
    note = json.loads((run_dir / FILE).read_text())
    return Past(note["games"], note["minutes"])
