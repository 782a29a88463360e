"""Trained networks: read from a run or from files of their own, and taken as initial weights.

A network in files of its own, shipped with the package or exported from a run, has three:
NAME.safetensors with the weights, NAME.yaml with the config of its training, NAME.json with how it
was trained and how strong it was measured to be. The package ships some in `jaxzero/weights/`.

Initial weights of a run may come from another board: those of a convolutional trunk are resized,
of others the arrays carry over that do not depend on its size, such as the inner blocks of a dense
one, and the rest starts fresh.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict
from safetensors.numpy import save

from jaxzero.config import Config
from jaxzero.config.files import config_of_file, save_config
from jaxzero.errors import InputError, as_field, nearest, shortened
from jaxzero.host.files import make_folder, temporary_folder, write_json
from jaxzero.host.readers import (
    check_mapping,
    is_file,
    read_mapping,
    read_tensors,
    why_no_file,
)
from jaxzero.network.network import Network, init_params
from jaxzero.players.agent import Agent
from jaxzero.runs.run_dir import CHECKPOINTS, CONFIG_FILE, check_run, finished_checkpoints
from jaxzero.runs.source import FOLDER, SUFFIX, Source, shipped_names

if TYPE_CHECKING:
    from jaxzero.runs.checkpoint import Say

INITIAL_FILE = "begun_with.json"


class LoadedAgent(NamedTuple):
    """The network of a run as it stood after `iteration` iterations."""

    agent: Agent  # weights are NumPy arrays
    config: Config
    iteration: int


def load_agent(run_dir: Path, checkpoint: int | None = None, say: Say = print) -> LoadedAgent:
    """Read the network of a run from one checkpoint or, by default, the newest good one.

    Takes the weights that play: with a gate the best.
    `say` names checkpoints that are skipped. Raises: InputError where there is no run, no such
    checkpoint, or none that can be read.
    """
    from jaxzero.runs.checkpoint import Checkpoints, layout_difference  # slow to import

    check_run("run_dir", run_dir)
    config = config_of_file(run_dir / CONFIG_FILE)
    if not (run_dir / CHECKPOINTS).is_dir():  # opening it would make it
        raise InputError(f"run_dir: {run_dir} has no checkpoint yet")
    with Checkpoints(run_dir, config.keep_checkpoints) as checkpoints:
        found = checkpoints.iterations()
        if checkpoint is None:
            learner = checkpoints.restore_newest(say=say).learner
        elif checkpoint in found:
            learner = checkpoints.restore(checkpoint).learner
        else:
            there = ", ".join(map(str, found)) or "none"
            raise InputError(f"checkpoint: {checkpoint} is not in {run_dir} (there are: {there})")
    network = Network(config.game.board, config.network)
    params = learner.get("best") or learner["params"]
    params = jax.tree.map(np.array, params)
    like = param_shapes(network)
    fits = jax.tree.structure(params) == jax.tree.structure(like)
    if not fits or layout_difference(like, params):
        raise InputError(f"run_dir: the weights in {run_dir} do not fit its network")
    return LoadedAgent(Agent(network, params, config.search), config, int(learner["iteration"]))


def load_weights(name: str) -> LoadedAgent:
    """Load a network that is shipped or was exported, or that of a run, by its folder.

    Raises: InputError, as `find_weights` and `load_agent`.
    """
    if folder := Source(None, name).folder:
        with as_field("weights", "run_dir", name):
            return load_agent(folder, say=partial(print, file=sys.stderr))
    path = find_weights(name)
    config = config_of_file(_beside(path, ".yaml"))
    network = Network(config.game.board, config.network)
    flat = read_tensors("weights", _beside(path, SUFFIX))
    if path.parent != FOLDER:  # of a shipped one that is known; to trace a network takes a second
        check_shapes(flat, param_shapes(network))
    agent = Agent(network, from_half(flat), config.search)
    return LoadedAgent(agent, config, read_record(name)["iteration"])


def find_weights(name: str) -> Path:
    """Return the path, without its suffix, of a network that is shipped or was exported.

    `name` is that of one that is shipped, such as `5x5`, a .safetensors file, or a folder with one.
    Raises: InputError naming those there are.
    """
    names, path = shipped_names(), Path(name)
    if name in names:
        return FOLDER / name
    if os.path.isdir(path):  # not a method of `path`: names may be too long
        found = shipped_names(path)
        if len(found) != 1:
            there = ", ".join(f"{each}{SUFFIX}" for each in found)
            what = f"several weights, name one: {there}" if found else f"no run and no *{SUFFIX}"
            raise InputError(f"weights: {name} holds {what}")
        return path / found[0]
    file = path if path.suffix == SUFFIX or not path.name else _beside(path, SUFFIX)
    if is_file(file):
        return file.with_name(file.name.removesuffix(SUFFIX))
    why = f"is no {SUFFIX} file" if is_file(path) else why_no_file(path, "do not exist")
    raise InputError(
        f"weights: {shortened(repr(name))} {why}{nearest(name, names)} (there: {', '.join(names)}; "
        f"else the path of a {SUFFIX} file, its folder, or the folder of a run)"
    )


def read_record(name: str) -> dict[str, Any]:
    """Return how a network was trained and what was measured of it. Raises: InputError."""
    path = _beside(find_weights(name), ".json")
    return read_mapping("weights", path, {"iteration": int})


def _beside(path: Path, suffix: str) -> Path:
    """Return a file of a network; `with_suffix` would cut a name such as `run.1`."""
    return path.with_name(path.name + suffix)


def param_shapes(network: Network) -> chex.ArrayTree:
    """Return the shapes of the parameters of a network."""
    return jax.eval_shape(partial(init_params, network), jax.random.key(0))


def write_weights(loaded: LoadedAgent, record: dict[str, Any], name: str, folder: Path) -> None:
    """Write a network, its config and its record to `folder`, over those of the same name."""
    make_folder("out", folder)
    record = {"iteration": loaded.iteration, **record}
    with temporary_folder(folder) as unfinished:
        save_config(loaded.config, unfinished / f"{name}.yaml")
        write_json(unfinished / f"{name}.json", record)
        # Not `save_file`, whose files others cannot read.
        (unfinished / f"{name}{SUFFIX}").write_bytes(save(to_half(loaded.agent.params)))
        # The weights go last: without them the other files name no network.
        for suffix in (".yaml", ".json", SUFFIX):
            (unfinished / f"{name}{suffix}").replace(folder / f"{name}{suffix}")


def to_half(params: chex.ArrayTree) -> dict[str, np.ndarray]:
    """Return every array of a tree by its path, as float16, which is precise enough to play."""
    flat = flatten_dict(params, sep="/")
    return {name: np.asarray(leaf, np.float16) for name, leaf in flat.items()}


def from_half(flat: dict[str, np.ndarray]) -> chex.ArrayTree:
    """Return the tree of arrays by path, float32."""
    return unflatten_dict({name: np.asarray(flat[name], np.float32) for name in flat}, sep="/")


def check_shapes(flat: dict[str, np.ndarray], like: chex.ArrayTree) -> None:
    """Raise an InputError unless arrays by path are those of the tree `like`."""
    shapes = {name: leaf.shape for name, leaf in flatten_dict(like, sep="/").items()}
    for name, shape in shapes.items():
        if name not in flat or flat[name].shape != shape:
            raise InputError(f"weights: {name} {shape} is missing or of another shape")
    for name in flat:
        if name not in shapes:
            raise InputError(f"weights: {name} is no array of this network")


EFFORT = {"games": int, "minutes": int | float}  # in records


class Effort(NamedTuple):
    """The training that went into weights, from zero on."""

    games: int = 0
    minutes: float = 0.0  # of self-play and learning


class InitialWeights(NamedTuple):
    """Weights to start from."""

    network: Network
    params: chex.ArrayTree
    name: str  # of the folder of a run, or of what is shipped
    effort: Effort


def read_initial_weights(name: str) -> InitialWeights:
    """Read the weights of a run, where `name` is its folder, or of a network in a file.

    Raises: InputError.
    """
    source = Source(None, name)
    loaded = source.load()
    training = training_record(source, loaded)
    effort = Effort(training["games"], training["minutes"])
    return InitialWeights(loaded.agent.network, loaded.agent.params, name, effort)


def training_record(source: Source, loaded: LoadedAgent) -> dict[str, Any]:
    """Return what went into a network, its beginning included, and the version that made it."""
    from jaxzero.runs.checkpoint import Checkpoints

    if source.folder is None:
        path = _beside(find_weights(source.weights), ".json")
        training = read_record(source.weights).get("training")
        return check_mapping("weights", path, training, EFFORT)
    with Checkpoints(source.folder) as checkpoints:
        saved = checkpoints.record(loaded.iteration)
    _, before = initial_note(source.folder)
    return {
        "minutes": before.minutes + saved["minutes"],
        "games": before.games + saved["games"],
        "version": saved["version"],
    }


def note_initial_weights(run_dir: Path, initial: InitialWeights) -> None:
    """Note in the folder of a run what it begins with."""
    shipped = initial.name in shipped_names()
    name = initial.name if shipped else os.path.abspath(initial.name)
    note = {"weights": name, **initial.effort._asdict()}
    write_json(run_dir / INITIAL_FILE, note)


def noted_initial_weights(run_dir: Path) -> InitialWeights | None:
    """Return what a run without a checkpoint had begun with, None for a run from zero.

    Raises: InputError where it is not there any more.
    """
    name, _ = initial_note(run_dir)
    begun = not finished_checkpoints(run_dir / CHECKPOINTS)
    return read_initial_weights(name) if name and begun else None


def initial_note(run_dir: Path) -> tuple[str | None, Effort]:
    """Return the name of the weights a run had begun with and what had gone into them.

    No name and nothing for a run from zero. Raises: InputError.
    """
    path = run_dir / INITIAL_FILE
    if not path.exists():
        return None, Effort()
    note = read_mapping("run_dir", path, {"weights": str, **EFFORT})
    return note["weights"], Effort(note["games"], note["minutes"])


class Transfer(NamedTuple):
    """The weights of one network, where possible replaced by those of another."""

    params: chex.ArrayTree  # float32, shaped like the weights of the network that takes
    taken: int  # arrays that came from the other
    arrays: int  # arrays in all


def transfer(source: chex.ArrayTree, target: chex.ArrayTree) -> Transfer:
    """Return `target` with every array that `source` has under the same name in the same shape."""
    given, own = flatten_dict(source), flatten_dict(target)
    fits = {name for name, leaf in own.items() if name in given and given[name].shape == leaf.shape}
    merged = {
        name: jnp.asarray(given[name], leaf.dtype) if name in fits else leaf
        for name, leaf in own.items()
    }
    return Transfer(unflatten_dict(merged), len(fits), len(own))
