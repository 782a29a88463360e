"""Kill a training run again and again, damage its files, fill its disk; then compare the end.

One run is left alone. The other, of the same seed, is killed at random moments, also while writing
a checkpoint; its newest checkpoint is truncated or gets a flipped bit now and then; and its disk is
full for a while (as root on Linux alone: it takes a small tmpfs). Both must end with the same
parameters, bit for bit. Example: scripts/chaos.py --kills 50
"""

from __future__ import annotations

from jaxzero.host.interrupts import cleaned_up, install

if __name__ == "__main__":
    install()

import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxzero.cli import find_config, load_config, parse, run_script, script_parser
from jaxzero.config.ranges import Seed, whole
from jaxzero.errors import RunError
from jaxzero.host.files import check_folder, temporary_folder
from jaxzero.host.status import MARK, doing
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.metrics import FILE_NAME
from jaxzero.runs.run_dir import (
    CHECKPOINTS,
    UNFINISHED,
    finished_checkpoints,
    new_folder,
    refuse_run,
)

ROOT = Path(__file__).parent.parent
TRAIN = [sys.executable, ROOT / "scripts" / "train.py"]
SETTINGS = (
    "--minutes 0 --checkpoint_every 2 --keep_checkpoints 6 --evaluation.evaluate_every 0 "
    "--evaluation.suite none --evaluation.opponents random --evaluation.final_games 2"
)
SPARE_MIB = 2  # of the small disk, beside the run
ROOMS = (0, 256)  # KiB left there: nothing, and too little for a checkpoint
MOST_SECONDS = 600.0  # of one life of a run
LOOK_SECONDS = 0.002
DAMAGED = 0.3  # of the kills
Kills = whole(1, 10_000)
STARTING = 0.2  # of the kills come before the first iteration


class Chaos(NamedTuple):
    """What was done to the run."""

    kills: int = 0
    while_writing: int = 0  # a checkpoint
    truncated: int = 0
    flipped: int = 0
    full_disks: int = 0


def main(arguments: list[str]) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--config", default="configs/tiny.yaml", help="settings of both runs")
    parser.add_argument("--kills", type=Kills, default=50, help="how often the run is killed")
    parser.add_argument("--seed", type=Seed, default=0, help="seed of the disturbances")
    parser.add_argument("--work", type=Path, help="folder for the runs; default: a temporary one")
    options = parse(parser, arguments)
    config = str(Path(find_config(options.config)).absolute())
    load_config(config, *SETTINGS.split(), "--iterations=1")  # a wrong one is told at once
    with ExitStack() as stack:
        if work := options.work:
            check_folder("work", work)
            refuse_run("work", work)
            stack.enter_context(new_folder("work", work))
        folder = stack.enter_context(temporary_folder(work and work.resolve()))
        try:
            disturb(config, options.kills, random.Random(options.seed), folder)
        except RunError as error:  # the folder is gone by then
            raise RunError(str(error).replace(str(folder), str(folder.parent))) from error


def disturb(config: str, kills: int, chance: random.Random, folder: Path) -> None:
    """Run both and compare them. Raises: RunError where they differ."""
    # About one iteration a kill, and some to the end.
    settings = ["--config", config, *SETTINGS.split(), "--iterations", str(2 * kills + 10)]
    calm, wild = folder / "calm", folder / "wild"
    finish([*TRAIN, "--run_dir", calm, *settings], "the run that is left alone")
    done = Chaos()
    while done.kills < kills:
        with doing(f"life {done.kills + 1} of the run that is killed {kills} times"):
            done = one_life(command(wild, settings), wild, chance, done)
        print(f"{done}, {finished_checkpoints(wild / CHECKPOINTS)[-1:]}", flush=True)
    if os.geteuid() == 0 and sys.platform == "linux":
        for room in ROOMS:
            with doing(f"the run on a disk with {room} KiB left"):
                done = full_disk(wild, folder / f"disk{room}", room, settings, done)
    else:
        print("The disk was not filled: that needs root on Linux.")
    finish(command(wild, settings), "the run that was disturbed")
    compare(calm, wild)
    print(f"The same parameters, bit for bit, after {done}.")


def command(run_dir: Path, settings: list[str]) -> list:
    """Return the command that begins or continues a run."""
    begun = (run_dir / "config.yaml").exists()
    return [*TRAIN, "--run_dir", run_dir, *(["--resume"] if begun else settings)]


def finish(words: list, what: str) -> None:
    """Let a run come to its end. Raises: RunError where it does not."""
    with doing(f"waiting for {what}"):
        ended = run(words, what)
    if ended.returncode:
        raise RunError(f"{what} ended with exit code {ended.returncode}: {ended.stderr[-500:]}")


