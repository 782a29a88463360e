"""Run all steps that need a GPU (`make gpu`): tests, benchmarks, a trace, a sweep, training.

A call takes about --minutes and continues where the last call stopped: a step is done when its
result file exists. Results go to --out; logs and the training run go to --run_dir. With --config
the steps also run on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from jaxzero.cli import load_config
from jaxzero.config.files import find_config, gpu_preset
from jaxzero.runs.summary import SUMMARY_FILE

ROOT = Path(__file__).parent.parent
NETWORKS = {"128x10": (128, 10), "64x6": (64, 6)}
# Tests that run on one device of any kind.
TESTS = (
    "tests/game tests/search/test_search.py "
    "tests/training/test_learner.py tests/training/test_replay.py"
)
# Speeds are measured with whole games, one game per lane.
WHOLE = "--selfplay.late_start_moves 0 --selfplay.late_start_until 0"
SWEEP = "--learner.updates_per_iteration 8 --rounds 1 --point_minutes 4"
GRACE_SECONDS = 20  # between SIGINT and killing the process


class Step(NamedTuple):
    """One command of this script."""

    name: str
    command: list[str]  # after `python`
    result: Path  # the file that exists when the step is done
    environment: Mapping[str, str] = MappingProxyType({})  # added to that of all steps


class Gpu(NamedTuple):
    """A GPU as nvidia-smi reports it."""

    name: str
    memory_mib: int | None  # None: not reported, as for a GPU that shares the host's memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=9.0, help="of this call")
    parser.add_argument("--seconds", type=float, default=60.0, help="of one benchmark")
    parser.add_argument("--out", type=Path, help="default: docs/results/NAME OF THE GPU")
    parser.add_argument("--run_dir", type=Path, default=Path("runs/gpu"))
    parser.add_argument("--config", help="default: the preset of the GPU")
    options = parser.parse_args()
    begin, gpu = time.monotonic(), gpu_here()
    if options.config is None and (gpu is None or gpu.memory_mib is None):
        parser.error("nvidia-smi names no GPU, or not its memory: name a --config")
    config = Path(find_config(options.config or gpu_preset(gpu.memory_mib))).absolute()
    name = gpu.name.replace(" ", "_") if gpu else "trial"
    out = (options.out or ROOT / "docs" / "results" / name).absolute()
    run_dir = options.run_dir.absolute()
    for folder in (out, run_dir):
        folder.mkdir(parents=True, exist_ok=True)
    steps = steps_of(gpu, config, out, run_dir, options.seconds)
    run_steps(steps, run_dir, lambda: options.minutes - (time.monotonic() - begin) / 60)
    waiting = [step.name for step in steps if not step.result.exists()]
    print(f"The same command goes on with {', '.join(waiting)}." if waiting else "All is done.")


def gpu_here() -> Gpu | None:
    """Return the first GPU of this machine, None without one."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    name, memory = said.splitlines()[0].rsplit(",", 1)
    return Gpu(name.strip(), int(memory) if memory.strip().isdecimal() else None)


def steps_of(gpu: Gpu | None, config: Path, out: Path, run_dir: Path, seconds: float) -> list[Step]:
    """Return all steps in their order."""
    steps = []

    def add(name: str, command: str, result: Path, **environment: str) -> None:
        steps.append(Step(name, command.split(), result, environment))

    report = run_dir / "tests.xml"
    tests = f"-m pytest -n 4 --continue-on-collection-errors --junitxml {report} {TESTS}"
    # Four processes share the GPU. Programs are compiled with optimisations, as outside the tests.
    shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}
    add("tests", tests, report, **shared)
    preset = load_config(config)
    games = preset.lanes(preset.selfplay.games_per_iteration)
    whole = f"--config {config} {WHOLE} --selfplay.games_per_iteration {games}"
    for name, (channels, blocks) in NETWORKS.items():
        file = out / f"{name}.json"
        settings = f"{whole} --network.channels {channels} --network.blocks {blocks}"
        measure = f"scripts/benchmark.py {settings} --seconds {seconds} --json {file}"
        add(f"benchmark_{name}", measure, file)
    trace = f"scripts/benchmark.py {whole} --seconds {seconds} --trace {run_dir / 'trace'}"
    add("trace", f"{trace} --json {out / 'trace.json'}", out / "trace.json")
    games = "1024,2048,4096,8192" if gpu else "8,16"
    sweep = f"scripts/sweep.py --config {config} {WHOLE} --out {out / 'sweep'} {SWEEP}"
    add("sweep", f"{sweep} --selfplay.games_per_iteration {games}", out / "sweep" / "results.json")
    run = run_dir / "train"
    how = "--resume" if (run / "config.yaml").exists() else f"--config {config}"
    add("train", f"scripts/train.py --run_dir {run} {how}", run / SUMMARY_FILE)
    return steps


def run_steps(steps: list[Step], logs: Path, minutes_left: Any) -> None:
    """Run the steps that are not done while time is left."""
    for step in steps:
        if step.result.exists() or minutes_left() <= 0:
            continue
        minutes = minutes_left()
        print(f"{step.name}: at most {minutes:.1f} minutes, {logs / step.name}.log", flush=True)
        words = [sys.executable, *step.command]
        if step.name == "train":  # training stops by itself, after an iteration
            words += ["--max_minutes", f"{max(0.05, minutes - 1):.2f}"]
        with (logs / f"{step.name}.log").open("a") as log:
            code = run(words, step.environment, 60 * minutes, log)
        if code is None:
            step.result.unlink(missing_ok=True)  # stopped tests also write their result file
        print("  out of time" if code is None else f"  exit code {code}", flush=True)


def run(words: list[str], extra: Mapping[str, str], seconds: float, log: Any) -> int | None:
    """Run a command for at most `seconds`; return its exit code, None if it was stopped."""
    # The benchmark counts operations with a program for the CPU, so it needs both platforms.
    platforms = "cuda,cpu" if gpu_here() else "cpu"
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))).rstrip(os.pathsep)
    environment = os.environ | {"JAX_PLATFORMS": platforms, "PYTHONPATH": path, **extra}
    process = subprocess.Popen(words, stdout=log, stderr=log, env=environment, cwd=ROOT)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return None


if __name__ == "__main__":
    main()
