"""Test that the search by rounds has the visits and choices of mctx for the same noise."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import groupby

import jax
import jax.numpy as jnp
import mctx_oracle
import numpy as np
import pytest
from compiled import analyse, random_positions
from mctx._src.seq_halving import get_sequence_of_considered_visits

from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State, is_over
from jaxzero.search.interface import (
    Evaluation,
    PositionEvaluator,
    SearchAlgorithm,
    SearchResult,
)
from jaxzero.search.mctx_search import search_by_mctx
from jaxzero.search.rounds import (
    Rounds,
    halving,
    padded_rounds,
    rounds_of,
    schedule,
    search_by_rounds,
)
from jaxzero.search.search import game_of, model_of, search

KEY = jax.random.key(7)


def test_rounds_are_those_of_mctx():
    for considered in range(1, 20):
        for simulations in (1, 2, 5, 8, 16, 17, 32, 50, 64, 256):
            visits = get_sequence_of_considered_visits(considered, simulations)
            rounds = [len(list(same)) for _, same in groupby(visits)]
            assert halving(considered, simulations) == rounds
    for simulations, rounds in ((16, 1), (32, 4), (64, 15), (256, 60)):
        assert len(halving(16, simulations)) == rounds


def test_a_game_with_few_moves_has_the_rounds_that_fit():
    for simulations, considered in ((16, 16), (32, 16), (64, 16), (8, 3), (7, 1)):
        settings = SearchConfig(simulations=simulations, max_considered_actions=considered)
        table = schedule(settings)
        assert table[-1].sum() == simulations and not table[0].any()
        for moves in range(1, considered + 1):
            own = halving(moves, int(table[moves].sum()))
            assert table[moves][: len(own)].tolist() == own and (table[moves] <= table[-1]).all()
            assert table[moves, 0] == moves  # the first round visits every move


def chaotic(board: DotsAndBoxes, platform: str = "cpu") -> PositionEvaluator:
    """Return an evaluator with pseudo-random priors and values, so that trees branch."""
    shape = board.num_edges, board.num_edges + 1
    weights = np.random.default_rng(3).integers(0, 1 << 20, shape, np.int32)

    def evaluate(state: State, _structure) -> Evaluation:
        # Use integers: the last bits of a float sum depend on the size of the batch.
        mixed = jnp.where(state.drawn[:, :, None], weights, 0).sum(axis=1)
        said = (mixed * 7919 % 65536) / 32768 - 1  # -1 to 1, nearly all distinct: no ties
        logits = jnp.where(state.drawn, -1e9, 1.5 * said[:, :-1])
        return Evaluation(logits, jnp.where(is_over(state), 0.0, 0.5 * said[:, -1]))

    return PositionEvaluator(evaluate, platform)


def compare(
    board: DotsAndBoxes, settings: SearchConfig, platform: str, count: int, max_kinds: int
) -> int:
    """Compare rounds with mctx on random positions; return the number of compared positions.

    Compare the `max_kinds` largest groups of positions with equal numbers of considered actions.
    """
    rng = np.random.default_rng(1)
    drawn = rng.random((count, board.num_edges)) < rng.uniform(0, 0.8, (count, 1))
    if settings.nodes == "quiet":
        drawn = np.asarray(analyse(board)(drawn).quiet)
    zeros = jnp.zeros(count, jnp.int32)
    state, rules = State(jnp.asarray(drawn), zeros, zeros), game_of(settings)

    @jax.jit
    @jax.vmap
    def count_actions(drawn: jax.Array) -> jax.Array:
        return rules.legal(board, drawn, rules.find_structure(board, drawn)).sum()

    considered = np.minimum(count_actions(state.drawn), settings.max_considered_actions)
    table = schedule(settings).sum(axis=1)

    def run(settings: SearchConfig, search_by: SearchAlgorithm) -> SearchResult:
        def run_program() -> SearchResult:
            model = model_of(board, settings, chaotic(board, platform), state, structure=None)
            return search_by(model, settings, KEY, 1.0)

        return jax.device_get(jax.jit(run_program)())

    by_mctx = search_by_mctx if settings.nodes == "all" else mctx_oracle.search_by_mctx
    ours, compared = run(settings, search_by_rounds), 0
    kinds, sizes = np.unique(considered[considered > 0], return_counts=True)
    for kind in kinds[np.argsort(-sizes)][:max_kinds]:
        rows = considered == kind
        fewer = replace(settings, simulations=int(table[kind]))
        theirs = run(fewer, by_mctx)
        np.testing.assert_array_equal(ours.visits[rows], theirs.visits[rows])
        np.testing.assert_array_equal(ours.action[rows], theirs.action[rows])
        np.testing.assert_allclose(ours.policy[rows], theirs.policy[rows], atol=1e-5)
        np.testing.assert_allclose(ours.value[rows], theirs.value[rows], atol=1e-5)
        compared += rows.sum()
    return compared


LARGE = [
    pytest.param(nodes, size, simulations, 16, 2, marks=pytest.mark.slow)
    for nodes in ("quiet", "all")
    for size in ((3, 3), (5, 5))
    for simulations in (16, 32, 50, 64)
]


@pytest.mark.parametrize(
    ("nodes", "size", "simulations", "considered", "kinds"),
    [("quiet", (2, 3), 24, 4, 1), ("all", (2, 3), 12, 4, 1), *LARGE],
)
def test_visits_actions_and_values_equal_those_of_mctx(nodes, size, simulations, considered, kinds):
    settings = SearchConfig(nodes=nodes, simulations=simulations, max_considered_actions=considered)
    small = size == (2, 3)
    platform = "gpu" if nodes == "quiet" and small else "cpu"
    assert compare(DotsAndBoxes(*size), settings, platform, 400 if small else 1000, kinds) > 250


def test_parts_of_a_round_change_nothing_and_a_cpu_leaves_out_what_no_game_uses(monkeypatch):
    """One of four games has 12 moves, the others have 2, so a round uses 14 of 32 places."""
    board, zeros, sizes, results = DotsAndBoxes(2, 2), jnp.zeros(4, jnp.int32), [], []
    drawn = np.zeros((4, board.num_edges), bool)
    drawn[1:, 2:] = True
    state = State(jnp.asarray(drawn), zeros, zeros)

    def evaluate(state: State, _structure) -> Evaluation:
        jax.debug.callback(lambda count: sizes.append(int(count)), len(state.margin))
        return chaotic(board).evaluate(state, None)

    monkeypatch.setattr("jaxzero.search.rounds.MIN_CPU_BATCH", 1)
    settings = SearchConfig(simulations=8, max_considered_actions=8, nodes="all")
    for size, platform in ((1024, "cpu"), (3, "cpu"), (1024, "gpu")):
        monkeypatch.setattr("jaxzero.search.rounds.CPU_BATCH", size)
        given = board, settings, PositionEvaluator(evaluate, platform), KEY, state
        run = jax.jit(lambda given=given: search(*given, rounds=rounds_of(settings)))
        results.append(jax.block_until_ready(run()))
        jax.effects_barrier()
    # Batches of the root and the round: parts of 4, parts of 2, whole rounds. Callbacks come in
    # any order within a search.
    assert sizes[:14] == [4] + 4 * [4] + 2 * [2] + 7 * [2]
    assert sizes[14:] == [32, 32]
    for parts in results[1:]:
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), results[0], parts)


@pytest.mark.parametrize(("nodes", "platform"), [("quiet", "gpu"), ("all", "gpu"), ("all", "mctx")])
def test_evaluations_are_the_positions_that_the_network_needs(nodes, platform):
    """A simulation that ends in a finished game has none; nor has an unused place of a round."""
    board, settings = DotsAndBoxes(2, 2), SearchConfig(nodes=nodes, simulations=12)
    drawn, asked = random_positions(board, 20, fewest=1, most=5), []
    if nodes == "quiet":
        drawn = np.asarray(analyse(board)(drawn).quiet)
    drawn = drawn[~drawn.all(axis=1)]
    zeros = jnp.zeros(len(drawn), jnp.int32)

    def evaluate(state: State, _structure) -> Evaluation:
        jax.debug.callback(lambda needed: asked.append(int(needed.sum())), ~is_over(state))
        return chaotic(board).evaluate(state, None)

    evaluator, state = PositionEvaluator(evaluate, "gpu"), State(jnp.asarray(drawn), zeros, zeros)
    search_by = search_by_mctx if platform == "mctx" else search_by_rounds
    model = model_of(board, settings, evaluator, state, structure=None)
    result = jax.device_get(jax.jit(lambda: search_by(model, settings, KEY, 1.0))())
    jax.effects_barrier()
    assert 0 < result.evaluations.sum() == sum(asked) < result.visits.sum() + len(drawn)
    if platform == "gpu":
        by_parts = search_by_rounds(model._replace(platform="cpu"), settings, KEY, 1.0)
        np.testing.assert_array_equal(result.evaluations, by_parts.evaluations)


@pytest.mark.parametrize("considered", [1, 2, 3, 16, 60])
def test_rounds_as_data_have_one_shape(considered):
    """More simulations can mean fewer rounds: 60 simulations have 17 rounds, 64 have 15."""
    settings = SearchConfig(simulations=256, max_considered_actions=considered)
    shapes = set()
    for simulations in (*range(1, 20), 32, 50, 59, 60, 61, 64, 100, 255, 256):
        rounds = padded_rounds(settings, simulations)
        shapes.add((rounds.visits.shape, rounds.first_new.shape))
        own = halving(min(considered, simulations), simulations)
        assert rounds.visits[-1, : rounds.count].tolist() == [1, *own]
        assert not rounds.visits[:, rounds.count :].any()
    assert len(shapes) == 1


# Rounds do not depend on the kind of nodes, so the quick test uses one kind.
@pytest.mark.parametrize("nodes", [pytest.param("quiet", marks=pytest.mark.slow), "all"])
@pytest.mark.parametrize(
    "numbers",
    [(17,), pytest.param((1, 2, 7, 16, 17, 100, 256), marks=pytest.mark.slow)],
    ids=["one", "many"],
)
def test_rounds_as_data_search_as_rounds_that_are_compiled(nodes, numbers):
    """One program for all numbers of simulations gives equal visits, moves and values bit for bit.

    The policy may differ by rounding between programs. Nothing in the search depends on it.
    """
    board, rng = DotsAndBoxes(2, 2), np.random.default_rng(4)
    largest = SearchConfig(nodes=nodes, simulations=256)
    drawn = rng.random((12, board.num_edges)) < rng.uniform(0, 0.9, (12, 1))
    drawn[:3] = [[True] * board.num_edges, [False] * board.num_edges, np.arange(12) > 0]
    if nodes == "quiet":
        drawn = np.asarray(analyse(board)(drawn).quiet)
    zeros = jnp.zeros(len(drawn), jnp.int32)
    state = State(jnp.asarray(drawn), zeros, zeros)

    def find(settings: SearchConfig, rounds: Rounds) -> SearchResult:
        return search(board, settings, chaotic(board), KEY, state, rounds=rounds)

    padded = jax.jit(partial(find, largest))
    for simulations in numbers:
        own = replace(largest, simulations=simulations)
        alone = jax.jit(partial(find, own, rounds_of(own)))()
        result = padded(padded_rounds(largest, simulations))
        for name in ("visits", "action", "value", "qvalues", "evaluations"):
            np.testing.assert_array_equal(getattr(result, name), getattr(alone, name), name)
        np.testing.assert_allclose(result.policy, alone.policy, rtol=1e-5)
    assert padded._cache_size() == 1
