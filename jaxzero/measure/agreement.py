"""Measure how far a network agrees with itself, on positions that no solver can solve.

Images of a position under rotation and reflection have the same value, and a search should not
change the value. Differences are errors, but equal values can still be wrong.
"""

from __future__ import annotations

import numpy as np
from tabulate import tabulate

from jaxzero.game import DotsAndBoxes
from jaxzero.game.board import edge_permutations
from jaxzero.host.status import doing
from jaxzero.measure.make_suite import is_quiet, new_positions, self_play
from jaxzero.players.agent import Agent
from jaxzero.players.players import make_player
from jaxzero.players.single import choose_many

BANDS = 15  # most bands of undrawn edges


def measure_agreement(
    networks: dict[str, Agent], count: int, simulations: int, seed: int = 0
) -> dict[str, dict]:
    """Measure the self-agreement of networks of one board; print and return the means.

    All networks answer the same positions: `count` in each band of undrawn edges, or fewer if there
    are fewer. Returns {name: {band: {"positions", "spread", "change"}}}, the last two in boxes.
    """
    (game,) = {agent.network.game for agent in networks.values()}
    bands, result = sample(game, count, seed), {}
    for name, agent in networks.items():
        result[name] = {}
        for band, drawn in bands.items():
            with doing(f"{name} answers positions with {band} undrawn edges and their images"):
                spread, change = disagreement(agent, drawn, simulations)
            means = {"spread": float(spread.mean()), "change": float(change.mean())}
            result[name][band] = {"positions": len(drawn)} | means
        print(f"\nValues of {name}, boxes\n{format_agreement(result[name], simulations)}")
    return result


def sample(game: DotsAndBoxes, count: int, seed: int) -> dict[str, np.ndarray]:
    """Return quiet positions [P, A] bool from games of `greedy` by bands of undrawn edges.

    A band has at most one position of each game. No two positions are images of each other.
    """
    games = 2 * count
    boards = self_play(game, make_player("greedy", game), games, seed)
    source = np.tile(np.arange(games), len(boards) // games)
    left, quiet, seen = (~boards).sum(axis=1), is_quiet(game, boards), set()
    width = 4 * -(-game.num_edges // (4 * BANDS))
    bands = {}
    for low in range(1, game.num_edges + 1, width):
        rows = np.flatnonzero(quiet & (left >= low) & (left < low + width))
        rows = np.random.default_rng((seed, low)).permutation(rows)
        if chosen := new_positions(game, boards, rows, source, seen)[:count]:
            bands[f"{low}-{min(low + width - 1, game.num_edges)}"] = boards[chosen]
    return bands


def disagreement(agent: Agent, drawn: np.ndarray, simulations: int) -> tuple[np.ndarray, ...]:
    """Return the spread of the value of positions [P, A] bool and its change by a search, boxes.

    Both [P] float: the standard deviation over the images, and the absolute change by the search.
    """
    images = [drawn[:, gather] for gather in edge_permutations(agent.network.game)]
    values = [choose_many(agent, image, 0).value for image in images]
    deeper = choose_many(agent, drawn, simulations).value
    return np.std(values, axis=0, dtype=np.float64), np.abs(deeper - values[0])


def format_agreement(bands: dict[str, dict], simulations: int) -> str:
    """Return a table of the results of one network, with the earliest positions first."""
    heads = ["undrawn", "positions", "spread over images", f"change by search:{simulations}"]
    rows = [
        [band, f"{part['positions']:,}", f"{part['spread']:.2f}", f"{part['change']:.2f}"]
        for band, part in reversed(bands.items())
    ]
    return tabulate(rows, heads, "plain", stralign="right", disable_numparse=True)
