"""Errors that a user can cause and repair."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Bad input: one line that names the field and the value. Scripts print it and exit with 2."""


class RunError(RuntimeError):
    """A run that cannot go on: one line that says what to do. Scripts print it and exit with 1."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ", did you mean X?" for the known word nearest to `word`, or an empty string."""
    close = get_close_matches(word, list(known), n=1)
    return f", did you mean {close[0]}?" if close else ""
