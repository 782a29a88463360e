"""Train an AlphaZero for Dots and Boxes."""

from __future__ import annotations

from jaxzero.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import sys
from pathlib import Path

from jaxzero.cli import config_of, config_parser, parse, run_script, use_compilation_cache
from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.files import check_folder


def main(arguments: list[str]) -> None:
    parser = config_parser(__doc__)
    parser.add_argument("--run_dir", type=Path, help="folder of the run's files")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from the newest checkpoint, with the run's own config unless --config is given",
    )
    parser.add_argument(
        "--weights",
        help="network to begin with: one that is shipped, as 5x5, an exported file, or the folder "
        "of a run; of another board, what fits is taken",
    )
    parser.add_argument(
        "--max_minutes", type=float, default=0.0, help="save and stop after so long; 0: never"
    )
    parser.add_argument(
        "--predict_memory",
        action="store_true",
        help="say what the run needs of a device's memory, and do nothing else",
    )
    options = parse(parser, arguments)
    if options.predict_memory:
        return predict_memory(config_of(parser, options))
    if options.run_dir is None:
        raise InputError("run_dir: name a folder for the run's files with --run_dir")
    if options.weights and options.resume:
        raise InputError(f"weights: {options.weights} cannot stand beside --resume")
    saved = options.run_dir / "config.yaml"
    if options.resume and not options.config and saved.exists():
        options = parse(parser, ["--config", str(saved), *arguments])
    config = config_of(parser, options)
    check_folder("run_dir", options.run_dir)

    from jaxzero.training.beginning import beginning_from
    from jaxzero.training.stop import Stop
    from jaxzero.training.trainer import train

    use_compilation_cache()
    beginning = beginning_from(options.weights) if options.weights else None
    stop = Stop(options.max_minutes)
    if not train(config, options.run_dir, options.resume, stop, beginning):
        sys.exit(stop.exit_code)


def predict_memory(config: Config) -> None:
    """Print the memory one iteration will hold at once on each device."""
    from jaxzero.agent.network import Network
    from jaxzero.training.memory import mebibytes, memory_limit_bytes, plan_iteration
    from jaxzero.training.parallel import choose_devices

    use_compilation_cache()
    devices = choose_devices(config.devices)
    plan = plan_iteration(config, Network(config.game.board, config.network), devices)
    print(
        f"{mebibytes(plan.predicted)} predicted per device, {mebibytes(plan.replay)} of it replay; "
        f"{devices[0].device_kind} has {mebibytes(memory_limit_bytes(devices))}"
    )


if __name__ == "__main__":
    run_script(main)
