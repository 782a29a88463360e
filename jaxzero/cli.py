"""Command lines: settings from defaults, a YAML file and options, and errors in one line."""

from __future__ import annotations

import json
import os
import re
import sys
import typing
from argparse import Action, ArgumentError
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from jsonargparse import (
    ActionConfigFile,
    ArgumentParser,
    DefaultHelpFormatter,
    Namespace,
    set_loader,
    set_parsing_settings,
)

from jaxzero import errors
from jaxzero.config import Config
from jaxzero.config.ranges import NonNegativeInt, check_number, in_words, type_in_words
from jaxzero.errors import LONGEST_VALUE, InputError, RunError, one_line, shortened
from jaxzero.host.environment import memory_advice
from jaxzero.host.files import shipped_folder, write_text
from jaxzero.host.interrupts import ends_at_once
from jaxzero.host.readers import is_file, is_text, parse_yaml, read_yaml, why_no_file
from jaxzero.host.status import status_lines

if TYPE_CHECKING:
    from jaxzero.runs.weights import LoadedAgent

PLAIN = "plain"  # a mode of parsers of our own: what they read as YAML has no tags or aliases

# Settings of earlier versions, with their names of today.
RENAMED = {
    "search.value_scale": "search.value_scale_per_box: divide it by the boxes of the board",
    "search.considered": "search.max_considered_actions",
    "search.reduction": "search.nodes: all in place of none, quiet in place of exact",
    "search.max_depth": "search.engine: rounds, which needs no limit; delete the old one",
    "learner.decay_share": "learner.decay_fraction",
    "learner.final_rate": "learner.final_rate_fraction",
    "learner.symmetries": "learner.augmentation",
}
# Settings that are gone, with the value at which they did nothing: older files may hold that.
GONE = {
    "network.squeeze_excitation": False,
    "search.visit_offset": 50.0,
    "search.win_weight": 0.0,
    "learner.ema_decay": 0.0,
    "learner.policy_loss_weight": 1.0,
    "learner.margin_loss_weight": 1.0,
}
GONE_WORDS = "there is no such setting any more; CHANGELOG.md says why"

CONFIG_FIELDS = tuple(field.name for field in fields(Config))


def script_parser(description: str) -> ArgumentParser:
    """Return a parser without options, for any script."""
    return ArgumentParser(
        description=description,
        exit_on_error=False,
        env_prefix=False,
        formatter_class=HelpFormatter,
    )


def config_parser(description: str) -> ArgumentParser:
    """Return a parser with `--config FILE` and one option for every field of a Config."""
    parser = deepcopy(_plain_parser())  # thirty times as quick as another one
    parser.description = description
    return parser


@cache
def _plain_parser() -> ArgumentParser:
    parser = script_parser("")
    parser.add_argument(
        "--config",
        action="config",
        help="YAML file with settings or the name of a shipped one, as quick; options override it",
    )
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    parser.add_class_arguments(Config, None)
    return parser


class HelpFormatter(DefaultHelpFormatter):
    """Names types in words: `a whole number >= 1 and <= 20` in place of the name of a type."""

    def _get_type_str(self, action: Action) -> str | None:
        kind = getattr(action, "_typehint", None) or action.type or str
        if action.nargs == 0 or typing.get_origin(kind) is typing.Literal:  # choices stand there
            return None
        return type_in_words(kind)

    def _get_help_string(self, action: Action) -> str:
        if action.dest in _sections(Config):
            return "fields of this section, as a mapping in YAML"
        text = super()._get_help_string(action).replace("(type: ", "(").replace(", type: ", ", ")
        if action.default is None:  # a help text of its own may say what stands for it
            said = "default:" in (action.help or "") or action.required
            text = text.replace(", default: %(default)s", "" if said else ", no default")
        return text


def parse(parser: ArgumentParser, arguments: list[str]) -> Namespace:
    """Parse a command line. Raises an InputError, one line naming field and value."""
    set_loader(PLAIN, parse_yaml, (ValueError,))
    parser.parser_mode = PLAIN
    parser.allow_abbrev = False  # or a name of earlier versions would stand for a longer one
    try:
        takes_file = any(isinstance(action, ActionConfigFile) for action in parser._actions)
        refuse_unknown(parser, arguments)
        return parser.parse_args(_files_first(list(_checked(arguments, takes_file))))
    except ArgumentError as error:
        raise InputError(_one_line(str(error))) from error
    except RecursionError as error:
        raise InputError("a value is nested too deeply") from error


