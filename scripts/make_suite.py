"""Make a suite: collect positions from games of several players and solve them exactly.

The positions are spread evenly over players and numbers of undrawn edges. With --run_dir or
--weights this network plays too, as search:16.
"""

from __future__ import annotations

from jaxzero.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

from pathlib import Path

import numpy as np
from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import (
    Source,
    add_source_options,
    parse,
    run_script,
    source_of,
    use_compilation_cache,
)
from jaxzero.errors import InputError
from jaxzero.files import check_file


def suite_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = ArgumentParser(description=__doc__, exit_on_error=False)
    parser.add_argument("--rows", type=int, default=5, help="rows of boxes")
    parser.add_argument("--cols", type=int, default=5, help="columns of boxes")
    add_source_options(parser)
    parser.add_argument(
        "--players",
        default="random,greedy,perfect:0.15",
        help="players to collect from, by commas; perfect:0.15 has 15 percent random moves",
    )
    parser.add_argument(
        "--games", type=int, default=256, help="games of each player against itself"
    )
    parser.add_argument(
        "--noise", type=float, default=0.0, help="share of random moves after the opening, 0 to 1"
    )
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="take all free boxes before a position is collected; for networks that evaluate "
        "only such positions (search.nodes quiet)",
    )
    parser.add_argument(
        "--per_stratum",
        type=int,
        default=200,
        help="positions per stratum, a player and a band of undrawn edges",
    )
    parser.add_argument("--fewest", type=int, default=8, help="fewest undrawn edges of a position")
    parser.add_argument(
        "--most",
        type=int,
        default=36,
        help="most undrawn edges; each further edge costs the solver time",
    )
    parser.add_argument(
        "--node_limit",
        type=int,
        default=20_000_000,
        help="nodes of the solver per position; an unsolved position is left out",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of games and of the selection")
    parser.add_argument("--out", type=Path, required=True, help="file to write, .npz")
    return parser


def main(arguments: list[str]) -> None:
    options = parse(suite_parser(), arguments)
    source = source_of(options)
    if options.games < 1:
        raise InputError(f"games: {options.games} must be at least 1")
    if not 0 <= options.noise <= 1:
        raise InputError(f"noise: {options.noise} must be from 0 to 1")
    check_file("out", options.out)
    make_suite(options, source)


def make_suite(options: Namespace, source: Source | None) -> None:
    """Play the games, solve the positions and write the suite."""
    from jaxzero.agent.players import make_player, make_players
    from jaxzero.evaluation.make_suite import Games, collect, solve_all
    from jaxzero.evaluation.suite import Suite, write_suite
    from jaxzero.game import DotsAndBoxes

    use_compilation_cache()
    game = DotsAndBoxes(options.rows, options.cols)
    players = {player.name: player for player in make_players(options.players, game)}
    if source is not None:
        loaded = source.load()
        if loaded.config.game.board != game:
            raise InputError(
                f"{source.field}: {source.name} plays {loaded.config.game.board}, not {game}"
            )
        players["search:16"] = make_player("search:16", game, loaded.agent)
    games = Games(options.games, options.noise, options.quiet)
    undrawn = options.fewest, options.most
    print(f"Playing {options.games} games each: {', '.join(players)} ...", flush=True)
    drawn, origin = collect(game, players, options.per_stratum, undrawn, options.seed, games)
    moves, solved = solve_all(game, drawn, options.node_limit, print)
    print(f"{solved.sum()} of {len(drawn)} positions solved")
    suite = Suite("", game, drawn[solved], moves[solved], np.array(origin)[solved])
    write_suite(suite, options.out)


if __name__ == "__main__":
    run_script(main)
