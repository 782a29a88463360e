"""Scores of a player on positions with exact values, as numbers, tables and figures.

A player answers every position of a suite with a move, and a network also with a value. `score`
compares the answers with perfect play.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from tabulate import tabulate

from jaxzero.agent.choosing import by_policy, by_search, choose, win_probability
from jaxzero.agent.network import Network, inference_copy
from jaxzero.agent.players import Agent, Player
from jaxzero.agent.search import network_evaluator
from jaxzero.config import SearchConfig
from jaxzero.evaluation.suite import BANDS, Suite
from jaxzero.files import save_figure
from jaxzero.game import State
from jaxzero.solver.tablebase import ILLEGAL

BATCH = 512  # positions that a network answers in one call

# Scores: key, heading of the table, format.
COLUMNS = {
    "positions": ("positions", "{:,}"),
    "optimal_share": ("optimal", "{:.1%}"),
    "decisive_optimal_share": ("decisive", "{:.1%}"),
    "boxes_lost": ("boxes lost", "{:.3f}"),
    "wins_lost_share": ("wins lost", "{:.1%}"),
    "value_error": ("value error", "{:.3f}"),
    "sign_accuracy": ("right sign", "{:.1%}"),
}

# (params, drawn [B, A]) to edges [B], values in boxes [B] and, without search, the probabilities
# of a positive remaining margin [B]
AnswerFunction = Callable[[chex.ArrayTree, jax.Array], tuple[jax.Array, ...]]


@dataclass(frozen=True)
class Answers:
    """The answers of a player to the positions of a suite."""

    edge: np.ndarray  # [P] int, the chosen edge
    value: np.ndarray | None = None  # [P] float, expected remaining margin, boxes
    win: np.ndarray | None = None  # [P] float, probability of a positive remaining margin


def compile_answers(network: Network, settings: SearchConfig, simulations: int) -> AnswerFunction:
    """Return the answers of a network, compiled once for all calls; 0 simulations: no search."""
    game = network.game
    settings = replace(settings, simulations=max(1, simulations))
    evaluate = network_evaluator(network, settings)

    @jax.jit
    def answer(params: chex.ArrayTree, drawn: jax.Array):
        params = inference_copy(network, params, len(drawn))
        zeros = jnp.zeros(len(drawn), jnp.int32)
        state = State(drawn, zeros, zeros)
        by_sight = by_policy(network, settings, params)
        if not simulations:
            choice = choose(game, settings, by_sight, state)
            return (*choice, win_probability(network, settings, params, drawn))
        choice = choose(game, settings, by_search(game, settings, evaluate, params), state)
        if settings.win_weight:  # the values of the search are not margins
            return choice.edge, choose(game, settings, by_sight, state).value
        return tuple(choice)

    return answer


def answer_suite(suite: Suite, answer: AnswerFunction, params: chex.ArrayTree) -> Answers:
    """Answer every position of a suite with compiled answers."""
    parts = []
    for first in range(0, len(suite), BATCH):
        rows = suite.drawn[first : first + BATCH]
        padded = np.ones((BATCH, suite.game.num_edges), bool)
        padded[: len(rows)] = rows
        parts.append([part[: len(rows)] for part in jax.device_get(answer(params, padded))])
    return Answers(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def agent_answers(suite: Suite, agent: Agent, simulations: int) -> Answers:
    """Answer a suite with an agent; 0 simulations: without search."""
    answer = compile_answers(agent.network, agent.settings, simulations)
    return answer_suite(suite, answer, agent.params)


def player_answers(suite: Suite, player: Player, seed: int = 0) -> Answers:
    """Answer a suite with any player: moves without values."""
    keys = jax.random.split(jax.random.key(seed), len(suite))
    zeros = jnp.zeros(len(suite), jnp.int32)
    return Answers(player.choose(keys, State(jnp.asarray(suite.drawn), zeros, zeros)))


def score(suite: Suite, answers: Answers) -> dict:
    """Return scores over `all` positions, and scores of each part `by_undrawn` and `by_origin`.

    Raises: ValueError for an answer that is a drawn edge.
    """
    rows = np.arange(len(suite))
    worth = suite.moves[rows, answers.edge].astype(int)
    if (worth == ILLEGAL).any():
        raise ValueError("a player chose an edge that is drawn")
    bands = {
        f"{low}-{high}": (suite.undrawn >= low) & (suite.undrawn <= high) for low, high in BANDS
    }
    origins = {str(name): suite.origin == name for name in np.unique(suite.origin)}
    of = _scorer(suite, answers, worth)
    return {
        "all": of(np.ones(len(suite), bool)),
        "by_undrawn": {name: of(mask) for name, mask in bands.items() if mask.any()},
        "by_origin": {name: of(mask) for name, mask in origins.items()},
    }


def _scorer(suite: Suite, answers: Answers, worth: np.ndarray) -> Callable[[np.ndarray], dict]:
    """Return a function from a mask of positions to their scores."""
    values = suite.values
    lost = values - worth
    # A position is decisive if its moves differ in value.
    decisive = np.where(suite.moves == ILLEGAL, values[:, None], suite.moves).min(axis=1) < values

    def scores(mask: np.ndarray) -> dict:
        result = {
            "positions": int(mask.sum()),
            "optimal_share": _mean(lost[mask] == 0),
            "decisive_optimal_share": _mean(lost[mask & decisive] == 0),
            "boxes_lost": _mean(lost[mask]),
            "wins_lost_share": _mean(worth[mask & (values > 0)] < 0),
        }
        if answers.value is not None:
            signed = mask & (values != 0)
            result["value_error"] = _mean(np.abs(answers.value - values)[mask])
            result["sign_accuracy"] = _mean(
                np.sign(answers.value[signed]) == np.sign(values[signed])
            )
        return result

    return scores


def _mean(numbers: np.ndarray) -> float | None:
    return round(float(np.mean(numbers)), 5) if len(numbers) else None


def calibration(suite: Suite, answers: Answers, bins: int = 10) -> list[dict]:
    """Return per bin of the predicted win probability: mean prediction, true share, positions."""
    if answers.win is None:
        return []
    won = suite.values > 0
    place = np.minimum((answers.win * bins).astype(int), bins - 1)
    return [
        {
            "predicted": _mean(answers.win[place == b]),
            "true": _mean(won[place == b]),
            "positions": int((place == b).sum()),
        }
        for b in range(bins)
        if (place == b).any()
    ]


def format_scores(scores: dict[str, dict]) -> str:
    """Return a table of the scores of several players, by undrawn edges: {player: score()}."""
    rows = [
        [player if part == "all" else "", part, *_cells(numbers)]
        for player, parts in scores.items()
        for part, numbers in {"all": parts["all"], **parts["by_undrawn"]}.items()
    ]
    heads = ["player", "undrawn", *(title for title, _ in COLUMNS.values())]
    left = ("left", "left")
    return tabulate(rows, heads, "plain", stralign="right", colalign=left, disable_numparse=True)


def _cells(numbers: dict[str, float | None]) -> list[str]:
    values = [(write, numbers.get(name)) for name, (_, write) in COLUMNS.items()]
    return ["-" if value is None else write.format(value) for write, value in values]


def draw_scores(
    path: Path, title: str, scores: dict[str, dict], calibrations: dict[str, list[dict]]
) -> None:
    """Draw wrong moves and value error by undrawn edges, and the calibration, into a PNG."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    figure.suptitle(title)
    wrong, error, calibrated = figure.subplots(1, 3)
    for player, parts in scores.items():
        bands = parts["by_undrawn"]
        shares = [100 * (1 - part["optimal_share"]) for part in bands.values()]
        wrong.plot(list(bands), shares, marker="o", label=player)
        errors = {
            band: part["value_error"] for band, part in bands.items() if "value_error" in part
        }
        if errors:
            error.plot(list(errors), list(errors.values()), marker="o", label=player)
    for player, bins in calibrations.items():
        predicted, true = ([100 * part[key] for part in bins] for key in ("predicted", "true"))
        calibrated.plot(predicted, true, marker="o", label=player)
    calibrated.plot([0, 100], [0, 100], color="grey", linewidth=0.8)
    names = ("Wrong moves, %", "Value error, boxes", "Positions won, %: true against predicted")
    for axis, name in zip((wrong, error, calibrated), names, strict=True):
        axis.set_title(name, fontsize=10)
        axis.grid(alpha=0.3)
        axis.set_xlabel("predicted, %" if axis is calibrated else "undrawn edges")
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    wrong.set_ylim(bottom=0)
    error.set_ylim(bottom=0)
    save_figure(path, figure)
