"""AlphaZero for Dots and Boxes that lives on the accelerator.

Axes, named the same everywhere:

    D  devices                 A  edges, which are the actions
    B  games on one device     N  nodes of a search tree
    T  plies                   H W F  rows, columns and planes of the features
    S  symmetries              M  bins of the remaining margin, 2 * rows * cols + 1
"""

__version__ = "0.1.0"


def load(name: str):
    """Load a network that is shipped, such as "5x5", or an exported one by its path.

    Returns an `Agent`: network, weights and settings of its search, ready for
    `jaxzero.agent.players.make_player`. Raises: InputError naming the networks there are.
    """
    from jaxzero.training.shipping import load_shipped  # importing the package stays instant

    return load_shipped(name).agent
