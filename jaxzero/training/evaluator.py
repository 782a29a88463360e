"""Evaluations during training: matches, solved positions, and the gate."""

from __future__ import annotations

import time
from functools import cached_property

import chex

from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.host.progress import working
from jaxzero.measure.arena import MatchResult, play_match
from jaxzero.measure.scoring import BATCH, player_answers, score
from jaxzero.measure.strength import refuse_search
from jaxzero.measure.suite import Suite, check_suite, choose_suite, suite_name
from jaxzero.network.network import Network
from jaxzero.players.agent import Agent
from jaxzero.players.players import Player, make_player, make_players
from jaxzero.training.learner import Learner, playing_params
from jaxzero.training.parallel import local_copy

TRACKED = ("optimal_share", "wrong_share", "boxes_lost", "value_error")


class Evaluator:
    """Measures the network of a run: matches, solved positions, and the gate.

    Every process measures everything; what the first one finds counts.
    """

    def __init__(self, config: Config, network: Network):
        """Make the players and check the suite. Raises: InputError if one does not exist."""
        settings, game = config.evaluation, network.game
        self._opponents = make_players(settings.opponents, game, field="evaluation.opponents")
        self._settings, self._seed, self._game = settings, config.seed, game
        simulations = settings.simulations
        self.player_name = f"search:{simulations}" if simulations else "policy"
        self._network, self._search = network, config.search
        try:
            check_suite(settings.suite, game)
        except InputError as error:
            raise InputError(f"evaluation.{error}") from error
        matches = bool(self._opponents or settings.gate_threshold)
        # The final matches play as many games at once as those during the run, see `_match`.
        games = settings.games if matches else 0
        solved = BATCH * (suite_name(settings.suite, game) != "none")
        refuse_search("evaluation.simulations", simulations, games, game, solved)

    def is_due(self, iteration: int) -> bool:
        """Return whether an iteration ends with an evaluation."""
        every = self._settings.evaluate_every
        return every > 0 and iteration % every == 0

    def evaluate(self, learner: Learner) -> tuple[dict[str, float], str]:
        """Try the gate, then measure the weights that play; return metrics and text for the log.

        If the metric gate/accepted is 1, the caller must accept the newest weights.
        """
        began = time.perf_counter()
        params, gate = self.gate(learner)
        results = self.play(params, self._settings.games)
        scores = self.score(params)
        words = "".join(f"  {name} {result.points:.1%}" for name, result in results.items())
        if gate:
            accepted = "passed" if gate["gate/accepted"] else "kept"
            words += f"  gate {accepted} {gate['gate/points']:.1%}"
        if scores:
            wrong = (f"{1 - parts['all']['optimal_share']:.1%}" for parts in scores.values())
            words += f"  wrong moves of all positions {', '.join(wrong)} ({', '.join(scores)})"
        metrics = {"evaluation/seconds": time.perf_counter() - began}
        return metrics | as_metrics(results, scores) | gate, words

    @cached_property
    def _suite(self) -> Suite | None:
        # Built when first needed: solving takes seconds, and training can start without it.
        with working("reading the suite of solved positions"):
            return choose_suite(self._settings.suite, self._game)

    def play(self, params: chex.ArrayTree, games: int) -> dict[str, MatchResult]:
        """Play a match of `games` games against every opponent."""
        player = self._player(self.player_name, params)
        return {opponent.name: self._match(player, opponent, games) for opponent in self._opponents}

    def score(self, params: chex.ArrayTree) -> dict[str, dict]:
        """Return the scores on the suite for policy and search; empty without a suite."""
        if self._suite is None:
            return {}
        scores = {}
        for name in dict.fromkeys(("policy", self.player_name)):
            with working(f"scoring {name} on solved positions"):
                answers = player_answers(self._suite, self._player(name, params))
                scores[name] = score(self._suite, answers)
        return scores

    def gate(self, learner: Learner) -> tuple[chex.ArrayTree, dict[str, float]]:
        """Return the weights that play, on the first device of this process, and metrics.

        The newest weights become the best ones if they score enough against them.
        """
        params, threshold = local_copy(playing_params(learner)), self._settings.gate_threshold
        if not threshold:
            return params, {}
        newest = local_copy(learner.params)
        best, candidate = (self._player(self.player_name, one) for one in (params, newest))
        points = self._match(candidate, best, self._settings.games).points
        accepted = points >= threshold
        metrics = {"gate/points": points, "gate/accepted": float(accepted)}
        return newest if accepted else params, metrics

    def _player(self, name: str, params: chex.ArrayTree) -> Player:
        """Return a player with these weights; all of them share one program."""
        return make_player(name, self._game, Agent(self._network, params, self._search))

    def _match(self, first, second, games: int) -> MatchResult:
        # As many games at once as during training: the final match needs no more memory, and no
        # new program if `games` divides `final_games`.
        with working(f"playing {games} games against {second.name}"):
            return play_match(
                self._game,
                first,
                second,
                games,
                self._settings.random_opening_moves,
                self._seed,
                at_once=self._settings.games,
            )


def as_metrics(results: dict[str, MatchResult], scores: dict[str, dict]) -> dict[str, float]:
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
