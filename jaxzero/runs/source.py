"""The network that a command line names: from a run, shipped, or in exported files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse.typing import NonNegativeInt

from jaxzero.config import BoardSide
from jaxzero.errors import InputError
from jaxzero.runs.run_dir import is_run

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser, Namespace

    from jaxzero.runs.weights import LoadedAgent

OPTIONS = ("run_dir", "weights", "checkpoint")
FOLDER = Path(__file__).parent.parent / "weights"  # of the shipped networks
SUFFIX = ".safetensors"


def shipped_names(folder: Path = FOLDER) -> list[str]:
    """Return the names of all networks in `folder`, the smallest board first."""
    return sorted((path.stem for path in folder.glob(f"*{SUFFIX}")), key=lambda n: (len(n), n))


@dataclass(frozen=True)
class Source:
    """The network that --run_dir, --weights and --checkpoint name; only `load` reads it."""

    run_dir: Path | None
    weights: str | None  # exactly one of `run_dir` and `weights` is set
    checkpoint: int | None = None  # iteration; None: the newest
    number: str = ""  # suffix of the option names: "2" for a second network

    @property
    def field(self) -> str:
        """The option that names the network."""
        return ("weights" if self.run_dir is None else "run_dir") + self.number

    @property
    def folder(self) -> Path | None:
        """The folder of the run, from either option; None for a network outside a run.

        The name of a shipped network is never taken as a folder.
        """
        if self.run_dir is not None or self.weights in shipped_names():
            return self.run_dir
        return Path(self.weights) if is_run(Path(self.weights)) else None

    @property
    def name(self) -> str:
        """The value of the option: a path, or the name of a shipped network."""
        return str(self.weights or self.run_dir)

    def load(self) -> LoadedAgent:
        """Read the network. Raises: InputError naming the option."""
        # Slow to import; command lines are checked first.
        from jaxzero.runs.weights import load_agent, load_weights

        try:
            if self.run_dir is None:
                return load_weights(self.weights)
            # Standard output may belong to a protocol.
            return load_agent(self.run_dir, self.checkpoint, partial(print, file=sys.stderr))
        except InputError as error:
            # The loaders name the options of one network; here there may be two networks.
            field, _, rest = str(error).partition(":")
            if field in OPTIONS:
                raise InputError(f"{field}{self.number}:{rest}") from error
            raise InputError(f"{self.field}: {self.name}: {error}") from error


def add_source_options(parser: ArgumentParser, number: str = "") -> None:
    """Add --run_dir, --weights and --checkpoint, with a number those of a second network."""
    second = " of a second network" if number else ""
    parser.add_argument(f"--run_dir{number}", type=Path, help=f"folder of the run{second}")
    parser.add_argument(
        f"--weights{number}",
        help=f"instead of --run_dir{number}: a network that is shipped, as 5x5, an exported one, "
        "by its .safetensors file or its folder, or that of a run, by its folder",
    )
    parser.add_argument(
        f"--checkpoint{number}",
        type=NonNegativeInt,
        help=f"iteration of --run_dir{number} to take; default: the newest",
    )


def add_board_options(parser: ArgumentParser) -> None:
    """Add --rows and --cols for a script that needs a network."""
    parser.add_argument(
        "--rows",
        type=BoardSide,
        help="rows of boxes; default: those of the network. conv plays every board, the "
        "engine and the page those of up to 9x9",
    )
    parser.add_argument("--cols", type=BoardSide, help="columns of boxes; default: as for rows")


def source_of(options: Namespace, number: str = "") -> Source | None:
    """Return the network that the options name, or None. Raises: InputError."""
    run_dir, weights, checkpoint = (options[f"{name}{number}"] for name in OPTIONS)
    if run_dir is not None and weights is not None:
        raise InputError(f"--weights{number} cannot be combined with --run_dir{number}")
    if checkpoint is not None and run_dir is None:
        raise InputError(f"--checkpoint{number} needs --run_dir{number}")
    if run_dir is None and weights is None:
        return None
    return Source(run_dir, weights, checkpoint, number)


def required_source(options: Namespace) -> Source:
    """Return the network that the options name. Raises: InputError, also if they name none."""
    source = source_of(options)
    if source is None:
        raise InputError("--run_dir or --weights is required")
    return source
