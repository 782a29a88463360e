"""Trained networks: read from a run or from files, and used as initial weights.

A network outside a run is shipped with the package or exported from a run. NAME.safetensors alone
is the network: weights, config and record of its training and strength, and a checksum of them.
NAME.yaml and NAME.json are copies of config and record for people to read.
Shipped networks are in `jaxzero/weights/`.

Initial weights of a run may come from another board. A network that fits all boards is resized if
its settings are the same. Otherwise the arrays that do not depend on the board carry over, such as
the inner blocks of a dense trunk; the rest starts from scratch.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jaxzero.config import Config, config_of, config_of_file, save_config
from jaxzero.errors import InputError
from jaxzero.host.files import atomic_write, write_json
from jaxzero.network.network import Agent, Network, init_params
from jaxzero.runs.run_dir import CHECKPOINTS, check_run, config_file, finished_checkpoints
from jaxzero.runs.source import FOLDER, SUFFIX, Source, shipped_names

if TYPE_CHECKING:
    from jaxzero.runs.checkpoint import Say

INITIAL_FILE = "begun_with.json"
ABOUT, CHECKSUM = "jaxzero", "checksum"  # metadata of exported weights


class LoadedAgent(NamedTuple):
    """The network of a run as it stood after `iteration` iterations."""

    agent: Agent  # weights are NumPy arrays
    config: Config
    iteration: int


def load_agent(run_dir: Path, checkpoint: int | None = None, say: Say = print) -> LoadedAgent:
    """Read the network of a run from one checkpoint or, by default, the newest good one.

    Takes the weights that play; with a gate these may be older ones. `say` reports skipped
    checkpoints. Raises: InputError if there is no run, no such checkpoint, or no readable one.
    """
    from jaxzero.runs.checkpoint import Checkpoints  # slow to import

    check_run("run_dir", run_dir)
    config = config_of_file(config_file(run_dir))
    if not (run_dir / CHECKPOINTS).is_dir():  # opening it would create it
        raise InputError(f"run_dir: {run_dir} has no checkpoint yet")
    with Checkpoints(run_dir) as checkpoints:
        found = checkpoints.iterations()
        if checkpoint is None:
            restored = checkpoints.restore_newest(say=say)
        elif checkpoint in found:
            restored = checkpoints.restore(checkpoint)
        else:
            there = ", ".join(map(str, found)) or "none"
            raise InputError(f"checkpoint: {checkpoint} is not in {run_dir} (there are: {there})")
    network = Network(config.game.board, config.network)
    learner = restored.learner
    params = learner["params"] if restored.playing is None else restored.playing
    params = jax.tree.map(np.array, params)
    check_shapes(f"run_dir: {run_dir}", flatten_dict(params, sep="/"), param_shapes(network))
    return LoadedAgent(Agent(network, params, config.search), config, int(learner["iteration"]))


def load_weights(name: str) -> LoadedAgent:
    """Load a shipped or exported network, or that of a run by its folder.

    Raises: InputError, as `find_weights` and `load_agent`.
    """
    if folder := Source(None, name).folder:
        return load_agent(folder, say=partial(print, file=sys.stderr))
    path = find_weights(name)
    flat, config, record = read_exported(path)
    network = Network(config.game.board, config.network)
    if path.parent != FOLDER:  # shipped networks fit; tracing takes a second
        check_shapes(f"weights: {path.name}{SUFFIX}", flat, param_shapes(network))
    agent = Agent(network, from_half(flat), config.search)
    return LoadedAgent(agent, config, record["iteration"])


def read_exported(path: Path) -> tuple[dict[str, np.ndarray], Config, dict[str, Any]]:
    """Return the arrays, the config and the record of a network; `path` has no suffix.

    Raises: InputError, also if the content of the weights differs from their checksum.
    """
    file = _beside(path, SUFFIX)
    try:
        with safe_open(file, "np") as opened:
            metadata = opened.metadata() or {}
            flat = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise InputError(f"weights: {file} cannot be read ({error})") from error
    if ABOUT not in metadata:
        raise InputError(f"weights: {file} was not written by jaxzero: it holds no config")
    if metadata.get(CHECKSUM) != _sum_exported(flat, metadata[ABOUT]):
        raise InputError(f"weights: {file} is damaged: its content differs from its checksum")
    for name, array in flat.items():
        if not np.isfinite(array).all():
            raise InputError(f"weights: {name} in {file} is not finite")
    about = json.loads(metadata[ABOUT])
    return flat, config_of(about["config"], str(file)), about["record"]


def _sum_exported(flat: dict[str, np.ndarray], about: str) -> str:
    """Return the CRC-32 of the arrays and of `about`, with their names and in their order."""
    named = sorted({**flat, ABOUT: np.frombuffer(about.encode(), np.uint8)}.items())
    parts = (f"{name} {x.dtype} {x.shape}".encode() + x.tobytes() for name, x in named)
    return str(zlib.crc32(b"".join(parts)))


def find_weights(name: str) -> Path:
    """Return the path, without its suffix, of a shipped or exported network.

    `name` is a shipped network such as `5x5`, a .safetensors file, or a folder with one such file.
    Raises: InputError naming the networks there are.
    """
    names, path = shipped_names(), Path(name)
    if name in names:
        return FOLDER / name
    if path.is_dir():
        found = shipped_names(path)
        if len(found) != 1:
            there = ", ".join(f"{each}{SUFFIX}" for each in found)
            what = f"several weights, name one: {there}" if found else f"no run and no *{SUFFIX}"
            raise InputError(f"weights: {name} holds {what}")
        return path / found[0]
    file = path if path.suffix == SUFFIX or not path.name else _beside(path, SUFFIX)
    if file.is_file():
        return file.with_name(file.name.removesuffix(SUFFIX))
    raise InputError(
        f"weights: {name!r} does not exist (there are {', '.join(names)}; else name a {SUFFIX} "
        "file, its folder, or the folder of a run)"
    )


def read_record(name: str) -> dict[str, Any]:
    """Return the record of a network: training and measured strength. Raises: InputError."""
    return read_exported(find_weights(name))[2]


def _beside(path: Path, suffix: str) -> Path:
    """Return a file of a network; `with_suffix` would cut a name such as `run.1`."""
    return path.with_name(path.name + suffix)


def param_shapes(network: Network) -> chex.ArrayTree:
    """Return the shapes of the parameters of a network."""
    return jax.eval_shape(partial(init_params, network), jax.random.key(0))


def write_weights(loaded: LoadedAgent, record: dict[str, Any], name: str, folder: Path) -> None:
    """Write a network, its config and its record to `folder`, replacing the same names."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {"iteration": loaded.iteration, **record}
    flat = to_half(loaded.agent.params)
    about = json.dumps({"config": asdict(loaded.config), "record": record})
    metadata = {ABOUT: about, CHECKSUM: _sum_exported(flat, about)}
    with atomic_write(folder / f"{name}{SUFFIX}") as temporary:
        # Not `save_file`: other users cannot read its files.
        temporary.write_bytes(save(flat, metadata))
    save_config(loaded.config, folder / f"{name}.yaml")
    write_json(folder / f"{name}.json", record)


