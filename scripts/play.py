"""Play Dots and Boxes in the terminal or in the browser, or let two players play each other."""

from __future__ import annotations

from jaxzero.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import parse, run_script, source_of
from jaxzero.config.ranges import (
    BoardSide,
    MatchGames,
    NonNegativeInt,
    NonNegativeNumber,
    Port,
    SecondsOfDecision,
    Seed,
)
from jaxzero.errors import InputError, missing
from jaxzero.files import check_file, check_folder
from jaxzero.game.notation import FORMATS, LONGEST_TEXT, format_of_file
from jaxzero.programs import use_compilation_cache
from jaxzero.readers import read_text

if TYPE_CHECKING:
    from jaxzero.agent.players import Player

PLAYERS = (
    "random, greedy, alphabeta:DEPTH, perfect, perfect:SHARE, policy, search:SIMULATIONS, "
    "expert:SECONDS"
)
ONLY_IN = {  # the modes of options that do not apply to every mode
    "player2": ("ai", "dual"),
    "run_dir2": ("ai", "dual"),
    "weights2": ("ai", "dual"),
    "checkpoint2": ("ai", "dual"),
    "load": ("human", "ai"),
    "first": ("human",),
    "seconds": ("human",),
    "games": ("dual",),
    "opening_plies": ("dual",),
}
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0
OF_PAGE = ("web", "host", "port")


def play_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = script_parser(__doc__)

    def add(name: str, kind: type, default: object, meaning: str) -> None:
        parser.add_argument(f"--{name}", type=kind, default=default, help=meaning)

    modes = "human: you play; ai: two players play one game; dual: two players play a match"
    add("mode", Literal["human", "ai", "dual"], "human", modes)
    add("run_dir", Path, None, "folder of the run whose network plays")
    add("weights", str, None, "instead of a run: a network, pretrained (such as 5x5) or exported")
    add("checkpoint", NonNegativeInt, None, "iteration of the checkpoint; default: the newest")
    add("player", str, None, f"{PLAYERS}; default: search:64 with a network, else perfect")
    add("run_dir2", Path, None, "run of the second player; default: run_dir")
    add("weights2", str, None, "instead of a run: a network for the second player")
    add("checkpoint2", NonNegativeInt, None, "iteration of the checkpoint; default: the newest")
    add(
        "player2", str, None, "second player; default: search:64 with its own network, else perfect"
    )
    add(
        "rows",
        BoardSide,
        None,
        "rows of boxes; default: the network's, else 3; 5x5 plays every board",
    )
    add("cols", BoardSide, None, "columns of boxes; default: as for rows")
    add("first", Literal["human", "ai"], "human", "who moves first (mode human)")
    add(
        "seconds",
        SecondsOfDecision,
        5.0,
        "time limit of the solver for solve and hint (mode human)",
    )
    add("games", MatchGames, 100, "games of the match, even: pairs with swapped seats (mode dual)")
    add(
        "opening_plies",
        NonNegativeInt,
        4,
        "each pair opens with 0 to this many random moves (mode dual)",
    )
    formats = ", ".join(FORMATS)
    load = "go on with the game in this file; its format is detected"
    add("load", Path, None, f"{load}: {formats} (modes human and ai)")
    save = "write the game to this file after every turn: .json, .txt (openspiel) or .FORMAT.txt"
    match = "mode dual: write all games to this folder, or to one .jsonl file"
    add("save", Path, None, f"{save} with one of {formats}; {match}")
    add("seed", Seed, 0, "seed of everything random")
    varied = "0: the players policy and search draw the move they like best; above 0: moves vary"
    more = "with --seed, the more the higher (0.5, say)"
    add("temperature", NonNegativeNumber, 0.0, f"{varied} {more}")
    web = "serve a page to play and analyse in the browser; stands beside host and port only"
    parser.add_argument("--web", action="store_true", help=web)
    add("host", str, "127.0.0.1", "address to serve the page on; others than this let others in")
    add("port", Port, 8000, "port to serve the page on; 0: any that is free")
    return parser


