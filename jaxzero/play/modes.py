"""Run the modes of `scripts/play.py`: a person plays, or two players play a game or a match."""

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Literal

from jsonargparse import Namespace

from jaxzero.cli import Source
from jaxzero.config import check_opening
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.game.records import RecordedGame, format_of_file, read_game, write_game
from jaxzero.host.files import read_text, write_text
from jaxzero.host.progress import working
from jaxzero.measure.arena import play_match
from jaxzero.network.network import Agent
from jaxzero.play.game import Side, Sides, programs_of
from jaxzero.play.terminal import Setup, play_game
from jaxzero.players.kinds import uses_network
from jaxzero.players.players import Player, make_player
from jaxzero.runs.resize import asked_board, resize
from jaxzero.runs.weights import LoadedAgent

DEFAULT_BOARD = DotsAndBoxes(3, 3)
WITH_NETWORK, WITHOUT_NETWORK = "search:64", "perfect"  # the default players


def play(options: Namespace, sources: tuple[Source | None, Source | None]) -> None:
    """Make the game and the players, and start the mode.

    `sources` name the networks of the two players. Raises: InputError.
    """
    temperature, mode, save, seed = options.temperature, options.mode, options.save, options.seed
    loaded = [source and source.load() for source in sources]
    boards = [one.agent.network.board for one in loaded if one]
    game = choose_game(options.load, options.rows, options.cols, boards)
    board = game.board
    if save is not None and mode != "dual":
        write_game(game, format_of_file(save))  # not every format holds every game
    agent, agent2 = (
        source and fitted(source, one, board, temperature)
        for source, one in zip(sources, loaded, strict=True)
    )
    player = choose_player("player", options.player, board, agent)
    source, source2 = sources
    if mode == "human":
        check_used(temperature, source, player)
        return play_human(game, save, player, options.first, seed, options.seconds)
    name2 = options.player2 or (None if source2 else "perfect")
    player2 = choose_player("player2", name2, board, agent2 or agent)
    check_used(temperature, None if source2 else source, player, player2)
    check_used(0.0, source2, player2)
    if mode == "dual":
        check_opening("opening_plies", options.opening_plies, board)
    players = player, player2
    for one in players:
        programs_of(one, board).get()
    if mode == "ai":
        return show_game(game, save, players, seed)
    return report_match(board, players, options.games, options.opening_plies, seed, save)


def fitted(
    source: Source, loaded: LoadedAgent, board: DotsAndBoxes, temperature: float = 0.0
) -> Agent:
    """Return a network for this board, and print what it is. Raises: InputError."""
    agent = resize(loaded.agent, board, f"{source.field}: {source.name}")
    trained_on = loaded.agent.network.board
    alone = f", trained on {trained_on} alone" if board != trained_on else ""
    print(f"{source.field}: {source.name}, iteration {loaded.iteration}{alone}")
    return replace(agent, temperature=temperature)


def choose_player(field: str, name: str | None, board: DotsAndBoxes, agent: Agent | None) -> Player:
    """Return the player of the option `field`. Raises: InputError."""
    return make_player(name or (WITH_NETWORK if agent else WITHOUT_NETWORK), board, agent, field)


def check_used(temperature: float, source: Source | None, *players: Player) -> None:
    """Raise an InputError for a temperature or a network that no player uses."""
    names = [player.name for player in players]
    if temperature and not any(name.startswith(("policy", "search")) for name in names):
        raise InputError(f"temperature: {temperature} needs a player policy or search:SIMULATIONS")
    if source and not any(map(uses_network, names)):
        raise InputError(f"{source.field}: {source.name} needs a player with a network")


def choose_game(
    path: Path | None, rows: int | None, cols: int | None, trained: list[DotsAndBoxes]
) -> RecordedGame:
    """Return the game of the file `path`, or a new game without a file.

    The default board is the first board of the networks, `trained`, else 3x3. Raises: InputError.
    """
    default = trained[0] if trained else DEFAULT_BOARD
    if path is not None:
        return load_game("load", path, rows, cols, default)
    board = asked_board(rows, cols, default)
    return RecordedGame(board.rows, board.cols, date=date.today().isoformat())


