"""Export the network of a run to a file, with its config and its measured strength.

Other scripts take the file with --weights. With --weights instead of --run_dir, this script
measures an exported network again.
"""

from pathlib import Path

from jaxzero.cli import (
    add_source_options,
    refuse,
    required_source,
    run_script,
    script_parser,
)
from jaxzero.config import Count, Size
from jaxzero.errors import InputError
from jaxzero.host.files import check_folder
from jaxzero.host.programs import use_compilation_cache
from jaxzero.runs.run_dir import refuse_run


def main(arguments: list[str]) -> None:
    parser = script_parser(__doc__)
    add_source_options(parser)
    parser.add_argument("--name", help="name of the weights; default: the board, such as 5x5")
    parser.add_argument(
        "--out", type=Path, help="folder for the files; default: weights in the folder of the run"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace weights of the same name in the folder"
    )
    parser.add_argument(
        "--opponents",
        default="random,greedy",
        help="players to measure against, separated by commas; empty: no matches",
    )
    parser.add_argument(
        "--games",
        type=Count,
        help="games per match, even: pairs with swapped seats; default: 512",
    )
    parser.add_argument(
        "--simulations", type=Size, default=64, help="simulations of the search per move"
    )
    options = parser.parse_args(arguments)
    source = required_source(options)
    if not options.opponents:
        refuse(options, ["games"], "needs --opponents")
    games = options.games or 512
    if games % 2:
        raise InputError(f"games: {games} must be even")
    name = options.name or "5x5"
    if Path(name).name != name:
        raise InputError(f"name: {name!r} must be a name without a folder")
    if options.out is None and source.folder is None:
        raise InputError(f"--out is required: --weights {source.name} is not a run")
    folder = options.out or source.folder / "weights"
    check_folder("out", folder)
    refuse_run("out", folder)

    from jaxzero.measure.evaluator import measure_weights
    from jaxzero.runs.weights import write_weights

    use_compilation_cache()
    print(f"Loading {source.name} ...", flush=True)
    loaded = source.load()
    name = options.name or str(loaded.config.game.board)
    files = [folder / f"{name}{suffix}" for suffix in (".safetensors", ".yaml", ".json")]
    there = next((file for file in files if file.exists()), None)
    if there and not options.overwrite:
        raise InputError(f"out: {there} exists; --overwrite replaces it")
    loaded = measure_weights(loaded, options.opponents, games, options.simulations)
    write_weights(loaded, files[0])
    print(f"{files[0]}, .yaml, .json")


if __name__ == "__main__":
    run_script(main)
