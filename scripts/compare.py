"""Compare runs: wrong moves on solved positions against games and minutes of training.

Runs that differ only in their seed form one group.
"""

from __future__ import annotations

from jaxzero.host.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import os
from pathlib import Path

from jaxzero.cli import parse, run_script, script_parser
from jaxzero.config.ranges import refuse_repeated
from jaxzero.errors import InputError
from jaxzero.host.files import FIGURES, check_file
from jaxzero.runs.run_dir import refuse_file_of_run


def main(arguments: list[str]) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--runs", type=Path, nargs="+", help="folders of runs to compare")
    parser.add_argument("--names", nargs="+", help="one name per run; default: what differs")
    parser.add_argument("--out", type=Path, help="file for the figure: .png, .svg or .pdf")
    options = parse(parser, arguments)
    if not options.runs:
        raise InputError("runs: name the folders of one run or more")
    refuse_repeated("runs", list(map(os.path.realpath, options.runs)))
    refuse_repeated("names", options.names or [])
    if options.names and len(options.names) != len(options.runs):
        raise InputError(f"names: {len(options.names)} names for {len(options.runs)} runs")
    check_file("out", options.out, FIGURES)
    if options.out is not None:
        refuse_file_of_run("out", options.out)

    from jaxzero.runs.compare import (
        RunGroup,
        draw_runs,
        format_runs,
        group_runs,
        levels,
        read_run,
    )

    runs = [read_run(run_dir) for run_dir in options.runs]
    named = zip(options.names or (), runs, strict=False)
    groups = [RunGroup(name, [run]) for name, run in named] or group_runs(runs)
    print(format_runs(groups))
    for group in groups:
        print(f"\n{levels(group)}")
    if options.out:
        draw_runs(options.out, groups)
        print(options.out)


if __name__ == "__main__":
    run_script(main)
