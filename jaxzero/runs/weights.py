"""Trained networks: read from a run or from files, and used as initial weights.

A network outside a run is shipped with the package or exported from a run. NAME.safetensors alone
is the network: weights, config and record of its training and strength, and a checksum of them.
NAME.yaml and NAME.json are copies of config and record for people to read.
Shipped networks are in `jaxzero/weights/`.

Initial weights of a run may come from another board. A network that fits all boards is resized if
its settings are the same. Otherwise the arrays that do not depend on the board carry over, such as
the inner blocks of a dense trunk; the rest starts from scratch.
"""

import json
import os
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jaxzero.config import Config, GameConfig, config_of, config_of_file
from jaxzero.errors import InputError
from jaxzero.heads import heads_of
from jaxzero.host.files import atomic_write, read_json, write_json
from jaxzero.network.network import Agent, Network, param_shapes
from jaxzero.runs.resize import resize
from jaxzero.runs.run_dir import (
    CHECKPOINTS,
    INITIAL_FILE,
    PLAYED_BY,
    SUFFIX,
    check_run,
    config_file,
    finished_checkpoints,
    run_folder,
    save_config,
    shipped_file,
    shipped_names,
)

ABOUT, CHECKSUM = "jaxzero", "checksum"  # metadata of exported weights


class LoadedAgent(NamedTuple):
    """A trained network as it stood after `iteration` iterations."""

    agent: Agent  # weights are NumPy arrays
    config: Config
    iteration: int
    record: dict[str, Any]  # "training": its minutes and games from scratch; of an export also more
    name: str = ""  # a shipped name, or the path of its file or run


def load_weights(name: str, field: str = "weights") -> LoadedAgent:
    """Load a shipped network such as `5x5`, an exported .safetensors file, or a run's network.

    Raises: InputError that begins with `field`.
    """
    if folder := run_folder(name):
        return load_agent(folder, field=field)
    shipped = name in shipped_names()
    file = shipped_file(name) if shipped else Path(name)
    if file.suffix != SUFFIX or not file.is_file():
        raise InputError(
            f"{field}: {name!r} is no network: name a shipped one ({', '.join(shipped_names())}), "
            f"a {SUFFIX} file, or the folder of a run"
        )
    flat, config, record = read_exported(file, field)
    network = network_of(config, flat)
    if not shipped:  # shipped networks fit; tracing takes a second
        check_shapes(f"{field}: {file.name}", flat, param_shapes(network))
    agent = Agent(network, from_half(flat), config.search)
    where = name if shipped else os.path.abspath(file)
    loaded = LoadedAgent(agent, config, record["iteration"], record, where)
    return for_board_of_name(loaded) if name in PLAYED_BY else loaded


def for_board_of_name(loaded: LoadedAgent) -> LoadedAgent:
    """Return a network of another board for the board that its name says."""
    game = GameConfig(*map(int, loaded.name.split("x")))
    agent = resize(loaded.agent, game.board, loaded.name)
    # Settings of its training and its measured strength are those of another board.
    config = Config(game, loaded.config.network, loaded.config.search)
    record = {"training": loaded.record["training"]}
    return loaded._replace(agent=agent, config=config, record=record)


def load_agent(run_dir: Path, checkpoint: int | None = None, field: str = "run_dir") -> LoadedAgent:
    """Read the network of a run from one checkpoint or, by default, the newest good one.

    Raises: InputError, which begins with `field`, if there is no run, no such checkpoint, or no
    readable one.
    """
    from jaxzero.runs.checkpoint import Checkpoints  # slow to import

    check_run(field, run_dir)
    config = config_of_file(config_file(run_dir), field)
    saved = finished_checkpoints(run_dir / CHECKPOINTS)
    if not saved:  # opening the folder would create it
        raise InputError(f"{field}: {run_dir} has no checkpoint yet")
    if checkpoint is not None and checkpoint not in saved:
        there = ", ".join(map(str, saved))
        raise InputError(f"{field}: {run_dir} has no checkpoint {checkpoint} (there are: {there})")
    with Checkpoints(run_dir) as checkpoints:
        if checkpoint is None:
            restored = checkpoints.restore_newest()
        else:
            restored = checkpoints.restore(checkpoint)
    learner, record = restored.learner, restored.record
    params = jax.tree.map(np.array, learner["params"])
    flat = flatten_dict(params, sep="/")
    network = network_of(config, flat)
    check_shapes(f"{field}: {run_dir}", flat, param_shapes(network))
    before = initial_note(run_dir)
    training = {
        "minutes": before["minutes"] + record["minutes"],
        "games": before["games"] + record["games"],
        "version": record["version"],
    }
    agent, iteration = Agent(network, params, config.search), int(learner["iteration"])
    return LoadedAgent(agent, config, iteration, {"training": training}, os.path.abspath(run_dir))


