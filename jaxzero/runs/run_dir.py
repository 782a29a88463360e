"""The directory of a run: whether a run may start or resume in it, and what else may be there.

Also which paths and names mean a run, and which a shipped network.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from jaxzero.config import Config, config_of_file, dotted
from jaxzero.errors import InputError
from jaxzero.host.files import (
    check_file,
    check_folder,
    locked_folder,
    shipped_folder,
    write_text,
)
from jaxzero.runs.metrics import FILE_NAME, read_metrics

CONFIG_FILE = "config.yaml"
CHECKPOINTS = "checkpoints"
INITIAL_FILE = "begun_with.json"  # name and training of the initial weights
# The files of training. Results of other programs may lie beside them.
OF_TRAINING = (
    *(CONFIG_FILE, CHECKPOINTS, FILE_NAME, "starts.jsonl", INITIAL_FILE),
    *("summary.json", "curves.png", "tensorboard"),
)
UNFINISHED = "orbax-checkpoint-tmp"  # in the name of a checkpoint that is being written
ORBAX_PATTERN = r"[][*?{}\\]|\b(?:gs|s3):"  # what orbax does not take literally in a path
SUFFIX = ".safetensors"  # of exported networks
# Boards without a network of their own, and the shipped one that plays them best.
PLAYED_BY = {"4x4": "5x5", "6x6": "7x7"}
LOGS = (".log", ".out", ".err", ".txt")  # of a shell or a job queue; may be there before the run


def config_file(folder: Path) -> Path:
    """Return the file with the config of a run; if it is gone, the newest checkpoint has a copy."""
    checkpoints = folder / CHECKPOINTS
    saved = finished_checkpoints(checkpoints)
    copies = (checkpoints / f"{iteration}/record/metadata" for iteration in reversed(saved))
    return next(filter(Path.is_file, (folder / CONFIG_FILE, *copies)), folder / CONFIG_FILE)


def save_config(config: Config, path: Path) -> None:
    """Write every field to a YAML file that `config_of_file` reads back."""
    write_text(path, yaml.safe_dump(asdict(config), sort_keys=False))


def is_run(folder: Path) -> bool:
    """Return whether a folder holds a training run."""
    return config_file(folder).is_file()


def run_folder(name: str) -> Path | None:
    """Return the folder of a run that `name` is, or None. A shipped name is never a folder."""
    return Path(name) if name not in shipped_names() and is_run(Path(name)) else None


def shipped_file(name: str) -> Path:
    """Return the file of a shipped network."""
    return shipped_folder("weights") / f"{PLAYED_BY.get(name, name)}{SUFFIX}"


def shipped_names() -> list[str]:
    """Return the names of the shipped networks, the smallest board first."""
    names = (path.stem for path in shipped_folder("weights").glob(f"*{SUFFIX}"))
    return sorted({*names, *PLAYED_BY}, key=lambda name: (len(name), name))


def check_run(option: str, folder: Path) -> None:
    """Raise an InputError unless a folder holds a training run."""
    if not is_run(folder):
        raise InputError(f"{option}: {folder} holds no run: it has no {CONFIG_FILE}")


def refuse_run(option: str, folder: Path) -> None:
    """Raise an InputError if a folder holds a training run or is among the files of one."""
    if is_run(folder):
        raise InputError(f"{option}: {folder} holds a training run: name another folder")
    refuse_file_of_run(option, folder)


def refuse_file_of_run(option: str, path: Path) -> None:
    """Raise an InputError for a path that is or would be among the files of a training run."""
    # Check both paths: a link may lead into a run or out of it.
    for way in (path.absolute(), Path(os.path.realpath(path))):
        for folder in way.parents:
            if is_run(folder) and way.relative_to(folder).parts[0] in OF_TRAINING:
                raise InputError(f"{option}: {path} belongs to the training run in {folder}")


def check_new_folder(option: str, folder: Path, own: tuple[str, ...] = ()) -> None:
    """Raise an InputError unless a program can write its files to `folder`.

    The folder must be new, hold only logs, or hold a file of `own`, written by the same program.
    """
    check_folder(option, folder)
    refuse_run(option, folder)
    if not folder.is_dir() or any((folder / name).exists() for name in own):
        return
    for path in sorted(folder.iterdir()):
        if not path.name.startswith(".") and path.suffix not in LOGS:
            raise InputError(f"{option}: {folder} holds other files ({path.name}): name a new one")


def check_result_file(option: str, path: Path | None) -> None:
    """Raise an InputError unless JSON results can be written to `path`, if given.

    Results replace only other JSON files, and no file of a training run.
    """
    if path is None:
        return
    refuse_file_of_run(option, path)
    check_file(option, path)
    if path.is_file() and path.suffix != ".json":
        raise InputError(f"{option}: {path} exists and does not end with .json")


def check_run_dir(config: Config, run_dir: Path, resume: bool) -> None:
    """Raise an InputError unless a run may start in `run_dir`, or with `resume` continue there."""
    if special := re.findall(ORBAX_PATTERN, str(run_dir.resolve())):
        raise InputError(f"run_dir: {run_dir} has {special[0]!r} in its path: name another folder")
    if is_run(run_dir) and not resume:
        raise InputError(
            f"run_dir: {run_dir} holds a run: name another directory, or continue it by "
            f"{resume_command(run_dir)}"
        )
    if not resume:
        return check_new_folder("run_dir", run_dir)
    check_run("run_dir", run_dir)
    before = config_of_file(config_file(run_dir), "run_dir")
    now, then = (dict(dotted(asdict(one))) for one in (config, before))
    for name, value in now.items():
        fixed = name.startswith(("game.", "network.")) or name == "learner.optimizer"
        if fixed and value != then[name]:
            raise InputError(f"{name}: {value} contradicts {then[name]} of the run in {run_dir}")
    refuse_lost_checkpoints(before, run_dir)


def refuse_lost_checkpoints(saved: Config, run_dir: Path) -> None:
    """Raise an InputError if a run has no checkpoint although it must have saved one.

    Resuming would start from scratch. Only a run that died in its first save may do that.
    """
    folder = run_dir / CHECKPOINTS
    if finished_checkpoints(folder) or any(folder.glob(f"*{UNFINISHED}*")):
        return
    done = max((line["iteration"] for line in read_metrics(run_dir)), default=0)
    if done >= 2 * saved.checkpoint_every or (done and not folder.is_dir()):
        raise InputError(
            f"run_dir: {run_dir} has metrics of {done} iterations and no checkpoint to go on from: "
            f"put its folder {CHECKPOINTS} back, or name another directory to begin anew"
        )


def finished_checkpoints(folder: Path) -> list[int]:
    """Return the iterations that have a finished checkpoint, oldest first."""
    names = (path.name for path in folder.glob("*"))
    return sorted(int(name) for name in names if re.fullmatch("[0-9]{1,10}", name))


@contextmanager
def new_folder(option: str, folder: Path) -> Iterator[None]:
    """Create and lock a folder for a block; remove it if it is new and stays empty.

    Raises: InputError if the folder cannot be created or if another process holds it.
    """
    check_folder(option, folder)
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked_folder(option, folder):
            yield
    finally:
        if new:
            with suppress(OSError):  # the system refuses to remove a folder that is not empty
                folder.rmdir()


def command_name(script: str) -> str:
    """Return the command of a script, in the form that started this process."""
    installed = sys.argv[0].startswith("jaxzero ")
    return f"jaxzero {script}" if installed else f"python scripts/{script}.py"


def resume_command(run_dir: Path, **settings: Any) -> str:
    """Return the command, or outside the script the call, that resumes a run with `settings`."""
    if Path("".join(sys.argv[:1]).split(" ")[-1]).stem != "train":
        changes = f", settings={settings}" if settings else ""
        return f"jaxzero.train(run_dir={str(run_dir)!r}, resume=True{changes})"
    changes = "".join(f" --{name} {value}" for name, value in settings.items())
    return f"{command_name('train')} --run_dir {shlex.quote(str(run_dir))} --resume{changes}"
