"""Say where the time of one iteration goes, what bounds it, and what to change."""

from __future__ import annotations

from jaxzero.host.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

from pathlib import Path

from jaxzero.cli import config_of, config_parser, parse, run_script
from jaxzero.host.files import write_json
from jaxzero.host.programs import use_compilation_cache
from jaxzero.runs.run_dir import JSON, check_new_folder, check_result_file


def main(arguments: list[str]) -> None:
    parser = config_parser(__doc__)
    parser.add_argument("--trace", type=Path, help="folder for a profiler trace of one iteration")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    options = parse(parser, arguments)
    config = config_of(parser, options)

    check_result_file("json", options.json, JSON)
    if options.trace is not None:
        check_new_folder("trace", options.trace, own=("plugins",))

    from jaxzero.performance.diagnose import diagnose, report

    use_compilation_cache()
    print("Compiling and timing an iteration and its parts ...", flush=True)
    result = diagnose(config, options.trace)
    print(report(result))
    if options.json:
        write_json(options.json, result)


if __name__ == "__main__":
    run_script(main)
