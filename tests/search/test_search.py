"""Test the search: with exact leaves it plays perfectly; an algorithm is one entry."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from compiled import analyse, planted, worths
from quiet_referee import HASHED
from script_runner import BASE

from jaxzero.cli import load_config
from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State
from jaxzero.game.structure import find_structure
from jaxzero.measure.evaluator import Evaluator
from jaxzero.players.network_player import answer
from jaxzero.search import plain_game, quiet_game
from jaxzero.search.interface import Evaluation, Model, PositionEvaluator, SearchResult
from jaxzero.search.mctx_search import mctx_inputs, mctx_result
from jaxzero.search.rounds import grow_trees, root_noise, rounds_of
from jaxzero.search.search import SEARCHES, model_of, search
from jaxzero.training.trainer import train

BOARDS = {"all": DotsAndBoxes(2, 2), "quiet": DotsAndBoxes(2, 3)}  # by the kind of nodes
PLAIN = DotsAndBoxes(2, 2)


def states(drawn) -> State:
    zeros = jnp.zeros(len(drawn), jnp.int32)
    return State(jnp.asarray(drawn), zeros, zeros)


def positions_of(board: DotsAndBoxes) -> np.ndarray:
    """Return all positions of a small board with a move left, or many of a larger one."""
    last = (1 << board.num_edges) - 1
    codes = np.arange(last) if last < 5000 else np.arange(0, last, last // 600)
    return (codes[:, None] >> np.arange(board.num_edges)) & 1 > 0


def look_ahead(nodes: str) -> SearchConfig:
    """Return settings that visit each move once: exact only if rewards and signs are right."""
    edges = BOARDS[nodes].num_edges
    return SearchConfig(
        nodes=nodes, simulations=edges, max_considered_actions=edges, value_scale_per_box=0.5
    )


@pytest.mark.parametrize("nodes", BOARDS)
def test_every_choice_is_optimal_and_every_value_exact(nodes):
    board, settings = BOARDS[nodes], look_ahead(nodes)
    drawn = positions_of(board)
    worth = np.asarray(worths(board)(drawn))

    @jax.jit
    def answers(prior_weight):
        evaluator, noise = planted(board, prior_weight), jnp.zeros(drawn.shape, jnp.float32)
        return answer(board, settings, evaluator, jnp.asarray(drawn), noise, rounds_of(settings))

    for prior_weight in (8.0, 0.0):
        given = answers(prior_weight)
        chosen = worth[np.arange(len(drawn)), given.edge]
        np.testing.assert_array_equal(chosen, worth.max(axis=1))
        np.testing.assert_allclose(given.value, worth.max(axis=1), atol=1e-3)


def test_capturing_keeps_the_turn_and_nothing_follows_the_end():
    def move_from(drawn, edge: int) -> plain_game.Embedding:
        state = State(jnp.asarray(drawn), jnp.int32(0), jnp.int32(0))
        return plain_game.expand(PLAIN, plain_game.embed(state, None), jnp.int32(edge))[0]

    edges = np.arange(PLAIN.num_edges)
    three_sides, all_but_the_last = np.isin(edges, [0, 2, 6]), edges < 11
    end = move_from(all_but_the_last, 11)
    after = {
        (0.25, 1.0): move_from(three_sides, 7),
        (0.0, -1.0): move_from(three_sides, 1),
        (0.25, 0.0): end,
        (0.0, 0.0): move_from(end.state.drawn, 11),
    }
    for outcome, embedding in after.items():
        assert (embedding.reward, embedding.discount) == outcome


@partial(jax.jit, static_argnums=0)
def opened(board: DotsAndBoxes, state: State, move):
    """Return the embedding after a move in a quiet position, and the structure before captures."""
    start = quiet_game.embed(state, find_structure(board, state.drawn))
    return quiet_game.expand(board, start, move)


outcome_of = jax.jit(quiet_game.outcome, static_argnums=0)


def row_of_boxes(cols: int, verticals: list[int], horizontals: list[int]) -> tuple:
    """Return a single row with only these edges open, player 0 one box ahead."""
    board = DotsAndBoxes(1, cols)
    drawn = np.ones(board.num_edges, bool)
    drawn[horizontals + [board.num_horizontal + vertical for vertical in verticals]] = False
    return board, State(jnp.asarray(drawn), jnp.int32(1), jnp.int32(0))


def test_the_opponent_takes_all_or_declines_by_the_value_after_it():
    # Two chains of three, each from one end of the row to the top; 2 boxes can be declined.
    board, state = row_of_boxes(7, [0, 1, 2, 5, 6, 7], [2, 4])
    node, _ = opened(board, state, jnp.int32(board.num_horizontal + 1))
    assert (int(node.free.taken), int(node.free.declined)) == (3, 2)
    assert (int(node.state.player), int(node.state.margin)) == (1, 2)  # as if all were taken
    for value, outcome in ((0.1, (-3 / 7, -1.0)), (-0.5, (1 / 7, 1.0))):
        assert tuple(map(float, outcome_of(board, node, jnp.float32(value)))) == pytest.approx(
            outcome
        )


def test_nothing_follows_the_end_of_the_quiet_game():
    board, state = row_of_boxes(3, [0, 1, 2, 3], [])
    end, _ = opened(board, state, jnp.int32(board.num_horizontal))
    past, _ = opened(board, end.state, jnp.int32(0))
    assert bool(end.state.drawn.all())
    for node, outcome in ((end, (-1.0, 0.0)), (past, (0.0, 0.0))):
        assert tuple(map(float, outcome_of(board, node, jnp.float32(0)))) == outcome
    jax.tree.map(np.testing.assert_array_equal, past.state, end.state)


def search_one(board: DotsAndBoxes, settings: SearchConfig, evaluate, state: State):
    """Search one position without noise."""
    batch = jax.tree.map(lambda leaf: leaf[None], state)
    evaluator = PositionEvaluator(evaluate, "cpu")
    given = board, settings, evaluator, jax.random.key(0), batch
    return jax.jit(lambda: search(*given, gumbel_scale=0.0))()


@pytest.mark.parametrize(("simulations", "worth"), [(1, -3.0), (2, -3.0 + 1 / 2)])
def test_a_capture_is_decided_again_when_deeper_search_changes_the_value(simulations, worth):
    """The node after opening a chain of three has raw value -4 boxes; its safe move wins 3."""
    # Beside the chain is a box with three open sides: a safe move leads to a value of -3 boxes.
    board, state = row_of_boxes(5, [1, 2, 5], [0, 2, 4, 9])
    chain, safe = board.num_horizontal + 1, 4
    node, _ = opened(board, state, jnp.int32(chain))

    def evaluate(state: State, _structure) -> Evaluation:
        at_node = jnp.all(state.drawn == node.state.drawn[None, :], axis=-1)
        liked = jax.nn.one_hot(jnp.where(at_node, safe, chain), board.num_edges)
        return Evaluation(50.0 * liked, jnp.where(at_node, -4.0, -3.0) / board.num_boxes)

    settings = SearchConfig(simulations=simulations, max_considered_actions=1)
    result = search_one(board, settings, evaluate, state)
    assert result.visits[0].argmax() == chain
    # One visit: declined, 3 - 2 * 2 - (-4) = 3 for the opponent. Two: taken, 3 + (3 - 4) / 2.
    assert float(result.value[0]) * board.num_boxes == pytest.approx(worth, abs=1e-4)


@pytest.fixture(scope="module")
def grown():
    """Search on 3x3 with erratic values; return the board and the trees."""
    board = DotsAndBoxes(3, 3)
    drawn = np.random.default_rng(0).random((64, board.num_edges)) < 0.4
    quiet = np.asarray(analyse(board)(drawn).quiet)
    quiet = quiet[~quiet.all(axis=1)]
    settings = SearchConfig(simulations=32, max_considered_actions=4, value_scale_per_box=0.05)

    @jax.jit
    def run():
        model = model_of(board, settings, HASHED, states(quiet), structure=None)
        return grow_trees(model, settings, root_noise(model, jax.random.key(2), 1.0))

    return board, jax.device_get(run())


def test_the_value_of_a_node_is_the_mean_of_its_raw_value_and_its_visits(grown):
    """This holds also for nodes whose reward and discount changed during the search."""
    board, tree = grown
    visits, qvalues = tree.children_visits, tree.children_qvalues
    # The root keeps its raw value, because nothing reads a mean of the root.
    expected = (tree.raw_values + (visits * qvalues).sum(-1)) / (1 + visits.sum(-1))
    rows, parents, actions = np.nonzero(visits > 0)
    children = tree.children_index[rows, parents, actions]
    values = tree.node_values[rows, children]
    np.testing.assert_allclose(values, expected[rows, children], atol=1e-5)
    assert (visits[rows, children].sum(-1) + 1 == visits[rows, parents, actions]).all()
    embeddings = jax.tree.map(lambda field: jnp.asarray(field[rows, children]), tree.embeddings)
    outcomes = jax.jit(jax.vmap(partial(outcome_of, board)))
    reward, discount = outcomes(embeddings, jnp.asarray(values))
    np.testing.assert_array_equal(reward, tree.rewards[rows, children])
    np.testing.assert_array_equal(discount, tree.discounts[rows, children])
    qvalue = reward + discount * values
    np.testing.assert_allclose(qvalue, qvalues[rows, parents, actions], atol=1e-6)
    raw, _ = outcomes(embeddings, jnp.asarray(tree.raw_values[rows, children]))
    assert int((raw != reward).sum()) > 10


def test_priors_of_edges_that_are_one_move_count_together():
    board, state = row_of_boxes(3, [0, 1, 2, 3], [0])  # a box with three open sides, a chain of two
    structure, logits = find_structure(board, state.drawn), np.where(state.drawn, -1e9, 0.0)
    folded = np.asarray(jax.jit(partial(quiet_game.prior, board))(structure, logits))
    moves = np.asarray(quiet_game.legal(board, state.drawn, structure))
    np.testing.assert_allclose(np.exp(folded[moves]), [0.2, 0.2, 0.6], rtol=1e-5)
    assert int(moves.sum()) == 3


def test_a_box_weighs_the_same_on_boards_of_any_size():
    """The same open edges, values in boxes and priors, on a row of 5 boxes and on one of 9."""
    small, large = (5, [1, 2, 5], [0, 2, 4, 9]), (9, [5, 6, 9], [4, 6, 8, 17])
    policies = []
    for board, position in (row_of_boxes(*small), row_of_boxes(*large)):

        def evaluate(state, _structure, board=board) -> Evaluation:
            left = jnp.sum(~state.drawn, axis=-1)
            return Evaluation(jnp.where(state.drawn, -1e9, 0.0), 0.1 * left / board.num_boxes)

        settings = SearchConfig(simulations=12, max_considered_actions=3)
        result = search_one(board, settings, evaluate, position)
        policies.append(np.asarray(result.policy[0])[~np.asarray(position.drawn)])
    np.testing.assert_allclose(*policies, rtol=1e-3)
    assert policies[0].max() > 0.4


def test_wrong_shapes_fail_at_trace_time_with_the_name():
    run = partial(search, PLAIN, look_ahead("all"), planted(PLAIN, 0.0))
    with pytest.raises(AssertionError, match=r"state\.drawn"):
        jax.eval_shape(run, jax.random.key(0), states(np.zeros((3, 7), bool)))


def test_another_algorithm_is_one_entry(monkeypatch):
    """PUCT of mctx trains in place of Gumbel MuZero."""
    traced = []

    def puct(model: Model, settings: SearchConfig, key: jax.Array, _scale: float) -> SearchResult:
        root, recurrent_fn = mctx_inputs(model)
        output = mctx.muzero_policy((), key, root, recurrent_fn, settings.simulations, ~model.legal)
        traced.append(output.action.shape)
        return mctx_result(output, root)

    monkeypatch.setitem(SEARCHES, "all", puct)
    options = "--devices=1", "--search.nodes=all", "--iterations=2"
    config = load_config("configs/tiny.yaml", *BASE, *options)
    history = train(config, None, Evaluator(config)).history
    assert [line["iteration"] for line in history] == [1, 2] and traced == [(16,)]
