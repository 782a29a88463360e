"""AlphaZero for Dots and Boxes that lives on the accelerator.

Axes, named the same everywhere:

    D  devices                 A  edges, which are the actions
    B  games on one device     N  nodes of a search tree
    T  plies                   H W F  rows, columns and planes of the features
    S  symmetries              M  bins of the remaining margin, 2 * rows * cols + 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from jaxzero.api import Config, Engine, Trained

__version__ = "0.2.0"


def load(name: str | PathLike[str]) -> Engine:
    """Load a network that is shipped, such as "5x5", or an exported one by its path.

    Returns a `jaxzero.api.Engine`: `best_move`, `best_moves`, `values`, `analyse` and `on_board`.
    Raises: InputError naming the networks there are.
    """
    from jaxzero import api  # importing the package stays instant

    return api.load(name)


def train(
    config: Config | str | PathLike[str],
    settings: Mapping[str, Any] | None = None,
    on_iteration: Callable[[dict[str, float]], Any] | None = None,
    run_dir: str | PathLike[str] | None = None,
    resume: bool = False,
) -> Trained:
    """Train on all devices, as `jaxzero.api.train` says.

    Returns a `jaxzero.api.Trained`: `engine`, `metrics` and `params`.
    """
    from jaxzero import api

    return api.train(config, settings, on_iteration, run_dir, resume)
