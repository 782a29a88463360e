"""Turn the network of a run into weights to ship or to share, with its config and its strength.

With --weights the strength of a network that is shipped is measured anew.
"""

from __future__ import annotations

from pathlib import Path

from jsonargparse import ArgumentParser

from jaxzero.cli import parse, run_script, use_compilation_cache
from jaxzero.errors import InputError


def main(arguments: list[str]) -> None:
    parser = ArgumentParser(description=__doc__, exit_on_error=False)
    parser.add_argument("--run_dir", type=Path, help="folder of the run")
    parser.add_argument("--weights", help="instead of a run: a network that is shipped, as 5x5")
    parser.add_argument("--checkpoint", type=int, help="iteration to take; default: the newest")
    parser.add_argument("--name", help="name of the weights; default: the board, such as 5x5")
    parser.add_argument("--out", type=Path, help="folder; default: that of the package")
    parser.add_argument("--opponents", default="random,greedy", help="players to meet")
    parser.add_argument("--games", type=int, default=512, help="games per match, even")
    parser.add_argument("--simulations", type=int, default=64, help="simulations per move")
    options = parse(parser, arguments)
    if (options.run_dir is None) == (options.weights is None):
        raise InputError("run_dir: name a run with --run_dir or a network with --weights, not both")
    if options.weights and options.checkpoint is not None:
        raise InputError(f"checkpoint: {options.checkpoint} needs --run_dir")
    if options.games < 2 or options.games % 2:
        raise InputError(f"games: {options.games} must be even and at least 2")
    if options.simulations < 1:
        raise InputError(f"simulations: {options.simulations} must be at least 1")

    from jaxzero.training.export import measure_run, measure_shipped
    from jaxzero.training.shipping import FOLDER, ship

    use_compilation_cache()
    match = (options.opponents, options.games, options.simulations)
    if options.weights:
        loaded, record = measure_shipped(options.weights, *match)
    else:
        loaded, record = measure_run(options.run_dir, options.checkpoint, *match)
    name, folder = options.name or str(loaded.config.game.board), options.out or FOLDER
    ship(loaded, record, name, folder)
    print(f"{folder / name}.safetensors, .yaml, .json")


if __name__ == "__main__":
    run_script(main)
