"""Play for another program, over standard input and output: gtp, sau or botzone.

Example: jaxzero engine --protocol gtp --weights 5x5 --seconds 2
"""

from __future__ import annotations

from jaxzero.interrupts import end_now, install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import sys

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import add_source_options, parse, required_source, run_script
from jaxzero.errors import InputError
from jaxzero.play import LONGEST_CLOCK

LONGEST = 3600.0  # seconds for a decision


def engine_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = ArgumentParser(description=__doc__, exit_on_error=False)
    add_source_options(parser)
    parser.add_argument("--protocol", default="gtp", help="gtp, sau or botzone")
    parser.add_argument("--rows", type=int, help="rows of boxes; default: those of the network")
    parser.add_argument("--cols", type=int, help="columns of boxes; default: as for rows")
    parser.add_argument("--seconds", type=float, default=2.0, help="for a decision without a clock")
    parser.add_argument(
        "--clock",
        type=float,
        help="seconds for all decisions of a game; most goes to those that can just be proven",
    )
    parser.add_argument(
        "--ponder",
        action="store_true",
        help="go on proving while the opponent thinks; it takes a core of this machine",
    )
    return parser


def check_options(options: Namespace) -> None:
    """Raise an InputError for values out of range."""
    from jaxzero.errors import nearest

    names = ("gtp", "sau", "botzone")
    if options.protocol not in names:
        hint = nearest(options.protocol, names)
        raise InputError(f"protocol: {options.protocol!r} must be gtp, sau or botzone{hint}")
    if not 0 < options.seconds <= LONGEST:
        raise InputError(f"seconds: {options.seconds} must be > 0 and <= {LONGEST:g}")
    if options.clock is not None and not 0 < options.clock <= LONGEST_CLOCK:
        raise InputError(f"clock: {options.clock} must be > 0 and <= {LONGEST_CLOCK:g}")


def main(arguments: list[str]) -> None:
    options = parse(engine_parser(), arguments)
    check_options(options)
    source = required_source(options)
    from jaxzero.play.engine import Clock, Session
    from jaxzero.play.protocols import PROTOCOLS
    from jaxzero.programs import use_compilation_cache
    from jaxzero.runs.resize import asked_board, resize

    use_compilation_cache()
    agent = source.load().agent
    board = asked_board(options.rows, options.cols, agent.network.game)
    agent = resize(agent, board, f"{source.field}: {source.name}")
    clock = None if options.clock is None else Clock(options.clock)
    engine = Session(agent, options.seconds, clock)
    # Standard output belongs to the protocol.
    print(f"jaxzero: compiling for {board}, half a minute at the first time", file=sys.stderr)
    engine.get_ready()
    print("jaxzero: ready", file=sys.stderr, flush=True)
    # Bytes that are not text get an answer, and an answer passes where letters do not.
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=errors)
    for line in sys.stdin:
        engine.stop_pondering()
        for answer in PROTOCOLS[options.protocol](engine, line):
            print(answer, flush=True)
        if engine.done:
            break
        if options.ponder:
            engine.ponder()
    engine.stop_pondering()
    if engine.is_compiling:  # for a minute perhaps, which no call of Python ends
        end_now(0)


if __name__ == "__main__":
    run_script(main)