def main(arguments: list[str]) -> None:
    parser = play_parser()
    options = parse(parser, arguments)
    check_options(parser, options)
    use_compilation_cache()
    if options.web:
        return serve_page(options)
    play(options)


def serve_page(options: Namespace) -> None:
    """Serve the page until interrupted. Raises: InputError where the packages are missing."""
    try:
        from jaxzero.play.server import serve
    except ModuleNotFoundError as error:
        raise missing("web", error) from error
    serve(options.host, options.port)


def check_options(parser: ArgumentParser, options: Namespace) -> None:
    """Raise an InputError for values out of range and for options of other modes."""
    for name, value in vars(options).items():
        if (name in OF_PAGE) != options.web and value != parser.get_default(name):
            needs = "cannot stand beside --web" if options.web else "needs --web"
            raise InputError(f"{name}: {value} {needs}")
    for name, modes in ONLY_IN.items():
        if options.mode not in modes and options[name] != parser.get_default(name):
            raise InputError(f"{name}: {options[name]} needs --mode {' or '.join(modes)}")
    for number in ("", "2"):
        source_of(options, number)
    if options.games % 2:
        raise InputError(f"games: {options.games} must be even (swapped seats)")
    if not options.seconds:
        raise InputError("seconds: 0.0 must be > 0")
    if options.temperature and not LEAST_TEMPERATURE <= options.temperature <= MOST_TEMPERATURE:
        limits = f"0 or from {LEAST_TEMPERATURE} to {MOST_TEMPERATURE}"
        raise InputError(f"temperature: {options.temperature} must be {limits}")
    if options.save is not None:
        check_save(options.save, options.mode)


def check_save(path: Path, mode: str) -> None:
    """Raise an InputError unless the games of a mode can be written to `path`."""
    if mode == "dual":
        if path.suffix in (".json", ".txt"):
            raise InputError(f"save: {path} must be a folder or end with .jsonl (mode dual)")
        return (check_file if path.suffix == ".jsonl" else check_folder)("save", path)
    try:
        format_of_file(path)
    except InputError as error:
        raise InputError(f"save: {error}") from error
    check_file("save", path)


def check_temperature(temperature: float, *players: Player) -> None:
    """Raise an InputError for a temperature that no player heeds."""
    if temperature and not any(one.name.startswith(("policy", "search")) for one in players):
        raise InputError(f"temperature: {temperature} needs a player policy or search:SIMULATIONS")


def play(options: Namespace) -> None:
    """Make the game and the players, and start the mode."""
    from jaxzero.agent.players import LEARNT
    from jaxzero.play.modes import (
        check_format,
        choose_game,
        choose_player,
        fit,
        load_named,
        play_human,
        report_match,
        show_game,
    )

    text = "" if options.load is None else read_text("load", options.load, LONGEST_TEXT)
    print("Getting ready ...", flush=True)  # reading, importing and compiling take seconds
    temperature = options.temperature
    network, network2 = (
        load_named(source_of(options, number), temperature) for number in ("", "2")
    )
    networks = [one for one in (network, network2) if one]
    game = choose_game(options.load, text, options.rows, options.cols, networks)
    save, board, seed = options.save, game.board, options.seed
    network, network2 = (one and fit(one, board) for one in (network, network2))
    if save is not None and options.mode != "dual":
        check_format(game, save)
    player = choose_player("player", options.player, board, network)
    for one in filter(None, (network, network2)):
        print(f"{one.field}: {one}")
    if options.mode == "human":
        check_temperature(temperature, player)
        return play_human(game, save, player, options.first, seed, options.seconds)
    name2 = options.player2 or (None if network2 else "perfect")
    player2 = choose_player("player2", name2, board, network2 or network)
    check_temperature(temperature, player, player2)
    if network2 and not player2.name.startswith(LEARNT):
        raise InputError(f"{network2.field}: {network2.source} needs a player2 with a network")
    if options.mode == "ai":
        return show_game(game, save, (player, player2), seed)
    games, plies = options.games, options.opening_plies
    return report_match(board, (player, player2), games, plies, seed, save)


if __name__ == "__main__":
    run_script(main)
