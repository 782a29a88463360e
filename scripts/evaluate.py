"""Measure a trained network: matches, exact-play suites, a ladder of the checkpoints of its run.

Suites: `table` (boards up to 3x3, solved on the spot), the stored ones such as `5x5`, `berlekamp`.
"""

from __future__ import annotations

from jaxzero.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

from pathlib import Path

from jsonargparse import ArgumentParser

from jaxzero.cli import parse, run_script, use_compilation_cache
from jaxzero.errors import InputError
from jaxzero.files import check_file, check_folder, write_json
from jaxzero.training.source import add_source_options, required_source


def main(arguments: list[str]) -> None:
    parser = ArgumentParser(description=__doc__, exit_on_error=False)
    add_source_options(parser)
    parser.add_argument("--opponents", default="", help="players to meet, such as random,greedy")
    parser.add_argument("--games", type=int, default=512, help="games per match, even")
    parser.add_argument("--simulations", type=int, default=64, help="simulations per move")
    parser.add_argument("--opening_plies", type=int, default=4, help="random moves of openings")
    parser.add_argument("--suite", help="name of a suite of solved positions")
    parser.add_argument("--ladder", action="store_true", help="rate the checkpoints of the run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--figures", type=Path, help="folder of figures; the run's, else figures")
    options = parse(parser, arguments)
    source = required_source(options)
    if options.ladder and source.run_dir is None:
        raise InputError("ladder: True needs --run_dir")
    if options.games < 2 or options.games % 2:
        raise InputError(f"games: {options.games} must be even and at least 2")
    if not 0 <= options.seed < 2**32:
        raise InputError(f"seed: {options.seed} must be >= 0 and < 4294967296")
    if options.opening_plies < 0:
        raise InputError(f"opening_plies: {options.opening_plies} must be >= 0")
    if options.simulations < 1:
        raise InputError(f"simulations: {options.simulations} must be at least 1")
    figures = options.figures or options.run_dir or Path("figures")
    check_file("json", options.json)
    if options.suite or options.ladder:
        check_folder("figures", figures)

    from jaxzero.training.assess import climb, meet, sit

    use_compilation_cache()
    print(f"Loading {source.name} ...", flush=True)
    loaded = source.load()
    print(f"{source.field} {source.name}, iteration {loaded.iteration}, {loaded.config.game.board}")
    results = {"source": source.name, "iteration": loaded.iteration}
    if options.opponents:
        match = (options.games, options.opening_plies, options.seed)
        results["versus"] = meet(loaded, options.opponents, options.simulations, *match)
    if options.suite:
        results |= sit(loaded, options.suite, options.simulations, figures)
    if options.ladder:
        match = (options.games, options.opening_plies, options.seed)
        results["ladder"] = climb(options.run_dir, options.simulations, *match, figures)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    run_script(main)
