"""Resize a network for a board that it was not trained on.

The layers of a convolutional trunk fit every board. The other arrays are converted by meaning: rows
that read counts over the whole board, columns of margin bins, and the row that reads the lengths of
chains, which are fractions of all boxes.
"""

from dataclasses import replace

import chex
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from jaxzero.config import GameConfig
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.network.features import LENGTHS_PLANE, PLANES, count_rows
from jaxzero.network.network import Agent, Network, param_shapes

# The kernel that reads the lengths of chains, and the index of that input.
LENGTHS_KERNEL, LENGTHS_ROW = "params/planes/kernel", len(PLANES) + LENGTHS_PLANE
# The kernels that read the counts over the whole board. The counts are their last inputs.
COUNTS_KERNELS = tuple(
    f"params/{layer}/kernel" for layer in ("counts", "policy_board", "margin_hidden")
)


def asked_board(rows: int | None, cols: int | None, default: DotsAndBoxes) -> DotsAndBoxes:
    """Return the board that the options rows and cols ask for. Raises: InputError."""
    asked = (default.rows if rows is None else rows, default.cols if cols is None else cols)
    try:
        return GameConfig(*asked).board
    except InputError as error:
        raise InputError(str(error).removeprefix("game.")) from error


def fits_all_boards(network: Network) -> bool:
    """Return whether a network can play boards that it was not trained on."""
    return network.trunk.fits_all_boards and not network.config.attention_heads


def check_fits(network: Network, board: DotsAndBoxes, option: str) -> None:
    """Raise an InputError, with `option` as the source, for a board that a network cannot play."""
    if board != network.board and not fits_all_boards(network):
        raise InputError(
            f"{option} was trained on {network.board} and cannot play {board}: its trunk is "
            f"{network.config.trunk}, and only conv without attention plays every board"
        )


def resize(agent: Agent, board: DotsAndBoxes, option: str) -> Agent:
    """Return the agent for another board; `option` names its source in an error.

    Raises: InputError if its trunk fits only one board.
    """
    network = agent.network
    if network.board == board:
        return agent
    check_fits(network, board, option)
    target = network.clone(board=board)
    return replace(agent, network=target, params=resize_params(network, target, agent.params))


def resize_params(source: Network, target: Network, params: chex.ArrayTree) -> chex.ArrayTree:
    """Return the weights of `source` for `target`, which differs only in its board: NumPy."""
    flat = {name: np.asarray(leaf) for name, leaf in flatten_dict(params, sep="/").items()}
    wanted = flatten_dict(param_shapes(target), sep="/")
    if source.config.features == "structure":
        rows = count_rows(source.board, target.board)
        bits = len(count_rows(source.board, source.board))
        for name in COUNTS_KERNELS:
            others = len(flat[name]) - bits  # inputs before the counts
            flat[name] = flat[name][np.concatenate([np.arange(others), others + rows])]
        # Lengths are now fractions of the boxes of `target`: rescale their weights.
        flat[LENGTHS_KERNEL] = flat[LENGTHS_KERNEL].copy()
        flat[LENGTHS_KERNEL][..., LENGTHS_ROW, :] *= target.board.num_boxes / source.board.num_boxes
    columns = margin_columns(source.board, target.board)
    for name in ("params/margin/kernel", "params/margin/bias"):
        flat[name] = flat[name][..., columns]
    for name, like in wanted.items():
        chex.assert_shape(flat[name], like.shape, custom_message=name)
    return unflatten_dict({name: flat[name] for name in wanted}, sep="/")


def margin_columns(source: DotsAndBoxes, target: DotsAndBoxes) -> np.ndarray:
    """Return the margin bin of `source` for each margin bin of `target`: [M] int.

    A margin beyond the range of `source` maps to the largest one of the same parity.
    """
    margins = np.arange(-target.num_boxes, target.num_boxes + 1)
    size, most = np.abs(margins), source.num_boxes
    size = np.where(size > most, most - (size - most) % 2, size)
    return np.sign(margins) * size + most
