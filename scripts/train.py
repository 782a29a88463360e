"""Train an AlphaZero for Dots and Boxes.

Example: jaxzero train --config configs/quick.yaml --run_dir runs/quick. A position is
quiet when no box has three drawn sides. A margin is own boxes minus the opponent's.
"""

from __future__ import annotations

from jaxzero.host.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import sys
from dataclasses import replace
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import config_of, config_parser, parse, refuse_given, run_script
from jaxzero.config import Config
from jaxzero.config.ranges import Minutes, NonNegativeInt, PositiveInt, Seed
from jaxzero.errors import InputError, shortened
from jaxzero.host.files import check_folder
from jaxzero.host.programs import use_compilation_cache
from jaxzero.runs.run_dir import CONFIG_FILE, check_run, check_run_dir, command_name

PROCESS_OPTIONS = ("coordinator_address", "num_processes", "process_id")


def train_parser() -> ArgumentParser:
    """Return the parser of every setting and of the options of a run."""
    parser = config_parser(__doc__)
    parser.add_argument(
        "--run_dir", type=Path, help="folder for all files of the run; needed to train"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --run_dir from its newest checkpoint, with its own config; other "
        "options change that config, but board and network stay",
    )
    parser.add_argument(
        "--weights",
        help="initial network: a shipped one, such as 5x5, a .safetensors file, or the folder of a "
        "run; from another board a convolutional network of the same settings is taken over whole, "
        "of others the arrays of equal shape",
    )
    parser.add_argument(
        "--seeds",
        type=Seed,
        nargs="+",
        help="train once for each of these seeds, one after the other, in folders seed_0, ... of "
        "--run_dir, and print the mean of their ends; --resume does not repeat complete runs",
    )
    parser.add_argument(
        "--max_minutes",
        type=Minutes,
        default=0.0,
        help="minutes of this call, compiling included; then the present iteration ends, is "
        "saved, and the script stops; 0: no limit. The learning rate follows --minutes, not this",
    )
    parser.add_argument(
        "--predict_memory",
        action="store_true",
        help="print the memory that the run needs per device, then stop",
    )
    parser.add_argument(
        "--target",
        help="with --predict_memory: predict for this GPU, such as 'RTX 4060', which need not be "
        "there; needs the CUDA build of jax",
    )
    parser.add_argument(
        "--distributed",
        action="store_true",
        help="be one process of a job of several, as SLURM, Open MPI or Kubernetes has started it; "
        "see docs/scaling.md",
    )
    parser.add_argument(
        "--coordinator_address",
        help="address and port of the first process, such as node1:1234, where nothing has started "
        "the job that says so; every process needs it and the next two",
    )
    parser.add_argument("--num_processes", type=PositiveInt, help="processes of the job")
    parser.add_argument(
        "--process_id", type=NonNegativeInt, help="which of them this one is, from 0"
    )
    parser.add_argument(
        "--heartbeat_seconds",
        type=PositiveInt,
        help="silence of a process of the job after which it ends; default: 60",
    )
    return parser


def main(arguments: list[str]) -> None:
    parser = train_parser()
    options = parse(parser, arguments)
    check_folder("run_dir", options.run_dir)
    if options.predict_memory:
        if options.run_dir is not None:
            options = with_saved(parser, options, options.run_dir, arguments)
        return predict_memory(config_of(parser, options), options.target)
    refuse_given(arguments, ["target"], "needs --predict_memory")
    if options.run_dir is None:
        raise InputError("run_dir: name a folder for the run's files with --run_dir")
    if options.weights and options.resume:
        raise InputError(f"weights: {options.weights} cannot stand beside --resume")
    if options.seeds is not None:
        return train_seeds(parser, options, arguments)
    options = with_saved(parser, options, options.run_dir, arguments)
    config = config_of(parser, options)
    join_others(options)

    from jaxzero.host.interrupts import Stop
    from jaxzero.runs.weights import read_initial_weights
    from jaxzero.training.trainer import train

    use_compilation_cache()
    initial = read_initial_weights(options.weights) if options.weights else None
    stop = Stop(options.max_minutes)
    if not train(config, options.run_dir, options.resume, stop, initial):
        sys.exit(stop.exit_code)


