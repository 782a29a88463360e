"""Say where the time of one iteration goes, what bounds it, and what to change."""

from __future__ import annotations

from jaxzero.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import json
from pathlib import Path

from jaxzero.cli import config_of, config_parser, parse, run_script, use_compilation_cache


def main(arguments: list[str]) -> None:
    parser = config_parser(__doc__)
    parser.add_argument("--trace", type=Path, help="folder for a profiler trace of one iteration")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    options = parse(parser, arguments)
    config = config_of(parser, options)

    from jaxzero.performance.diagnose import (
        check_file,
        check_folder,
        diagnose,
        report_lines,
        to_dict,
    )

    if options.json:
        check_file("json", options.json)
    if options.trace:
        check_folder("trace", options.trace)
    use_compilation_cache()
    found = diagnose(config, options.trace)
    print("\n".join(report_lines(config, found)))
    if options.json:
        options.json.write_text(json.dumps(to_dict(found), indent=2) + "\n")


if __name__ == "__main__":
    run_script(main)
