"""Set runs side by side: wrong moves on solved positions against games and minutes."""

from __future__ import annotations

from jaxzero.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

from pathlib import Path

from jsonargparse import ArgumentParser

from jaxzero.cli import parse, run_script
from jaxzero.errors import InputError
from jaxzero.files import check_file


def main(arguments: list[str]) -> None:
    parser = ArgumentParser(description=__doc__, exit_on_error=False)
    parser.add_argument("--runs", type=Path, nargs="+", help="folders of runs")
    parser.add_argument("--names", nargs="*", help="what to call them; default: what differs")
    parser.add_argument("--out", type=Path, help="figure to draw, .png")
    options = parse(parser, arguments)
    if not options.runs:
        raise InputError("runs: name the folders of one run or more")
    check_file("out", options.out)

    from jaxzero.training.compare import Entry, group, levels, read_run, table
    from jaxzero.training.compare_figure import draw_comparison

    runs = [read_run(run_dir) for run_dir in options.runs]
    if options.names and len(options.names) != len(runs):
        raise InputError(f"names: {len(options.names)} names for {len(runs)} runs")
    named = zip(options.names or (), runs, strict=False)
    entries = [Entry(name, [run]) for name, run in named] or group(runs)
    print(table(entries))
    for entry in entries:
        print(f"\n{levels(entry)}")
    if options.out:
        draw_comparison(options.out, entries)
        print(options.out)


if __name__ == "__main__":
    run_script(main)
