"""Measure how fast a config runs on this machine, how near to its limits, and what bounds it.

With --startup, measure instead how fast new processes start. This needs no config.
"""

from __future__ import annotations

from jaxzero.host.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

from pathlib import Path

from jsonargparse import Namespace

from jaxzero.cli import config_of, config_parser, given_options, parse, refuse_given, run_script
from jaxzero.config import Config
from jaxzero.config.ranges import Rounds, Seconds
from jaxzero.errors import missing
from jaxzero.host.files import write_json
from jaxzero.host.programs import use_compilation_cache
from jaxzero.runs.run_dir import JSON, check_new_folder, check_result_file


def main(arguments: list[str]) -> None:
    parser = config_parser(__doc__)
    parser.add_argument("--seconds", type=Seconds, default=120.0, help="about how long to measure")
    parser.add_argument("--rounds", type=Rounds, default=3, help="times that each part is measured")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--trace", type=Path, help="folder for a profiler trace of one iteration")
    parser.add_argument(
        "--startup",
        action="store_true",
        help="measure instead how long new processes take to their first answers; with --json only",
    )
    options = parse(parser, arguments)
    if options.startup:
        others = set(given_options(arguments)) - {"startup", "json"}
        refuse_given(arguments, others, "cannot stand beside --startup")
        check_result_file("json", options.json, JSON)
        return measure_startup(options.json)
    config = config_of(parser, options)
    check_result_file("json", options.json, JSON)
    if options.trace is not None:
        check_new_folder("trace", options.trace, own=("plugins",))
    measure(config, options)


def measure_startup(path: Path | None) -> None:
    """Measure starts; print and save the result. Raises: InputError if web packages are missing."""
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
    """Measure a config; print and save the result."""
    from jaxzero.performance.benchmark import benchmark, report

    use_compilation_cache()
    result = benchmark(config, options.seconds, options.rounds, options.trace)
    print(report(result))
    if options.json:
        write_json(options.json, result)


if __name__ == "__main__":
    run_script(main)
