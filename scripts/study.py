"""Fit a network to exact labels within a budget and score it, or compare several results.

This helps to choose a network. The agent itself learns from self-play alone.
"""

from __future__ import annotations

from jaxzero.host.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import os
from pathlib import Path

from jaxzero.cli import config_of, config_parser, given_options, parse, refuse_given, run_script
from jaxzero.config import Config
from jaxzero.config.ranges import NonNegativeInt, refuse_repeated
from jaxzero.errors import InputError
from jaxzero.host.files import check_folder
from jaxzero.host.programs import use_compilation_cache
from jaxzero.host.status import doing
from jaxzero.runs.run_dir import check_new_folder, new_folder, refuse_run


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
    if options.compare:
        others = set(given_options(arguments)) - {"compare", "out"}
        refuse_given(arguments, others, "cannot stand beside --compare")
        refuse_repeated("compare", list(map(os.path.realpath, options.compare)))
        check_folder("out", options.out)
        refuse_run("out", options.out)
        return compare(options.compare, options.out)
    config, batch = config_of(parser, options), options.learner.batch_size
    if not config.minutes:
        raise InputError("minutes: 0 must be > 0 in a study")
    if 0 < options.positions < batch:
        raise InputError(f"positions: {options.positions} is less than learner.batch_size, {batch}")
    check_new_folder("out", options.out, own=("result.json",))
    study(config, options)


def study(config: Config, options) -> None:
    """Fit one network and write its scores."""
    from jaxzero.study.fit import Budget, fit
    from jaxzero.study.labels import make_labels
    from jaxzero.study.results import format_results, point_line, result_of, write_result

    use_compilation_cache()
    print("Preparing labels ...", flush=True)
    with doing("preparing labels"):
        labels = make_labels(config, options.labels)
    print(f"labels from {labels.source}, {len(labels.test):,} positions held out", flush=True)
    budget = Budget(config.minutes, options.positions)
    with new_folder("out", options.out):
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
    with new_folder("out", out):
        write_comparison(out, results)
        draw_results(out / "comparison.png", results)
    print(format_results(results))


if __name__ == "__main__":
    run_script(main)