def run(words: list, what: str) -> subprocess.CompletedProcess:
    """Run a command. Raises: RunError where it takes too long."""
    try:
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{what} took more than {MOST_SECONDS:g} s") from error


def one_life(words: list, run_dir: Path, chance: random.Random, done: Chaos) -> Chaos:
    """Start the run, kill it at a random moment, and perhaps damage its newest checkpoint."""
    begin, before = time.monotonic(), records(run_dir)
    early, writing = chance.random() < STARTING, chance.random() < 0.5
    wait, more = chance.uniform(0, 8), chance.randint(1, 2)
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with cleaned_up(process.kill):
        while process.poll() is None:
            seconds = time.monotonic() - begin
            if seconds > MOST_SECONDS or (early and seconds > wait):
                break
            if records(run_dir) >= before + more and (not writing or is_writing(run_dir)):
                time.sleep(chance.uniform(0, 0.02))
                break
            time.sleep(LOOK_SECONDS)
        caught = is_writing(run_dir)
        process.kill()
        _, words = process.communicate()
    if process.returncode > 0:
        raise RunError(f"the run ended by itself: {words.decode()[-500:]}")
    done = done._replace(kills=done.kills + 1, while_writing=done.while_writing + caught)
    return damage(run_dir, chance, done) if chance.random() < DAMAGED else done


def records(run_dir: Path) -> int:
    path = run_dir / FILE_NAME
    return path.read_bytes().count(b"\n") if path.exists() else 0


def is_writing(run_dir: Path) -> bool:
    """Return whether a checkpoint is being written."""
    return any((run_dir / CHECKPOINTS).glob(f"*{UNFINISHED}*"))


def damage(run_dir: Path, chance: random.Random, done: Chaos) -> Chaos:
    """Truncate a file of the newest checkpoint or flip one of its bits, where an older one is."""
    finished = finished_checkpoints(run_dir / CHECKPOINTS)
    if len(finished) < 2:
        return done
    folder = run_dir / CHECKPOINTS / str(finished[-1])
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]
    path = chance.choice(files)
    content = bytearray(path.read_bytes())
    if chance.random() < 0.5:
        path.write_bytes(content[: chance.randrange(len(content))])
        return done._replace(truncated=done.truncated + 1)
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return done._replace(flipped=done.flipped + 1)


def full_disk(run_dir: Path, disk: Path, room: int, settings: list[str], done: Chaos) -> Chaos:
    """Let the run go on where the disk has `room` KiB left, then copy it back."""
    disk.mkdir()
    size = sum(2**12 + path.stat().st_size for path in run_dir.rglob("*")) + SPARE_MIB * 2**20
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        print("The disk was not filled: no tmpfs can be mounted here.")
        return done
    with cleaned_up(lambda: subprocess.run(["umount", "-l", str(disk)])):
        small = disk / "run"
        shutil.copytree(run_dir, small)
        with (disk / "ballast").open("wb", buffering=0) as file:
            with suppress(OSError):
                while True:
                    file.write(bytes(2**12))
            file.truncate(file.tell() - 2**10 * room)
        ended = run(command(small, settings), "the run on a full disk")
        said = [line for line in ended.stderr.splitlines() if not line.startswith(MARK)]
        words = f"exit code {ended.returncode}, {len(said)} lines: {said[-1:]}"
        print(f"On a disk with {room} KiB left: {words}")
        if ended.returncode not in (1, 2) or len(said) != 1:
            raise RunError(f"a full disk must end a run with one line, not {ended.stderr[-2000:]}")
        (disk / "ballast").unlink()
        shutil.rmtree(run_dir)
        shutil.copytree(small, run_dir)
    return done._replace(full_disks=done.full_disks + 1)


def compare(calm: Path, wild: Path) -> None:
    """Raise a RunError unless the last checkpoints of two runs hold the same learner."""
    learners = []
    for run_dir in (calm, wild):
        with Checkpoints(run_dir) as checkpoints:
            learners.append(checkpoints.restore(checkpoints.iterations()[-1]).learner)
    flat = [flatten(learner) for learner in learners]
    differ = [name for name in flat[0] if not np.array_equal(flat[0][name], flat[1].get(name))]
    if differ or flat[0].keys() != flat[1].keys():
        raise RunError(f"the runs differ in {len(differ)} arrays: {', '.join(differ[:5])}")


def flatten(learner) -> dict[str, np.ndarray]:
    import jax

    leaves = jax.tree_util.tree_leaves_with_path(learner)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


if __name__ == "__main__":
    run_script(main)
