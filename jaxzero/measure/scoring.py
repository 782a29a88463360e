"""Score players on positions with exact values.

A player answers every position of a suite with a move; a network also gives a value. `score`
compares the answers with perfect play. `compare` compares the answers of two players.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import SearchConfig
from jaxzero.errors import InputError
from jaxzero.game import State
from jaxzero.measure.arena import Z_95, wilson_interval
from jaxzero.measure.suite import Suite
from jaxzero.network.network import Network, inference_copy
from jaxzero.players.agent import Agent
from jaxzero.players.choosing import by_policy, by_search, choose
from jaxzero.players.players import Player, make_player
from jaxzero.search.search import network_evaluator
from jaxzero.solver.endgame import ILLEGAL

BATCH = 512  # positions in one call of a network

# (params, drawn [B, A]) to edges [B] and values in boxes [B]
AnswerFunction = Callable[[chex.ArrayTree, jax.Array], tuple[jax.Array, jax.Array]]


@dataclass(frozen=True)
class Answers:
    """The answers of a player to the positions of a suite."""

    edge: np.ndarray  # [P] int, the chosen edge
    value: np.ndarray | None = None  # [P] float, expected remaining margin, boxes


@lru_cache(maxsize=8)
def compile_answers(network: Network, settings: SearchConfig, simulations: int) -> AnswerFunction:
    """Return the compiled answer function of a network; 0 simulations: no search."""
    game = network.game
    settings = replace(settings, simulations=max(1, simulations))
    evaluate = network_evaluator(network, settings)

    @jax.jit
    def answer(params: chex.ArrayTree, drawn: jax.Array):
        params = inference_copy(network, params, len(drawn))
        zeros = jnp.zeros(len(drawn), jnp.int32)
        state = State(drawn, zeros, zeros)
        if simulations:
            chooser = by_search(game, settings, evaluate, params)
        else:
            chooser = by_policy(network, settings, params)
        return tuple(choose(game, settings, chooser, state))

    return answer


def answer_suite(suite: Suite, answer: AnswerFunction, params: chex.ArrayTree) -> Answers:
    """Answer every position of a suite with a compiled answer function."""
    parts = []
    for first in range(0, len(suite), BATCH):
        rows = suite.drawn[first : first + BATCH]
        padded = np.ones((BATCH, suite.game.num_edges), bool)
        padded[: len(rows)] = rows
        parts.append([part[: len(rows)] for part in jax.device_get(answer(params, padded))])
    return Answers(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def agent_answers(suite: Suite, agent: Agent, simulations: int) -> Answers:
    """Answer a suite with an agent; 0 simulations: without search. Raises: InputError."""
    if agent.network.game != suite.game:
        raise InputError(f"agent: plays {agent.network.game}, the suite is of {suite.game}")
    answer = compile_answers(agent.network, agent.settings, simulations)
    return answer_suite(suite, answer, agent.params)


def player_answers(suite: Suite, player: Player, seed: int = 0) -> Answers:
    """Answer a suite with any player, by moves without values."""
    keys = jax.random.split(jax.random.key(seed), len(suite))
    zeros = jnp.zeros(len(suite), jnp.int32)
    return Answers(player.choose(keys, State(jnp.asarray(suite.drawn), zeros, zeros)))


def named_answers(suite: Suite, name: str, agent: Agent, seed: int = 0) -> Answers:
    """Answer a suite with the player that `name` describes. Raises: InputError for a bad name.

    `seed` is for players that choose at random.
    """
    player = make_player(name, suite.game, agent)
    kind, _, simulations = name.partition(":")
    if kind in ("policy", "search"):
        return agent_answers(suite, agent, int(simulations or 0))
    return player_answers(suite, player, seed)


def score(suite: Suite, answers: Answers) -> dict:
    """Return scores over `all` positions, and scores of each part `by_undrawn` and `by_origin`.

    Raises: ValueError if an answer is a drawn edge.
    """
    values, worth = suite.values, _worth(suite, answers)
    lost, decisive = values - worth, suite.decisive

    def scores(mask: np.ndarray) -> dict:
        safe = mask & (values >= 0)  # a win or draw, which a move can throw away
        result = {
            "positions": int(mask.sum()),
            "optimal_share": _mean(lost[mask] == 0),
            "decisive": int((mask & decisive).sum()),
            **_share("wrong", lost[mask & decisive] > 0),
            "boxes_lost": _mean(lost[mask]),
            **_share("thrown", np.sign(worth[safe]) < np.sign(values[safe])),
        }
        if answers.value is not None:
            signed = mask & (values != 0)
            result["value_error"] = _mean(np.abs(answers.value - values)[mask])
            result["sign_accuracy"] = _mean(
                np.sign(answers.value[signed]) == np.sign(values[signed])
            )
        return result

    bands, origin = suite.bands.items(), suite.origin
    return {
        "all": scores(np.ones(len(suite), bool)),
        "by_undrawn": {name: scores(mask) for name, mask in bands if mask.any()},
        "by_origin": {str(name): scores(origin == name) for name in np.unique(origin)},
    }


def _worth(suite: Suite, answers: Answers) -> np.ndarray:
    """Return the exact value of the chosen moves: [P] int."""
    worth = suite.moves[np.arange(len(suite)), answers.edge].astype(int)
    if (worth == ILLEGAL).any():
        raise ValueError("a player chose an edge that is drawn")
    return worth


def _share(name: str, cases: np.ndarray) -> dict:
    """Return the share of true cases [N] bool and its 95 % interval; None without cases."""
    share = _mean(cases)
    interval = None if share is None else _rounded(*wilson_interval(share, len(cases)))
    return {f"{name}_share": share, f"{name}_interval": interval}


def _rounded(*numbers: float) -> list[float]:
    return [round(float(number), 5) for number in numbers]


def compare(suite: Suite, first: Answers, second: Answers) -> dict:
    """Return the difference of two players in wrong moves, over `all` and `by_undrawn`."""
    values, decisive = suite.values, suite.decisive
    wrong, wrong2 = (_worth(suite, answers) < values for answers in (first, second))
    parts = {
        name: paired_difference(wrong[mask & decisive], wrong2[mask & decisive])
        for name, mask in {"all": np.ones(len(suite), bool), **suite.bands}.items()
        if mask.any()
    }
    return {"all": parts.pop("all"), "by_undrawn": parts}


def paired_difference(wrong: np.ndarray, wrong2: np.ndarray) -> dict:
    """Compare two players by their wrong moves [N] bool in the same positions.

    Returns the `difference` of the shares of wrong moves with its 95 % `interval`, and the counts
    `first_only` and `second_only` of positions in which only one player is wrong. Only these
    positions distinguish the players (McNemar 1947). The interval adds half a position to each of
    the four cells, which keeps its coverage for small counts (Agresti and Min 2005).
    """
    first_only, second_only = int((wrong & ~wrong2).sum()), int((wrong2 & ~wrong).sum())
    cells, difference = len(wrong) + 2, first_only - second_only
    spread = np.sqrt(first_only + second_only + 1 - difference**2 / cells) / cells
    low, high = (difference / cells + sign * Z_95 * spread for sign in (-1, 1))
    return {
        "positions": len(wrong),
        "first_only": first_only,
        "second_only": second_only,
        "difference": round(difference / max(1, len(wrong)), 5),
        "interval": _rounded(max(-1.0, low), min(1.0, high)),
    }


def _mean(numbers: np.ndarray) -> float | None:
    return round(float(np.mean(numbers)), 5) if len(numbers) else None
