"""How strong a network is: during training, as `evaluate.py` asks, and for exported weights."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import chex
import jax

from jaxzero.cli import Source
from jaxzero.config import Config
from jaxzero.errors import InputError, as_field
from jaxzero.game import DotsAndBoxes
from jaxzero.host.files import make_folder
from jaxzero.host.status import doing
from jaxzero.measure.arena import (
    MOST_AT_ONCE,
    MatchResult,
    Shares,
    batch_size,
    play_match,
)
from jaxzero.measure.rating import (
    draw_ladder,
    elo_ratings,
    format_ratings,
    ladder_pairs,
    play_pairs,
)
from jaxzero.measure.scoring import (
    BATCH,
    agent_answers,
    answer_suite,
    compile_answers,
    score,
)
from jaxzero.measure.suite import Suite, check_stored, load_suite, suite_names
from jaxzero.measure.suite_report import format_scores
from jaxzero.network.network import Network
from jaxzero.players.players import Agent, make_player, make_players
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.memory import memory_limit_bytes, refuse_match
from jaxzero.runs.weights import (
    LoadedAgent,
    from_half,
    load_agent,
    read_record,
    to_half,
    training_record,
)
from jaxzero.training.learner import (
    Learner,
    accept_candidate,
    playing_params,
)
from jaxzero.training.parallel import join_shares, local_copy, own_share

TABLE_EDGES = 24  # a table of 3x3 takes seconds, larger ones minutes
TABLE_POSITIONS = 2048
TRACKED = ("optimal_share", "wrong_share", "boxes_lost", "value_error")
PROCESSES = Shares(own_share, join_shares)


class Evaluator:
    """Measures the network of a run: matches, solved positions, and the gate.

    Several processes share out the games and the positions; all of them call the methods alike.
    """

    def __init__(self, config: Config, network: Network):
        """Make players and suite. Raises: InputError for those that do not exist."""
        settings, game = config.evaluation, network.game
        self._opponents = make_players(settings.opponents, game, field="evaluation.opponents")
        self._settings, self._seed, self._game = settings, config.seed, game
        simulations = settings.simulations
        self.player_name = f"search:{simulations}" if simulations else "policy"
        # Made once: the weights change, the compiled programs stay.
        self._player = make_player(self.player_name, game, Agent(network, {}, config.search))
        with as_field("evaluation.suite", "suite", settings.suite):
            check_suite(settings.suite, game)
        matches = bool(self._opponents or settings.gate_threshold)
        # Also at the end of the run as many games at once as during it, see `_match`.
        games = len(own_share(settings.games)) if matches else 0
        solved = BATCH * (suite_name(settings.suite, game) != "none")
        _refuse_match("evaluation.simulations", simulations, games, game, solved)
        kinds = {"policy": 0, self.player_name: simulations}
        self._answering = {
            name: compile_answers(network, config.search, count) for name, count in kinds.items()
        }

    def is_due(self, iteration: int) -> bool:
        """Return whether an iteration ends with an evaluation."""
        every = self._settings.evaluate_every
        return every > 0 and iteration % every == 0

    def evaluate(self, learner: Learner) -> tuple[dict[str, float], str]:
        """Try the gate, then measure who plays now; return metrics and words for the log line.

        Where the metric gate/accepted is 1, the caller lets the newest weights through.
        """
        began = time.perf_counter()
        # On the first device of each process.
        learner, gate = self.gate(local_copy(learner))
        results = self.play(learner, self._settings.games)
        scores = self.score(learner)
        words = "".join(f"  {name} {result.points:.1%}" for name, result in results.items())
        if gate:
            accepted = "passed" if gate["gate/accepted"] else "kept"
            words += f"  gate {accepted} {gate['gate/points']:.1%}"
        if scores:
            wrong = (f"{1 - parts['all']['optimal_share']:.1%}" for parts in scores.values())
            words += f"  wrong moves {', '.join(wrong)} ({', '.join(scores)})"
        metrics = {"evaluation/seconds": time.perf_counter() - began}
        return metrics | as_metrics(results, scores) | gate, words

    @cached_property
    def _suite(self) -> Suite | None:
        # Built when first needed: a table takes seconds, and training can begin without.
        with doing("reading the suite of solved positions"):
            return choose_suite(self._settings.suite, self._game)

    def play(self, learner: Learner, games: int) -> dict[str, MatchResult]:
        """Play a match of `games` games against every opponent."""
        player = replace(self._player, params=local_copy(playing_params(learner)))
        return {opponent.name: self._match(player, opponent, games) for opponent in self._opponents}

    def score(self, learner: Learner) -> dict[str, dict]:
        """Return the scores on the suite for policy and search; empty without a suite."""
        if self._suite is None:
            return {}
        params: chex.ArrayTree = local_copy(playing_params(learner))
        scores = {}
        for name, answer in self._answering.items():
            with doing(f"scoring {name} on solved positions"):
                answers = answer_suite(self._suite, answer, params, PROCESSES)
                scores[name] = score(self._suite, answers)
        return scores

    def gate(self, learner: Learner) -> tuple[Learner, dict[str, float]]:
        """Let the newest weights play from now on if they beat the best. No gate: do nothing."""
        threshold = self._settings.gate_threshold
        if not threshold:
            return learner, {}
        candidate = replace(self._player, params=local_copy(learner.params))
        best = replace(self._player, params=local_copy(learner.best))
        points = self._match(candidate, best, self._settings.games).points
        accepted = points >= threshold
        metrics = {"gate/points": points, "gate/accepted": float(accepted)}
        return accept_candidate(learner) if accepted else learner, metrics

    def _match(self, first, second, games: int) -> MatchResult:
        # As many at once as during training, so that programs compiled then serve at the end.
        with doing(f"playing {games} games against {second.name}"):
            return play_match(
                self._game,
                first,
                second,
                games,
                self._settings.opening_plies,
                self._seed,
                at_once=len(own_share(self._settings.games)),
                shares=PROCESSES,
            )


def _refuse_match(
    field: str, simulations: int, games: int, game: DotsAndBoxes, positions: int = 0
) -> None:
    """Raise an InputError where the trees of a match do not fit into the memory.

    Or those of so many other `positions` at once.
    """
    limit = memory_limit_bytes(jax.local_devices()[:1])
    batch = max(batch_size(min(games, MOST_AT_ONCE)), positions)
    refuse_match(field, simulations, batch, game.num_edges, limit)


def refuse_searches(field: str, names: Iterable[str], games: int, game: DotsAndBoxes) -> None:
    """Raise an InputError where a player `search:N` among `names` needs too much memory."""
    for name in names:
        kind, _, simulations = name.partition(":")
        if kind == "search":
            _refuse_match(field, int(simulations), games, game)


def suite_name(name: str, game: DotsAndBoxes, half: str = "tuning") -> str:
    """Return the suite that `auto` stands for on a board; any other name stays.

    `half` of the stored suites is taken: tuning during training, test to report a result.
    """
    if name != "auto":
        return name
    stored = f"{game}_{half}"
    small = game.num_edges <= TABLE_EDGES
    return "table" if small else stored if stored in suite_names() else "none"


def check_suite(name: str, game: DotsAndBoxes) -> None:
    """Raise an InputError for a suite that does not exist or does not suit the board."""
    name = suite_name(name, game)
    if name != "none":
        check_stored(name, game)


def choose_suite(name: str, game: DotsAndBoxes, half: str = "tuning") -> Suite | None:
    """Return the suite that a config names, or None; of a table at most TABLE_POSITIONS."""
    name = suite_name(name, game, half)
    if name == "none":
        return None
    suite = load_suite(name, game)
    return suite.sample(TABLE_POSITIONS) if name == "table" else suite


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


ANCHORS = "random,greedy"


def play_matches(
    loaded: LoadedAgent, opponents: str, simulations: int, games: int, opening_plies: int, seed: int
) -> dict[str, dict]:
    """Play a match against each of `opponents`, print and return the results."""
    game = loaded.agent.network.game
    _refuse_match("simulations", simulations, games, game)
    players = make_players(opponents, game, loaded.agent, "opponents")
    refuse_searches("opponents", [player.name for player in players], games, game)
    me = make_player(f"search:{simulations}", game, loaded.agent)
    results = {}
    for opponent in players:
        print(f"Playing {games} games against {opponent.name} ...", flush=True)
        with doing(f"playing {games} games against {opponent.name}"):
            result = play_match(game, me, opponent, games, opening_plies, seed)
        print(f"{me.name} against {opponent.name:<14} {result}", flush=True)
        results[opponent.name] = result.to_dict()
    return results


def rate_checkpoints(
    run_dir: Path, simulations: int, games: int, opening_plies: int, seed: int, figures: Path
) -> list[dict]:
    """Rate the checkpoints of a run by matches between neighbours and anchors; print and draw."""
    loaded = load_agent(run_dir)
    _refuse_match("simulations", simulations, games, loaded.config.game.board)
    with Checkpoints(run_dir) as checkpoints:
        iterations = checkpoints.iterations()
    game = loaded.config.game.board
    # One player, many weights: its matches are compiled once.
    player = make_player(f"search:{simulations}", game, loaded.agent)
    rungs = {}
    for iteration in iterations:
        try:
            params = load_agent(run_dir, iteration).agent.params
        except InputError as error:
            print(f"skipped: {error}")
            continue
        rungs[f"iteration {iteration}"] = (iteration, replace(player, params=params))
    climbers = [replace(rung, name=name) for name, (_, rung) in rungs.items()]
    pairs = ladder_pairs(climbers, make_players(ANCHORS, game))
    matches = play_pairs(game, pairs, games, opening_plies, seed)
    ratings = elo_ratings(matches, anchor="random")
    print(f"\n{format_ratings(ratings)}")
    ladder = [
        {"iteration": rungs.get(rating.name, (None,))[0], **rating._asdict()} for rating in ratings
    ]
    make_folder("figures", figures)
    draw_ladder(figures / "ladder.png", ladder)
    print(figures / "ladder.png")
    return ladder


def measure_weights(
    source: Source, loaded: LoadedAgent, opponents: str, games: int, simulations: int
) -> tuple[LoadedAgent, dict[str, Any]]:
    """Return the network of a source and a record of its training and strength, measured now.

    That of a run is measured with its weights as they will be written.
    """
    if source.folder is None:
        record = read_record(source.weights)
    else:
        record = {"training": training_record(source, loaded)}
        loaded = _as_shipped(loaded)
    return loaded, {**record, **strength(loaded, opponents, games, simulations)}


def _as_shipped(loaded: LoadedAgent) -> LoadedAgent:
    params = from_half(to_half(loaded.agent.params))
    return loaded._replace(agent=replace(loaded.agent, params=params))


def strength(
    loaded: LoadedAgent, opponents: str, games: int, simulations: int
) -> dict[str, dict[str, Any]]:
    """Play matches, if there are opponents, and score on the test suite; return the results."""
    record = {}
    if opponents:
        record["versus"] = play_matches(
            loaded, opponents, simulations, games, opening_plies=4, seed=0
        )
    suite = choose_suite("auto", loaded.config.game.board, half="test")
    if suite is not None:
        record["suite_name"] = suite.name
        record["suite"] = {}
        for player, count in (("policy", 0), (f"search:{simulations}", simulations)):
            with doing(f"scoring {player} on suite {suite.name}"):
                answers = agent_answers(suite, loaded.agent, count)
                record["suite"][player] = score(suite, answers)
        print(format_scores(record["suite"]))
    return record
