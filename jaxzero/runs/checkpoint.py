"""Checkpoints of a run: asynchronous, atomic, resumable.

<run_dir>/checkpoints/<iteration>/learner   weights, best weights, optimiser, counters
<run_dir>/checkpoints/<iteration>/replay    the replay ring, in the newest two checkpoints
<run_dir>/checkpoints/<iteration>/record    config, version, totals, layout of the replay, checksums
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
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

CHECKSUMS = "checksums"  # in the record, by item
READS_OLDER = "886b3d8"  # the last commit that reads the checkpoints refused here
Say = Callable[[str], None]
ShapesOf = Callable[[dict[str, Any]], chex.ArrayTree]  # from the config in the checkpoint


class DamagedReplay(InputError):
    """The replay of a checkpoint is damaged; its learner is intact."""


class Restored(NamedTuple):
    """The content of a checkpoint, on the host."""

    learner: chex.ArrayTree  # NumPy leaves
    replay: chex.ArrayTree | None  # NumPy leaves [D, ...] in the saved layout; None: not available
    record: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run directory."""

    def __init__(self, run_dir: Path, keep: int = 10, tidies: bool = True):
        """Open the folder. All processes save and restore; exactly one of them `tidies`."""
        self._tidies = tidies
        self.folder = run_dir.resolve() / CHECKPOINTS
        self.folder.mkdir(exist_ok=True)
        self._opened = os.open(self.folder, os.O_RDONLY)
        # Orbax takes characters such as [ or a backslash for a pattern or a separator. This path to
        # the open folder, which only Linux has, is without them.
        link = Path(f"/proc/self/fd/{self._opened}")
        self._link = link if link.exists() else self.folder
        # Otherwise threads wait for minutes for a folder that cannot be made.
        at_once = ocp.AsyncOptions(create_directories_asynchronously=False)
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, async_options=at_once)
        self._manager = ocp.CheckpointManager(self._link, options=options)
        self._saved: int | None = None  # the iteration that was saved last

    def iterations(self) -> list[int]:
        """Return the iterations that have a finished checkpoint, oldest first."""
        # Read the folder, not the manager: a reload makes orbax forget the checkpoint in progress.
        return finished_checkpoints(self._link)

    def save(
        self,
        iteration: int,
        learner: chex.ArrayTree,
        replay: chex.ArrayTree | None,
        record: dict[str, Any],
    ) -> None:
        """Copy everything off the device, then write it in the background.

        `replay` has fields [D, C, ...]. Raises: FloatingPointError if a number of the learner is
        not finite; then nothing is saved, and the earlier checkpoints stay. RunError if this
        checkpoint or the previous one cannot be written.
        """
        # NumPy arrays: with several processes, only the first process writes them.
        learner = jax.device_get(learner)
        for name, leaf in _named(learner).items():
            if not np.isfinite(leaf).all():
                raise FloatingPointError(f"{name} is not finite")
        items = {"learner": ocp.args.StandardSave(learner)}
        layout = None
        if replay is not None:
            items["replay"] = ocp.args.StandardSave(_fields(_snapshot(replay)))
            devices, capacity = jax.tree.leaves(replay)[0].shape[:2]
            layout = {"devices": devices, "capacity": capacity}
        record = {**record, "version": __version__, "replay": layout}
        sums = {"record": record_sum(record), "learner": checksum(learner)}
        if replay is not None and _is_here(replay):
            sums["replay"] = checksum(items["replay"].item)
        items["record"] = ocp.args.JsonSave({**record, CHECKSUMS: sums})
        with self._told():  # orbax first waits for the previous save
            self._manager.save(iteration, args=ocp.args.Composite(**items), force=True)
            self._saved = iteration
            self._drop_old_replays()

    def check(self) -> None:
        """Raise a RunError if the last save has failed or the folder is gone. Does not wait."""
        with self._told():
            if not os.path.samestat(self.folder.stat(), os.fstat(self._opened)):
                raise OSError("another folder has its name")
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
        words = words.replace(str(self._link), str(self.folder))
        return full if full in words else words.split("\n")[0][:200]

    def close(self) -> None:
        try:
            self.wait()
        finally:
            with self._told():  # `close` waits too and may meet another failed write
                self._manager.close()
                os.close(self._opened)

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, kind: type | None, *_error) -> None:
        # Report the error that ended the block, not a save that fails after it.
        with suppress(RunError) if kind else nullcontext():
            self.close()

    def _drop_old_replays(self) -> None:
        if not self._tidies:
            return
        # The replay is by far the largest item. Keep two: if the newest checkpoint is damaged,
        # a run can resume from the older one with its replay. A manager that has only read
        # checkpoints does not know which of them are good, so it drops nothing.
        finished = [each for each in self.iterations() if self._saved and each <= self._saved]
        for iteration in finished[:-2]:
            shutil.rmtree(self._replay(iteration), ignore_errors=True)

    def set_aside(self, after: int) -> None:
        """Rename the checkpoints after an iteration: they are damaged and will be written again.

        Every process must call `reload` afterwards.
        """
        for iteration in self.iterations():
            if iteration > after and self._tidies:
                name = f"{iteration}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
                (self.folder / str(iteration)).rename(self.folder / name)

    def reload(self) -> None:
        """Read the list of checkpoints again."""
        self._manager.reload()

    def restore(
        self,
        iteration: int,
        shapes_of: ShapesOf | None = None,
        replay_like: chex.ArrayTree | None = None,
    ) -> Restored:
        """Read one checkpoint in its saved layout.

        `shapes_of` returns the shapes of the learner; without it the learner is nested dicts of the
        saved arrays. With `replay_like` [D, C, ...] the replay is read too, with its saved number
        of devices and its saved capacity. Raises: InputError.
        """
        where = self.folder / str(iteration)
        try:
            record = self.record(iteration)
            shapes = shapes_of(record["config"]) if shapes_of else self._saved_shapes(iteration)
            like = _zeros(shapes)
            learner = self._read(iteration, "learner", ocp.args.StandardRestore(like))
            refuse_damaged(where, "learner", record, learner)
        except InputError:
            raise
        except Exception as error:  # orbax raises many kinds for damaged files
            raise InputError(f"checkpoint {where} cannot be read: {self._reason(error)}") from error
        if difference := layout_difference(like, learner) if shapes_of else "":
            raise InputError(f"checkpoint {where} does not fit the network: {difference}")
        replay = self._read_replay(iteration, replay_like, record)
        return Restored(learner, replay, record)

    def restore_newest(
        self,
        shapes_of: ShapesOf | None = None,
        replay_like: chex.ArrayTree | None = None,
        say: Say = print,
    ) -> Restored:
        """Read the newest good checkpoint like `restore`; `say` reports each skipped one.

        If every replay is damaged, return the newest good learner without a replay.
        """
        newest = None  # the newest checkpoint with a good learner and a damaged replay
        for iteration in reversed(self.iterations()):
            if newest is not None and not self._replay(iteration).is_dir():
                continue  # an older checkpoint without a replay is no better
            try:
                return self.restore(iteration, shapes_of, replay_like)
            except InputError as error:
                say(f"skipped: {error}")
                if newest is None and isinstance(error, DamagedReplay):
                    newest = iteration
        if newest is not None:
            return self.restore(newest, shapes_of)
        raise InputError(f"run_dir: {self.folder.parent} has no usable checkpoint")

    def _replay(self, iteration: int) -> Path:
        return self.folder / str(iteration) / "replay"

    def record(self, iteration: int) -> dict[str, Any]:
        """Read the record of one checkpoint. Raises: InputError if it is damaged."""
        where = self.folder / str(iteration)
        record = self._read(iteration, "record", ocp.args.JsonRestore())
        if CHECKSUMS in record:  # first: the content of a damaged record means nothing
            refuse_damaged(where, "record", record, record)
        if "config" not in record:
            raise InputError(f"checkpoint {where} is not one of jaxzero: it has no config")
        if CHECKSUMS not in record or "ema_decay" in record["config"]["learner"]:
            raise InputError(
                f"checkpoint {where} is of an older version: commit {READS_OLDER} reads it; its "
                "scripts/export.py writes weights that this version reads"
            )
        return record

    def _read(self, iteration: int, item: str, args: Any) -> Any:
        return self._manager.restore(iteration, args=ocp.args.Composite(**{item: args}))[item]

    def _saved_shapes(self, iteration: int, item: str = "learner") -> chex.ArrayTree:
        """Return the shapes of a saved item, as nested dicts.

        With shapes orbax reads the item to the host. Without them it reads to the device that saved
        the item, which may not exist here.
        """
        handler = ocp.StandardCheckpointHandler()
        try:
            return handler.metadata(self._link / str(iteration) / item).tree
        finally:
            handler.close()

    def _read_replay(
        self, iteration: int, like: chex.ArrayTree | None, record: dict[str, Any]
    ) -> chex.ArrayTree | None:
        """Return the replay; None if none is saved or it does not fit. Raises: DamagedReplay."""
        where = self.folder / str(iteration)
        if like is None or not self._replay(iteration).is_dir():
            return None

        def as_saved(leaf: jax.Array) -> jax.ShapeDtypeStruct:
            rest = (layout["capacity"], *leaf.shape[2:]) if leaf.ndim > 1 else ()
            return jax.ShapeDtypeStruct((layout["devices"], *rest), leaf.dtype)

        if layout := record.get("replay"):
            like = jax.tree.map(as_saved, like)
        try:
            fields = ocp.args.StandardRestore(_zeros(_fields(like)))
            replay = like._replace(**self._read(iteration, "replay", fields))
            refuse_damaged(where, "replay", record, replay)
        except InputError as error:
            raise DamagedReplay(str(error)) from error
        except Exception as error:  # as above
            reason = self._reason(error)
            raise DamagedReplay(
                f"checkpoint {where} has a replay that cannot be read: {reason}"
            ) from error
        return None if layout_difference(like, replay) else replay


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