def to_half(params: chex.ArrayTree) -> dict[str, np.ndarray]:
    """Return the arrays of a tree by path, as float16, which is precise enough to play."""
    flat = flatten_dict(params, sep="/")
    return {name: np.asarray(leaf, np.float16) for name, leaf in flat.items()}


def from_half(flat: dict[str, np.ndarray]) -> chex.ArrayTree:
    """Return arrays by path as a tree of float32."""
    return unflatten_dict({name: np.asarray(flat[name], np.float32) for name in flat}, sep="/")


def check_shapes(field: str, flat: dict[str, np.ndarray], like: chex.ArrayTree) -> None:
    """Raise an InputError unless arrays by path have the names and shapes of `like`."""
    shapes = {name: leaf.shape for name, leaf in flatten_dict(like, sep="/").items()}
    for name, shape in shapes.items():
        if name not in flat or flat[name].shape != shape:
            raise InputError(f"{field}: {name} {shape} is missing or of another shape")
    for name in flat:
        if name not in shapes:
            raise InputError(f"{field}: {name} is no array of this network")


class Effort(NamedTuple):
    """The total training of weights, from scratch."""

    games: int = 0
    minutes: float = 0.0  # of self-play and learning


class InitialWeights(NamedTuple):
    """Weights to start from."""

    network: Network
    params: chex.ArrayTree
    name: str  # folder of a run, path of a file, or shipped name
    effort: Effort


def read_initial_weights(name: str) -> InitialWeights:
    """Read initial weights; `name` is a shipped name, a file or folder, or the folder of a run.

    Raises: InputError.
    """
    source = Source(None, name)
    loaded = source.load()
    training = training_record(source, loaded)
    effort = Effort(training["games"], training["minutes"])
    return InitialWeights(loaded.agent.network, loaded.agent.params, name, effort)


def training_record(source: Source, loaded: LoadedAgent) -> dict[str, Any]:
    """Return the effort of a network, including its initial weights, and its jaxzero version."""
    from jaxzero.runs.checkpoint import Checkpoints

    if source.folder is None:
        return read_record(source.weights)["training"]
    with Checkpoints(source.folder) as checkpoints:
        saved = checkpoints.record(loaded.iteration)
    _, before = initial_note(source.folder)
    return {
        "minutes": before.minutes + saved["minutes"],
        "games": before.games + saved["games"],
        "version": saved["version"],
    }


def note_initial_weights(run_dir: Path, initial: InitialWeights) -> None:
    """Write the name and the effort of the initial weights to the folder of a run."""
    shipped = initial.name in shipped_names()
    name = initial.name if shipped else os.path.abspath(initial.name)
    note = {"weights": name, **initial.effort._asdict()}
    write_json(run_dir / INITIAL_FILE, note)


def noted_initial_weights(run_dir: Path) -> InitialWeights | None:
    """Return the noted initial weights while a run has no checkpoint; else None.

    Raises: InputError if the weights are no longer there.
    """
    if finished_checkpoints(run_dir / CHECKPOINTS):
        return None
    name, _ = initial_note(run_dir)
    return read_initial_weights(name) if name else None


def initial_note(run_dir: Path) -> tuple[str | None, Effort]:
    """Return the name and the effort of the initial weights of a run.

    A run from scratch has no name and no effort. Raises: InputError.
    """
    path = run_dir / INITIAL_FILE
    if not path.exists():
        return None, Effort()
    note = json.loads(path.read_text())
    return note["weights"], Effort(note["games"], note["minutes"])


class Transfer(NamedTuple):
    """The weights of one network, with those of another where names and shapes match."""

    params: chex.ArrayTree  # float32, shaped like the weights of the target
    taken: int  # arrays from the source
    arrays: int  # arrays in all


def transfer(source: chex.ArrayTree, target: chex.ArrayTree) -> Transfer:
    """Return `target` with each array from `source` that has the same name and shape."""
    given, own = flatten_dict(source), flatten_dict(target)
    fits = {name for name, leaf in own.items() if name in given and given[name].shape == leaf.shape}
    merged = {
        name: jnp.asarray(given[name], leaf.dtype) if name in fits else leaf
        for name, leaf in own.items()
    }
    return Transfer(unflatten_dict(merged), len(fits), len(own))
