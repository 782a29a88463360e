"""Play for another program, over standard input and output: gtp, sau or botzone.

Example: jaxzero engine --protocol gtp --weights 5x5 --seconds 2
"""

import sys
from typing import Literal

from jsonargparse import ArgumentParser

from jaxzero.cli import (
    add_board_options,
    add_source_options,
    refuse,
    required_source,
    run_script,
    script_parser,
)
from jaxzero.config import Amount


def engine_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = script_parser(__doc__)
    add_source_options(parser)
    protocols = Literal["gtp", "sau", "botzone"]
    parser.add_argument("--protocol", type=protocols, default="gtp", help="of the other program")
    add_board_options(parser)
    parser.add_argument("--seconds", type=Amount, help="for a decision without a clock; default: 2")
    parser.add_argument(
        "--clock",
        type=Amount,
        help="seconds for all decisions of a game; most goes to those that can just be proven",
    )
    parser.add_argument(
        "--ponder",
        action="store_true",
        help="go on proving while the opponent thinks; it takes a core of this machine",
    )
    return parser


def main(arguments: list[str]) -> None:
    options = engine_parser().parse_args(arguments)
    if options.clock is not None:
        refuse(options, ["seconds"], "cannot be combined with --clock")
    source = required_source(options)
    from jaxzero.host.programs import use_compilation_cache
    from jaxzero.play.botzone import botzone
    from jaxzero.play.engine import Clock, Session
    from jaxzero.play.gtp import gtp
    from jaxzero.play.sau import sau
    from jaxzero.runs.resize import asked_board, resize

    use_compilation_cache()
    answer = {"gtp": gtp, "sau": sau, "botzone": botzone}[options.protocol]
    agent = source.load().agent
    board = asked_board(options.rows, options.cols, agent.network.board)
    agent = resize(agent, board, f"{source.field}: {source.name}")
    clock = None if options.clock is None else Clock(options.clock)

    def tell(words: str) -> None:  # standard output belongs to the protocol
        print(f"jaxzero: {words}", file=sys.stderr, flush=True)

    engine = Session(agent, options.seconds or 2.0, clock, tell=tell)
    engine.get_ready()
    # Answer invalid bytes too, and escape letters that the output cannot encode.
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=errors)
    for line in sys.stdin:
        engine.stop_pondering()
        # Drop control characters, such as a byte order mark, but keep white space.
        line = "".join(sign for sign in line if sign.isprintable() or sign.isspace())
        for reply in answer(engine, line):
            print(reply, flush=True)
        if engine.done:
            break
        if options.ponder:
            engine.ponder()
    engine.stop_pondering()


if __name__ == "__main__":
    run_script(main)
