"""How much to run, so that a benchmark ends in time on any machine. What is cut is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from jaxzero.config import Config

# Longest call of each kind, as a share of the seconds there are for one round.
SELFPLAY_SHARE, ITERATION_SHARE, CALL_SHARE = 0.3, 0.1, 0.1


class Speed(NamedTuple):
    """Roughly what the device does in a second, found in a moment."""

    evaluations: float
    samples: float  # of learning; no fixed multiple of an evaluation, which depends on the form


class Plan(NamedTuple):
    """What is run; the rates stay those of the config as far as a shorter run can show them."""

    rounds: int  # all parts once by turns, after one round to warm up
    games: int  # batch of the network, the search and self-play
    plies: int  # moves of self-play
    searches: int  # one after the other in one call
    network_batches: int  # one after the other in one call
    samples: int  # of one update
    updates: int  # one after the other in one call
    iteration: Config  # of the iterations that are run as a whole
    notes: tuple[str, ...]  # what was cut, for people

    def whole_iteration(self, config: Config) -> bool:
        """Return whether the iterations run are those of the config."""
        return self.iteration == config


def make_plan(config: Config, speed: Speed, seconds: float, rounds: int = 3) -> Plan:
    """Fit the work into about `seconds`, given the speed of the network on this device."""
    rate, sample_rate = speed
    seconds = seconds / (rounds + 1)
    per_search = config.search.simulations + 1
    moves = config.positions_per_game
    call = CALL_SHARE * seconds

    games = _halve(config.selfplay.games, lambda count: count * per_search / rate <= call)
    search_seconds = games * per_search / rate
    plies = _clamp(SELFPLAY_SHARE * seconds / search_seconds, moves)
    searches = _clamp(call / search_seconds, moves)
    network_batches = _clamp(call * rate / games, moves * per_search)

    samples = _halve(config.learner.batch_size, lambda count: count / sample_rate <= call)
    updates = _clamp(call * sample_rate / samples, max(1, config.learner.updates_per_iteration))

    iteration = _shorten(config, speed, ITERATION_SHARE * seconds)
    calls = (games, plies, searches, network_batches, samples, updates)
    plan = Plan(rounds, *calls, iteration, ())
    return plan._replace(notes=tuple(_notes(config, plan)))


def _shorten(config: Config, speed: Speed, seconds: float) -> Config:
    """Cut games, then updates, until an iteration takes about `seconds`."""
    per_game = config.evaluations_per_iteration / config.selfplay.games / speed.evaluations
    learner = config.learner
    sample_seconds = 1 / speed.samples
    learning = learner.updates_per_iteration * learner.batch_size * sample_seconds
    if config.selfplay.games * per_game + learning <= seconds:
        return config
    games = _halve(config.selfplay.games, lambda count: count * per_game <= seconds / 2)
    left = max(seconds / 2, seconds - games * per_game)
    samples = _halve(learner.batch_size, lambda count: count * sample_seconds <= left)
    updates = _clamp(left / (samples * sample_seconds), learner.updates_per_iteration)
    return replace(
        config,
        selfplay=replace(config.selfplay, games=games),
        learner=replace(learner, batch_size=samples, updates_per_iteration=updates),
    )


def _halve(count: int, fits: Callable[[int], bool]) -> int:
    while count > 1 and not fits(count):
        count //= 2
    return count


def _clamp(count: float, most: int) -> int:
    return min(most, max(1, int(count)))


def _notes(config: Config, plan: Plan) -> list[str]:
    """Say what is measured on less than the config asks for."""
    moves = config.positions_per_game
    said = []
    if plan.games < config.selfplay.games:
        said.append(f"batch of {plan.games} games instead of {config.selfplay.games}")
    if plan.plies < moves:
        said.append(f"self-play measured over its first {plan.plies} of {moves} moves")
    if plan.samples < config.learner.batch_size:
        said.append(f"updates of {plan.samples} samples instead of {config.learner.batch_size}")
    if plan.updates < config.learner.updates_per_iteration:
        said.append(
            f"learning measured over {plan.updates} of "
            f"{config.learner.updates_per_iteration} updates"
        )
    if not plan.whole_iteration(config):
        cut = plan.iteration
        said.append(
            f"whole iterations run with {cut.selfplay.games} games and "
            f"{cut.learner.updates_per_iteration} updates of {cut.learner.batch_size}; "
            "the time of the config's iteration is the sum of its phases"
        )
    return said
