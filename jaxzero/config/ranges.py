"""Types that state the range of a setting, and the check that every value keeps its range."""

from __future__ import annotations

import math
import re
import typing
from typing import Any

from jsonargparse.typing import ClosedUnitInterval as Fraction
from jsonargparse.typing import NonNegativeInt, PositiveInt, restricted_number_type

from jaxzero.errors import InputError

# None of them takes nan or an infinity.
PositiveNumber = restricted_number_type("PositiveNumber", float, [(">", 0), ("<", math.inf)])
NonNegativeNumber = restricted_number_type("NonNegativeNumber", float, [(">=", 0), ("<", math.inf)])
ProperFraction = restricted_number_type("ProperFraction", float, [(">=", 0), ("<", 1)])
BoardSide = restricted_number_type("BoardSide", int, [(">=", 1), ("<=", 20)])
Seed = restricted_number_type("Seed", int, [(">=", 0), ("<", 2**32)])

_KINDS = (
    *(Fraction, NonNegativeInt, PositiveInt, PositiveNumber, NonNegativeNumber),
    *(ProperFraction, BoardSide, Seed),
)


def check_ranges(settings: Any, section: str = "") -> None:
    """Make the numbers of a frozen dataclass plain, each in the range of its type.

    Raises: InputError for the first field that is out of its range or none of its choices.
    """
    for name, kind in typing.get_type_hints(type(settings)).items():
        value = getattr(settings, name)
        choices = typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()
        if choices and value not in choices:
            words = f"{section}.{name}: {value!r} must be one of {', '.join(choices)}"
            raise InputError(words.lstrip("."))
        if hasattr(kind, "_restrictions"):
            try:
                plain = kind._type(kind(value))
            except (TypeError, ValueError) as error:
                field = f"{section}.{name}".lstrip(".")
                raise InputError(f"{field}: {value} must be {in_words(kind.__name__)}") from error
            object.__setattr__(settings, name, plain)


def in_words(name: str) -> str:
    """Return the range of a type, given by its name, such as `a whole number > 0`; "": no range."""
    plain = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}
    kind = next((kind for kind in _KINDS if kind.__name__ == name), None)
    if kind is None:
        return plain.get(name, "")
    noun = "a whole number" if kind._type is int else "a number"
    bounds = kind._expression.replace(" and v<inf", "").replace("v", "")
    bounds = re.sub("([<>]=?)", r"\1 ", bounds)
    return f"{noun} {bounds}"
