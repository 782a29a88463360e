"""Solve a board or a position exactly.

Without --position, the empty board is solved. The position is drawn with the value of each move. If
time runs out, the proven bounds are printed and the exit code is 1.
"""

import sys
from pathlib import Path

from jaxzero.cli import run_script, script_parser
from jaxzero.config import Amount, BoardSide, GameConfig
from jaxzero.host.files import write_json
from jaxzero.host.progress import working
from jaxzero.runs.run_dir import check_result_file


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
        type=Amount,
        default=60.0,
        help="time limit; up to 31 undrawn edges the solver needs seconds",
    )
    parser.add_argument("--json", type=Path, help="file for the result")
    options = parser.parse_args(arguments)
    check_result_file("json", options.json)
    what = "an empty board" if options.position is None else "a position"
    print(f"Solving {what} of {options.rows}x{options.cols} ...", flush=True)

    from jaxzero.game import edge_name
    from jaxzero.host.memory import process_peak_bytes
    from jaxzero.solver.solve import describe, read_position, solve_position

    board = GameConfig(options.rows, options.cols).board
    with working(f"solving {what} of {board}"):
        drawn = read_position(board, options.position or "")
        solved = solve_position(board, drawn, options.seconds)
    result = {
        "board": str(board),
        "value": solved.value,
        "bounds": solved.bounds,
        "best": [edge_name(board, edge) for edge in solved.best],
        "seconds": round(solved.seconds, 3),
        "peak_memory_bytes": process_peak_bytes(),
    }
    print(describe(board, solved))
    print(f"{result['seconds']} s, peak memory {result['peak_memory_bytes'] / 2**20:,.0f} MiB")
    if options.json:
        write_json(options.json, result)
    if not solved.is_complete:
        longer = f"--seconds {10 * options.seconds:g}"
        print(f"Not all is proven after {options.seconds:g} s. To go on longer: {longer}")
        sys.exit(1)


if __name__ == "__main__":
    run_script(main)
