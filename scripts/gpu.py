"""Everything to do on a GPU, in short calls: tests, benchmark, profile, sweep, training.

One call takes at most --minutes and goes on where the last one stopped. Results are JSON files in
--out, with a summary that holds what was measured against what was predicted; logs and the run are
in --run_dir.
"""

from __future__ import annotations

from jaxzero.host.interrupts import cleaned_up, end_with, install

if __name__ == "__main__":
    install()  # first: the imports below take a second
    end_with("Stopped. The same command goes on with the step that was interrupted.")

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import tabulate

from jaxzero.cli import find_config, gpu_preset, load_config, parse, run_script, script_parser
from jaxzero.config.ranges import PointMinutes, Seconds
from jaxzero.errors import InputError
from jaxzero.host.files import check_folder, write_json
from jaxzero.host.readers import check_mapping, read_mapping
from jaxzero.host.status import doing
from jaxzero.runs.run_dir import new_folder, refuse_run

ROOT = Path(__file__).parent.parent
NETWORKS = {"128x10": (128, 10), "64x6": (64, 6)}
# Files whose tests take one device of any kind.
TESTS = (
    "tests/game tests/search/test_search.py "
    "tests/training/test_learner.py tests/training/test_replay.py"
).split()
# Speeds are those of whole games, a lane to each.
WHOLE = "--selfplay.start_ply 0 --selfplay.start_falls 0"
SWEEP = "--learner.updates_per_iteration 8 --rounds 1 --point_minutes 4".split()
TRIES = 2
GRACE_SECONDS = 20  # between the request to stop and the end
TRAINING_MARGIN = 1.0  # minutes of a call for what comes after the last iteration of a run
STOPPED = (124, 130, 143)  # exit codes of what ran out of time, or was stopped


class Step(NamedTuple):
    """One command of this script."""

    name: str
    command: list[Any]  # after `python`
    minutes: float  # start it only where so many of nine are left
    result: Path | None = None  # the file that it ends with, where it may take several calls
    goes_on: bool = False  # a call that ran out of time was not in vain


class Gpu(NamedTuple):
    """What nvidia-smi says."""

    name: str
    memory_mib: int | None  # None: it says no number, as where the GPU shares the host's memory


def main(arguments: list[str]) -> None:
    parser = script_parser(__doc__)
    parser.add_argument(
        "--minutes", type=PointMinutes, default=9.0, help="longest time of this call"
    )
    parser.add_argument("--seconds", type=Seconds, default=60.0, help="of one benchmark")
    parser.add_argument("--out", type=Path, help="default: docs/results/NAME OF THE GPU")
    parser.add_argument("--run_dir", type=Path, default=Path("runs/gpu"), help="logs and runs")
    parser.add_argument(
        "--config", help="default: the preset of the GPU; with it a trial without a GPU is possible"
    )
    begin, options = time.monotonic(), parse(parser, arguments)
    gpu = gpu_here()
    if gpu is None and options.config is None:
        raise InputError(
            "config: no GPU answers (nvidia-smi); for a trial on the CPU name a config"
        )
    config = Path(find_config(options.config or preset_of(gpu))).absolute()
    name = gpu.name.replace(" ", "_") if gpu else "trial"
    out = (options.out or ROOT / "docs" / "results" / name).absolute()
    run_dir = options.run_dir.absolute()
    with ExitStack() as stack:
        for option, folder in (("out", out), ("run_dir", run_dir)):
            check_folder(option, folder)
            refuse_run(option, folder)
            stack.enter_context(new_folder(option, folder))
        state = read_state(out / "state.json", gpu)
        steps = steps_of(gpu, config, out, run_dir, options.seconds)
        run_steps(steps, state, out / "state.json", run_dir, begin, options.minutes)
        summary = summarise(state, out)
        write_json(out / "summary.json", summary)
    print(f"\n{report(summary)}\n")
    waiting = [step.name for step in steps if is_open(state, step)]
    print(f"The same command goes on with {', '.join(waiting)}." if waiting else "All is done.")


