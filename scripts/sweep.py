"""Measure training over lists of settings: speed and memory for each combination.

Every setting but texts takes a comma list, e.g. --network.blocks 4,6 --search.simulations 16,32.
Each combination runs in its own process, so a failed one is a row of the table. The same command
continues a sweep that was stopped.
"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from jaxzero.cli import config_parser, run_script
from jaxzero.config import Amount, Size
from jaxzero.runs.run_dir import check_new_folder


def main(arguments: list[str]) -> None:
    parser = config_parser(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument(
        "--preset",
        type=Literal["none", "batch"],
        default="none",
        help="batch: selfplay.games_per_iteration, doubling until it does not fit",
    )
    parser.add_argument(
        "--point_minutes", type=Amount, default=10.0, help="longest time a point may take"
    )
    parser.add_argument("--rounds", type=Size, default=3, help="timed iterations of each point")
    from jaxzero.performance.sweep import read_grid, run_sweep, write_report

    grid, options = read_grid(parser, arguments)
    check_new_folder("out", options.out, own=("sweep.json",))
    rows = run_sweep(grid, options.out, options.rounds, options.point_minutes)
    write_report(options.out, asdict(grid.base), rows)
    if all(row["status"] != "ok" for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    run_script(main)
