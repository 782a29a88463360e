"""Measure how fast a config runs on this machine, how near to its limits, and what bounds it."""

from pathlib import Path

from jsonargparse import Namespace

from jaxzero.cli import config_of, config_parser, run_script, warn_of_presets
from jaxzero.config import Amount, Config, Size
from jaxzero.host.files import write_json
from jaxzero.host.programs import use_compilation_cache
from jaxzero.runs.run_dir import check_new_folder, check_result_file


def main(arguments: list[str]) -> None:
    parser = config_parser(__doc__)
    parser.add_argument("--seconds", type=Amount, default=120.0, help="about how long to measure")
    parser.add_argument("--rounds", type=Size, default=3, help="times that each part is measured")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--trace", type=Path, help="folder for a profiler trace of one iteration")
    options = parser.parse_args(arguments)
    config = config_of(options)
    check_result_file("json", options.json)
    if options.trace is not None:
        check_new_folder("trace", options.trace, own=("plugins",))
    measure(config, options)


def measure(config: Config, options: Namespace) -> None:
    """Measure a config; print and save the result."""
    from jaxzero.performance.benchmark import benchmark, report

    use_compilation_cache()
    warn_of_presets(options.config)
    result = benchmark(config, options.seconds, options.rounds, options.trace)
    print(report(result))
    if options.json:
        write_json(options.json, result)


if __name__ == "__main__":
    run_script(main)
