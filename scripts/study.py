"""Fit a network to exact labels within a budget and score it, or compare several results.

This helps to choose a network. The agent itself learns from self-play alone.
"""

from __future__ import annotations

from jaxzero.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

from pathlib import Path

from jaxzero.cli import config_of, config_parser, parse, run_script
from jaxzero.config import Config
from jaxzero.config.ranges import NonNegativeInt
from jaxzero.errors import InputError
from jaxzero.files import check_folder, make_folder
from jaxzero.programs import use_compilation_cache
from jaxzero.status import doing


def main(arguments: list[str]) -> None:
    parser = config_parser(__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the results or the comparison"
    )
    parser.set_defaults(minutes=3.0)  # of learning, without compiling and scoring
    parser.add_argument(
        "--positions",
        type=NonNegativeInt,
        default=0,
        help="most positions to learn from; 0: no limit",
    )
    parser.add_argument(
        "--labels",
        type=Path,
        help="suite of solved positions, .npz; default: the table of the board (up to 3x3)",
    )
    parser.add_argument(
        "--compare", type=Path, nargs="+", help="compare the results in these folders, do not fit"
    )
    options = parse(parser, arguments)
    check_folder("out", options.out)
    if options.compare:
        return compare(options.compare, options.out)
    if not options.minutes:
        raise InputError("minutes: 0 must be > 0 in a study")
    study(config_of(parser, options), options)


def study(config: Config, options) -> None:
    """Fit one network and write its scores."""
    from jaxzero.study.fit import Budget, fit
    from jaxzero.study.labels import make_labels
    from jaxzero.study.results import format_results, point_line, result_of, write_result

    use_compilation_cache()
    print("Preparing labels ...", flush=True)
    with doing("preparing labels"):
        labels = make_labels(config, options.labels)
    make_folder("out", options.out)
    print(f"labels from {labels.source}, {len(labels.test):,} positions held out", flush=True)
    budget = Budget(config.minutes, options.positions)
    done = fit(config, labels, budget, lambda point: print(point_line(point), flush=True))
    with doing("measuring the speed of the network"):
        result = result_of(config, labels, done)
    write_result(options.out, result)
    print("\n" + format_results({options.out.name: result}))


def compare(folders: list[Path], out: Path) -> None:
    """Print one table over several results and draw them."""
    from jaxzero.study.results import (
        draw_results,
        format_results,
        read_results,
        write_comparison,
    )

    results = read_results(folders)
    make_folder("out", out)
    write_comparison(out, results)
    draw_results(out / "comparison.png", results)
    print(format_results(results))


if __name__ == "__main__":
    run_script(main)
