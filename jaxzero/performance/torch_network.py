"""The replaced systems' way to evaluate a position: PyTorch, operation by operation, batch of one.

The plain residual network of a config on raw planes: convolutions, biases and activations, without
the normalisations those systems had, and without global pooling. PyTorch is no dependency of this
package; the baseline uses it where it is installed and asked for.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, count_sides
from jaxzero.performance.baseline import Evaluate

PLANES = 8


def check_torch(config: Config) -> None:
    """Raise an InputError unless PyTorch is there and the config has a convolutional trunk."""
    if find_spec("torch") is None:
        raise InputError("baseline_network: 'torch' needs PyTorch: python -m pip install torch")
    if config.network.trunk != "conv":
        trunk = config.network.trunk
        raise InputError(f"baseline_network: 'torch' needs network.trunk conv, not {trunk}")


def torch_evaluate(config: Config) -> Evaluate:
    """Return a network as a function of one board: priors per edge and a value."""
    import torch
    from torch import nn

    game, width = config.game.board, config.network.channels
    torch.manual_seed(config.seed)
    squares = (game.rows + 1) * (game.cols + 1)
    first = nn.Conv2d(PLANES, width, 3, padding=1)
    blocks = [
        (nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1))
        for _ in range(config.network.blocks)
    ]
    policy_planes, policy = nn.Conv2d(width, 2, 1), nn.Linear(2 * squares, game.num_edges)
    value_plane, value = nn.Conv2d(width, 1, 1), nn.Linear(squares, 1)
    layers = [first, policy_planes, policy, value_plane, value]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for layer in [*layers, *(conv for block in blocks for conv in block)]:
        layer.to(device).eval()

    @torch.inference_mode()
    def evaluate(drawn: list[bool]) -> tuple[list[float], float]:
        x = torch.from_numpy(planes(game, np.array(drawn)))[None].to(device)
        x = torch.relu(first(x))
        for one, two in blocks:
            x = torch.relu(x + two(torch.relu(one(x))))
        priors = torch.softmax(policy(torch.relu(policy_planes(x)).flatten(1)), -1)[0]
        return priors.tolist(), float(torch.tanh(value(torch.relu(value_plane(x)).flatten(1))))

    return evaluate


def planes(game: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return edges, legal edges and boxes by drawn sides on the grid of dots: [8, H, W] float32."""
    grid = np.zeros((PLANES, game.rows + 1, game.cols + 1), np.float32)
    for plane, edges in ((0, drawn), (2, ~drawn)):
        grid[plane, :, : game.cols] = edges[: game.num_horizontal].reshape(-1, game.cols)
        grid[plane + 1, : game.rows] = edges[game.num_horizontal :].reshape(game.rows, -1)
    sides = count_sides(game, drawn)[:-1].reshape(game.rows, game.cols)
    for count in range(1, 5):
        grid[3 + count, : game.rows, : game.cols] = sides == count
    return grid
