"""Types with the range of each setting, and the check of values against their ranges.

Every range has an upper and a lower end, because an absurd number would fail deep inside a library.
No type accepts nan, an infinity, true or false.
"""

from __future__ import annotations

import typing
from dataclasses import is_dataclass
from typing import Any

from jsonargparse.typing import ClosedUnitInterval, restricted_number_type

from jaxzero.errors import InputError, shortened

MOST = 10**9  # largest count; fits in int32, also after adding 1
MOST_SIMULATIONS = 100_000
SMALLEST = 1e-12  # smallest positive number; in float32 neither it nor its square rounds to 0


def whole(least: int, most: int = MOST) -> type:
    """Return the type of whole numbers from `least` to `most`, for fields and for options."""
    name = f"a whole number >= {least} and <= {most}"
    return restricted_number_type(name, int, [(">=", least), ("<=", most)])


def number(least: float, most: float) -> type:
    """Return the type of numbers from `least` to `most`, for fields and for options."""
    name = f"a number >= {least:g} and <= {most:g}"
    return restricted_number_type(name, float, [(">=", least), ("<=", most)])


PositiveInt = whole(1)
NonNegativeInt = whole(0)
BoardSide = whole(1, 20)
Channels = whole(1, 2**16)
Blocks = whole(1, 1000)  # JAX traces each block separately
Simulations = whole(1, MOST_SIMULATIONS)
Considered = whole(1, 1000)  # no board has more edges
SimulationsOrNone = whole(0, MOST_SIMULATIONS)
MatchGames = whole(2, 100_000)  # a match draws its openings one by one
Seed = whole(0, 2**32 - 1)
SuiteGames = whole(1, 100_000)
SeedOfMany = whole(0, 2**31)  # each player adds its number to the seed
Fraction = ClosedUnitInterval
PositiveNumber = number(SMALLEST, 1e9)
NonNegativeNumber = number(0, 1e9)
LearningRate = number(SMALLEST, 10)
WeightDecay = number(0, 10)
Minutes = number(0, 1e7)  # 19 years
PointMinutes = number(1e-3, 1e6)
Seconds = number(1e-3, 1e6)  # of a measurement or a solver
SecondsOfDecision = number(0, 3600)
Port = whole(0, 2**16 - 1)
Rounds = whole(1, 1000)  # of a measurement


def split_list(field: str, text: str) -> list[str]:
    """Split a text at its commas; an empty text has no entries.

    Raises: InputError for an empty entry and for a repeated entry.
    """
    entries = [entry.strip() for entry in text.split(",")] if text else []
    if not all(entries):
        raise InputError(f"{field}: {shortened(repr(text))} has an empty entry")
    refuse_repeated(field, entries)
    return entries


def refuse_repeated(field: str, entries: list[str]) -> None:
    """Raise an InputError for a repeated entry."""
    for entry in entries:
        if entries.count(entry) > 1:
            raise InputError(f"{field}: {shortened(repr(entry))} is there twice")


def check_ranges(settings: Any, section: str = "") -> None:
    """Check the fields of a frozen dataclass and convert its numbers to plain int or float.

    Raises: InputError for the first field that is outside its range or not one of its choices.
    """
    for name, kind in typing.get_type_hints(type(settings)).items():
        value, field = getattr(settings, name), f"{section}.{name}".lstrip(".")
        if hasattr(kind, "_restrictions"):
            object.__setattr__(settings, name, check_number(field, value, kind))
        elif not fits(value, kind):
            raise InputError(f"{field}: {shortened(repr(value))} must be {type_in_words(kind)}")


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value has the type of a setting, without any conversion."""
    if typing.get_origin(kind) is typing.Literal:
        return value in typing.get_args(kind)
    if not hasattr(kind, "_restrictions"):
        return isinstance(value, kind)
    try:
        check_number("", value, kind)
    except InputError:
        return False
    return not isinstance(value, str)


def check_number(field: str, value: Any, kind: type) -> int | float:
    """Return a value as a plain number in the range of `kind`. Raises: InputError."""
    try:
        return kind._type(kind(value))
    except (TypeError, ValueError, OverflowError) as error:
        shown = shortened(str(value))
        raise InputError(f"{field}: {shown} must be {type_in_words(kind)}") from error


NAMES = {  # descriptions of types with names that do not describe their values
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "Path": "a path",
    "ClosedUnitInterval": "a number >= 0 and <= 1",
}


def type_in_words(kind: Any) -> str:
    """Describe the values of a type, such as `a whole number >= 0` or `one of conv, dense`."""
    if typing.get_origin(kind) is typing.Literal:
        return f"one of {', '.join(typing.get_args(kind))}"
    if is_dataclass(kind):
        return "a mapping of fields"
    return NAMES.get(kind.__name__, kind.__name__)
