"""The points of a sweep: comma lists on a command line, multiplied out."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from jaxzero.cli import config_of, field_names, parse
from jaxzero.config import Config
from jaxzero.errors import InputError

Settings = dict[str, Any]  # value of each swept field, by dotted name

PRESETS: dict[str, dict[str, list[str]]] = {
    # Doubles until it does not fit: the end of the list is out of reach of any device.
    "batch": {"selfplay.games": [str(2**power) for power in range(6, 25)]},
    "update_interval": {
        "learner.updates_per_iteration": [str(2**power) for power in range(3, 9)],
    },
}


@dataclass(frozen=True)
class Point:
    """One combination of the swept values."""

    settings: Settings
    config: Config | None  # None: the combination is impossible
    error: str = ""


@dataclass(frozen=True)
class Grid:
    """A sweep: what is fixed, what varies, and every combination."""

    base: Config
    fields: tuple[str, ...]
    points: tuple[Point, ...]
    growing: bool = False  # a series of points ends with the first that does not run


def read_grid(parser: ArgumentParser, arguments: list[str]) -> tuple[Grid, Namespace]:
    """Parse a command line with comma lists; return the grid and the parsed single values.

    Raises: InputError for unknown fields, values of the wrong type, empty lists, or where no
    combination at all is possible.
    """
    rest, lists = split_lists(arguments)
    options = parse(parser, rest)
    preset = PRESETS.get(options.preset, {})
    # A list of the user's own comes first and replaces that of the preset.
    growing = options.preset == "batch" and "selfplay.games" not in lists
    lists = lists | {name: values for name, values in preset.items() if name not in lists}
    base = config_of(parser, options)
    values = {name: _typed(parser, rest, name, texts) for name, texts in lists.items()}
    points = tuple(
        _point(parser, options, dict(zip(values, combination, strict=True)))
        for combination in itertools.product(*values.values())
    )
    if all(point.config is None for point in points):
        raise InputError(points[0].error)
    return Grid(base, tuple(values), points, growing), options


def split_lists(arguments: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Separate the options that hold comma lists from a command line."""
    rest, lists = [], {}
    known = set(sweepable_fields())
    remaining = iter(arguments)
    for argument in remaining:
        option, equals, text = argument.partition("=")
        name = option.removeprefix("--")
        if not option.startswith("--") or name not in known:
            rest.append(argument)
            continue
        text = text if equals else next(remaining, None)
        if text is None or "," not in text:
            rest.extend([option] if text is None else [f"{option}={text}"])
            continue
        entries = [entry.strip() for entry in text.split(",")]
        if not all(entries):
            raise InputError(f"{name}: {text!r} has an empty entry")
        lists[name] = list(dict.fromkeys(entries))
    return rest, lists


def sweepable_fields(cls: type = Config, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of fields with one value; texts may hold commas of their own."""
    hints = typing.get_type_hints(cls)
    sections = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    for name in field_names(cls):
        if "." not in name and name not in sections and hints[name] is not str:
            yield prefix + name
    for name, section in sections.items():
        yield from sweepable_fields(section, f"{prefix}{name}.")


def _typed(parser: ArgumentParser, rest: list[str], name: str, texts: list[str]) -> list[Any]:
    values = [parse(parser, [*rest, f"--{name}={text}"])[name] for text in texts]
    return list(dict.fromkeys(values))


def _point(parser: ArgumentParser, options: Namespace, settings: Settings) -> Point:
    namespace = options.clone()
    for name, value in settings.items():
        namespace[name] = value
    try:
        return Point(settings, config_of(parser, namespace))
    except InputError as error:
        return Point(settings, None, str(error))
