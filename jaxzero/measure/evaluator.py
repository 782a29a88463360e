"""Measure strength: of a run in training, in matches of trained networks, and for an export."""

import time
from dataclasses import replace
from functools import cached_property
from typing import Any

import chex
import jax
import numpy as np

from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.game import State
from jaxzero.host.progress import working
from jaxzero.measure.arena import MatchResult, play_match
from jaxzero.measure.scoring import BATCH, format_scores, player_answers, score
from jaxzero.measure.suite import Suite, check_suite, choose_suite
from jaxzero.network.network import Agent, Network
from jaxzero.players.kinds import name_shown, uses_network
from jaxzero.players.network_player import check_search_memory
from jaxzero.players.players import (
    Player,
    make_player,
    make_players,
)
from jaxzero.runs.weights import LoadedAgent, from_half, to_half

TRACKED = ("wrong_share", "boxes_lost", "value_error")


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
            check_search_memory(board, settings.simulations)
        except InputError as error:
            raise InputError(f"evaluation.{error}") from error

    def compile(self, params: chex.ArrayTree) -> None:
        """Compile all programs that measure such weights."""
        self.evaluate(params)
        sizes = set()  # of the batches that are searched
        if self._opponents:  # half of the games of a match decide at once
            sizes.add(min(self._settings.final_games // 2, BATCH))
        if self._suite is not None:
            sizes.add(BATCH)
        for size in sizes:
            finished = np.ones((size, self._board.num_edges), bool)  # searched in no time
            zeros, keys = np.zeros(size, np.int32), jax.random.split(jax.random.key(0), size)
            self._player(self._name, params).decide(keys, State(finished, zeros, zeros))

    def evaluate(self, params: chex.ArrayTree) -> dict[str, float]:
        """Return metrics of weights during the run, without search: it takes no time."""
        began = time.perf_counter()
        results = self.play("policy", params, self._settings.games)
        metrics = as_metrics(results, self.score(["policy"], params))
        return metrics | {"evaluation/seconds": time.perf_counter() - began}

    def final(self, params: chex.ArrayTree) -> dict[str, Any]:
        """Measure weights at the end of a run; print the results and return them as JSON."""
        results = self.play(self._name, params, self._settings.final_games)
        for opponent, result in results.items():
            print(f"{self._name} against {opponent:<12} {result}")
        scores = self.score(["policy", self._name], params)
        if scores:
            print(format_scores({name: {"all": parts["all"]} for name, parts in scores.items()}))
        return {
            "versus": {name: result.to_dict() for name, result in results.items()},
            "suite": scores,
        }

    @cached_property
    def _suite(self) -> Suite | None:
        # Built when first needed: solving takes seconds, and training can start without it.
        with working("reading the suite of solved positions"):
            return choose_suite(self._settings.suite, self._board)

    def play(self, name: str, params: chex.ArrayTree, games: int) -> dict[str, MatchResult]:
        """Play a match of `games` games as player `name` against every opponent."""
        player, results = self._player(name, params), {}
        for opponent in self._opponents:
            with working(f"playing {games} games against {opponent.name}"):
                results[opponent.name] = play_match(
                    self._board,
                    player,
                    opponent,
                    games,
                    self._settings.random_opening_moves,
                    self._config.seed,
                )
        return results

    def score(self, names: list[str], params: chex.ArrayTree) -> dict[str, dict]:
        """Return the scores of players `names` on the suite; empty without a suite."""
        if self._suite is None:
            return {}
        scores = {}
        for name in dict.fromkeys(names):
            with working(f"scoring {name} on solved positions"):
                answers = player_answers(self._suite, self._player(name, params))
                scores[name] = score(self._suite, answers)
        return scores

    def _player(self, name: str, params: chex.ArrayTree) -> Player:
        """Return a player with these weights; all of them share one program."""
        return make_player(name, self._board, Agent(self._network, params, self._config.search))


def as_metrics(results: dict[str, MatchResult], scores: dict[str, dict]) -> dict[str, float]:
    """Return measurements as metrics: `versus/NAME/points`, `suite/NAME/wrong_share`, ..."""
    versus = {
        f"versus/{name}/{key}": value
        for name, result in results.items()
        for key, value in (("points", result.points), ("margin", result.margin))
    }
    suites = {
        f"suite/{name}/{key}": parts["all"][key]
        for name, parts in scores.items()
        for key in TRACKED
        if parts["all"].get(key) is not None
    }
    return versus | suites


# Trained networks


def play_matches(
    matches: dict[str, tuple[Player, Player]], games: int, opening_plies: int, seed: int
) -> dict[str, dict]:
    """Play matches, given by name; print and return the results of the first players."""
    results = {}
    for name, (first, second) in matches.items():
        text = f"{first.name} against {second.name}"
        with working(f"playing {games} games of {text}"):
            result = play_match(first.board, first, second, games, opening_plies, seed)
        print(f"{text:<32} {result}", flush=True)
        results[name] = result.to_dict()
    return results


def matches_against(
    opponents: str, agent: Agent, simulations: int, games: int
) -> dict[str, tuple[Player, Player]]:
    """Return the matches of a searching network against each of `opponents`, by their names."""
    board, name = agent.network.board, f"search:{simulations}"
    players = make_players(opponents, board, agent, "opponents")
    me = make_player(name, board, agent)
    return {player.name: (me, player) for player in players}


def matches_between(networks: dict[str, Agent], names: list[str]) -> dict[str, tuple]:
    """Return a match between two networks for each player in `names`.

    Raises: InputError for a player without a network.
    """
    for name in names:
        if not uses_network(name):
            raise InputError(f"players: {name} uses no network, so two networks cannot be matched")

    def player(name: str, network: str, agent: Agent) -> Player:
        made = make_player(name, agent.network.board, agent)
        return replace(made, name=name_shown(name, network, 2))

    return {name: tuple(player(name, *item) for item in networks.items()) for name in names}


def measure_weights(
    loaded: LoadedAgent, opponents: str, games: int, simulations: int
) -> LoadedAgent:
    """Return a network with its measured strength in its record, and weights rounded as exported.

    Strength is measured in matches if there are opponents, and on the test suite of the board if it
    exists.
    """
    record = dict(loaded.record)
    params = from_half(to_half(loaded.agent.params))
    loaded = loaded._replace(agent=replace(loaded.agent, params=params))
    if opponents:
        matches = matches_against(opponents, loaded.agent, simulations, games)
        record["versus"] = play_matches(matches, games, opening_plies=4, seed=0)
    suite = choose_suite("auto", loaded.config.game.board, half="test")
    if suite is not None:
        record["suite_name"], record["suite"] = suite.name, {}
        for name in ("policy", f"search:{simulations}"):
            with working(f"scoring {name} on suite {suite.name}"):
                player = make_player(name, suite.board, loaded.agent)
                record["suite"][name] = score(suite, player_answers(suite, player))
        print(format_scores(record["suite"]))
    return loaded._replace(record=record)