def gpu_here() -> Gpu | None:
    """Return the first GPU of this machine."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    name, memory = said.splitlines()[0].rsplit(",", 1)
    return Gpu(name.strip(), int(memory) if memory.strip().isdecimal() else None)


def preset_of(gpu: Gpu) -> str:
    """Return the preset for the memory of a GPU. Raises: InputError where that is unknown."""
    if gpu.memory_mib is None:
        raise InputError(f"config: nvidia-smi says no memory of {gpu.name}; name a config")
    return gpu_preset(gpu.memory_mib)


def target_of(gpu: Gpu | None) -> str | None:
    """Return the name under which a GPU is described, None where it is not."""
    from jaxzero.performance.gpu_compile import known_gpus

    # "NVIDIA H100 80GB HBM3" is an H100; an "H100 PCIe" and an "RTX 4060 Ti" are other GPUs.
    memory = r"(\s+\d+GB)?(\s+HBM\w*)?"
    known = (name for name in known_gpus() if gpu and re.search(rf"\b{name}{memory}$", gpu.name))
    return next(known, None)


def steps_of(gpu: Gpu | None, config: Path, out: Path, run_dir: Path, seconds: float) -> list[Step]:
    """Return all steps in their order."""
    from jaxzero.runs.summary import SUMMARY_FILE  # slow to import; options are checked before

    steps = [Step("tests", ["-m", "pytest", "--continue-on-collection-errors", *TESTS], 8)]
    preset = load_config(config)
    at_once = preset.lanes(preset.selfplay.games)
    whole = ["--config", config, *WHOLE.split(), "--selfplay.games", at_once]
    for name, (channels, blocks) in NETWORKS.items():
        network = f"--network.channels {channels} --network.blocks {blocks}"
        settings = [*whole, *network.split()]
        measure = ["scripts/benchmark.py", *settings, "--seconds", seconds]
        steps.append(Step(f"benchmark_{name}", [*measure, "--json", out / f"{name}.json"], 4))
        if target := target_of(gpu):
            predict = ["scripts/gpu_compile.py", *settings, "--target", target]
            places = ["--parts", "iteration", "--json", out / f"{name}_predicted.json"]
            steps.append(Step(f"predict_{name}", [*predict, *places], 3))
    profile = ["scripts/diagnose.py", *whole, "--trace", run_dir / "trace"]
    sweep = ["scripts/sweep.py", "--config", config, *WHOLE.split(), "--out", out / "sweep", *SWEEP]
    games = "1024,2048,4096,8192,16384" if gpu else "8,16"
    return [
        *steps,
        Step("profile", [*profile, "--json", out / "profile.json"], 4),
        Step("sweep", [*sweep, "--selfplay.games", games], 3, goes_on=True),
        Step("train", train(run_dir / "train", config), 4, run_dir / "train" / SUMMARY_FILE, True),
    ]


def train(run_dir: Path, config: Path) -> list:
    """Return the command that begins or continues a run; `run` adds the minutes."""
    begun = (run_dir / "config.yaml").exists()
    how = ["--resume"] if begun else ["--config", config]
    return ["scripts/train.py", "--run_dir", run_dir, *how]


# Running them


def read_state(file: Path, gpu: Gpu | None) -> dict[str, Any]:
    """Return what earlier calls did: the record of every step."""
    if file.exists():
        state = read_mapping("out", file, {"steps": dict})
        kinds = {"status": str, "calls": int, "failures": int, "seconds": int | float}
        for record in state["steps"].values():
            check_mapping("out", file, record, kinds)
        return {"gpu": None} | state
    return {"gpu": gpu.name if gpu else None, "steps": {}}


def is_open(state: dict[str, Any], step: Step) -> bool:
    return state["steps"].get(step.name, {}).get("status", "open") == "open"


def run_steps(
    steps: list[Step], state: dict[str, Any], file: Path, logs: Path, begin: float, most: float
) -> None:
    """Run open steps for `most` minutes from `begin`, and write the state down after each."""
    waiting = [step for step in steps if is_open(state, step)]
    for number, step in enumerate(waiting):
        minutes = most - (time.monotonic() - begin) / 60
        if number and minutes < step.minutes * most / 9:
            break
        print(f"{step.name}: at most {minutes:.1f} minutes, {logs / step.name}.log", flush=True)
        started = time.monotonic()
        platform = "cuda,cpu" if state["gpu"] else "cpu"
        with doing(step.name):
            code = run(step, minutes, logs / f"{step.name}.log", platform)
        record = after(step, state["steps"].get(step.name, {}), code, time.monotonic() - started)
        state["steps"][step.name] = record
        write_json(file, state)
        print(f"  exit code {code}, {record['status']}", flush=True)


def after(step: Step, record: dict[str, Any], code: int, seconds: float) -> dict[str, Any]:
    """Return the record of a step after one more call of it."""
    useful = code == 0 or (code in STOPPED and step.goes_on)
    calls = record.get("calls", 0) + useful
    failures = record.get("failures", 0) + (not useful)
    finished = code == 0 and (step.result is None or step.result.exists())
    return {
        "status": "done" if finished else "failed" if failures >= TRIES else "open",
        "calls": calls,
        "failures": failures,
        "exit_code": code,
        "seconds": round(record.get("seconds", 0) + seconds, 1),
    }


def run(step: Step, minutes: float, log: Path, platform: str) -> int:
    """Run the command of a step for so many minutes at most; return its exit code."""
    words = [sys.executable, *map(str, step.command)]
    if step.command[0] == "scripts/train.py":  # it ends by itself, after an iteration
        words += ["--max_minutes", f"{max(0.05, minutes - TRAINING_MARGIN):.2f}"]
    environment = os.environ | {"JAX_PLATFORMS": platform, "PYTHONPATH": str(ROOT)}
    with log.open("a") as lines:
        process = subprocess.Popen(words, stdout=lines, stderr=lines, env=environment, cwd=ROOT)
        with cleaned_up(process.terminate):
            try:
                return process.wait(60 * max(minutes, 0.0))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    return STOPPED[0]


# For people


def summarise(state: dict[str, Any], out: Path) -> dict[str, Any]:
    """Set what was measured beside what was predicted."""
    rows = []
    for network in NETWORKS:
        measured = read(out / f"{network}.json")
        predicted = read(out / f"{network}_predicted.json")
        rows.append(
            {
                "network": network,
                "device": measured.get("device"),
                "games_per_second": measured.get("games_per_second_with_learning"),
                "predicted_games_per_second": predicted.get("predicted", {}).get(
                    "games_per_second"
                ),
                "evaluations_per_second": measured.get("network_evaluations_per_second"),
                "peak_memory_bytes": measured.get("peak_memory_bytes"),
                "predicted_memory_bytes": measured.get("predicted_memory_bytes"),
            }
        )
    return state | {"rows": rows}


def read(file: Path) -> dict[str, Any]:
    return read_mapping("out", file, {}) if file.exists() else {}


def report(summary: dict[str, Any]) -> str:
    """Lay out the states of all steps, and measured beside predicted."""
    steps = [
        (name, record["status"], record["calls"], f"{record['seconds']:,.0f}")
        for name, record in summary["steps"].items()
    ]
    rows = [
        (
            row["network"],
            *(
                "-" if row[name] is None else f"{row[name] / scale:,.0f}"
                for name, scale in (
                    ("games_per_second", 1),
                    ("predicted_games_per_second", 1),
                    ("evaluations_per_second", 1),
                    ("peak_memory_bytes", 2**20),
                    ("predicted_memory_bytes", 2**20),
                )
            ),
        )
        for row in summary["rows"]
    ]
    headings = (
        "network",
        "games/s",
        "predicted",
        "evaluations/s",
        "peak MiB",
        "plan MiB",
    )
    right = {"disable_numparse": True, "colalign": ["left"] + ["right"] * 5}
    return "\n\n".join(
        [
            tabulate.tabulate(steps, ("step", "status", "calls", "seconds"), "simple"),
            tabulate.tabulate(rows, headings, "simple", **right),
        ]
    )


if __name__ == "__main__":
    run_script(main)
