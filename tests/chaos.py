"""Kill a training run again and again, damage its files, fill its disk (`make chaos`).

One run is undisturbed. A second run with the same seed is killed at random moments, also while it
writes a checkpoint. Sometimes its newest checkpoint is truncated or gets a flipped bit. Its disk is
full for a while (only as root on Linux, because a small tmpfs is mounted). Both runs must end with
the same parameters, bit for bit. Example: tests/chaos.py --kills 50
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import jax
import numpy as np

from jaxzero.host.status import MARK
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.metrics import FILE_NAME
from jaxzero.runs.run_dir import CHECKPOINTS, UNFINISHED, finished_checkpoints

ROOT = Path(__file__).parent.parent
SETTINGS = (
    "--minutes 0 --checkpoint_every 2 --keep_checkpoints 6 --evaluation.evaluate_every 0 "
    "--evaluation.suite none --evaluation.opponents random --evaluation.final_games 2"
)
SPARE_MIB = 2  # free on the small disk in addition to the size of the run
ROOMS = (0, 256)  # KiB left on the full disk: nothing, and too little for a checkpoint
MOST_SECONDS = 600.0  # of one process of a run
LOOK_SECONDS = 0.002
DAMAGED = 0.3  # fraction of kills followed by damage to the newest checkpoint
STARTING = 0.2  # fraction of kills within 8 seconds of the start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/tiny.yaml", help="settings of both runs")
    parser.add_argument("--kills", type=int, default=50, help="how often the run is killed")
    parser.add_argument("--seed", type=int, default=0, help="seed of the disturbances")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(options.config).absolute()
        disturb(config, options.kills, random.Random(options.seed), Path(folder))


def disturb(config: Path, kills: int, chance: random.Random, folder: Path) -> None:
    """Run the undisturbed and the disturbed run and compare them."""
    calm, wild, done = folder / "calm", folder / "wild", Counter()
    # Two iterations for each kill and ten more, so that training does not end before the last kill.
    iterations = str(2 * kills + 10)
    settings = ["--config", str(config), *SETTINGS.split(), "--iterations", iterations]
    finish(calm, settings)
    while done["kills"] < kills:
        one_life(wild, settings, chance, done)
        print(f"{dict(done)}, {finished_checkpoints(wild / CHECKPOINTS)[-1:]}", flush=True)
    if os.geteuid() == 0 and sys.platform == "linux":
        for room in ROOMS:
            full_disk(wild, folder / f"disk{room}", room, settings, done)
    else:
        print("The disk was not filled: that needs root on Linux.")
    finish(wild, settings)
    compare(calm, wild)
    print(f"The same parameters, bit for bit, after {dict(done)}.")


def command(run_dir: Path, settings: list[str]) -> list[str]:
    """Return the command that begins or continues a run."""
    how = ["--resume"] if (run_dir / "config.yaml").exists() else settings
    return [sys.executable, str(ROOT / "scripts" / "train.py"), "--run_dir", str(run_dir), *how]


def run(run_dir: Path, settings: list[str]) -> subprocess.CompletedProcess:
    words = command(run_dir, settings)
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=MOST_SECONDS)


def finish(run_dir: Path, settings: list[str]) -> None:
    """Run until training is finished."""
    ended = run(run_dir, settings)
    assert ended.returncode == 0, ended.stderr[-500:]


def one_life(run_dir: Path, settings: list[str], chance: random.Random, done: Counter) -> None:
    """Start the run, kill it at a random moment, and perhaps damage its newest checkpoint."""
    begin, before = time.monotonic(), records(run_dir)
    early, writing = chance.random() < STARTING, chance.random() < 0.5
    wait, more = chance.uniform(0, 8), chance.randint(1, 2)
    words = command(run_dir, settings)
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while process.poll() is None:
            seconds = time.monotonic() - begin
            if seconds > MOST_SECONDS or (early and seconds > wait):
                break
            if records(run_dir) >= before + more and (not writing or is_writing(run_dir)):
                time.sleep(chance.uniform(0, 0.02))
                break
            time.sleep(LOOK_SECONDS)
        caught = is_writing(run_dir)
    finally:
        process.kill()
    _, said = process.communicate()
    assert process.returncode < 0, f"the run ended by itself: {said.decode()[-500:]}"
    done.update(kills=1, while_writing=caught)
    if chance.random() < DAMAGED:
        damage(run_dir, chance, done)


def records(run_dir: Path) -> int:
    path = run_dir / FILE_NAME
    return path.read_bytes().count(b"\n") if path.exists() else 0


def is_writing(run_dir: Path) -> bool:
    """Return whether a checkpoint is being written."""
    return any((run_dir / CHECKPOINTS).glob(f"*{UNFINISHED}*"))


def damage(run_dir: Path, chance: random.Random, done: Counter) -> None:
    """Truncate a file of the newest checkpoint or flip a bit, if there is an older checkpoint."""
    finished = finished_checkpoints(run_dir / CHECKPOINTS)
    if len(finished) < 2:
        return
    folder = run_dir / CHECKPOINTS / str(finished[-1])
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]
    path = chance.choice(files)
    content = bytearray(path.read_bytes())
    if chance.random() < 0.5:
        done["truncated"] += 1
        content = content[: chance.randrange(len(content))]
    else:
        done["flipped"] += 1
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def full_disk(run_dir: Path, disk: Path, room: int, settings: list[str], done: Counter) -> None:
    """Resume the run on a disk with `room` KiB left, then copy the run back."""
    disk.mkdir()
    size = sum(2**12 + path.stat().st_size for path in run_dir.rglob("*")) + SPARE_MIB * 2**20
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        print("The disk was not filled: no tmpfs can be mounted here.")
        return
    try:
        small = disk / "run"
        shutil.copytree(run_dir, small)
        with (disk / "ballast").open("wb", buffering=0) as file:
            with suppress(OSError):
                while True:
                    file.write(bytes(2**12))
            file.truncate(file.tell() - 2**10 * room)
        ended = run(small, settings)
        said = [line for line in ended.stderr.splitlines() if not line.startswith(MARK)]
        print(f"On a disk with {room} KiB left: exit code {ended.returncode}, {said[-1:]}")
        # The run must end with an error of one line.
        assert ended.returncode in (1, 2) and len(said) == 1, ended.stderr[-2000:]
        (disk / "ballast").unlink()
        shutil.rmtree(run_dir)
        shutil.copytree(small, run_dir)
    finally:
        subprocess.run(["umount", "-l", str(disk)])
    done["full_disks"] += 1


def compare(calm: Path, wild: Path) -> None:
    """Compare the learners of the last checkpoints of two runs."""
    learners = []
    for run_dir in (calm, wild):
        with Checkpoints(run_dir) as checkpoints:
            learners.append(checkpoints.restore(checkpoints.iterations()[-1]).learner)
    jax.tree.map(np.testing.assert_array_equal, *learners)


if __name__ == "__main__":
    main()