def record_sum(record: dict[str, Any]) -> int:
    """Return the checksum of a record without its own checksums."""
    plain = {name: x for name, x in record.items() if name != CHECKSUMS}
    return zlib.crc32(json.dumps(plain, sort_keys=True).encode())


def refuse_damaged(where: Path, item: str, record: dict[str, Any], content: Any) -> None:
    """Raise an InputError if the checksum of an item differs from the one in the record."""
    sums = record[CHECKSUMS]
    sum_of = record_sum if item == "record" else checksum
    # With several processes none has the whole replay, so the record has no checksum of it.
    if item in sums and sums[item] != sum_of(content):
        raise InputError(f"checkpoint {where} is damaged: its {item} has another checksum")


def _named(tree: chex.ArrayTree) -> dict[str, Any]:
    """Return all leaves of a tree by their path."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}


def _is_here(tree: chex.ArrayTree) -> bool:
    """Return whether this process holds all data of a tree."""
    return all(getattr(leaf, "is_fully_addressable", True) for leaf in jax.tree.leaves(tree))


def _fields(replay: chex.ArrayTree) -> dict[str, chex.ArrayTree]:
    """Return the fields of a replay that are not empty."""
    return {name: x for name, x in replay._asdict().items() if jax.tree.leaves(x)}


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


def _zeros(shapes: chex.ArrayTree) -> chex.ArrayTree:
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)


def layout_difference(expected: chex.ArrayTree, found: chex.ArrayTree) -> str:
    """Name the first leaf whose shape or dtype differs, or return an empty string."""
    pairs = zip(jax.tree_util.tree_leaves_with_path(expected), jax.tree.leaves(found), strict=True)
    for (path, want), have in pairs:
        if want.shape != have.shape or want.dtype != have.dtype:
            name = jax.tree_util.keystr(path)
            return f"{name} is {have.dtype}{list(have.shape)}, not {want.dtype}{list(want.shape)}"
    return ""
