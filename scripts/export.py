"""Turn the network of a run into weights to ship or to share, with its config and its strength.

With --weights the strength of a network that is shipped is measured anew.
"""

from __future__ import annotations

from jaxzero.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

from pathlib import Path

from jsonargparse import ArgumentParser

import jaxzero
from jaxzero.cli import parse, run_script, use_compilation_cache
from jaxzero.errors import InputError
from jaxzero.files import check_folder, make_folder, temporary_folder
from jaxzero.training.source import add_source_options, required_source


def main(arguments: list[str]) -> None:
    parser = ArgumentParser(description=__doc__, exit_on_error=False)
    add_source_options(parser)
    parser.add_argument("--name", help="name of the weights; default: the board, such as 5x5")
    parser.add_argument("--out", type=Path, help="folder; default: that of the package")
    parser.add_argument("--opponents", default="random,greedy", help="players to meet")
    parser.add_argument("--games", type=int, default=512, help="games per match, even")
    parser.add_argument("--simulations", type=int, default=64, help="simulations per move")
    options = parse(parser, arguments)
    source = required_source(options)
    if options.games < 2 or options.games % 2:
        raise InputError(f"games: {options.games} must be even and at least 2")
    if options.simulations < 1:
        raise InputError(f"simulations: {options.simulations} must be at least 1")
    folder = options.out or Path(jaxzero.__file__).parent / "weights"
    check_folder("out", folder)

    from jaxzero.training.export import measure
    from jaxzero.training.shipping import ship

    use_compilation_cache()
    loaded, record = measure(source, options.opponents, options.games, options.simulations)
    name = options.name or str(loaded.config.game.board)
    make_folder("out", folder)
    with temporary_folder(folder) as unfinished:
        ship(loaded, record, name, unfinished)
        # The weights go last: without them the other files name no network.
        for suffix in ("yaml", "json", "safetensors"):
            (unfinished / f"{name}.{suffix}").replace(folder / f"{name}.{suffix}")
    print(f"{folder / name}.safetensors, .yaml, .json")


if __name__ == "__main__":
    run_script(main)
