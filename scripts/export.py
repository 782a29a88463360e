"""Write the network of a run to a file of its own, with its config and its measured strength.

--weights FILE in the other scripts takes it. With --weights here, a network that is in a file
already is measured anew.
"""

from __future__ import annotations

from jaxzero.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

from pathlib import Path

from jsonargparse import ArgumentParser

from jaxzero.cli import parse, run_script, use_compilation_cache
from jaxzero.errors import InputError
from jaxzero.files import check_folder
from jaxzero.training.source import add_source_options, required_source


def main(arguments: list[str]) -> None:
    parser = ArgumentParser(description=__doc__, exit_on_error=False)
    add_source_options(parser)
    parser.add_argument("--name", help="name of the weights; default: the board, such as 5x5")
    parser.add_argument("--out", type=Path, help="folder; default: weights in that of the run")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace weights of the same name in the folder"
    )
    parser.add_argument("--opponents", default="random,greedy", help="players to meet")
    parser.add_argument("--games", type=int, default=512, help="games per match, even")
    parser.add_argument("--simulations", type=int, default=64, help="simulations per move")
    options = parse(parser, arguments)
    source = required_source(options)
    if options.games < 2 or options.games % 2:
        raise InputError(f"games: {options.games} must be even and at least 2")
    if options.simulations < 1:
        raise InputError(f"simulations: {options.simulations} must be at least 1")
    if options.out is None and source.run_dir is None:
        raise InputError("out: name a folder with --out for what is measured anew")
    folder = options.out or source.run_dir / "weights"
    check_folder("out", folder)

    from jaxzero.training.export import measure
    from jaxzero.training.shipping import SUFFIX, ship

    use_compilation_cache()
    print(f"Loading {source.name} ...", flush=True)
    loaded = source.load()
    name = options.name or str(loaded.config.game.board)
    file = folder / f"{name}{SUFFIX}"
    if file.exists() and not options.overwrite:
        raise InputError(f"out: {file} exists; --overwrite replaces it")
    measured = measure(source, loaded, options.opponents, options.games, options.simulations)
    ship(*measured, name, folder)
    print(f"{file}, .yaml, .json")


if __name__ == "__main__":
    run_script(main)
