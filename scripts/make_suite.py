"""Make a suite: collect positions from games of several players and solve them.

A tenth of the moves after the opening is random. The positions are spread evenly over players and
bands of undrawn edges, at most one of each game in a band. They have no free box, because rules
answer the others, and their moves differ in value. With --run_dir or --weights this network plays
too, as search:16. Results are saved at intervals beside the output file; the same command continues
from there.
"""

from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import add_source_options, run_script, script_parser, source_of
from jaxzero.config import BoardSide, Count, GameConfig, Seed, SizeOrZero
from jaxzero.errors import InputError
from jaxzero.host.files import check_file
from jaxzero.host.programs import use_compilation_cache
from jaxzero.runs.run_dir import refuse_file_of_run

MAX_UNDRAWN = 36


def suite_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = script_parser(__doc__)
    parser.add_argument("--rows", type=BoardSide, default=5, help="rows of boxes")
    parser.add_argument("--cols", type=BoardSide, default=5, help="columns of boxes")
    add_source_options(parser)
    parser.add_argument(
        "--players",
        default="greedy,perfect",
        help="players to collect from, by commas",
    )
    parser.add_argument(
        "--games", type=Count, default=256, help="games of each player against itself"
    )
    parser.add_argument(
        "--split",
        action="store_true",
        help="write two suites, OUT_tuning and OUT_test, with positions of different games: one "
        "to choose settings by, the other to report",
    )
    parser.add_argument(
        "--per_stratum",
        type=Count,
        nargs="+",
        default=[200],
        help="positions to sample per stratum, a player and a band of four undrawn edges: one "
        "number, or one for each band from --fewest on; the last stands for all further bands",
    )
    parser.add_argument(
        "--fewest", type=SizeOrZero, default=9, help="fewest undrawn edges of a position"
    )
    parser.add_argument(
        "--most",
        type=SizeOrZero,
        help="most undrawn edges; the solver takes longer for more. Default: 36, or all edges of a "
        "smaller board",
    )
    parser.add_argument(
        "--node_limit",
        type=Count,
        default=20_000_000,
        help="nodes of the solver per position; unsolved positions are left out",
    )
    parser.add_argument("--seed", type=Seed, default=0, help="seed of games and of the selection")
    parser.add_argument("--out", type=Path, required=True, help="file to write, .npz")
    return parser


def main(arguments: list[str]) -> None:
    options = suite_parser().parse_args(arguments)
    source, out = source_of(options), options.out
    if options.split and options.games < 2:
        raise InputError(f"games: {options.games} must be at least 2 for two suites")
    halves = ("tuning", "test") if options.split else ()
    paths = [out.with_name(f"{out.stem}_{half}{out.suffix}") for half in halves] or [out]
    for path in paths:
        if path.suffix != ".npz":
            raise InputError(f"out: {path} must end with .npz")
        check_file("out", path)
        refuse_file_of_run("out", path)
        if path.is_file():
            raise InputError(f"out: {path} exists: delete it or name another file")
    # The file of the solved positions so far. The same command continues from them.
    store = out.with_name(f"{out.stem}.solved.npz")
    check_file("out", store)
    most = check_bands(options)

    from jaxzero.game import DotsAndBoxes
    from jaxzero.measure.make_suite import collect, make_suites, solve_all
    from jaxzero.measure.suite import write_suite
    from jaxzero.players.players import make_player, make_players
    from jaxzero.solver.endgame import check_board

    use_compilation_cache()
    board = DotsAndBoxes(options.rows, options.cols)
    check_board(board)  # before games are played
    players = {player.name: player for player in make_players(options.players, board)}
    if source is not None:
        loaded = source.load()
        if loaded.config.game.board != board:
            raise InputError(
                f"{source.field}: {source.name} plays {loaded.config.game.board}, not {board}"
            )
        players["search:16"] = make_player("search:16", board, loaded.agent)
    games, undrawn = options.games, (options.fewest, most)
    print(f"Playing {games} games each: {', '.join(players)} ...", flush=True)
    candidates = collect(board, players, games, options.per_stratum, undrawn, options.seed)
    found = solve_all(board, candidates.drawn, options.node_limit, store)
    suites = make_suites(board, candidates, found, options.split)
    if not all(map(len, suites.values())):
        raise InputError(
            f"node_limit: {options.node_limit}: no position was kept; with a higher limit or more "
            "--games the same command goes on"
        )
    for path, suite in zip(paths, suites.values(), strict=True):
        write_suite(suite, path)
        print(f"{path}: {len(suite):,} positions")
    store.unlink()


def check_bands(options: Namespace) -> int:
    """Return the most undrawn edges. Raises: InputError for limits or bands that do not fit."""
    from jaxzero.measure.make_suite import bands_between

    edges = GameConfig(options.rows, options.cols).board.num_edges
    most = min(MAX_UNDRAWN, edges) if options.most is None else options.most
    for name, value in (("fewest", options.fewest), ("most", most)):
        if value > edges:
            raise InputError(f"{name}: {value} is more than the {edges} edges of the board")
    if options.fewest > most:
        raise InputError(f"fewest: {options.fewest} must be at most --most, {most}")
    bands, numbers = bands_between(options.fewest, most), options.per_stratum
    if not bands:
        raise InputError(f"most: {most}: positions with so few undrawn edges are in no band")
    if len(numbers) > len(bands):
        shown = " ".join(map(str, numbers))
        raise InputError(f"per_stratum: {shown}: more numbers than bands, {len(bands)}")
    return most


if __name__ == "__main__":
    run_script(main)
