"""Command lines: parsers of jsonargparse, and errors of a script as one line."""

from __future__ import annotations

import logging
import re
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields
from functools import cache
from itertools import islice, pairwise
from os.path import isfile  # also for a text that is too long for a path
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from jsonargparse import ActionConfigFile, ArgumentParser, Namespace, set_parsing_settings

from jaxzero.config import (
    BoardSide,
    Config,
    CountOrZero,
    build_config,
    config_of_file,
    dotted,
    read_mapping,
    unknown_setting,
)
from jaxzero.errors import InputError, RunError
from jaxzero.host.files import SYSTEM_ERRORS, shipped_folder
from jaxzero.host.interrupts import dropped_exceptions, end_now, interrupt, set_handler
from jaxzero.runs.run_dir import run_folder

if TYPE_CHECKING:
    from jaxzero.runs.weights import LoadedAgent

# How jsonargparse says that an option or a setting is unknown.
UNKNOWN = re.compile(
    r"Group '(.+)' does not accept option '(.+)'|Option '(.+)' is not accepted"
    r"|unrecognized arguments: --([^\s=]+)"
)


class Parser(ArgumentParser):
    """A parser that raises an InputError for a wrong command line, and prints no usage."""

    def parse_args(self, args: list[str], **options) -> Namespace:
        """Parse a command line. All options override the file of --config, also those before it."""
        files, others, words = [], [], iter(args)
        for word in words:
            if word == "--config":
                files += [word, *islice(words, 1)]
            else:
                (files if word.startswith("--config=") else others).append(word)
        self._refuse_empty(args)
        return super().parse_args([*files, *others], **options)

    def _refuse_empty(self, words: list[str]) -> None:
        """Raise an InputError for an empty value, as of an unset variable of the shell.

        An option whose help says what empty means takes it.
        """
        given = [word.partition("=")[::2] for word in words if "=" in word] + [*pairwise(words)]
        for option, value in given:
            action = self._option_string_actions.get(option)
            if action and not value.strip() and not re.search("empty", action.help, re.IGNORECASE):
                raise InputError(f"{option.removeprefix('--')}: is empty")

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        if unknown := UNKNOWN.search(message):
            name = ".".join(filter(None, unknown.groups()))
            message = unknown_setting(name, (action.dest for action in self._actions))
        message = re.sub(r'Parser key "([^"]+)"', r"\1", message)
        raise InputError(re.sub(r"a typing\.Literal\[(.*?)\]", r"one of \1", message)) from ex

    def format_help(self) -> str:
        text = re.sub(r"<class\s+'Path'>", "Path", super().format_help())
        return re.sub(r",\s+default:\s+null(?=\))|\s+\(default:\s+null\)", "", text)


class ConfigFile(ActionConfigFile):
    """The option `--config`, which also takes the name of a shipped config, as `quick`."""

    def __call__(self, parser, namespace, values, option_string=None):
        path = find_config(values)
        known = {action.dest for action in parser._actions} - {self.dest, "print_config"}
        for name, _ in dotted(read_mapping("config", Path(path)) if isfile(path) else {}):
            if name not in known:
                raise InputError(f"{unknown_setting(name, known)}, in {path}")
        super().__call__(parser, namespace, path, option_string)


def script_parser(description: str) -> ArgumentParser:
    """Return a parser without options, for any script."""
    return Parser(description=description, allow_abbrev=False, parser_mode="settings")


def config_parser(description: str) -> ArgumentParser:
    """Return a parser with `--config FILE` and one option for every field of a Config."""
    parser = deepcopy(_plain_parser())  # thirty times faster than a new parser
    parser.description = description
    return parser


@cache
def _plain_parser() -> ArgumentParser:
    parser = script_parser("")
    words = "YAML file with settings or the name of a shipped one, as quick; options override it"
    parser.add_argument("--config", action=ConfigFile, help=words)
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    parser.add_class_arguments(Config, None)
    return parser


def config_of(options: Namespace) -> Config:
    """Build the Config of a parsed command line.

    Raises: InputError for impossible values, and without --config: the defaults suit no machine.
    """
    if not options.config:
        raise InputError(f"--config is required; {presets()}")
    content = options.as_dict()
    return build_config({field.name: content[field.name] for field in fields(Config)})


def load_config(path: str | Path, *options: str) -> Config:
    """Read a Config from a YAML file and command-line options such as `--game.rows=3`."""
    parser = _plain_parser()
    return config_of(parser.parse_args(["--config", str(path), *options]))


def find_config(name: str) -> str:
    """Return the path of the shipped config `name`; an existing file of that name comes first.

    `quick` and `configs/quick.yaml` both name a shipped config. Other names stay as they are.
    """
    path, shipped = Path(name), shipped_configs().get(Path(name).stem)
    named = shipped is not None and path in (Path(path.stem), Path("configs", shipped.name))
    return str(shipped) if named and not path.is_file() else name


def shipped_configs() -> dict[str, Path]:
    """Return the path of each shipped config by its name, such as `quick`."""
    return {path.stem: path for path in sorted(shipped_folder("configs").glob("*.yaml"))}


# Presets for GPUs, by the least memory in MiB.
GPU_PRESETS = {70_000: "gpu_80gb", 20_000: "gpu_24gb", 0: "gpu_8gb"}
RESERVED = 0.75  # fraction of the memory of a GPU that JAX reserves


