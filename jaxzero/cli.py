"""Command lines: parsers, their help, and errors in one line."""

from __future__ import annotations

import json
import os
import re
import sys
import typing
from argparse import Action, ArgumentError
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from jsonargparse import (
    ArgumentParser,
    DefaultHelpFormatter,
    Namespace,
    set_loader,
    set_parsing_settings,
)

from jaxzero import errors
from jaxzero.config import Config
from jaxzero.config.files import (
    check_fields,
    did_you_mean,
    find_config,
    no_such_field,
    presets,
    read_config,
    typed_fields,
)
from jaxzero.config.ranges import check_number, fits, type_in_words
from jaxzero.errors import InputError, RunError, one_line, shortened
from jaxzero.host.environment import memory_advice
from jaxzero.host.interrupts import ends_at_once
from jaxzero.host.readers import is_text, parse_yaml
from jaxzero.host.status import status_lines

SECTIONS = {name for name, kind in typed_fields(Config) if is_dataclass(kind)}
PLAIN = "plain"  # our own parser mode: it reads YAML of plain types without aliases


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
    parser = deepcopy(_plain_parser())  # thirty times faster than a new parser
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
    """Describes types in words: `a whole number >= 1 and <= 20` instead of the name of a type."""

    def _get_type_str(self, action: Action) -> str | None:
        kind = type_of(action)
        if action.nargs == 0 or typing.get_origin(kind) is typing.Literal:  # shown as choices
            return None
        return type_in_words(kind)

    def _get_help_string(self, action: Action) -> str:
        if is_section(action):
            return "fields of this section, as a mapping in YAML"
        text = super()._get_help_string(action).replace("(type: ", "(").replace(", type: ", ", ")
        if action.default is None:  # the help text may describe the default
            said = "default:" in (action.help or "") or action.required
            text = text.replace(", default: %(default)s", "" if said else ", no default")
        return text


def is_section(action: Action) -> bool:
    """Return whether an option takes a section of the config; `--game` may also take a file."""
    return action.dest in SECTIONS and type_of(action) is not Path


def type_of(action: Action) -> Any:
    """Return the type of the value of an option, or of each value if it takes several."""
    kind = getattr(action, "_typehint", None) or action.type or str
    return typing.get_args(kind)[0] if typing.get_origin(kind) is list else kind


def parse(parser: ArgumentParser, arguments: list[str]) -> Namespace:
    """Parse a command line. Raises: InputError, one line naming field and value."""
    set_loader(PLAIN, parse_yaml, (ValueError,))
    parser.parser_mode = PLAIN
    parser.allow_abbrev = False  # otherwise an old name could stand for a longer one
    try:
        return parser.parse_args(_checked(parser, arguments))
    except ArgumentError as error:
        raise InputError(_one_line(str(error))) from error
    except RecursionError as error:
        raise InputError("a value is nested too deeply") from error


def _checked(parser: ArgumentParser, arguments: list[str]) -> list[str]:
    """Return a command line of known options with checked values.

    Move --config to the front, so that the options override it wherever they stand.
    """
    known = {name: action for action in parser._actions for name in action.option_strings}
    given: list[list[str]] = []  # each option with the words after it
    for word, following in zip(arguments, [*arguments[1:], ""], strict=False):
        option, equals, value = word.partition("=")
        if option in known or re.match("-(?!inf|nan)[A-Za-z]|--.", word):
            if option not in known:
                raise _unknown(option, value if equals else following, known)
            check = partial(_value, option[2:], known[option])
            given.append([f"{option}={check(value)}" if equals else option])
        elif not given:  # no script takes words without an option
            raise InputError(f"{shortened(word)!r}: is no option")
        else:
            given[-1].append(word if word == "--" else check(word))
    given.sort(key=lambda words: words[0].partition("=")[0] != "--config")
    return [word for words in given for word in words]


def _unknown(option: str, value: str, known: Iterable[str]) -> InputError:
    """Return the error of an option that a parser does not have."""
    names, shown = [name[2:] for name in known if name.startswith("--")], shortened(option)
    if option == "--":
        return InputError(f"{shown!r}={value}: is no option")
    if not option.startswith("--"):
        hint = did_you_mean(option[1:], names)
        return InputError(f"{shown!r}: is no option, they begin with --{hint}")
    value = "" if value.startswith("--") else value  # the next option
    return no_such_field(option[2:], repr(shortened(value)), names)


