"""Evaluations of a training run: matches, solved positions, and the gate."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import chex

from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.host.progress import working
from jaxzero.measure.arena import MatchResult, play_match
from jaxzero.measure.scoring import BATCH, player_answers, score
from jaxzero.measure.strength import refuse_search
from jaxzero.measure.suite import Suite, check_suite, choose_suite, suite_name
from jaxzero.network.network import Agent, Network
from jaxzero.players.players import Player, make_player, make_players

TRACKED = ("optimal_share", "wrong_share", "boxes_lost", "value_error")


class Evaluator:
    """Measures the network of a run as its `evaluation` settings say.

    Every process of a job measures everything; what the first one finds counts.
    """

    def __init__(self, config: Config):
        self._config, self._settings = config, config.evaluation
        self._board = config.game.board
        self._network = Network(self._board, config.network)
        simulations = self._settings.simulations
        self._name = f"search:{simulations}" if simulations else "policy"

    def prepare(self) -> None:
        """Make the opponents and check the suite. Raises: InputError if one does not exist."""
        settings, board = self._settings, self._board
        self._opponents = make_players(settings.opponents, board, field="evaluation.opponents")
        try:
            check_suite(settings.suite, board)
        except InputError as error:
            raise InputError(f"evaluation.{error}") from error
        matches = bool(self._opponents or settings.gate_threshold)
        # The final matches play as many games at once as those during the run, see `_match`.
        games = settings.games if matches else 0
        solved = BATCH * (suite_name(settings.suite, board) != "none")
        refuse_search("evaluation.simulations", settings.simulations, games, board, solved)

    def evaluate(
        self, params: chex.ArrayTree, playing: chex.ArrayTree | None
    ) -> tuple[dict[str, float], chex.ArrayTree | None]:
        """Return metrics of the weights that play, and the weights that play from now on.

        With a gate these are `playing`, or the newest weights `params` if they win enough points
        against `playing`. Without a gate `playing` is None, and `params` play.
        """
        began, metrics = time.perf_counter(), {}
        if playing is not None:
            rivals = (self._player(self._name, one) for one in (params, playing))
            points = self._match(*rivals, self._settings.games).points
            accepted = points >= self._settings.gate_threshold
            metrics = {"gate/points": points, "gate/accepted": float(accepted)}
            playing = params if accepted else playing
        measured = params if playing is None else playing
        results = self.play(measured, self._settings.games)
        metrics |= as_metrics(results, self.score(measured))
        return metrics | {"evaluation/seconds": time.perf_counter() - began}, playing

    def final(self, params: chex.ArrayTree) -> dict[str, Any]:
        """Measure weights at the end of a run; print the results and return them as JSON."""
        results = self.play(params, self._settings.final_games)
        for opponent, result in results.items():
            print(f"{self._name} against {opponent:<12} {result}")
        scores = self.score(params)
        for name, parts in scores.items():
            found = parts["all"]
            print(
                f"{name} on {found['positions']:,} solved positions: {found['optimal_share']:.1%} "
                f"optimal moves, {found['boxes_lost']:.3f} boxes of margin lost a move, "
                f"value off by {found['value_error']:.2f} boxes"
            )
        return {
            "versus": {name: result.to_dict() for name, result in results.items()},
            "suite": scores,
        }

    @cached_property
    def _suite(self) -> Suite | None:
        # Built when first needed: solving takes seconds, and training can start without it.
        with working("reading the suite of solved positions"):
            return choose_suite(self._settings.suite, self._board)

    def play(self, params: chex.ArrayTree, games: int) -> dict[str, MatchResult]:
        """Play a match of `games` games against every opponent."""
        player = self._player(self._name, params)
        return {opponent.name: self._match(player, opponent, games) for opponent in self._opponents}

    def score(self, params: chex.ArrayTree) -> dict[str, dict]:
        """Return the scores on the suite for policy and search; empty without a suite."""
        if self._suite is None:
            return {}
        scores = {}
        for name in dict.fromkeys(("policy", self._name)):
            with working(f"scoring {name} on solved positions"):
                answers = player_answers(self._suite, self._player(name, params))
                scores[name] = score(self._suite, answers)
        return scores

    def _player(self, name: str, params: chex.ArrayTree) -> Player:
        """Return a player with these weights; all of them share one program."""
        return make_player(name, self._board, Agent(self._network, params, self._config.search))

    def _match(self, first: Player, second: Player, games: int) -> MatchResult:
        # As many games at once as during training: the final match needs no more memory, and no
        # new program if `games` divides `final_games`.
        with working(f"playing {games} games against {second.name}"):
            return play_match(
                self._board,
                first,
                second,
                games,
                self._settings.random_opening_moves,
                self._config.seed,
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
