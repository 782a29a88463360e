"""Checkpoints of a run: asynchronous, atomic, resumable.

<run_dir>/checkpoints/<iteration>/learner   weights, optimiser, counters
<run_dir>/checkpoints/<iteration>/replay    the replay ring, in the newest checkpoint only
<run_dir>/checkpoints/<iteration>/record    config, code version, minutes and games so far
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import numpy as np
import orbax.checkpoint as ocp

from jaxzero import __version__
from jaxzero.errors import InputError
from jaxzero.training.learner import Learner
from jaxzero.training.replay import Replay

logging.getLogger("absl").setLevel(logging.ERROR)

Say = Callable[[str], None]


class Restored(NamedTuple):
    """What a checkpoint gave back, on the host."""

    learner: Learner  # NumPy leaves
    replay: Replay | None  # NumPy leaves [D, ...]; None when not saved or of another layout
    record: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run directory."""

    def __init__(self, run_dir: Path, keep: int = 10):
        self.folder = run_dir.resolve() / "checkpoints"
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, create=True)
        self._manager = ocp.CheckpointManager(self.folder, options=options)

    def iterations(self) -> list[int]:
        """Return the iterations that have a checkpoint, oldest first."""
        return sorted(self._manager.all_steps(read=True))

    def save(self, learner: Learner, replay: Replay | None, record: dict[str, Any]) -> None:
        """Start saving; returns once everything is copied off the device."""
        iteration = int(learner.iteration)
        items = {
            "learner": ocp.args.StandardSave(_host_copy(learner)),
            "record": ocp.args.JsonSave({**record, "version": __version__}),
        }
        if replay is not None:
            items["replay"] = ocp.args.StandardSave(_host_copy(replay))
        self._manager.save(iteration, args=ocp.args.Composite(**items), force=True)
        self._drop_old_replays()

    def wait(self) -> None:
        """Wait until everything is on disk."""
        self._manager.wait_until_finished()
        self._drop_old_replays()

    def close(self) -> None:
        self.wait()
        self._manager.close()

    def _drop_old_replays(self) -> None:
        # The ring is by far the largest item, and only the newest one can be resumed from.
        for iteration in self.iterations()[:-1]:
            shutil.rmtree(self.folder / str(iteration) / "replay", ignore_errors=True)

    def restore(self, iteration: int, like: Learner, replay_like: Replay | None) -> Restored:
        """Read one checkpoint into the layout of `like`. Raises: InputError."""
        where = self.folder / str(iteration)
        try:
            record = self._read(iteration, "record", ocp.args.JsonRestore())
            learner = self._read(iteration, "learner", ocp.args.StandardRestore(_shapes(like)))
        except Exception as error:  # orbax raises many kinds for damaged files
            reason = str(error).strip().split("\n")[0][:200]
            raise InputError(f"checkpoint {where} cannot be read: {reason}") from error
        if "config" not in record:
            raise InputError(f"checkpoint {where} is not one of jaxzero: it has no config")
        difference = _layout_difference(like, learner)
        if difference:
            raise InputError(f"checkpoint {where} does not fit the network: {difference}")
        return Restored(learner, self._read_replay(iteration, replay_like), record)

    def restore_newest(
        self, like: Learner, replay_like: Replay | None, say: Say = print
    ) -> Restored:
        """Read the newest checkpoint that is good, naming each one that is skipped."""
        found = self.iterations()
        for iteration in reversed(found):
            try:
                return self.restore(iteration, like, replay_like)
            except InputError as error:
                say(f"skipped: {error}")
        raise InputError(f"run_dir: {self.folder.parent} has no usable checkpoint")

    def record(self, iteration: int) -> dict[str, Any]:
        """Read the record of one checkpoint."""
        return self._read(iteration, "record", ocp.args.JsonRestore())

    def _read(self, iteration: int, item: str, args: Any) -> Any:
        return self._manager.restore(iteration, args=ocp.args.Composite(**{item: args}))[item]

    def _read_replay(self, iteration: int, like: Replay | None) -> Replay | None:
        if like is None or not (self.folder / str(iteration) / "replay").is_dir():
            return None
        try:
            replay = self._read(iteration, "replay", ocp.args.StandardRestore(_shapes(like)))
        except Exception:  # as above; the run can go on without its replay
            return None
        return None if _layout_difference(like, replay) else replay


def _host_copy(tree: chex.ArrayTree) -> chex.ArrayTree:
    # A real copy: on a CPU `device_get` may return the buffer that the next iteration overwrites.
    return jax.tree.map(lambda leaf: np.array(leaf), jax.device_get(tree))


def _shapes(tree: chex.ArrayTree) -> chex.ArrayTree:
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), tree)


def _layout_difference(expected: chex.ArrayTree, found: chex.ArrayTree) -> str:
    """Name the first leaf whose shape or dtype differs, or return an empty string."""
    pairs = zip(jax.tree_util.tree_leaves_with_path(expected), jax.tree.leaves(found), strict=True)
    for (path, want), have in pairs:
        if want.shape != have.shape or want.dtype != have.dtype:
            name = jax.tree_util.keystr(path)
            return f"{name} is {have.dtype}{list(have.shape)}, not {want.dtype}{list(want.shape)}"
    return ""
