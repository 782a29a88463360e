"""Measure the network of a run as it will be shipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxzero.evaluation.examine import examine_agent
from jaxzero.evaluation.report import format_scores
from jaxzero.evaluation.suite import score
from jaxzero.training.assess import meet
from jaxzero.training.checkpoint import Checkpoints
from jaxzero.training.loading import LoadedAgent, load_agent
from jaxzero.training.shipping import flatten, load_shipped, read_record, unflatten
from jaxzero.training.strength import choose_suite


def measure_run(
    run_dir: Path, checkpoint: int | None, opponents: str, games: int, simulations: int
) -> tuple[LoadedAgent, dict[str, Any]]:
    """Return the network of a run and a record of its training and strength.

    It is measured with its weights as they will be shipped.
    """
    loaded = load_agent(run_dir, checkpoint)
    shipped = unflatten(flatten(loaded.agent.params), loaded.agent.params)
    loaded = loaded._replace(agent=replace(loaded.agent, params=shipped))
    checkpoints = Checkpoints(run_dir)
    saved = checkpoints.record(loaded.iteration)
    checkpoints.close()
    training = {name: saved[name] for name in ("minutes", "games", "version")}
    return loaded, {"training": training, **strength(loaded, opponents, games, simulations)}


def measure_shipped(
    name: str, opponents: str, games: int, simulations: int
) -> tuple[LoadedAgent, dict[str, Any]]:
    """Return a network that is shipped, and its record with its strength measured anew."""
    loaded, record = load_shipped(name), read_record(name)
    return loaded, {**record, **strength(loaded, opponents, games, simulations)}


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
