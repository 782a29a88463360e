"""How strong the network of a run is, measured during training."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import chex

from jaxzero.agent.network import Network
from jaxzero.agent.players import Agent, make_player, make_players
from jaxzero.config import Config
from jaxzero.evaluation.arena import MatchResult, play_match
from jaxzero.evaluation.examine import answering, examine
from jaxzero.evaluation.suite import Suite, load_suite, score, suite_names
from jaxzero.evaluation.tablebase import check_fits
from jaxzero.game import DotsAndBoxes
from jaxzero.training.learner import (
    Learner,
    accept_candidate,
    candidate_params,
    playing_params,
)
from jaxzero.training.parallel import local_copy

TABLE_EDGES = 24  # a table of 3x3 takes seconds, larger ones minutes
SUITE_POSITIONS = 2048
TRACKED = ("optimal_share", "decisive_optimal_share", "boxes_lost", "value_error")


class Judge:
    """Measures the network of a run: matches, solved positions, and the gate."""

    def __init__(self, config: Config, network: Network):
        """Make players and suite. Raises: InputError for those that do not exist."""
        settings, game = config.evaluation, network.game
        self._opponents = make_players(settings.opponents, game)
        self._settings, self._seed, self._game = settings, config.seed, game
        simulations = settings.simulations
        self.player_name = f"search:{simulations}" if simulations else "policy"
        # Made once: the weights change, the compiled programs stay.
        self._player = make_player(self.player_name, game, Agent(network, {}, config.search))
        check_suite(settings.suite, game)
        kinds = {"policy": 0, self.player_name: simulations}
        self._answering = {
            name: answering(network, config.search, count) for name, count in kinds.items()
        }

    @cached_property
    def _suite(self) -> Suite | None:
        # Built when first needed: a table takes seconds, and training can begin without.
        return choose_suite(self._settings.suite, self._game)

    def play(self, learner: Learner, games: int) -> dict[str, MatchResult]:
        """Play a match of `games` games against every opponent."""
        player = replace(self._player, params=local_copy(playing_params(learner)))
        return {opponent.name: self._match(player, opponent, games) for opponent in self._opponents}

    def examine(self, learner: Learner) -> dict[str, dict]:
        """Return the scores on the suite for policy and search; empty without a suite."""
        if self._suite is None:
            return {}
        params: chex.ArrayTree = local_copy(playing_params(learner))
        return {
            name: score(self._suite, examine(self._suite, answer, params))
            for name, answer in self._answering.items()
        }

    def gate(self, learner: Learner) -> tuple[Learner, dict[str, float]]:
        """Let the newest weights play from now on if they beat the best. No gate: do nothing."""
        threshold = self._settings.gate_threshold
        if not threshold:
            return learner, {}
        candidate = replace(self._player, params=local_copy(candidate_params(learner)))
        best = replace(self._player, params=local_copy(learner.best))
        points = self._match(candidate, best, self._settings.games).points
        accepted = points >= threshold
        metrics = {"gate/points": points, "gate/accepted": float(accepted)}
        return accept_candidate(learner) if accepted else learner, metrics

    def _match(self, first, second, games: int) -> MatchResult:
        # As many at once as during training, so that programs compiled then serve at the end.
        usual = self._settings.games
        return play_match(
            self._game,
            first,
            second,
            games,
            self._settings.opening_plies,
            self._seed,
            at_once=min(games, usual),
        )


def suite_name(name: str, game: DotsAndBoxes) -> str:
    """Return the suite that `auto` stands for on a board; any other name stays."""
    if name != "auto":
        return name
    small = game.num_edges <= TABLE_EDGES
    return "table" if small else str(game) if str(game) in suite_names() else "none"


def check_suite(name: str, game: DotsAndBoxes) -> None:
    """Raise an InputError for a suite that does not exist or does not suit the board."""
    name = suite_name(name, game)
    if name == "table":
        check_fits(game)
    elif name != "none":
        load_suite(name, game)


def choose_suite(name: str, game: DotsAndBoxes) -> Suite | None:
    """Return the suite that a config names, at most SUITE_POSITIONS of it, or None."""
    name = suite_name(name, game)
    return None if name == "none" else load_suite(name, game).sample(SUITE_POSITIONS)


def flatten(results: dict[str, MatchResult], scores: dict[str, dict]) -> dict[str, float]:
    """Return measurements as metrics: `versus/NAME/points`, `suite/NAME/optimal_share`, ..."""
    versus = {
        f"versus/{name}/{key}": value
        for name, result in results.items()
        for key, value in (("points", result.points), ("margin", result.margin))
    }
    suites = {
        f"suite/{name}/{key}": parts["all"][key]
        for name, parts in scores.items()
        for key in TRACKED
    }
    return versus | suites
