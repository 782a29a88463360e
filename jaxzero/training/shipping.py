"""Networks in files of their own: those that come with the package, and those exported from runs.

Three files each: NAME.safetensors with the weights, NAME.yaml with the config they were trained
with, NAME.json with how they were trained and how strong they were measured to be. The package
ships one network a board, in `jaxzero/weights/`.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.flax import load_file, save

from jaxzero.agent.network import Network, init_params
from jaxzero.agent.players import Agent
from jaxzero.cli import load_config, save_config
from jaxzero.errors import InputError, nearest
from jaxzero.files import make_folder, temporary_folder, write_json
from jaxzero.training.loading import LoadedAgent

FOLDER = Path(__file__).parent.parent / "weights"
SUFFIX = ".safetensors"


def shipped_names(folder: Path = FOLDER) -> list[str]:
    """Return the names of all networks in `folder`, the smallest board first."""
    return sorted((path.stem for path in folder.glob(f"*{SUFFIX}")), key=lambda n: (len(n), n))


def find_weights(name: str) -> Path:
    """Return the path, without its suffix, of a network that is shipped or was exported.

    `name` is that of one that is shipped, such as `5x5`, a .safetensors file, or a folder with one.
    Raises: InputError naming those there are.
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
    file = path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)
    if file.is_file():
        return file.with_name(file.name.removesuffix(SUFFIX))
    there = ", ".join(names)
    raise InputError(
        f"weights: {name!r} do not exist{nearest(name, names)} (there: {there}; else the path of a "
        f"{SUFFIX} file or its folder)"
    )


def load_shipped(name: str) -> LoadedAgent:
    """Load a network that is shipped or was exported. Raises: InputError, as `find_weights`."""
    path = find_weights(name)
    config = load_config(_beside(path, ".yaml"))
    network = Network(config.game.board, config.network)
    like = jax.eval_shape(partial(init_params, network), jax.random.key(0))
    try:
        flat = load_file(_beside(path, SUFFIX))
    except (OSError, SafetensorError) as error:
        raise InputError(f"weights: {path}{SUFFIX} cannot be read ({error})") from error
    agent = Agent(network, unflatten(flat, like), config.search)
    return LoadedAgent(agent, config, read_record(name)["iteration"])


def read_record(name: str) -> dict[str, Any]:
    """Return how a network was trained and what was measured of it. Raises: InputError."""
    path = _beside(find_weights(name), ".json")
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"weights: {path} cannot be read ({error})") from error


def _beside(path: Path, suffix: str) -> Path:
    """Return a file of a network; `with_suffix` would cut a name such as `run.1`."""
    return path.with_name(path.name + suffix)


def ship(loaded: LoadedAgent, record: dict[str, Any], name: str, folder: Path) -> None:
    """Write a network, its config and its record to `folder`, over those of the same name."""
    make_folder("out", folder)
    record = {"iteration": loaded.iteration, **record}
    with temporary_folder(folder) as unfinished:
        save_config(loaded.config, unfinished / f"{name}.yaml")
        write_json(unfinished / f"{name}.json", record)
        # Not `save_file`, whose files others cannot read.
        (unfinished / f"{name}{SUFFIX}").write_bytes(save(flatten(loaded.agent.params)))
        # The weights go last: without them the other files name no network.
        for suffix in (".yaml", ".json", SUFFIX):
            (unfinished / f"{name}{suffix}").replace(folder / f"{name}{suffix}")


def flatten(params) -> dict[str, jax.Array]:
    """Name every array of a tree by its path, half as precise: float16 is enough to play."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): jnp.asarray(leaf, jnp.float16)
        for path, leaf in leaves
    }


def unflatten(flat: dict[str, jax.Array], like) -> dict:
    """Return the tree shaped like `like` from its named arrays, float32. Raises: InputError."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, leaf in paths:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        if name not in flat or flat[name].shape != leaf.shape:
            raise InputError(f"weights: {name} {leaf.shape} is missing or of another shape")
        leaves.append(np.asarray(flat[name], np.float32))
    return jax.tree_util.tree_unflatten(structure, leaves)
