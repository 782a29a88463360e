"""The check that settings pass at construction."""

from __future__ import annotations

import math
from typing import Any

from jaxzero.errors import InputError


def require(section: str, settings: Any, condition: str, *names: str) -> None:
    """Raise an InputError for the first named field that breaks `condition`, e.g. "> 0"."""
    operator, bound = condition.split()
    holds = {
        ">=": lambda value: value >= float(bound),
        ">": lambda value: value > float(bound),
        "<": lambda value: value < float(bound),
        "<=": lambda value: value <= float(bound),
    }[operator]
    for name in names:
        value = getattr(settings, name)
        if not math.isfinite(value) or not holds(value):
            raise InputError(f"{section}.{name}: {value} must be {condition}".lstrip("."))