def refuse_unknown(parser: ArgumentParser, arguments: list[str]) -> None:
    """Raise an InputError for the first word that is no option of a parser and no value of one."""
    known = [name for action in parser._actions for name in action.option_strings]
    names = [option[2:] for option in known if option.startswith("--")]
    for word, following in zip(arguments, [*arguments[1:], ""], strict=False):
        option, equals, value = word.partition("=")
        if option in known or not re.match("-(?!inf|nan)[A-Za-z]|--.", word):
            continue
        if not is_text(word):
            raise InputError(f"{shortened(ascii(word))}: is no option")
        if option == "--":
            raise InputError(f"{shortened(word)!r}: is no option")
        if not option.startswith("--"):
            hint = did_you_mean(option[1:], names)
            raise InputError(f"{shortened(option)!r}: is no option, they begin with --{hint}")
        if not equals and not following.startswith("--"):
            value = following
        name, shown = option[2:], shortened(value)
        if name in RENAMED:
            raise InputError(f"{shortened(name)}: {shown!r}: is now {RENAMED[name]}")
        if name in GONE:
            raise InputError(f"{name}: {shown!r}: {GONE_WORDS}")
        raise InputError(f"{shortened(name)}: {shown!r}: no such field{did_you_mean(name, names)}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ", did you mean X?" for the field that a wrong name stands for, or an empty string.

    Fields of the section that is named come first; hyphens, initials such as lr, and a name
    without its section are understood.
    """
    section, _, leaf = name[:LONGEST_VALUE].replace("-", "_").lower().rpartition(".")
    inside = [field for field in known if section and field.startswith(f"{section}.")]
    by_leaf: dict[str, str] = {}
    for field in sorted(inside or known, key=lambda field: field.count(".")):
        last = field.rpartition(".")[2]
        by_leaf.setdefault(last, field)
        by_leaf.setdefault("".join(word[:1] for word in last.split("_")), field)
    close = get_close_matches(leaf, by_leaf, n=1)
    return f", did you mean {by_leaf[close[0]]}?" if close else ""


def _files_first(words: list[str]) -> list[str]:
    """Put --config before the options, which override it wherever they stand."""
    files = {at for at, word in enumerate(words) if word.partition("=")[0] == "--config"}
    files |= {at + 1 for at in files if words[at] == "--config"}
    return [words[at] for at in sorted(range(len(words)), key=lambda at: at not in files)]


MAY_BE_EMPTY = ("opponents", "parts", "evaluation.opponents")  # their empty text has a meaning


def _checked(arguments: list[str], takes_file: bool) -> Iterator[str]:
    """Yield a command line in which the content of files stands for --config FILE.

    Where the parser reads such files: it opens none, so it sees nothing that was not checked.
    Raises: InputError, also for empty values: an empty path would be the current folder.
    """
    name, sections = "", set(_sections(Config))
    for argument in arguments:
        value = argument
        if argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
            if not equals:
                yield argument
                continue
        elif argument == "-h":
            yield argument
            continue
        elif not name:  # no script takes words without an option
            raise InputError(f"{shortened(argument)!r}: is no option")
        if value.strip() in ("", "--") and name not in MAY_BE_EMPTY:
            raise InputError(f"{name}: {value!r} is empty")
        if re.fullmatch(r"\s*[-+]?[0-9._]{400,}\s*", value):
            raise InputError(f"{name}: {shortened(value)} is too large")
        if not is_text(value):
            raise InputError(f"{name}: {shortened(ascii(value))} is not text in UTF-8")
        if name == "config" and takes_file:
            value = json.dumps(read_config(find_config(value)))
        elif value.startswith("~/"):  # a shell leaves it after `--run_dir=`
            value = os.path.expanduser(value)
        elif name in sections:
            value = json.dumps(_section(name, value))
        yield f"--{name}={value}" if argument.startswith("--") else value


def _section(name: str, value: str) -> dict[str, Any]:
    """Return the checked settings of a section that stands on the command line as a mapping."""
    try:
        content = parse_yaml(value)
    except ValueError as error:
        raise InputError(f"{name}: {shortened(value)} is not YAML ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{name}: {shortened(value)} must be a mapping of fields")
    check_fields({name: content}, f"--{name}")
    return content


def config_of(parser: ArgumentParser, namespace: Namespace) -> Config:
    """Build the Config of a parsed command line.

    Raises: InputError for impossible values, and without --config: defaults suit no machine.
    """
    if not namespace.config:
        raise InputError(f"config: name a preset or a YAML file with --config; {presets()}")
    plain = {name: namespace[name] for name in CONFIG_FIELDS}
    built = parser.instantiate(Namespace(**plain))
    return Config(**{name: built[name] for name in CONFIG_FIELDS})


def load_config(path: str | Path, *options: str) -> Config:
    """Read a Config from a YAML file and command-line options such as `--game.rows=3`."""
    parser = _plain_parser()
    return config_of(parser, parse(parser, ["--config", str(path), *options]))


def save_config(config: Config, path: Path) -> None:
    """Write every field to a YAML file that `load_config` reads back."""
    write_text(path, yaml.safe_dump(asdict(config), sort_keys=False))


def read_config(path: str) -> dict[str, Any]:
    """Read a YAML mapping of fields that exist to values of their types. Raises: InputError."""
    if why := why_no_file(Path(path), "cannot be read (no such file)"):
        hint = f"shipped are {', '.join(shipped_configs())}"
        raise InputError(f"config: {shortened(path)} {why}; {hint}")
    content = read_yaml("config", Path(path)) or {}
    if not isinstance(content, dict):
        shown = shortened(repr(content))
        raise InputError(f"config: {path} holds {shown}, not a mapping of fields")
    forget_gone(content)
    check_fields(content, path)
    if not dict(dotted(content)):
        raise InputError(f"config: {path} holds no setting; {presets()}")
    return content


def forget_gone(content: dict[str, Any]) -> None:
    """Drop from the content of a file the settings that are gone, where they did nothing."""
    for name, nothing in GONE.items():
        section, _, leaf = name.partition(".")
        fields_of = content.get(section)
        if isinstance(fields_of, dict) and fields_of.get(leaf) == nothing:
            del fields_of[leaf]


def find_config(name: str) -> str:
    """Return the path of the shipped config of a name, unless a file has that name.

    `quick` and `configs/quick.yaml` both name the shipped one.
    """
    path, shipped = Path(name), shipped_configs().get(Path(name).stem)
    named = shipped is not None and path in (Path(path.stem), Path("configs", shipped.name))
    return str(shipped) if named and not is_file(path) else name


def shipped_configs() -> dict[str, Path]:
    """Return the files of the shipped configs by their names, such as quick."""
    return {path.stem: path for path in sorted(shipped_folder("configs").glob("*.yaml"))}


# Presets of GPUs, by MiB of memory.
GPU_PRESETS = {70_000: "gpu_80gb", 20_000: "gpu_24gb", 0: "gpu_8gb"}
RESERVED = 0.75  # of the memory of a GPU, by jax


def gpu_preset(memory_mib: float) -> str:
    """Return the preset of a GPU with so much memory."""
    return next(name for least, name in GPU_PRESETS.items() if memory_mib >= least)


def presets() -> str:
    """Name the shipped configs with their boards, and the one that suits the device found."""
    import jax  # slow, and finds the device

    boards = {name: read_yaml("config", path)["game"] for name, path in shipped_configs().items()}
    names = (f"{name} ({board['rows']}x{board['cols']})" for name, board in boards.items())
    device, suits = jax.devices()[0], "cpu"
    if device.platform != "cpu":
        limit = (device.memory_stats() or {}).get("bytes_limit", 0)
        suits = gpu_preset(limit / RESERVED / 2**20)
    return (
        f"{suits} suits the device found ({device.device_kind}), quick shows the first results; "
        f"presets: {', '.join(names)}"
    )


def check_fields(content: dict[str, Any], where: str) -> None:
    """Raise an InputError for a field that does not exist and for a value of another type."""
    known, sections = dict(typed_fields(Config)), set(_sections(Config))
    for name, value in dotted(content):
        place = f"{shortened(name)}: {shortened(repr(value))} in {where}"
        if name in RENAMED:
            raise InputError(f"{place}: is now {RENAMED[name]}")
        if name in GONE:
            raise InputError(f"{place}: {GONE_WORDS}")
        if name not in known:
            raise InputError(f"{place}: no such field{did_you_mean(name, known)}")
        if name in sections:
            raise InputError(f"{place} must be a mapping of fields")
        if not _fits(value, known[name]):
            words = in_words(getattr(known[name], "__name__", "")) or "text"
            raise InputError(f"{place} must be {words}")


def _fits(value: Any, kind: type) -> bool:
    """Return whether a value of a file is of the type of its field, without any conversion."""
    if not hasattr(kind, "_restrictions"):
        return isinstance(value, bool if kind is bool else str)
    try:
        check_number("", value, kind)
    except InputError:
        return False
    return not isinstance(value, str)


def _sections(cls: type, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of the fields that hold others."""
    return (name for name, kind in typed_fields(cls, prefix) if is_dataclass(kind))


def typed_fields(cls: type, prefix: str = "") -> Iterator[tuple[str, type]]:
    """Yield the dotted names of all fields of nested dataclasses with their types."""
    for name, kind in typing.get_type_hints(cls).items():
        yield prefix + name, kind
        if is_dataclass(kind):
            yield from typed_fields(kind, f"{prefix}{name}.")


def field_names(cls: type) -> Iterator[str]:
    """Yield the dotted names of all fields of nested dataclasses, sections included."""
    return (name for name, _ in typed_fields(cls))


def dotted(content: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the value of every leaf of nested mappings."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _one_line(message: str) -> str:
    """Turn a message of a parser into one line that starts with the field."""
    if left_out := re.match(r"the following arguments are required: (?:--)?(\S+)", message):
        return f"{left_out[1]}: is needed, name it with --{left_out[1]}"
    unknown = re.match(r"unrecognized arguments: (\S+)", message)
    if unknown:
        return f"{shortened(unknown[1])!r}: belongs to no option"
    outside = re.match(r'Parser key "([^"]+)"[^:]*:\s+Not of type (\w+): (.*)', message, re.DOTALL)
    if outside:
        name, kind, reason = outside.groups()
        value = re.match(r"(\S+) does not conform", reason) or re.search(r"('.*')$", reason)
        return f"{name}: {shortened(value[1] if value else reason)} must be {in_words(kind)}"
    wrong = re.match(r'Parser key "([^"]+)":\s+(.*?)\.? Got value: (.*)', message, re.DOTALL)
    if wrong:
        kind = re.sub(
            r"Expected an? <class '(\w+)'>",
            lambda found: f"must be {in_words(found[1]) or found[1]}",
            " ".join(wrong[2].split()),
        )
        kind = re.sub(r"Expected an? typing\.Literal\[(.*)\]", r"must be one of \1", kind)
        return f"{wrong[1]}: {shortened(wrong[3])!r} {kind}"
    named = re.match(r'Parser key "([^"]+)"[^:]*:\s+(.*)', message, re.DOTALL)
    message = f"{named[1]}: {named[2]}" if named else message
    return shortened(" ".join(message.removeprefix("argument --").split()), 300)


def run_script(main: Callable[[list[str]], None]) -> None:
    """Run a script's main on the command line; an error ends with one line.

    Exit code 2 for bad input, 1 for what else ends a run, such as a full disk.
    """
    errors.print_less()
    with ends_at_once():
        _run(main)


def _run(main: Callable[[list[str]], None]) -> None:
    try:
        with status_lines(f"running {Path(sys.argv[0]).stem}"):
            main(sys.argv[1:])
    except InputError as error:
        _end(error, 2)
    except RunError as error:
        _end(error, 1)
    except MemoryError as error:
        _end(f"out of memory ({error})", 1)
    except RuntimeError as error:
        if not errors.OUT_OF_MEMORY.search(str(error)):
            raise
        reason = shortened(str(error).splitlines()[0])
        _end(f"out of memory on the device ({reason}): {memory_advice()}", 1)
    except OSError as error:
        about = error.filename or error.filename2
        words = error.strerror or str(error)
        words = f"{shortened(str(about))}: {words}" if about else words
        _end(words, 1 if error.errno in errors.SYSTEM_ERRORS else 2)


def _end(error: object, code: int) -> None:
    print(f"error: {one_line(str(error))}", file=sys.stderr)
    sys.exit(code)


def command_name(script: str) -> str:
    """Return how to call a script as this process was called."""
    installed = sys.argv[0].startswith("jaxzero ")
    return f"jaxzero {script}" if installed else f"python scripts/{script}.py"


OPTIONS = ("run_dir", "weights", "checkpoint")
CONFIG_FILE = "config.yaml"  # of a run


def given_options(arguments: list[str]) -> dict[str, str]:
    """Return the options that stand on a command line, each with its values as they stand there."""
    given, name = {}, ""
    for word in arguments:
        if word.startswith("--"):
            name, _, given[name] = word[2:].partition("=")
        else:
            given[name] = f"{given.get(name, '')} {word}".strip()
    return given


def refuse_given(arguments: list[str], names: Iterable[str], reason: str) -> None:
    """Raise an InputError, with the reason, where one of `names` stands on a command line."""
    for name, value in given_options(arguments).items():
        if name in names:
            shown = f"{shortened(value)} " if value else ""  # a flag has none
            raise InputError(f"{name}: {shown}{reason}")


def is_run(folder: Path) -> bool:
    """Return whether a folder is that of a training run."""
    return is_file(folder / CONFIG_FILE)


@dataclass(frozen=True)
class Source:
    """What --run_dir, --weights and --checkpoint name together; reads nothing before `load`."""

    run_dir: Path | None
    weights: str | None  # exactly one of the two
    checkpoint: int | None = None  # iteration; None: the newest
    number: str = ""  # ends the names of the options of a second player

    @property
    def field(self) -> str:
        """The option that named it."""
        return ("weights" if self.run_dir is None else "run_dir") + self.number

    @property
    def folder(self) -> Path | None:
        """The folder of the run, by whichever option; None for a network in files of its own."""
        if self.run_dir is None and is_run(Path(self.weights)):
            return Path(self.weights)
        return self.run_dir

    @property
    def name(self) -> str:
        """The folder, or the name of what is shipped."""
        return str(self.weights or self.run_dir)

    def load(self) -> LoadedAgent:
        """Read the network. Raises: InputError naming the option."""
        # Slow to import; command lines are checked before.
        from jaxzero.runs.weights import load_agent, load_weights

        try:
            if self.run_dir is None:
                return load_weights(self.weights)
            # Standard output may belong to a protocol.
            return load_agent(self.run_dir, self.checkpoint, partial(print, file=sys.stderr))
        except InputError as error:
            # The loaders know one network and its options; here there may be two.
            field, _, rest = str(error).partition(":")
            if field in OPTIONS:
                raise InputError(f"{field}{self.number}:{rest}") from error
            raise InputError(f"{self.field}: {self.name}: {error}") from error


def add_source_options(parser: ArgumentParser) -> None:
    """Add --run_dir, --weights and --checkpoint."""
    parser.add_argument("--run_dir", type=Path, help="folder of the run")
    parser.add_argument(
        "--weights",
        help="a network that is shipped, as 5x5, an exported one, by its .safetensors file or its "
        "folder, or that of a run, by its folder",
    )
    parser.add_argument(
        "--checkpoint", type=NonNegativeInt, help="iteration to take; default: the newest"
    )


def source_of(options: Namespace, number: str = "") -> Source | None:
    """Return what the options name, None for nothing. Raises: InputError."""
    run_dir, weights, checkpoint = (options[f"{name}{number}"] for name in OPTIONS)
    if run_dir is not None and weights is not None:
        raise InputError(f"weights{number}: {weights} cannot stand beside --run_dir{number}")
    if checkpoint is not None and run_dir is None:
        raise InputError(f"checkpoint{number}: {checkpoint} needs --run_dir{number}")
    if run_dir is None and weights is None:
        return None
    return Source(run_dir, weights, checkpoint, number)


def required_source(options: Namespace) -> Source:
    """Return what the options name. Raises: InputError, also where they name nothing."""
    source = source_of(options)
    if source is None:
        raise InputError("run_dir: name a run with --run_dir or a network with --weights")
    return source
