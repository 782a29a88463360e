"""Measure how fast a config runs on this machine and how near to its limits, or how fast it starts.

Takes one device and gives it all games and samples of the config. With --startup no config is
needed.
"""

from __future__ import annotations

from jaxzero.host.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import os
from contextlib import ExitStack
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import (
    config_of,
    config_parser,
    given_options,
    parse,
    refuse_given,
    run_script,
)
from jaxzero.config import Config
from jaxzero.config.ranges import Processes, Rounds, Seconds
from jaxzero.errors import InputError, missing
from jaxzero.host.files import write_json
from jaxzero.host.programs import use_compilation_cache
from jaxzero.runs.run_dir import JSON, check_result_file


def benchmark_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = config_parser(__doc__)
    parser.add_argument("--seconds", type=Seconds, default=120.0, help="about how long to measure")
    parser.add_argument("--rounds", type=Rounds, default=3, help="times that each part is measured")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--compare", type=Path, help="earlier --json file to compare with")
    parser.add_argument(
        "--baseline",
        action="store_true",
        help="also play with a tree in Python on the host and batches of one",
    )
    parser.add_argument(
        "--baseline_processes",
        type=Processes,
        help="number of processes of the baseline; default: one for each core",
    )
    parser.add_argument(
        "--startup",
        action="store_true",
        help="measure instead how long new processes take to their first answers; with --json only",
    )
    return parser


def main(arguments: list[str]) -> None:
    parser = benchmark_parser()
    options = parse(parser, arguments)
    if options.startup:
        others = set(given_options(arguments)) - {"startup", "json"}
        refuse_given(arguments, others, "cannot stand beside --startup")
        check_result_file("json", options.json, JSON)
        return measure_startup(options.json)
    config = config_of(parser, options)
    for name in ("start_ply", "adjudicate_below") if options.baseline else ():
        if value := getattr(config.selfplay, name):
            raise InputError(
                f"selfplay.{name}: {value} must be 0 for --baseline, which plays whole games"
            )
    if not options.baseline:
        refuse_given(arguments, ["baseline_processes"], "needs --baseline")
    refuse_given(arguments, ["devices"], "changes nothing: the first device is measured")
    check_result_file("json", options.json, JSON)
    measure(config, options)


def measure_startup(path: Path | None) -> None:
    """Measure starts, print and keep. Raises: InputError where packages of the page are missing."""
    try:
        from jaxzero.page.server import make_app  # noqa: F401
    except ModuleNotFoundError as error:
        raise missing("web", error) from error
    from jaxzero.performance.startup import measure_starts, startup_table

    result = measure_starts()
    print(startup_table(result))
    if path:
        write_json(path, result)


def measure(config: Config, options: Namespace) -> None:
    """Measure, print, keep and compare."""
    from jaxzero.performance.baseline import baseline_processes
    from jaxzero.performance.benchmark import benchmark, comparison, read_result, report

    before = read_result(options.compare) if options.compare else None

    use_compilation_cache()
    with ExitStack() as stack:
        baseline = None
        if options.baseline:
            count = options.baseline_processes or os.cpu_count() or 1
            processes = baseline_processes(config, count)
            baseline = stack.enter_context(processes)
        result = benchmark(config, options.seconds, options.rounds, baseline)
    print(report(result))
    if options.json:
        write_json(options.json, result)
    if before:
        print(f"\n{comparison(result, before)}")


if __name__ == "__main__":
    run_script(main)
