"""Train an AlphaZero for Dots and Boxes.

Example: jaxzero train --config configs/quick.yaml --run_dir runs/quick. A position is
quiet when no box has three drawn sides. A margin is own boxes minus the opponent's.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import config_of, config_parser, run_script, warn_of_presets
from jaxzero.config import AmountOrZero, Config, Size, SizeOrZero, config_of_file
from jaxzero.errors import InputError
from jaxzero.host.files import check_folder
from jaxzero.host.programs import use_compilation_cache
from jaxzero.runs.run_dir import check_run, config_file

PROCESS_OPTIONS = ("coordinator_address", "num_processes", "process_id")
LIMITS = ("heartbeat_seconds", "join_seconds")


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
        "run. Arrays that fit are taken over; from another board, if the network is conv",
    )
    parser.add_argument(
        "--max_minutes",
        type=AmountOrZero,
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
        "--distributed",
        action="store_true",
        help="be one process of a job of several, as SLURM, Open MPI or Kubernetes has started it; "
        "see docs/training.md",
    )
    parser.add_argument(
        "--coordinator_address",
        help="address and port of the first process, such as node1:1234. Needed if no scheduler "
        "starts the job: give it, --num_processes and --process_id to every process",
    )
    parser.add_argument("--num_processes", type=Size, help="processes of the job")
    parser.add_argument("--process_id", type=SizeOrZero, help="which of them this one is, from 0")
    parser.add_argument(
        "--heartbeat_seconds",
        type=Size,
        help="silence of a process of the job after which it ends; default: 60",
    )
    parser.add_argument(
        "--join_seconds",
        type=Size,
        help="time within which all processes of the job must have started; default: 300",
    )
    return parser


def main(arguments: list[str]) -> None:
    parser = train_parser()
    options = parser.parse_args(arguments)
    check_folder("run_dir", options.run_dir)
    if options.run_dir is None and not options.predict_memory:
        raise InputError("--run_dir is required: a folder for the files of the run")
    if options.weights and options.resume:
        raise InputError("--weights cannot be combined with --resume")
    if options.run_dir is not None:
        options = with_saved(parser, options, arguments)
    config = config_of(options)
    if options.predict_memory:
        return predict_memory(config, options)
    join_others(options)

    use_compilation_cache()  # before anything imports matplotlib
    warn_of_presets(options.config)
    import jax

    from jaxzero.host.interrupts import Stop
    from jaxzero.measure.evaluator import Evaluator
    from jaxzero.measure.suite import suite_name
    from jaxzero.performance.report import measure_work
    from jaxzero.runs.summary import print_next
    from jaxzero.runs.weights import load_weights
    from jaxzero.training.trainer import train

    initial = load_weights(options.weights) if options.weights else None
    stop = Stop(options.max_minutes)
    result = train(
        config,
        options.run_dir,
        Evaluator(config),
        resume=options.resume,
        stop=stop,
        initial=initial,
        measure_work=measure_work,
    )
    jax.distributed.shutdown()  # the processes of a job leave together
    if not result.complete:
        sys.exit(128 + stop.signal if stop.signal else 0)  # as a shell expects after a signal
    print_next(options.run_dir, suite_name("auto", config.game.board, "test"))


def with_saved(parser: ArgumentParser, options: Namespace, arguments: list[str]) -> Namespace:
    """Return the options of a command; if it resumes a run, the run's config gives the others."""
    if options.resume and options.config is None:
        check_run("run_dir", options.run_dir)
        saved = config_of_file(config_file(options.run_dir), "run_dir")
        return parser.parse_args(["--config", json.dumps(asdict(saved)), *arguments])
    return options


def join_others(options: Namespace) -> None:
    """Join a job of several processes if the options ask for it."""
    given = {name: options[name] for name in PROCESS_OPTIONS if options[name] is not None}
    limits = {name: options[name] for name in LIMITS if options[name] is not None}
    if not given and not options.distributed:
        for name in limits:
            raise InputError(f"--{name} needs --distributed")
        return
    if given and len(given) < len(PROCESS_OPTIONS) and not options.distributed:
        raise InputError("--" + ", --".join(PROCESS_OPTIONS) + " are required together")
    own, several = options.process_id, options.num_processes
    if own is not None and several is not None and own >= several:
        raise InputError(f"process_id: {own} must be less than --num_processes {several}")
    address = options.coordinator_address
    host, _, port = (address or "").rpartition(":")
    if address is not None and not (host and port.isdecimal() and 0 < int(port) < 2**16):
        raise InputError(
            f"coordinator_address: {address!r} must be an address and a port, such as node1:1234"
        )
    from jaxzero.training.processes import join

    join(**given, **limits)


def predict_memory(config: Config, options: Namespace) -> None:
    """Print the memory that one iteration will hold at once on each device."""
    from jaxzero.network.network import Network
    from jaxzero.runs.memory import mebibytes, memory_limit_bytes
    from jaxzero.runs.weights import load_weights
    from jaxzero.training.devices import choose_devices
    from jaxzero.training.program import compile_iteration
    from jaxzero.training.run_state import refuse_misfit

    use_compilation_cache()
    devices, network = choose_devices(config.devices), Network(config.game.board, config.network)
    if options.weights:
        refuse_misfit(network, load_weights(options.weights))
    program = compile_iteration(config, network, devices)
    limit = mebibytes(memory_limit_bytes(devices))
    print(f"{program.memory}; {devices[0].device_kind} has {limit}")


if __name__ == "__main__":
    run_script(main)
