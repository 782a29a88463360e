"""Solve a board or a position exactly.

Without --position, the empty board is solved: by a table of all its positions if one fits, else up
to 31 edges by the endgame solver. With --position, the position is solved and drawn with the value
of each move. If the endgame solver runs out of time, the proven bounds are printed and the exit
code is 1.
"""

from __future__ import annotations

from jaxzero.host.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import sys
import time
from pathlib import Path

from jaxzero.cli import parse, run_script, script_parser
from jaxzero.config.ranges import BoardSide, Seconds
from jaxzero.errors import InputError
from jaxzero.host.files import check_file, check_folder, write_json
from jaxzero.host.programs import use_compilation_cache
from jaxzero.host.status import doing
from jaxzero.runs.run_dir import JSON, check_result_file


def main(arguments: list[str]) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--rows", type=BoardSide, default=3, help="rows of boxes")
    parser.add_argument("--cols", type=BoardSide, default=3, help="columns of boxes")
    parser.add_argument(
        "--position",
        help="drawn edges by name or number, separated by blanks, such as 'h0,1 v2,3', or a file",
    )
    parser.add_argument(
        "--seconds",
        type=Seconds,
        default=60.0,
        help="time limit of the endgame solver; up to 31 undrawn edges it needs seconds",
    )
    parser.add_argument(
        "--table",
        type=Path,
        help="file of the table of an empty board: read if it exists, else written",
    )
    parser.add_argument("--json", type=Path, help="file for the result")
    options = parse(parser, arguments)
    check_result_file("json", options.json, JSON)
    if options.table and options.position is not None:
        raise InputError(f"table: {options.table} cannot stand beside --position")
    if options.table:
        check_folder("table", options.table.parent)
        if options.table.exists():
            check_file("table", options.table)
        check_result_file("table", options.table)
    what = "an empty board" if options.position is None else "a position"
    print(f"Solving {what} of {options.rows}x{options.cols} ...", flush=True)

    from jaxzero.config import GameConfig
    from jaxzero.game import edge_name
    from jaxzero.host.memory import process_peak_bytes
    from jaxzero.solver.solve import describe, solve_board, solve_drawn

    game = GameConfig(options.rows, options.cols).board
    use_compilation_cache()
    begin = time.perf_counter()
    with doing(f"solving {what} of {game}"):
        if options.position is None:
            solved = solve_board(game, options.table, options.seconds)
        else:
            solved = solve_drawn(game, options.position, options.seconds)
    result = {
        "board": str(game),
        "value": solved.value,
        "bounds": solved.bounds,
        "best": [edge_name(game, edge) for edge in solved.best],
        "method": solved.method,
        "seconds": round(time.perf_counter() - begin, 3),
        "peak_memory_bytes": process_peak_bytes(),
    }
    print(describe(game, solved))
    print(f"{result['seconds']} s, peak memory {result['peak_memory_bytes'] / 2**20:,.0f} MiB")
    if options.json:
        write_json(options.json, result)
    if not solved.is_complete:
        longer = f"--seconds {10 * options.seconds:g}"
        print(f"Not all is proven after {options.seconds:g} s. To go on longer: {longer}")
        sys.exit(1)


if __name__ == "__main__":
    run_script(main)