def train_seeds(parser: ArgumentParser, options: Namespace, arguments: list[str]) -> None:
    """Train once for each seed, one after the other, and print the mean of their ends."""
    refuse_seeds(options, arguments)
    folders = {seed: options.run_dir / f"seed_{seed}" for seed in options.seeds}
    begun = [folder for folder in folders.values() if (folder / CONFIG_FILE).exists()]
    configs = {}
    for seed, folder in folders.items():
        # A run that has not begun takes after one that has.
        source = folder if folder in begun or not begun else begun[0]
        given = with_saved(parser, options, source, arguments)
        configs[seed] = replace(config_of(parser, given), seed=seed)
        check_run_dir(configs[seed], source if options.resume else folder, options.resume)

    from jaxzero.host.interrupts import Stop
    from jaxzero.runs.compare import format_runs, group_runs, is_complete, read_run
    from jaxzero.runs.weights import begun_with, read_initial_weights
    from jaxzero.training.trainer import train

    use_compilation_cache()
    initial = begun_with(begun[0]) if begun else None
    if options.weights:
        initial = read_initial_weights(options.weights)
    stop = Stop(options.max_minutes)
    for seed, folder in folders.items():
        if is_complete(configs[seed], folder):
            print(f"seed {seed}: complete in {folder}", flush=True)
            continue
        print(f"seed {seed}: {folder}", flush=True)
        new = folder not in begun
        done = train(configs[seed], folder, not new, stop, initial if new else None)
        if not done or (stop.over and seed != options.seeds[-1]):
            seeds = " ".join(map(str, options.seeds))
            again = f"{command_name('train')} --run_dir {options.run_dir} --seeds {seeds} --resume"
            print(f"To go on with all seeds: {again}")
            sys.exit(stop.exit_code)
    try:
        print(format_runs(group_runs([read_run(folder) for folder in folders.values()])))
    except InputError as error:  # the runs are complete all the same
        print(f"No comparison: {error}")


def refuse_seeds(options: Namespace, arguments: list[str]) -> None:
    """Raise an InputError where the seeds cannot be those of runs in one folder."""
    given = " ".join(map(str, options.seeds))
    if len(set(options.seeds)) < len(options.seeds):
        raise InputError(f"seeds: {given} names a seed twice")
    if any(word.partition("=")[0] == "--seed" for word in arguments):
        raise InputError(f"seed: {options.seed} cannot stand beside --seeds {given}")
    several = (*PROCESS_OPTIONS, "heartbeat_seconds")
    if options.distributed or any(options[name] is not None for name in several):
        raise InputError(f"seeds: {given} are trained by one process, not by a job of several")
    if (options.run_dir / CONFIG_FILE).exists():
        raise InputError(f"run_dir: {options.run_dir} is a run itself, not a folder for --seeds")


def with_saved(
    parser: ArgumentParser, options: Namespace, run_dir: Path, arguments: list[str]
) -> Namespace:
    """Return the options of a command; where it resumes a run, those of its config below them."""
    if options.resume and options.config is None:
        check_run("run_dir", run_dir)
        return parse(parser, ["--config", str(run_dir / CONFIG_FILE), *arguments])
    return options


def join_others(options: Namespace) -> None:
    """Become one of the processes of a job where the options ask for it."""
    given = {name: options[name] for name in PROCESS_OPTIONS if options[name] is not None}
    beats = options.heartbeat_seconds
    if not given and not options.distributed:
        if beats is not None:
            raise InputError(f"heartbeat_seconds: {beats} needs --distributed")
        return
    if given and len(given) < len(PROCESS_OPTIONS) and not options.distributed:
        missing = next(name for name in PROCESS_OPTIONS if name not in given)
        name, value = next(iter(given.items()))
        raise InputError(f"{name}: {value} needs --{missing} beside it, or --distributed")
    own, several = options.process_id, options.num_processes
    if own is not None and several is not None and own >= several:
        raise InputError(f"process_id: {own} must be less than --num_processes {several}")
    address = options.coordinator_address
    host, _, port = (address or "").rpartition(":")
    if address is not None and not (host and port.isdecimal() and 0 < int(port) < 2**16):
        raise InputError(
            f"coordinator_address: {shortened(repr(address))} must be an address and a port, "
            "such as node1:1234"
        )
    from jaxzero.training.parallel import HEARTBEAT_SECONDS, join

    join(**given, heartbeat_seconds=beats or HEARTBEAT_SECONDS)


def predict_memory(config: Config, target: str | None) -> None:
    """Print the memory one iteration will hold at once on each device.

    With a `target`, a GPU that need not be there.
    """
    from jaxzero.runs.memory import mebibytes, memory_limit_bytes

    if target:
        from jaxzero.performance.gpu_compile import gpu_named, predicted_memory

        gpu = gpu_named(target)
        needed, replay = predicted_memory(config, gpu)
        name, limit = gpu.name, gpu.memory
        # Without XLA_CLIENT_MEM_FRACTION jax reserves three quarters.
        fits = "fits" if needed <= 0.75 * limit else "does NOT fit"
        verdict = f": it {fits} into the 75 % that jax reserves"
    else:
        from jaxzero.network.network import Network
        from jaxzero.training.iteration import compile_iteration
        from jaxzero.training.parallel import choose_devices

        use_compilation_cache()
        devices = choose_devices(config.devices)
        program = compile_iteration(config, Network(config.game.board, config.network), devices)
        needed, replay, verdict = program.predicted, program.replay, ""
        name, limit = devices[0].device_kind, memory_limit_bytes(devices)
    print(
        f"{mebibytes(needed)} predicted per device, {mebibytes(replay)} of it replay; "
        f"{name} has {mebibytes(limit)}{verdict}"
    )


if __name__ == "__main__":
    run_script(main)
