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

from jsonargparse import Namespace

from jaxzero.cli import parse, refuse_given, run_script, script_parser
from jaxzero.config.ranges import Port, number
from jaxzero.errors import InputError, missing
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
    parser.add_argument("--web", action="store_true", help="serve a page instead; it only shows")
    parser.add_argument("--host", help="address to serve the page on; default: 127.0.0.1")
    parser.add_argument("--port", type=Port, help="port; 0: any that is free; default: 8001")
    options = parse(parser, arguments)
    if options.web:
        refuse_given(arguments, ["once"], "cannot stand beside --web")
    else:
        refuse_given(arguments, ["host", "port"], "needs --web")
    if options.once:
        refuse_given(arguments, ["every"], "cannot stand beside --once")
    from rich.console import Console
    from rich.live import Live

    from jaxzero.runs.watch import watch_run

    view = watch_run(options.run_dir)  # an unknown run is told at once
    console, again, every = Console(), options.every, options.every or DEFAULT_EVERY
    if options.web:
        serve_view(options, every)
    elif not console.is_terminal:
        console.print(view)
        while again:
            sleep(again)
            console.print(watch_run(options.run_dir))
    elif options.once:
        console.print(view)
    else:
        # Ctrl-C, the way out, ends the process without the end of this block.
        shown = cleaned_up(lambda: console.show_cursor(True))
        with shown, Live(view, console=console, auto_refresh=False) as live:
            while True:
                sleep(every)
                live.update(watch_run(options.run_dir), refresh=True)


def sleep(seconds: float) -> None:
    with waiting():
        time.sleep(seconds)


def serve_view(options: Namespace, every: float) -> None:
    """Serve a page that shows the run; it takes no input but its address.

    Raises: InputError where the packages are missing.
    """
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.responses import HTMLResponse
        from starlette.routing import Route

        from jaxzero.page.server import serve
    except ModuleNotFoundError as error:
        raise missing("web", error) from error
    from jaxzero.runs.watch import as_html, watch_run

    def show(_request) -> HTMLResponse:  # in a thread: it reads files
        try:
            return HTMLResponse(as_html(watch_run(options.run_dir), every))
        except InputError as error:
            return HTMLResponse(as_html(str(error), every), 404)

    def make(hosts: tuple[str, ...]) -> Starlette:
        guard = Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
        return Starlette(routes=[Route("/", show)], middleware=[guard])

    port = 8001 if options.port is None else options.port
    serve(options.host or "127.0.0.1", port, make, "Watch")


if __name__ == "__main__":
    run_script(main)
