"""Play Dots and Boxes in the terminal or in the browser, or let two players play each other."""

from pathlib import Path
from typing import Literal

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import (
    add_source_options,
    fill,
    refuse,
    run_script,
    script_parser,
    source_of,
)
from jaxzero.config import Amount, AmountOrZero, BoardSide, Count, Seed, SizeOrZero
from jaxzero.errors import InputError
from jaxzero.game.records import format_of_file
from jaxzero.host.files import check_file
from jaxzero.host.programs import use_compilation_cache
from jaxzero.players.kinds import known_names
from jaxzero.runs.run_dir import check_new_folder, refuse_file_of_run

ONLY_IN = {  # the modes of each option that does not apply to every mode
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
LEAST_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100.0
OF_FILES = (".json", ".jsonl", ".txt")  # suffixes that name a file, not a folder
OF_PAGE = ("host", "port")
DEFAULTS = {"mode": "human", "first": "human", "seconds": 5.0, "games": 100, "opening_plies": 4}
DEFAULTS |= {"seed": 0, "temperature": 0.0, "host": "127.0.0.1", "port": 8000}


def play_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = script_parser(__doc__)

    def add(name: str, kind: type, meaning: str) -> None:
        default = f"; default: {DEFAULTS[name]}" if name in DEFAULTS else ""
        parser.add_argument(f"--{name}", type=kind, help=meaning + default)

    modes = "human: you play; ai: two players play one game; dual: two players play a match"
    add("mode", Literal["human", "ai", "dual"], modes)
    add_source_options(parser)
    add(
        "player",
        str,
        f"{', '.join(known_names())}; default: search:64 with a network, else perfect",
    )
    add_source_options(parser, "2")
    own = "default: search:64 with its own network, else perfect"
    add("player2", str, f"second player, with the first network if none is second; {own}")
    size = "default: the network's, else 3; 5x5 plays every board"
    add("rows", BoardSide, f"rows of boxes; {size}")
    add("cols", BoardSide, "columns of boxes; default: as for rows")
    add("first", Literal["human", "ai"], "who moves first (mode human)")
    limit = "time limit of the solver for solve and hint (mode human)"
    add("seconds", Amount, limit)
    add("games", Count, "games of the match, even: pairs with swapped seats (mode dual)")
    opening = "each pair opens with 0 to this many random moves (mode dual)"
    add("opening_plies", SizeOrZero, opening)
    add("load", Path, "go on with the game in this file (modes human and ai)")
    save = "write the game to this file, .json, .ccgc.json or .txt, after every turn"
    match = "mode dual: write all games to this folder, or to one .jsonl file"
    add("save", Path, f"{save}; {match}")
    add("seed", Seed, "seed of everything random")
    varied = "0: the players policy and search draw the move they like best; above 0: moves vary"
    more = "with --seed, the more the higher (0.5, say)"
    add("temperature", AmountOrZero, f"{varied} {more}")
    web = "serve a page to play and analyse in the browser; takes only --host and --port"
    parser.add_argument("--web", action="store_true", help=web)
    add("host", str, "address to serve the page on; others than this let others in")
    add("port", SizeOrZero, "port to serve the page on; 0: any that is free")
    return parser


def main(arguments: list[str]) -> None:
    options = play_parser().parse_args(arguments)
    check_options(options)
    sources = source_of(options), source_of(options, "2")
    use_compilation_cache()
    if options.web:
        return serve_page(options.host, options.port)
    print("Getting ready ...", flush=True)  # reading, importing and compiling take seconds
    from jaxzero.play.modes import play

    play(options, sources)


def serve_page(host: str, port: int) -> None:
    """Serve the page until interrupted. Raises: InputError if its packages are missing."""
    try:
        from jaxzero.page.server import serve
    except ModuleNotFoundError as error:
        how = 'pip install -e ".[web]"'
        raise InputError(f"web: needs {error.name}, which is not installed: {how}") from error
    serve(host, port)


def check_options(options: Namespace) -> None:
    """Fill in defaults. Raises: InputError for wrong values and options of other modes."""
    mode = options.mode or DEFAULTS["mode"]
    if options.web:
        others = [name for name in vars(options) if name not in ("web", *OF_PAGE)]
        refuse(options, others, "cannot be combined with --web")
    else:
        refuse(options, OF_PAGE, "needs --web")
    for name, modes in ONLY_IN.items():
        if mode not in modes:
            refuse(options, [name], f"needs --mode {' or '.join(modes)}")
    fill(options, **DEFAULTS)
    if options.games % 2:
        raise InputError(f"games: {options.games} must be even (swapped seats)")
    if options.temperature and not LEAST_TEMPERATURE <= options.temperature <= MAX_TEMPERATURE:
        limits = f"0 or from {LEAST_TEMPERATURE} to {MAX_TEMPERATURE}"
        raise InputError(f"temperature: {options.temperature} must be {limits}")
    if options.save is not None:
        check_save(options.save, options.mode, options.load)


def check_save(path: Path, mode: str, load: Path | None) -> None:
    """Raise an InputError unless the games of a mode can be written to `path`.

    They replace no other games, except the file of the loaded game, which continues.
    """
    if mode == "dual" and path.suffix != ".jsonl":
        if path.suffix.lower() in OF_FILES:
            raise InputError(f"save: {path} must be a folder or end with .jsonl (mode dual)")
        return check_new_folder("save", path)
    if mode != "dual":
        try:
            format_of_file(path)
        except InputError as error:
            raise InputError(f"save: {error}") from error
    check_file("save", path)
    refuse_file_of_run("save", path)
    if path.is_file() and not (load and load.exists() and path.samefile(load)):
        goes_on = "" if mode == "dual" else "go on with it by --load, or "
        raise InputError(f"save: {path} exists: {goes_on}name another file")


if __name__ == "__main__":
    run_script(main)