def presets() -> str:
    """List the shipped configs with their boards, and the config that suits the present device."""
    import jax  # slow to import

    boards = {name: config_of_file(path).game.board for name, path in shipped_configs().items()}
    names = (f"{name} ({board})" for name, board in boards.items())
    device, suits = jax.devices()[0], "cpu"
    if device.platform != "cpu":
        limit = (device.memory_stats() or {}).get("bytes_limit", 0)
        memory = limit / RESERVED / 2**20
        suits = next(name for least, name in GPU_PRESETS.items() if memory >= least)
    return (
        f"{suits} suits the device found ({device.device_kind}), quick shows the first results; "
        f"presets: {', '.join(names)}"
    )


def warn_of_presets(configs: Iterable[Any] | None) -> None:
    """Say which preset suits a machine without a GPU, if one of the `configs` is for a GPU."""
    import jax

    for name in (Path(str(config)).stem for config in configs or ()):
        if name in GPU_PRESETS.values() and jax.default_backend() == "cpu":
            words = f"{name} is for a GPU, an iteration takes hours on this CPU"
            print(f"warning: {words}: the preset cpu suits it", file=sys.stderr)


class Source(NamedTuple):
    """The network that --run_dir, --weights and --checkpoint name; only `load` reads it."""

    field: str  # the option that names it, such as "weights2" for a second network
    name: str  # the value of the option: a path, or the name of a shipped network
    folder: Path | None  # of the run, from either option; None: a shipped or exported network
    checkpoint: int | None = None  # iteration; None: the newest

    def load(self) -> LoadedAgent:
        """Read the network. Raises: InputError naming the option."""
        # Slow to import; command lines are checked first.
        from jaxzero.runs.weights import load_agent, load_weights

        if self.folder is None:
            return load_weights(self.name, self.field)
        return load_agent(self.folder, self.checkpoint, self.field)


def add_source_options(parser: ArgumentParser, number: str = "") -> None:
    """Add --run_dir, --weights and --checkpoint, with a number those of a second network."""
    second = " of a second network" if number else ""
    parser.add_argument(f"--run_dir{number}", type=Path, help=f"folder of the run{second}")
    parser.add_argument(
        f"--weights{number}",
        help=f"instead of --run_dir{number}: a network that is shipped, as 5x5, an exported one, "
        "by its .safetensors file, or that of a run, by its folder",
    )
    parser.add_argument(
        f"--checkpoint{number}",
        type=CountOrZero,
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
    names = (f"{name}{number}" for name in ("run_dir", "weights", "checkpoint"))
    run_dir, weights, checkpoint = (options[name] for name in names)
    if run_dir is not None and weights is not None:
        raise InputError(f"--weights{number} cannot be combined with --run_dir{number}")
    if checkpoint is not None and run_dir is None:
        raise InputError(f"--checkpoint{number} needs --run_dir{number}")
    if run_dir is not None:
        return Source(f"run_dir{number}", str(run_dir), run_dir, checkpoint)
    if weights is not None:
        return Source(f"weights{number}", weights, run_folder(weights))
    return None


def required_source(options: Namespace) -> Source:
    """Return the network that the options name. Raises: InputError, also if they name none."""
    source = source_of(options)
    if source is None:
        raise InputError("--run_dir or --weights is required")
    return source


def refuse(options: Namespace, names: Iterable[str], reason: str) -> None:
    """Raise an InputError if one of the options `names` is given: `--NAME reason`."""
    for name in names:
        if options[name] is not None:
            raise InputError(f"--{name} {reason}")


def fill(options: Namespace, **defaults: Any) -> None:
    """Set the options that are not given."""
    for name, value in defaults.items():
        if options[name] is None:
            options[name] = value


@dropped_exceptions()
def run_script(main: Callable[[list[str]], None]) -> NoReturn:
    """Run a script's main on the command line, then end the process.

    An error is one line. The exit code is 2 for bad input, 1 for other causes such as a full disk,
    130 after Ctrl-C, 143 after SIGTERM and 129 after SIGHUP.
    """
    set_handler(interrupt)
    logging.getLogger("absl").setLevel(logging.CRITICAL)  # orbax logs the errors that it raises
    try:
        main(sys.argv[1:])
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except KeyboardInterrupt as stop:
        set_handler(signal.SIG_IGN)  # it stops already
        code = _report("Stopped.", 128 + (stop.args or (signal.SIGINT,))[0])
    except InputError as error:
        code = _report(f"error: {error}", 2)
    except RunError as error:
        code = _report(f"error: {error}", 1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        words = f"error: {where}{error.strerror or error}"
        code = _report(words, 1 if error.errno in SYSTEM_ERRORS else 2)
    except (MemoryError, RuntimeError) as error:
        from jaxzero.runs.memory import OUT_OF_MEMORY  # slow to import

        if not isinstance(error, MemoryError) and not OUT_OF_MEMORY.search(str(error)):
            raise
        code = _report(f"error: out of memory ({str(error)[:80]}): {memory_advice()}", 1)
    # At once: a compiler in another thread would hold the process for a minute, or abort it.
    end_now(code)


def _report(line: str, code: int) -> int:
    """Print the last line of a script, and return its exit code."""
    print(" ".join(line.split()), file=sys.stderr)
    return code


def memory_advice() -> str:
    """Return advice for a device that has run out of memory."""
    import jax

    advice = "fewer games at once, simulations or samples a batch need less"
    with suppress(RuntimeError):  # too little memory even to start jax on the device
        if jax.default_backend() == "cpu":
            return advice
    return (
        f"{advice}. Another process may hold the memory (nvidia-smi lists them): end it, or let "
        "jax reserve less with XLA_CLIENT_MEM_FRACTION=0.4 or XLA_PYTHON_CLIENT_PREALLOCATE=false "
        "in the environment"
    )
