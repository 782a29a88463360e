"""Watch a run: speed, losses, exact play, memory, time left, and warnings in words.

Example: jaxzero watch --run_dir runs/quick
It only reads, so it may run on any machine that sees the folder.
"""

from __future__ import annotations

from jaxzero.host.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import time
from pathlib import Path

from jaxzero.cli import parse, refuse_given, run_script, script_parser
from jaxzero.config.ranges import number
from jaxzero.host.interrupts import cleaned_up
from jaxzero.host.status import waiting

Every = number(0.1, 3600)  # seconds between two looks
DEFAULT_EVERY = 5.0


def main(arguments: list[str]) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--run_dir", type=Path, required=True, help="folder of the run")
    parser.add_argument(
        "--every",
        type=Every,
        help="seconds between two looks; default: 5, and without a terminal one look alone",
    )
    parser.add_argument("--once", action="store_true", help="look once, then end")
    options = parse(parser, arguments)
    if options.once:
        refuse_given(arguments, ["every"], "cannot stand beside --once")
    from rich.console import Console
    from rich.live import Live

    from jaxzero.runs.watch import watch_run

    view = watch_run(options.run_dir)  # reports an unknown run at once
    console, again, every = Console(), options.every, options.every or DEFAULT_EVERY
    if not console.is_terminal:
        console.print(view)
        while again:
            sleep(again)
            console.print(watch_run(options.run_dir))
    elif options.once:
        console.print(view)
    else:
        # Ctrl-C ends the process without leaving this block: show the cursor again then.
        shown = cleaned_up(lambda: console.show_cursor(True))
        with shown, Live(view, console=console, auto_refresh=False) as live:
            while True:
                sleep(every)
                live.update(watch_run(options.run_dir), refresh=True)


def sleep(seconds: float) -> None:
    with waiting():
        time.sleep(seconds)


if __name__ == "__main__":
    run_script(main)
