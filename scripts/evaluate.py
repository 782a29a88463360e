"""Measure a trained network: matches and suites of solved positions.

Examples: jaxzero evaluate --weights 3x3 --opponents greedy,perfect --suite table
jaxzero evaluate --weights 5x5 --suite 5x5_test --players policy,search:64,greedy
jaxzero evaluate --weights 7x7 --weights2 5x5 --rows 6 --cols 6 --players search:64
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import (
    add_board_options,
    add_source_options,
    fill,
    refuse,
    required_source,
    run_script,
    script_parser,
    source_of,
)
from jaxzero.config import Count, Seed, Size, SizeOrZero
from jaxzero.errors import InputError
from jaxzero.host.files import write_json
from jaxzero.host.programs import use_compilation_cache
from jaxzero.players.kinds import known_names
from jaxzero.runs.run_dir import check_result_file

if TYPE_CHECKING:
    from jaxzero.network.network import Agent
    from jaxzero.runs.weights import LoadedAgent


def evaluate_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = script_parser(__doc__)
    add_source_options(parser)
    add_source_options(parser, "2")
    add_board_options(parser)
    parser.add_argument(
        "--opponents",
        default="",
        help="players to play a match against, separated by commas: " + ", ".join(known_names()),
    )
    parser.add_argument(
        "--games",
        type=Count,
        help="games per match, even: pairs with swapped seats; default: 512, which give an "
        "interval of about 4 percent either way",
    )
    parser.add_argument(
        "--simulations",
        type=Size,
        help="simulations of the search per move; more play better and take longer; default: 64",
    )
    parser.add_argument(
        "--opening_plies",
        type=SizeOrZero,
        help="each pair of games opens with 0 to this many random moves, so that games differ; "
        "default: 4",
    )
    parser.add_argument(
        "--suite",
        help="score the network on solved positions: table (boards of up to 30 edges, solved now), "
        "a stored suite (5x5_tuning to choose settings by, 5x5_test to report, 4x4 alike; "
        "5x5_early and 5x5_final), "
        "berlekamp (problems of Berlekamp's book), or a file of scripts/make_suite.py, such as "
        "suite_6x6_test.npz",
    )
    parser.add_argument(
        "--players",
        help="players to score on the suite, separated by commas, named as for --opponents; each "
        "is compared with the first on the same positions; default: policy and search with "
        "--simulations. With a second network and no suite: the players of the match between the "
        "two networks",
    )
    parser.add_argument("--seed", type=Seed, default=0, help="seed of openings and players")
    parser.add_argument("--json", type=Path, help="file for the results")
    return parser


def check_options(options: Namespace) -> None:
    """Fill in defaults. Raises: InputError for wrong values, and options that need another one."""
    suite, players = options.suite, options.players is not None
    pair = options.run_dir2 is not None or options.weights2 is not None
    match = pair and players and not suite
    if not suite:
        if not pair:
            refuse(options, ["players"], "needs --suite or a second network")
        elif not match:
            refuse(options, ["run_dir2", "weights2"], "needs --suite or --players")
    if not (options.opponents or match):
        names = ["games", "opening_plies"]
        refuse(options, names, "needs --opponents or a match of two networks")
    if players and not options.opponents:
        names = ["simulations"]
        refuse(options, names, "cannot be combined with --players, which name their own")
    if not (options.opponents or suite or match):
        raise InputError("--suite or --opponents is required")
    fill(options, games=512, simulations=64, opening_plies=4)
    if options.games % 2:
        raise InputError(f"games: {options.games} must be even")


def tell_apart(*networks: tuple[str, LoadedAgent]) -> dict[str, Agent]:
    """Return two networks by different names; equal source names get their iterations."""
    (name, first), (name2, second) = networks
    if name == name2:
        name, name2 = (f"{name}, iteration {one.iteration}" for one in (first, second))
    if name == name2:
        name2 = f"{name2} (2)"
    return {name: first.agent, name2: second.agent}


def main(arguments: list[str]) -> None:
    options = evaluate_parser().parse_args(arguments)
    source, source2 = required_source(options), source_of(options, "2")
    check_options(options)
    check_result_file("json", options.json)

    use_compilation_cache()
    from jaxzero.config import check_opening
    from jaxzero.measure.evaluator import (
        matches_against,
        matches_between,
        play_matches,
    )
    from jaxzero.measure.scoring import score_suite, scored_players
    from jaxzero.measure.suite import load_suite
    from jaxzero.runs.resize import asked_board, resize

    print(f"Loading {source.name} ...", flush=True)
    loaded, loaded2 = source.load(), source2 and source2.load()
    board = asked_board(options.rows, options.cols, loaded.agent.network.board)
    loaded, loaded2 = (
        one and one._replace(agent=resize(one.agent, board, f"{which.field}: {which.name}"))
        for one, which in ((loaded, source), (loaded2, source2))
    )
    if options.opponents or not options.suite:
        check_opening("opening_plies", options.opening_plies, board)
    for one, which in ((loaded, source), (loaded2, source2)):
        if one:
            print(f"{which.field} {which.name}, iteration {one.iteration}, {board}")
    names = options.players or f"policy,search:{options.simulations}"
    # Check the players before a match, which may take an hour.
    if options.suite or options.players:
        players = scored_players(names, board, loaded.agent, 2 if source2 else 1)
    networks = {source.name: loaded.agent}
    if source2:
        networks = tell_apart((source.name, loaded), (source2.name, loaded2))
    results = {"source": source.name, "iteration": loaded.iteration}
    if source2:
        results |= {"source2": source2.name, "iteration2": loaded2.iteration}
    matches = {}  # all are made, and so checked, before the first is played
    if source2 and not options.suite:
        matches["match"] = matches_between(networks, players)
    if options.opponents:
        matches["versus"] = matches_against(
            options.opponents, loaded.agent, options.simulations, options.games
        )
    if options.suite:
        suite = load_suite(options.suite, board)  # may take seconds: all else is checked
    for kind, pairs in matches.items():
        results[kind] = play_matches(pairs, options.games, options.opening_plies, options.seed)
    if options.suite:
        results |= score_suite(networks, suite, players, options.seed)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    run_script(main)
