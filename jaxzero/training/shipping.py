"""Networks that come with the package: one per board, in `jaxzero/weights/`.

Three files each: NAME.safetensors with the weights, NAME.yaml with the config they were trained
with, NAME.json with how they were trained and how strong they were measured to be.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.flax import load_file, save_file

from jaxzero.agent.network import Network, init_params
from jaxzero.agent.players import Agent
from jaxzero.cli import load_config, save_config
from jaxzero.errors import InputError, nearest
from jaxzero.training.loading import LoadedAgent

FOLDER = Path(__file__).parent.parent / "weights"


def shipped_names(folder: Path = FOLDER) -> list[str]:
    """Return the names of all networks in `folder`, the smallest board first."""
    return sorted((path.stem for path in folder.glob("*.safetensors")), key=lambda n: (len(n), n))


def load_shipped(name: str, folder: Path = FOLDER) -> LoadedAgent:
    """Load the network of a board, such as `5x5`. Raises: InputError naming those there are."""
    names = shipped_names(folder)
    if name not in names:
        there = ", ".join(names) or "none"
        raise InputError(f"weights: {name!r} do not exist{nearest(name, names)} (there: {there})")
    config = load_config(folder / f"{name}.yaml")
    network = Network(config.game.board, config.network)
    like = jax.eval_shape(lambda: init_params(network, jax.random.key(0)))
    params = unflatten(load_file(folder / f"{name}.safetensors"), like)
    iteration = read_record(name, folder)["iteration"]
    return LoadedAgent(Agent(network, params, config.search), config, iteration)


def read_record(name: str, folder: Path = FOLDER) -> dict[str, Any]:
    """Return how the network `name` was trained and what was measured of it."""
    return json.loads((folder / f"{name}.json").read_text())


def ship(loaded: LoadedAgent, record: dict[str, Any], name: str, folder: Path = FOLDER) -> None:
    """Write a network, its config and its record to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    save_config(loaded.config, folder / f"{name}.yaml")
    record = {"iteration": loaded.iteration, **record}
    (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    save_file(flatten(loaded.agent.params), folder / f"{name}.safetensors")


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
