"""Analyse a position: value of each edge, expected result, proven values. Or review whole games.

Examples: jaxzero analyse --weights 5x5 --position "h0,0 h0,1 v0,0"
jaxzero analyse --weights 5x5 --rows 4 --cols 6 --load game.txt --json -
jaxzero analyse --weights 5x5 --game game.txt
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import (
    add_board_options,
    add_source_options,
    refuse,
    required_source,
    run_script,
    script_parser,
)
from jaxzero.config import AmountOrZero, SizeOrZero
from jaxzero.errors import InputError
from jaxzero.host.files import write_text
from jaxzero.host.programs import use_compilation_cache
from jaxzero.host.progress import working
from jaxzero.runs.run_dir import check_result_file

if TYPE_CHECKING:
    from jaxzero.cli import Source
    from jaxzero.game.records import RecordedGame
    from jaxzero.network.network import Agent
    from jaxzero.play.review import Reviewed


def analyse_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = script_parser(__doc__)
    add_source_options(parser)
    add_board_options(parser)
    parser.add_argument(
        "--position", help='names of the drawn edges, such as "h0,0 v1,2"; default: none'
    )
    parser.add_argument("--load", type=Path, help="file with a game; its last position is analysed")
    parser.add_argument(
        "--game", type=Path, help="file with a game, or a folder of them: review every move"
    )
    parser.add_argument(
        "--simulations", type=SizeOrZero, default=256, help="of the search; 0: no search"
    )
    parser.add_argument(
        "--seconds", type=AmountOrZero, default=5.0, help="for the solver; 0: no solver"
    )
    parser.add_argument("--json", help="file for all that was found; - for standard output")
    return parser


def main(arguments: list[str]) -> None:
    options = analyse_parser().parse_args(arguments)
    if options.position is not None and options.load is not None:
        raise InputError("--position cannot be combined with --load")
    if options.game is not None:
        refuse(options, ["position", "load"], "cannot be combined with --game")
        if not options.simulations:
            raise InputError("--simulations 0 cannot be combined with --game")
    if options.json not in (None, "-"):
        check_result_file("json", Path(options.json))
    source = required_source(options)
    use_compilation_cache()
    if options.game is not None:
        return review_games(options, source)

    from jaxzero.play.analysis import analyse
    from jaxzero.play.analysis_report import format_analysis, to_json
    from jaxzero.runs.resize import resize

    agent = source.load().agent
    game = read_position(options, agent)
    agent = resize(agent, game.board, f"{source.field}: {source.name}")
    if game.is_over:
        raise InputError("position: no edge is left")
    with working("analysing"):
        found = analyse(agent, game.drawn, game.margin, options.simulations, options.seconds)
    content = json.dumps(to_json(found))
    if options.json == "-":
        print(content)
        return
    print(format_analysis(game, found))
    if options.json:
        write_text(Path(options.json), content + "\n")


def review_games(options: Namespace, source: Source) -> None:
    """Review the game of a file, or of every file of a folder.

    Raises: InputError. If files of a folder cannot be reviewed, the others are reviewed first.
    """
    from jaxzero.play.review import format_review, format_summary, to_json

    agent, failed, reviews = source.load().agent, 0, {}
    is_folder, text = options.game.is_dir(), options.json != "-"
    for path in files_of(options.game) if is_folder else [options.game]:
        try:
            found = review_file(path, options, agent, source)
        except InputError as error:
            if not is_folder:
                raise
            failed += 1
            print(f"error: {error}", file=sys.stderr)
            continue
        reviews[path.name] = found
        if text:
            print(f"{path}\n\n{format_review(found)}\n", flush=True)
    if text and is_folder:
        print(format_summary(reviews))
    if options.json:
        contents = [{"file": name, **to_json(found)} for name, found in reviews.items()]
        content = json.dumps(contents if is_folder else contents[0])
        if text:
            write_text(Path(options.json), content + "\n")
        else:
            print(content)
    if failed:
        of_all = f"{failed} of {failed + len(reviews)} files"
        raise InputError(f"game: {of_all} of {options.game} could not be reviewed")


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder by name, hidden ones left out. Raises: InputError for none."""
    paths = sorted(path for path in folder.iterdir() if not path.is_dir())
    paths = [path for path in paths if not path.name.startswith(".")]
    if not paths:
        raise InputError(f"game: {folder} holds no file")
    return paths


def review_file(path: Path, options: Namespace, agent: Agent, source: Source) -> Reviewed:
    """Return the review of the game of one file. Raises: InputError naming the file."""
    from jaxzero.play.modes import load_game
    from jaxzero.play.review import Reviewed, review
    from jaxzero.runs.resize import resize

    game = load_game("game", path, options.rows, options.cols, agent.network.board)
    if not game.moves:
        raise InputError(f"game: {path} holds no moves")
    agent = resize(agent, game.board, f"game: {path}: {source.field} {source.name}")
    limits = {"simulations": options.simulations, "seconds": options.seconds}
    with working(f"reviewing {path.name}"):
        return Reviewed(game, tuple(reversed([*review(agent, game, **limits)])))


def read_position(options: Namespace, agent: Agent) -> RecordedGame:
    """Return the game of --load, else the position without moves. Raises: InputError."""
    from jaxzero.game import drawn_of
    from jaxzero.game.records import RecordedGame
    from jaxzero.play.modes import load_game
    from jaxzero.runs.resize import asked_board

    if options.load:
        return load_game("load", options.load, options.rows, options.cols, agent.network.board)
    board = asked_board(options.rows, options.cols, agent.network.board)
    drawn = drawn_of(board, options.position or "")
    return RecordedGame(board.rows, board.cols, start=tuple(np.flatnonzero(drawn).tolist()))


if __name__ == "__main__":
    run_script(main)