MAY_BE_EMPTY = ("opponents", "parts", "evaluation.opponents")  # an empty text has a meaning


def _value(name: str, action: Action, value: str) -> str:
    """Return a checked value of an option; for --config and a section, its content as JSON.

    So the parser opens no file and sees only checked values. Raises: InputError, also for an empty
    value, because an empty path would be the current folder.
    """
    if value.strip() in ("", "--") and name not in MAY_BE_EMPTY:
        raise InputError(f"{name}: {value!r} is empty")
    if re.fullmatch(r"\s*[-+]?[0-9._]{400,}\s*", value):
        raise InputError(f"{name}: {shortened(value)} is too large")
    if not is_text(value):
        raise InputError(f"{name}: {shortened(ascii(value))} is not text in UTF-8")
    if name == "config":
        return json.dumps(read_config(find_config(value)))
    if value.startswith("~/"):  # a shell does not expand it after `--run_dir=`
        return os.path.expanduser(value)
    kind = type_of(action)
    if not is_section(action) and (kind in (str, Path) or action.nargs == 0):
        return value
    try:
        content = parse_yaml(value)
    except ValueError:
        content = value
    if is_section(action):
        if not isinstance(content, dict):
            raise InputError(f"{name}: {shortened(value)} must be a mapping of fields")
        check_fields({name: content}, f"--{name}")
        return json.dumps(content)
    if not fits(content, kind):
        shown = repr(value) if isinstance(content, str) else value
        raise InputError(f"{name}: {shortened(shown)} must be {type_in_words(kind)}")
    # 1e3 is a whole number too.
    return str(check_number(name, content, kind)) if hasattr(kind, "_restrictions") else value


def config_of(parser: ArgumentParser, namespace: Namespace) -> Config:
    """Build the Config of a parsed command line.

    Raises: InputError for impossible values, and without --config: the defaults suit no machine.
    """
    if not namespace.config:
        raise InputError(f"config: name a preset or a YAML file with --config; {presets()}")
    names = [field.name for field in fields(Config)]
    built = parser.instantiate(Namespace(**{name: namespace[name] for name in names}))
    return Config(**{name: built[name] for name in names})


def load_config(path: str | Path, *options: str) -> Config:
    """Read a Config from a YAML file and command-line options such as `--game.rows=3`."""
    parser = _plain_parser()
    return config_of(parser, parse(parser, ["--config", str(path), *options]))


def _one_line(message: str) -> str:
    """Turn a message of a parser into one line that starts with the field."""
    if left_out := re.match(r"the following arguments are required: (?:--)?(\S+)", message):
        return f"{left_out[1]}: is needed, name it with --{left_out[1]}"
    unknown = re.match(r"unrecognized arguments: (\S+)", message)
    if unknown:
        return f"{shortened(unknown[1])!r}: belongs to no option"
    named = re.match(r'Parser key "([^"]+)"[^:]*:\s+(.*)', message, re.DOTALL)
    message = f"{named[1]}: {named[2]}" if named else message
    return shortened(" ".join(message.removeprefix("argument --").split()), 300)


def run_script(main: Callable[[list[str]], None]) -> None:
    """Run a script's main on the command line; print an error as one line.

    The exit code is 2 for bad input and 1 for other causes, such as a full disk.
    """
    errors.print_less()
    with ends_at_once():
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


def given_options(arguments: list[str]) -> dict[str, str]:
    """Return the options of a command line, each with its values as given."""
    given, name = {}, ""
    for word in arguments:
        if word.startswith("--"):
            name, _, given[name] = word[2:].partition("=")
        else:
            given[name] = f"{given.get(name, '')} {word}".strip()
    return given


def refuse_given(arguments: list[str], names: Iterable[str], reason: str) -> None:
    """Raise an InputError with `reason` if a command line has one of the options `names`."""
    for name, value in given_options(arguments).items():
        if name in names:
            shown = f"{shortened(value)} " if value else ""  # a flag has none
            raise InputError(f"{name}: {shown}{reason}")
