"""Checkpoints of a run: asynchronous, atomic, resumable.

<run_dir>/checkpoints/<iteration>/learner   weights, optimiser, counters
<run_dir>/checkpoints/<iteration>/replay    the replay ring, in the newest two checkpoints
<run_dir>/checkpoints/<iteration>/record    config, version, totals, layout of the replay, checksum
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import numpy as np
import orbax.checkpoint as ocp

from jaxzero import __version__
from jaxzero.errors import InputError, RunError
from jaxzero.runs.run_dir import CHECKPOINTS, finished_checkpoints

CHECKSUM = "checksum"  # in the record, of the learner: orbax reads changed weights silently
MAX_CHECKPOINTS = 10  # that are kept, the newest ones


class Damaged(InputError):
    """A checkpoint cannot be read. The one before may be good."""


class Restored(NamedTuple):
    """The content of a checkpoint, on the host."""

    learner: chex.ArrayTree  # NumPy leaves
    replay: chex.ArrayTree | None  # NumPy leaves [D, ...] in the saved layout; None: not read
    record: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run directory."""

    def __init__(self, run_dir: Path, owner: bool = True):
        """Open the folder. One process (`owner=True`) deletes old replays."""
        self._owner = owner
        self.folder = run_dir.resolve() / CHECKPOINTS
        self.folder.mkdir(exist_ok=True)
        # Otherwise threads wait for minutes for a folder that cannot be made.
        at_once = ocp.AsyncOptions(create_directories_asynchronously=False)
        options = ocp.CheckpointManagerOptions(max_to_keep=MAX_CHECKPOINTS, async_options=at_once)
        self._manager = ocp.CheckpointManager(self.folder, options=options)
        self._saved: int | None = None  # the iteration that was saved last

    def iterations(self) -> list[int]:
        """Return the iterations that have a finished checkpoint, oldest first."""
        # Read the folder, not the manager: a reload makes orbax forget the checkpoint in progress.
        return finished_checkpoints(self.folder)

    def save(
        self,
        iteration: int,
        learner: chex.ArrayTree,
        replay: chex.ArrayTree | None,
        record: dict[str, Any],
    ) -> None:
        """Copy everything off the device, then write it in the background.

        `replay` has fields [D, C, ...]. Raises: FloatingPointError if a weight is not finite; then
        nothing is saved, and the earlier checkpoints stay. RunError if this checkpoint or the
        previous one cannot be written.
        """
        # NumPy arrays: with several processes, only the first process writes them.
        trees = {"learner": jax.device_get(learner)}
        for name, leaf in _named(trees).items():
            if not np.isfinite(leaf).all():
                raise FloatingPointError(f"{name.partition('/')[2]} is not finite")
        layout = None
        if replay is not None:
            trees["replay"] = _snapshot(replay)._asdict()
            devices, capacity = jax.tree.leaves(replay)[0].shape[:2]
            layout = {"devices": devices, "capacity": capacity}
        record = {**record, "version": __version__, "replay": layout}
        items = {item: ocp.args.StandardSave(tree) for item, tree in trees.items()}
        items["record"] = ocp.args.JsonSave({**record, CHECKSUM: checksum(trees["learner"])})
        with self._told():  # orbax first waits for the previous save
            self._manager.save(iteration, args=ocp.args.Composite(**items), force=True)
            self._saved = iteration
            self._drop_old_replays()

    def check(self) -> None:
        """Raise a RunError if the last save has failed or the folder is gone. Does not wait."""
        with self._told():
            if not self.folder.is_dir():
                raise OSError("the folder is gone")
            if not self._manager.is_saving_in_progress():
                self._manager.wait_until_finished()

    def wait(self) -> None:
        """Wait until everything is on disk. Raises: RunError if it cannot be written."""
        with self._told():
            self._manager.wait_until_finished()
            self._drop_old_replays()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn an error of orbax, such as a full disk, into a RunError of one line."""
        try:
            yield
        except Exception as error:  # orbax raises many kinds, from its threads too
            if jax.process_count() > 1 and isinstance(error, jax.errors.JaxRuntimeError):
                raise  # another process has died; the save needs all processes
            left = self.iterations()
            intact = f"checkpoint {left[-1]} is intact" if left else "there is no checkpoint"
            failed = f"cannot write a checkpoint to {self.folder} ({self._reason(error)})"
            raise RunError(f"run_dir: {failed}; {intact}") from error

    def _reason(self, error: Exception) -> str:
        full = os.strerror(errno.ENOSPC)
        words = getattr(error, "strerror", None) or str(error).strip()
        return full if full in words else words.split("\n")[0][:200]

    def close(self) -> None:
        try:
            self.wait()
        finally:
            with self._told():  # `close` waits too and may meet another failed write
                self._manager.close()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, kind: type | None, *_error) -> None:
        # Report the error that ended the block, not a save that fails after it.
        with suppress(RunError) if kind else nullcontext():
            self.close()

    def _drop_old_replays(self) -> None:
        if not self._owner:
            return
        # The replay is by far the largest item. Keep two: if the newest checkpoint is damaged,
        # a run can resume from the older one with its replay. A manager that has only read
        # checkpoints does not know which of them are good, so it drops nothing.
        finished = [each for each in self.iterations() if self._saved and each <= self._saved]
        for iteration in finished[:-2]:
            shutil.rmtree(self.folder / str(iteration) / "replay", ignore_errors=True)

    def delete(self, after: int) -> None:
        """Delete the unreadable checkpoints after an iteration, or orbax refuses to write them.

        Every process must call `reload` afterwards.
        """
        for iteration in self.iterations():
            if iteration > after and self._owner:
                print(f"deleted: checkpoint {self.folder / str(iteration)} cannot be read")
                shutil.rmtree(self.folder / str(iteration))

    def reload(self) -> None:
        """Read the list of checkpoints again."""
        self._manager.reload()

    def restore(
        self,
        iteration: int,
        learner_like: chex.ArrayTree | None = None,
        replay_like: chex.ArrayTree | None = None,
    ) -> Restored:
        """Read one checkpoint.

        Without `learner_like`, shapes, the learner is nested dicts. With `replay_like` [D, C, ...]
        the replay is read too, in its saved layout. Raises: Damaged; InputError if the checkpoint
        has other fields or shapes.
        """
        where = self.folder / str(iteration)
        try:
            record = self.record(iteration)
            learner = self._tree(iteration, "learner", learner_like)
            total = checksum(learner)
            if record.get(CHECKSUM, total) != total:  # earlier versions have other names
                raise Damaged(f"checkpoint {where} is damaged: its learner has another checksum")
            replay = None
            if replay_like is not None and record["replay"]:
                like = _in_layout(replay_like, record["replay"])
                replay = like._replace(**self._tree(iteration, "replay", like._asdict()))
        except InputError:
            raise
        except Exception as error:  # orbax raises many kinds for damaged files
            raise Damaged(f"checkpoint {where} cannot be read: {self._reason(error)}") from error
        return Restored(learner, replay, record)

    def restore_newest(
        self,
        learner_like: chex.ArrayTree | None = None,
        replay_like: chex.ArrayTree | None = None,
    ) -> Restored:
        """Read the newest good checkpoint like `restore`; print each damaged one."""
        for iteration in reversed(self.iterations()):
            try:
                return self.restore(iteration, learner_like, replay_like)
            except Damaged as error:
                # Standard output may belong to a protocol.
                print(f"skipped: {error}", file=sys.stderr)
        raise InputError(f"run_dir: {self.folder.parent} has no usable checkpoint")

    def record(self, iteration: int) -> dict[str, Any]:
        """Read the record of one checkpoint. Raises: an error of orbax."""
        return self._read(iteration, "record", ocp.args.JsonRestore())

    def _tree(
        self, iteration: int, item: str, like: chex.ArrayTree | None = None
    ) -> chex.ArrayTree:
        """Read an item with the shapes of `like`, or as nested dicts. Raises: InputError."""
        # With shapes orbax reads the item to the host. Without them it reads to the device that
        # saved the item, which may not exist here.
        handler = ocp.StandardCheckpointHandler()
        try:
            saved = handler.metadata(self.folder / str(iteration) / item).tree
        finally:
            handler.close()
        like = saved if like is None else like
        if difference := layout_difference(like, saved):
            where = self.folder / str(iteration)
            raise InputError(f"checkpoint {where} does not fit this run: its {item} {difference}")
        zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), like)
        return self._read(iteration, item, ocp.args.StandardRestore(zeros))

    def _read(self, iteration: int, item: str, args: Any) -> Any:
        return self._manager.restore(iteration, args=ocp.args.Composite(**{item: args}))[item]


def checksum(tree: chex.ArrayTree) -> int:
    """Return the CRC-32 of all arrays with their names, in the order of the names.

    Names fix the order, because a restored tree may hold its arrays in another order.
    """
    total = 0
    for name, leaf in sorted(_named(tree).items()):
        leaf = np.ascontiguousarray(leaf)
        total = zlib.crc32(f"{name} {leaf.dtype} {leaf.shape}".encode(), total)
        total = zlib.crc32(leaf.reshape(-1).view(np.uint8), total)
    return total


def _named(tree: chex.ArrayTree) -> dict[str, Any]:
    """Return all leaves of a tree by their path."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}


