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
from jaxzero.training.shipping import flatten, unflatten
from jaxzero.training.strength import choose_suite


def measure(
    run_dir: Path, checkpoint: int | None, opponents: str, games: int, simulations: int
) -> tuple[str, dict[str, Any], LoadedAgent]:
    """Return the board of a run, a record of its training and strength, and its network.

    Matches and the suite of the board are played anew, by the weights as they will be shipped.
    """
    loaded = load_agent(run_dir, checkpoint)
    shipped = unflatten(flatten(loaded.agent.params), loaded.agent.params)
    loaded = loaded._replace(agent=replace(loaded.agent, params=shipped))
    checkpoints = Checkpoints(run_dir)
    saved = checkpoints.record(loaded.iteration)
    checkpoints.close()
    record = {
        "training": {name: saved[name] for name in ("minutes", "games", "version")},
        "versus": meet(loaded, opponents, simulations, games, opening_plies=4, seed=0),
    }
    board = loaded.config.game.board
    suite = choose_suite("auto", board)
    if suite is not None:
        record["suite"] = {
            player: score(suite, examine_agent(suite, loaded.agent, count))
            for player, count in (("policy", 0), (f"search:{simulations}", simulations))
        }
        print(format_scores(record["suite"]))
    return str(board), record, loaded
