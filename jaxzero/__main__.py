"""The command `jaxzero`: one subcommand for every script, as in `jaxzero train --help`.

It runs the file of the script: in `scripts/` of a checkout, or in `jaxzero/scripts/` of a wheel.
"""

import runpy
import sys

from jaxzero import __version__
from jaxzero.host.files import shipped_folder

COMMANDS = {
    "train": "train a network",
    "play": "play in the terminal or in the browser, or have a match played",
    "engine": "play for another program: gtp, sau or botzone",
    "analyse": "analyse a position, or review a game",
    "evaluate": "measure a network: matches, suites of solved positions",
    "solve": "solve a board or a position exactly",
    "export": "export the network of a run to a file",
    "benchmark": "measure the speed of a config and find what bounds it",
    "sweep": "measure lists of settings",
    "make_suite": "make a suite of solved positions",
}


def main() -> None:
    """Run the script that the first argument names; bad input ends with exit code 2."""
    match sys.argv[1:]:
        case ["--version"]:
            print(f"jaxzero {__version__}")
        case [] | ["-h" | "--help"]:
            print("usage: jaxzero COMMAND ... (jaxzero COMMAND --help explains it)\n")
            for name, meaning in COMMANDS.items():
                print(f"  {name:<11}  {meaning}")
        case [name, *options] if name in COMMANDS:
            # The parser of the script takes its name from the first word.
            sys.argv = [f"jaxzero {name}", *options]
            script = runpy.run_path(str(shipped_folder("scripts") / f"{name}.py"))
            from jaxzero.cli import run_script  # slow to import

            run_script(script["main"])
        case [name, *_]:
            print(f"error: unknown command {name!r}; see jaxzero --help", file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main()
