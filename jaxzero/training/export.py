"""Measure a network as it is shipped, or will be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jaxzero.evaluation.examine import examine_agent
from jaxzero.evaluation.report import format_scores
from jaxzero.evaluation.suite import score
from jaxzero.training.assess import meet
from jaxzero.training.beginning import training_record
from jaxzero.training.loading import LoadedAgent
from jaxzero.training.shipping import flatten, read_record, unflatten
from jaxzero.training.source import Source
from jaxzero.training.strength import choose_suite


def measure(
    source: Source, loaded: LoadedAgent, opponents: str, games: int, simulations: int
) -> tuple[LoadedAgent, dict[str, Any]]:
    """Return the network of a source and a record of its training and strength, measured now.

    That of a run is measured with its weights as they will be written.
    """
    if source.run_dir is None:
        record = read_record(source.weights)
    else:
        record = {"training": training_record(source, loaded)}
        loaded = _as_shipped(loaded)
    return loaded, {**record, **strength(loaded, opponents, games, simulations)}


def _as_shipped(loaded: LoadedAgent) -> LoadedAgent:
    params = unflatten(flatten(loaded.agent.params), loaded.agent.params)
    return loaded._replace(agent=replace(loaded.agent, params=params))


def strength(
    loaded: LoadedAgent, opponents: str, games: int, simulations: int
) -> dict[str, dict[str, Any]]:
    """Play matches, if there are opponents, sit the suite of the board, return the results."""
    record = {}
    if opponents:
        record["versus"] = meet(loaded, opponents, simulations, games, opening_plies=4, seed=0)
    suite = choose_suite("auto", loaded.config.game.board)
    if suite is not None:
        record["suite"] = {
            player: score(suite, examine_agent(suite, loaded.agent, count))
            for player, count in (("policy", 0), (f"search:{simulations}", simulations))
        }
        print(format_scores(record["suite"]))
    return record
