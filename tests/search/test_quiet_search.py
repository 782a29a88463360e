"""Search in the quiet game with exact values plays perfectly, and what it plays is legal."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import analyse, any_params, planted, worths
from referee import Referee

from jaxzero.config import NetworkConfig, SearchConfig
from jaxzero.game import DotsAndBoxes, State, initial_states, step
from jaxzero.game.structure import structure
from jaxzero.measure.scoring import agent_answers
from jaxzero.measure.suite import table_suite
from jaxzero.network.network import Network
from jaxzero.players.choosing import by_search, choose
from jaxzero.players.players import Agent, make_player
from jaxzero.search import quiet_game
from jaxzero.search.search import Evaluation, search

SETTINGS = SearchConfig(simulations=16, value_scale_per_box=0.5, nodes="quiet")


def states(drawn) -> State:
    zeros = jnp.zeros(len(drawn), jnp.int32)
    return State(jnp.asarray(drawn), zeros, zeros)


def boards(game: DotsAndBoxes, codes) -> np.ndarray:
    return (np.asarray(codes)[:, None] >> np.arange(game.num_edges)) & 1 > 0


def positions_of(game: DotsAndBoxes) -> np.ndarray:
    """Return all positions of a small board with a move left, or many of a larger one."""
    last = (1 << game.num_edges) - 1
    return boards(game, np.arange(last) if last < 5000 else np.arange(0, last, last // 600))


@partial(jax.jit, static_argnums=0)
def opened(game: DotsAndBoxes, state: State, move):
    """Return the node behind a move in a quiet position, and the view before its captures."""
    start = quiet_game.root(state, quiet_game.view(game, state.drawn))
    return quiet_game.expand(game, start, move)


reply = jax.jit(quiet_game.outcome, static_argnums=0)


def priors(game: DotsAndBoxes, found, logits) -> tuple:
    return quiet_game.prior(game, found, logits), quiet_game.legal(game, found)


@pytest.mark.parametrize(
    ("rows", "cols"),
    # 2x3 has chains as those of 1x4 and loops as those of 2x2.
    [*(pytest.param(*size, marks=pytest.mark.slow) for size in ((1, 4), (2, 2))), (2, 3)],
)
def test_every_choice_is_optimal_and_every_value_exact(rows, cols):
    game = DotsAndBoxes(rows, cols)
    evaluate = planted(game, prior_weight=8.0)
    drawn = positions_of(game)
    run = jax.jit(
        lambda state: choose(game, SETTINGS, by_search(game, SETTINGS, evaluate, ()), state)
    )
    choice = jax.device_get(run(states(drawn)))
    worth = np.asarray(worths(game)(drawn))
    np.testing.assert_array_equal(worth[np.arange(len(drawn)), choice.edge], worth.max(axis=1))
    np.testing.assert_allclose(choice.value, worth.max(axis=1), atol=1e-3)


def test_a_look_ahead_at_every_move_is_exact_without_priors():
    """A visit of every move and nothing deeper is right only when rewards and signs are."""
    game = DotsAndBoxes(2, 3)
    evaluate = planted(game, prior_weight=0.0)
    look = SearchConfig(
        simulations=17,
        max_considered_actions=17,
        value_scale_per_box=0.5,
        nodes="quiet",
    )
    drawn = positions_of(game)
    run = jax.jit(lambda state: choose(game, look, by_search(game, look, evaluate, ()), state).edge)
    worth = np.asarray(worths(game)(drawn))
    edges = np.asarray(run(states(drawn)))
    np.testing.assert_array_equal(worth[np.arange(len(drawn)), edges], worth.max(axis=1))


def row_of_boxes(cols: int, verticals: list[int], horizontals: list[int]) -> tuple:
    """Return a single row with only these edges open, player 0 one box ahead."""
    game = DotsAndBoxes(1, cols)
    drawn = np.ones(game.num_edges, bool)
    drawn[horizontals + [game.num_horizontal + vertical for vertical in verticals]] = False
    return game, State(jnp.asarray(drawn), jnp.int32(1), jnp.int32(0))


def test_the_opponent_takes_all_or_declines_by_the_value_behind():
    # Two chains of three, each from one end to the top: 2 boxes of each may be left.
    game, state = row_of_boxes(7, [0, 1, 2, 5, 6, 7], [2, 4])
    node, _ = opened(game, state, jnp.int32(game.num_horizontal + 1))
    assert (int(node.free.taken), int(node.free.declined)) == (3, 2)
    assert (int(node.state.player), int(node.state.margin)) == (1, 2)  # as if all were taken
    taken = reply(game, node, jnp.float32(0.1))
    assert tuple(map(float, taken)) == (pytest.approx(-3 / 7), -1.0)
    declined = reply(game, node, jnp.float32(-0.5))
    assert tuple(map(float, declined)) == (pytest.approx(1 / 7), 1.0)


def test_nothing_follows_the_end():
    game, state = row_of_boxes(3, [0, 1, 2, 3], [])
    end, _ = opened(game, state, jnp.int32(game.num_horizontal))
    assert bool(end.state.drawn.all())
    found = reply(game, end, jnp.float32(0))
    assert tuple(map(float, found)) == (-1.0, 0.0)
    past, _ = opened(game, end.state, jnp.int32(0))
    found = reply(game, past, jnp.float32(0))
    assert tuple(map(float, found)) == (0.0, 0.0)
    jax.tree.map(np.testing.assert_array_equal, past.state, end.state)


@pytest.mark.parametrize(("simulations", "worth"), [(1, -3.0), (2, -3.0 + 1 / 2)])
def test_a_reply_follows_what_deeper_search_says(simulations, worth):
    """The node behind a chain of three looks lost by 4 at first sight and is won by 3."""
    # Beside the chain is a box with three open sides: a safe move leads to what is lost by 3.
    game, state = row_of_boxes(5, [1, 2, 5], [0, 2, 4, 9])
    chain, safe = game.num_horizontal + 1, 4
    node, _ = opened(game, state, jnp.int32(chain))
    assert (int(node.free.taken), int(node.free.declined)) == (3, 2)

    def evaluate(_params, state: State, _found) -> Evaluation:
        at_node = jnp.all(state.drawn == node.state.drawn[None, :], axis=-1)
        liked = jax.nn.one_hot(jnp.where(at_node, safe, chain), game.num_edges)
        return Evaluation(50.0 * liked, jnp.where(at_node, -4.0, -3.0) / game.num_boxes)

    settings = SearchConfig(simulations=simulations, max_considered_actions=1)
    batch = jax.tree.map(lambda leaf: leaf[None], state)
    run = jax.jit(partial(search, game, settings, evaluate, gumbel_scale=0.0))
    found = run((), jax.random.key(0), batch)
    assert found.visits[0].argmax() == chain
    # Once: declined, 3 - 2 * 2 - (-4) = 3 for the opponent. Then: all taken, 3 + (3 - 4) / 2.
    assert float(found.value[0]) * game.num_boxes == pytest.approx(worth, abs=1e-4)


@pytest.fixture(scope="module")
def searched():
    """A search on 3x3 by values that are far from smooth: the positions and what it found."""
    game = DotsAndBoxes(3, 3)
    weights = np.random.default_rng(1).normal(size=game.num_edges).astype(np.float32)

    def evaluate(_params, state: State, _found) -> Evaluation:
        noise = jnp.sin(40.0 * (state.drawn @ weights))  # replies change often
        return Evaluation(jnp.where(state.drawn, -1e9, 0.0), 0.6 * noise)

    drawn = np.random.default_rng(0).random((64, game.num_edges)) < 0.4
    quiet = np.asarray(analyse(game)(drawn).quiet)
    quiet = quiet[~quiet.all(axis=1)]
    settings = SearchConfig(simulations=32, max_considered_actions=4, value_scale_per_box=0.05)
    run = jax.jit(lambda key: search(game, settings, evaluate, (), key, states(quiet)))
    return game, quiet, jax.device_get(run(jax.random.key(2)))


def test_every_node_is_worth_its_first_value_and_its_moves(searched):
    """Also where replies have changed on the way."""
    game, _, (*_, tree) = searched
    visits, q = tree.moves.visits, tree.moves.values
    # The root keeps its first value: nobody asks for another.
    expected = (tree.first_values + (visits * q).sum(-1)) / (1 + visits.sum(-1))
    rows, parents, moves = np.nonzero(visits > 0)
    children = tree.children[rows, parents, moves]
    np.testing.assert_allclose(tree.values[rows, children], expected[rows, children], atol=1e-5)
    assert (visits[rows, children].sum(-1) + 1 == visits[rows, parents, moves]).all()
    node = jax.tree.map(lambda field: jnp.asarray(field[rows, children]), tree.nodes)
    replies = jax.jit(jax.vmap(partial(reply, game)))
    best = replies(node, jnp.asarray(tree.values[rows, children]))
    np.testing.assert_array_equal(best[0], tree.rewards[rows, children])
    np.testing.assert_array_equal(best[1], tree.discounts[rows, children])
    worth = best[0] + best[1] * tree.values[rows, children]
    np.testing.assert_allclose(worth, q[rows, parents, moves], atol=1e-6)
    first = replies(node, jnp.asarray(tree.first_values[rows, children]))
    assert int((first[0] != best[0]).sum()) > 10


def test_priors_of_edges_that_are_one_move_count_together():
    game, state = row_of_boxes(3, [0, 1, 2, 3], [0])  # a box with three open sides, a chain of two
    logits = np.where(state.drawn, -1e9, 0.0)
    known = jax.jit(lambda logits: priors(game, structure(game, state.drawn), logits))
    folded, moves = jax.device_get(known(logits))
    np.testing.assert_allclose(np.exp(folded[moves]), [0.2, 0.2, 0.6], rtol=1e-5)
    assert int(moves.sum()) == 3


def test_a_box_weighs_the_same_on_boards_of_any_size():
    """The same open edges, values in boxes and priors, on a row of 5 boxes and on one of 9."""
    small, state = row_of_boxes(5, [1, 2, 5], [0, 2, 4, 9])
    large, other = row_of_boxes(9, [5, 6, 9], [4, 6, 8, 17])
    policies = []
    for game, position in ((small, state), (large, other)):
        logits = jnp.where(position.drawn, -1e9, 0.0)

        def evaluate(_params, state, _found, game=game, logits=logits) -> Evaluation:
            left = jnp.sum(~state.drawn, axis=-1)
            logits = jnp.broadcast_to(logits[None, :], state.drawn.shape)
            return Evaluation(jnp.where(state.drawn, -1e9, logits), 0.1 * left / game.num_boxes)

        settings = SearchConfig(simulations=12, max_considered_actions=3)
        batch = jax.tree.map(lambda leaf: leaf[None], position)
        run = jax.jit(partial(search, game, settings, evaluate, gumbel_scale=0.0))
        found = run((), jax.random.key(0), batch)
        policies.append(np.asarray(found.policy[0])[~np.asarray(position.drawn)])
    np.testing.assert_allclose(*policies, rtol=1e-3)
    assert policies[0].max() > 0.4


def test_policies_are_distributions_over_quiet_moves(searched):
    game, quiet, result = searched
    moves = np.asarray(jax.jit(jax.vmap(partial(quiet_game.legal, game)))(analyse(game)(quiet)))
    np.testing.assert_allclose(result.policy.sum(-1), 1, rtol=1e-5)
    assert result.policy[~moves].max() < 1e-6
    assert not result.visits[~moves].any()
    assert moves[np.arange(len(quiet)), result.edge].all()


@pytest.fixture(scope="module")
def agent() -> Agent:
    """Return an untrained network on 3x3."""
    game = DotsAndBoxes(3, 3)
    network = Network(game, NetworkConfig(trunk="dense", channels=32, blocks=1, features="raw"))
    settings = SearchConfig(simulations=8, max_considered_actions=4, nodes="quiet")
    return Agent(network, any_params(network), settings)


@pytest.mark.parametrize(
    "names",
    # A search of either player has the same rules: one opponent of it will do.
    [pytest.param(("search:8", "search:4"), marks=pytest.mark.slow), ("policy", "search:8")],
)
def test_matches_obey_the_rules(agent, names):
    game = agent.network.game
    first, second = (make_player(name, game, agent) for name in names)
    games = 12
    state = initial_states(game, games)
    referees = [Referee(game) for _ in range(games)]
    rng = np.random.default_rng(0)
    advance, keys = jax.jit(jax.vmap(partial(step, game))), jax.random.split(jax.random.key(1), 12)
    for ply in range(game.num_edges):
        by_player = [player.choose(keys, state) for player in (first, second)]
        edges = np.where(np.asarray(state.player) == 0, *by_player)
        if ply < 4:
            edges = np.array([rng.choice(referee.legal()) for referee in referees])
        for referee, edge in zip(referees, edges, strict=True):
            referee.play(int(edge))
        state, _ = advance(state, jnp.asarray(edges))
        assert [referee.player for referee in referees] == state.player.tolist()
        ahead = [(r.scores[0] - r.scores[1]) * (1 - 2 * r.player) for r in referees]
        assert ahead == state.margin.tolist()
    assert bool(state.drawn.all())


def test_agents_sit_suites(agent):
    suite = table_suite(DotsAndBoxes(2, 2), 64)
    raw = NetworkConfig(trunk="dense", channels=16, blocks=1, features="raw")
    network = Network(suite.game, raw)
    small = Agent(network, any_params(network), agent.settings)
    for simulations in (0, 8):
        answers = agent_answers(suite, small, simulations)
        assert not suite.drawn[np.arange(len(suite)), answers.edge].any()
        if not simulations:
            assert (answers.win >= 0).all() and (answers.win <= 1 + 1e-6).all()
