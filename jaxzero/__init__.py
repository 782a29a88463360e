"""AlphaZero for Dots and Boxes that lives on the accelerator.

Axes, named the same everywhere:

    D  devices                 A  edges, which are the actions
    B  games on one device     N  nodes of a search tree
    T  plies                   H W F  rows, columns and planes of the features
    S  symmetries              M  bins of the remaining margin, 2 * rows * cols + 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from jaxzero.api import Engine

__version__ = "0.2.0"


def load(name: str | PathLike[str]) -> Engine:
    """Load a network that is shipped, such as "5x5", or an exported one by its path.

    Returns a `jaxzero.api.Engine`: `best_move`, `best_moves`, `values`, `analyse` and `on_board`.
    Raises: InputError naming the networks there are.
    """
    from jaxzero import api  # importing the package stays instant

    return api.load(name)