def read_exported(
    file: Path, field: str = "weights"
) -> tuple[dict[str, np.ndarray], Config, dict[str, Any]]:
    """Return the arrays, the config and the record of a network.

    Raises: InputError, also if the content of the file differs from its checksum.
    """
    try:
        with safe_open(file, "np") as opened:
            metadata = opened.metadata() or {}
            flat = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise InputError(f"{field}: {file} cannot be read ({error})") from error
    if ABOUT not in metadata:
        raise InputError(f"{field}: {file} was not written by jaxzero: it holds no config")
    if metadata.get(CHECKSUM) != _sum_exported(flat, metadata[ABOUT]):
        raise InputError(f"{field}: {file} is damaged: its content differs from its checksum")
    for name, array in flat.items():
        if not np.isfinite(array).all():
            raise InputError(f"{field}: {name} in {file} is not finite")
    about = json.loads(metadata[ABOUT])
    return flat, config_of(about["config"], str(file)), about["record"]


def write_weights(loaded: LoadedAgent, file: Path) -> None:
    """Write a network to `file`, and its config and record beside it; replace what is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    record = {"iteration": loaded.iteration, **loaded.record}
    flat = to_half(loaded.agent.params)
    about = json.dumps({"config": asdict(loaded.config), "record": record})
    metadata = {ABOUT: about, CHECKSUM: _sum_exported(flat, about)}
    with atomic_write(file) as temporary:
        # Not `save_file`: other users cannot read its files.
        temporary.write_bytes(save(flat, metadata))
    save_config(loaded.config, file.with_suffix(".yaml"))
    write_json(file.with_suffix(".json"), record)


def _sum_exported(flat: dict[str, np.ndarray], about: str) -> str:
    """Return the CRC-32 of the arrays and of `about`, with their names and in their order."""
    named = sorted({**flat, ABOUT: np.frombuffer(about.encode(), np.uint8)}.items())
    parts = (f"{name} {x.dtype} {x.shape}".encode() + x.tobytes() for name, x in named)
    return str(zlib.crc32(b"".join(parts)))


def to_half(params: chex.ArrayTree) -> dict[str, np.ndarray]:
    """Return the arrays of a tree by path, as float16, which is precise enough to play."""
    flat = flatten_dict(params, sep="/")
    # safetensors writes the memory of an array as it lies, also of one that is transposed.
    return {name: np.asarray(leaf, np.float16, order="C") for name, leaf in flat.items()}


def from_half(flat: dict[str, np.ndarray]) -> chex.ArrayTree:
    """Return arrays by path as a tree of float32."""
    return unflatten_dict({name: np.asarray(flat[name], np.float32) for name in flat}, sep="/")


def network_of(config: Config, flat: dict[str, np.ndarray]) -> Network:
    """Return the network of arrays by path, with those heads of `HEADS` that the arrays have."""
    heads = heads_of(config.network)
    names = tuple(name for name in heads if name == "margin" or f"params/{name}/kernel" in flat)
    return Network(config.game.board, config.network, head_names=names)


def check_shapes(field: str, flat: dict[str, np.ndarray], like: chex.ArrayTree) -> None:
    """Raise an InputError unless arrays by path have the names and shapes of `like`."""
    shapes = {name: leaf.shape for name, leaf in flatten_dict(like, sep="/").items()}
    for name, shape in shapes.items():
        if name not in flat or flat[name].shape != shape:
            raise InputError(f"{field}: {name} {shape} is missing or of another shape")
    for name in flat:
        if name not in shapes:
            raise InputError(
                f"{field}: {name} is no array of this network; if a head of yours has it, add the "
                "head to HEADS first"
            )


def note_initial_weights(run_dir: Path, initial: LoadedAgent) -> None:
    """Write the name and the training of the initial weights to the folder of a run."""
    training = initial.record["training"]
    note = {"weights": initial.name, "games": training["games"], "minutes": training["minutes"]}
    write_json(run_dir / INITIAL_FILE, note)


def noted_initial_weights(run_dir: Path) -> LoadedAgent | None:
    """Return the noted initial weights while a run has no checkpoint; else None.

    Raises: InputError if the weights are no longer there.
    """
    name = None if finished_checkpoints(run_dir / CHECKPOINTS) else initial_note(run_dir)["weights"]
    return load_weights(name) if name else None


def initial_note(run_dir: Path) -> dict[str, Any]:
    """Return the note of the initial weights of a run; from scratch there is no name in it."""
    path = run_dir / INITIAL_FILE
    if not path.exists():
        return {"weights": None, "games": 0, "minutes": 0.0}
    return read_json("run_dir", path)


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
