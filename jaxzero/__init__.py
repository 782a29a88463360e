"""AlphaZero for Dots and Boxes that runs on the accelerator.

Axes:

    D  devices                 A  edges, which are the actions
    B  games on one device     N  nodes of a search tree
    T  decisions               H W F  rows, columns and planes of the features
    S  symmetries              M  bins of the remaining margin, 2 * rows * cols + 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxzero.errors import InputError, RunError

__all__ = ["Engine", "InputError", "RunError", "load", "train"]
__version__ = "0.2.0"

if TYPE_CHECKING:  # type checkers see these names and no others
    from jaxzero.api import Engine, load, train
else:

    def __getattr__(name):
        """Return a name of `jaxzero.api`; importing the package alone stays instant."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from jaxzero import api

        return getattr(api, name)


def __dir__() -> list[str]:
    """Return the names of the package with those of `jaxzero.api`, for completion and `help`."""
    return sorted({*globals(), *__all__} - {"__dir__", "__getattr__"})
