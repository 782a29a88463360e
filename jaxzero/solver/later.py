"""The compiled parts of the solver, imported at their first use, because imports compile them.

The first compilation on a machine takes seconds; programs that do not solve do not wait for it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


class _Later:
    """A module of this folder that is imported at its first use."""

    def __init__(self, name: str):
        self._name = f"jaxzero.solver.{name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


bitboards, null_window = _Later("bitboards"), _Later("null_window")


def is_compiled() -> bool:
    """Return whether this process has solved a position, so the next needs no compilation."""
    function = getattr(sys.modules.get("jaxzero.solver.null_window"), "solve_position", None)
    return bool(getattr(function, "signatures", function))