def _is_here(tree: chex.ArrayTree) -> bool:
    """Return whether this process holds all data of a tree."""
    return all(getattr(leaf, "is_fully_addressable", True) for leaf in jax.tree.leaves(tree))


def _snapshot(replay: chex.ArrayTree) -> chex.ArrayTree:
    """Copy a replay to the host once; the next iteration overwrites the original."""
    # JAX arrays, because orbax copies NumPy arrays again before it writes.
    if next(iter(jax.tree.leaves(replay)[0].devices())).platform == "cpu":
        return jax.tree.map(lambda leaf: leaf.copy(), replay)
    if not _is_here(replay):
        return replay  # each process writes its own slices, which orbax copies to the host
    try:
        host = jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX_PLATFORMS names only the accelerator
        return jax.device_get(replay)
    return jax.block_until_ready(jax.device_put(replay, host))


def _in_layout(replay: chex.ArrayTree, layout: dict[str, int]) -> chex.ArrayTree:
    """Return the shapes of a replay [D, C, ...] with the saved number of devices and capacity."""

    def as_saved(leaf: jax.Array) -> jax.ShapeDtypeStruct:
        rest = (layout["capacity"], *leaf.shape[2:]) if leaf.ndim > 1 else ()
        return jax.ShapeDtypeStruct((layout["devices"], *rest), leaf.dtype)

    return jax.tree.map(as_saved, replay)


def layout_difference(expected: chex.ArrayTree, saved: chex.ArrayTree) -> str:
    """Say which array is missing, unknown, or of another shape or dtype; "" if none is."""
    want, have = _named(expected), _named(saved)
    for name in want:
        if name not in have:
            return f"has no {name}"
    for name, leaf in have.items():
        if name not in want:
            return f"has {name}, which this run does not have"
        if want[name].shape != leaf.shape or want[name].dtype != leaf.dtype:
            shapes = (f"{one.dtype}{list(one.shape)}" for one in (leaf, want[name]))
            return f"has {name} as {', not '.join(shapes)}"
    return ""
