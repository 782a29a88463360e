"""Analyse a position: every edge's worth, the expected end, what is proven.

Examples: jaxzero analyse --weights 5x5 --position "h0,0 h0,1 v0,0"
jaxzero analyse --weights 5x5 --rows 4 --cols 6 --load game.txt --json -
"""

from __future__ import annotations

from jaxzero.host.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import json
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import parse, run_script, script_parser
from jaxzero.config.ranges import BoardSide, SecondsOfDecision, SimulationsOrNone
from jaxzero.errors import InputError, shortened
from jaxzero.host.files import write_text
from jaxzero.host.programs import use_compilation_cache
from jaxzero.host.readers import read_text
from jaxzero.host.status import doing
from jaxzero.runs.run_dir import JSON, check_result_file
from jaxzero.runs.source import add_source_options, required_source

if TYPE_CHECKING:
    from jaxzero.game import DotsAndBoxes
    from jaxzero.play.game import Record


def analyse_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = script_parser(__doc__)
    add_source_options(parser)
    parser.add_argument(
        "--rows", type=BoardSide, help="rows of boxes; default: those of the network"
    )
    parser.add_argument("--cols", type=BoardSide, help="columns of boxes; default: as for rows")
    parser.add_argument(
        "--position", help='names of the drawn edges, such as "h0,0 v1,2"; default: none'
    )
    parser.add_argument("--load", type=Path, help="file with a game; its last position is analysed")
    parser.add_argument(
        "--simulations", type=SimulationsOrNone, default=256, help="of the search; 0: no search"
    )
    parser.add_argument(
        "--seconds", type=SecondsOfDecision, default=5.0, help="for the solver; 0: no solver"
    )
    parser.add_argument("--json", help="file for all that was found; - for standard output")
    return parser


def main(arguments: list[str]) -> None:
    options = parse(analyse_parser(), arguments)
    if options.position is not None and options.load is not None:
        raise InputError(f"position: {shortened(options.position)!r} cannot stand beside --load")
    if options.json not in (None, "-"):
        check_result_file("json", Path(options.json), JSON)
    source = required_source(options)

    from jaxzero.play.analysis import analyse
    from jaxzero.play.analysis_report import format_analysis, to_json
    from jaxzero.runs.resize import asked_board, resize

    use_compilation_cache()
    agent = source.load().agent
    board = asked_board(options.rows, options.cols, agent.network.game)
    asked = options.rows is not None or options.cols is not None
    record = read_record(options, board, asked)
    agent = resize(agent, record.game, f"{source.field}: {source.name}")
    if record.is_over:
        raise InputError("position: no edge is left")
    with doing("analysing"):
        found = analyse(agent, record.drawn, record.margin, options.simulations, options.seconds)
    content = json.dumps(to_json(found))
    if options.json == "-":
        print(content)
        return
    print(format_analysis(record, found))
    if options.json:
        write_text(Path(options.json), content + "\n")


def read_record(options: Namespace, board: DotsAndBoxes, asked: bool) -> Record:
    """Return the game of --load, else a position whose edges nobody drew. Raises: InputError.

    `asked`: the board is that of --rows and --cols, which a file must hold.
    """
    from jaxzero.game import parse_edges
    from jaxzero.game.notation import LONGEST_TEXT
    from jaxzero.play.game import Record
    from jaxzero.play.modes import read_on

    if options.load:
        text = read_text("load", options.load, LONGEST_TEXT)
        game = read_on(options.load, text, [board] if asked else [board, None])
        return Record(game.board, game.moves, game.start)
    try:
        edges = parse_edges(board, options.position or "")
    except InputError as error:
        raise InputError(f"position: {error}") from error
    return Record(board, (), tuple(sorted(edges)))


if __name__ == "__main__":
    run_script(main)