def load_game(
    field: str, path: Path, rows: int | None, cols: int | None, default: DotsAndBoxes
) -> RecordedGame:
    """Return the game of a file.

    A list of edges without a size gets the board of `rows` and `cols`, else `default`.
    Raises: InputError, also for a game on another board than that of `rows` and `cols`.
    """
    board = asked_board(rows, cols, default)
    text = read_text(field, path)
    try:
        game = read_game(text, board)
    except InputError as error:
        raise InputError(f"{field}: {path}: {error}") from error
    for name, asked in (("rows", rows), ("cols", cols)):
        if asked not in (None, getattr(game, name)):
            raise InputError(f"{name}: {asked} contradicts {getattr(game, name)} of {field} {path}")
    return game


def saver(path: Path | None, game: RecordedGame, sides: Sides) -> Callable[[RecordedGame], None]:
    """Return a function that writes a continuation of `game` to a file, with names of the sides."""
    names = tuple(known or side.name for known, side in zip(game.names, sides, strict=True))

    def save(played: RecordedGame) -> None:
        if path is not None:
            named = replace(played, names=names)
            write_text(path, write_game(named, format_of_file(path)))

    return save


def play_human(
    game: RecordedGame,
    save: Path | None,
    opponent: Player,
    first: Literal["human", "ai"],
    seed: int,
    seconds: float,
) -> None:
    """Continue `game` between the person at the keyboard and a player, which compiles meanwhile."""
    sides = (Side("you"), Side("AI", opponent))
    if first == "ai":
        sides = sides[::-1]
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")  # invalid bytes raise no exception
    edges = game.board.num_edges
    print(f"{game.board} boxes, {edges} edges. Name an edge to draw it. Type help for more.")
    programs_of(opponent, game.board).begin()
    setup = Setup(sides, input, print, seed, seconds, saver(save, game, sides))
    play_game(game, setup)


def show_game(
    game: RecordedGame, save: Path | None, players: tuple[Player, Player], seed: int
) -> None:
    """Continue `game` between two players and show it turn by turn."""
    sides = Side("A", players[0]), Side("B", players[1])
    setup = Setup(sides, input, print, seed, save=saver(save, game, sides))
    play_game(game, setup)


def report_match(
    board: DotsAndBoxes,
    players: tuple[Player, Player],
    games: int,
    opening_plies: int,
    seed: int,
    save: Path | None = None,
) -> None:
    """Play a match, print the result of the first player and save the games."""
    print(
        f"{games} games on {board}, seats swapped, openings of 0 to {opening_plies} random moves",
        flush=True,
    )
    with working(f"playing {games} games"):
        outcome = play_match(board, *players, games, opening_plies, seed)
    names = [Side(mark, player).name for mark, player in zip("AB", players, strict=True)]
    print("points [95 % interval], games, mean margin in boxes:")
    print(f"{names[0]}  {outcome}")
    if save is not None:
        save_match(save, board, names, outcome.moves.tolist())
        print(f"{games} games are in {save}")


def save_match(save: Path, board: DotsAndBoxes, names: list[str], moves: list[list[int]]) -> None:
    """Write the games of a match as JSON: lines of a .jsonl file, else files in a folder."""
    today = date.today().isoformat()
    texts = [
        write_game(
            RecordedGame(
                rows=board.rows,
                cols=board.cols,
                moves=tuple(game),
                names=(names[number % 2], names[1 - number % 2]),
                title=f"game {number + 1} of {len(moves)}",
                date=today,
            ),
            "json",
        )
        for number, game in enumerate(moves)
    ]
    if save.suffix == ".jsonl":
        return write_text(save, "".join(texts))
    save.mkdir(parents=True, exist_ok=True)
    width = len(str(len(texts)))
    for number, text in enumerate(texts, 1):
        write_text(save / f"{number:0{width}}.json", text)
