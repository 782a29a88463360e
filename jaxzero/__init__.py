"""AlphaZero for Dots and Boxes that lives on the accelerator.

Axes, named the same everywhere:

    D  devices                 A  edges, which are the actions
    B  games on one device     N  nodes of a search tree
    T  plies                   H W F  rows, columns and planes of the features
    S  symmetries              M  bins of the remaining margin, 2 * rows * cols + 1
"""

__version__ = "0.2.0"


def load(name: str):
    """Load a network that is shipped, such as "5x5", or an exported one by its path.

    Returns an `Agent`: network, weights and settings of its search, ready for
    `jaxzero.agent.players.make_player`. Raises: InputError naming the networks there are.
    """
    from jaxzero.runs.weights import load_weights  # importing the package stays instant

    return load_weights(name).agent


def analyse(agent, edges="", simulations: int = 64) -> tuple[str, float]:
    """Return the best edge of a position and the expected margin of the side to move, in boxes.

    `edges` are the drawn edges: names such as "h0,0 v1,2", or a sequence of names or numbers. With
    0 simulations the network answers without search. The first call compiles.
    Raises: ValueError for what is no edge of the board, or where no edge is left.
    """
    from jaxzero.agent.players import analyse as analyse_position

    return analyse_position(agent, edges, simulations)
