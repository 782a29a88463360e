"""Test the Pgx environment: its games and observations equal the referee's."""

from __future__ import annotations

from functools import cache

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from referee import Referee

from jaxzero.adapters.pgx import DotsAndBoxesEnv
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.network.features import edges_from_planes


@cache
def made(rows: int, cols: int, rewards: str = "result") -> DotsAndBoxesEnv:
    """Return an environment that all tests share, so that its programs compile once."""
    return DotsAndBoxesEnv(rows, cols, rewards)


def random_actions(key: jax.Array, legal: jax.Array) -> jax.Array:
    """Choose a legal action in every game: [..., A] bool to [...] int32."""
    return jax.random.categorical(key, jnp.log(legal.astype(jnp.float32)), axis=-1)


def random_games(env: DotsAndBoxesEnv, games: int):
    """Play random games at once: first states, actions [T, B], states after each [T, B, ...]."""

    def ply(states, key):
        actions = random_actions(key, states.legal_action_mask)
        after = jax.vmap(env.step)(states, actions)
        return after, (actions, after)

    def play(key):
        first = jax.vmap(env.init)(jax.random.split(key, games))
        return first, jax.lax.scan(ply, first, jax.random.split(key, env.num_actions))[1]

    return jax.device_get(jax.jit(play)(jax.random.key(0)))


def play(env: DotsAndBoxesEnv, *actions: int):
    """Play some actions of one game; return the state after each action."""
    state, step, states = jax.jit(env.init)(jax.random.key(0)), jax.jit(env.step), []
    for action in actions:
        state = step(state, action)
        states.append(state)
    return states


def closed_boxes(referee: Referee) -> set[int]:
    return {box for box, sides in enumerate(referee.boxes) if sides <= referee.drawn}


def seen(board: DotsAndBoxes, planes: np.ndarray) -> tuple[set[int], set[int], set[int]]:
    """Return the drawn edges, the own boxes and the opponent's in an observation [H, W, 4]."""
    edges = edges_from_planes(board, planes[..., :2])
    boxes = planes[: board.rows, : board.cols, 2:].reshape(board.num_boxes, 2)
    assert edges.sum() + boxes.sum() == planes.sum()  # nothing lies beyond the board
    drawn, own, other = (np.flatnonzero(plane) for plane in (edges, *boxes.T))
    return set(drawn), set(own), set(other)


@pytest.mark.parametrize("rewards", ["result", "boxes"])
def test_games_equal_the_referee(rewards):
    env, games = made(2, 3, rewards), 8
    first, (actions, states) = random_games(env, games)
    assert set(first.current_player) == {0, 1}
    assert (first.current_player.dtype, first.rewards.dtype) == (np.int32, np.float32)
    assert (first.terminated.dtype, first.legal_action_mask.dtype) == (bool, bool)
    ends = set()
    for number in range(games):
        referee, begins = Referee(env.board), first.current_player[number]
        owned: tuple[set[int], set[int]] = (set(), set())
        for ply, action in enumerate(actions[:, number].tolist()):
            mover, before = referee.player, closed_boxes(referee)
            referee.play(action)
            owned[mover].update(closed_boxes(referee) - before)
            now = jax.tree.map(lambda leaf, at=(ply, number): leaf[at], states)
            over = ply == env.num_actions - 1
            assert now.current_player == referee.player ^ begins
            assert now.terminated == over and not now.truncated
            assert now._step_count == ply + 1
            own, other = owned[referee.player], owned[1 - referee.player]
            assert seen(env.board, now.observation) == (referee.drawn, own, other)
            legal = [*range(env.num_actions)] if over else referee.legal()
            assert np.flatnonzero(now.legal_action_mask).tolist() == legal
            if not over:
                assert now.rewards.tolist() == [0, 0]
        margin = referee.scores[begins] - referee.scores[1 - begins]  # of player 0
        result = np.sign(margin) if rewards == "result" else margin
        assert now.rewards.tolist() == [result, -result]
        ends.add(int(result))
    assert len(ends) > 1


def test_each_player_sees_the_boxes_from_its_own_side():
    env = made(2, 2)
    *_, state = play(env, 0, 2, 6, 7)  # the last closes the first box
    own = state.observation
    assert own.dtype == bool and own.shape == env.observation_shape == (3, 3, 4)
    assert own[0, 0].tolist() == [True, True, True, False]
    with pytest.warns(DeprecationWarning):
        other = env.observe(state, 1 - state.current_player)
    np.testing.assert_array_equal(other, own[..., jnp.array([0, 1, 3, 2])])


def test_nothing_changes_after_the_end():
    *_, over, after = play(made(1, 1), 0, 1, 2, 3, 2)
    assert over.terminated and sorted(over.rewards.tolist()) == [-1, 1]
    assert after.rewards.tolist() == [0, 0]
    chex.assert_trees_all_equal(after, over.replace(rewards=after.rewards))


@pytest.mark.parametrize(("rewards", "lost"), [("result", -1), ("boxes", -4)])
def test_an_illegal_action_ends_and_loses_the_game(rewards, lost):
    with pytest.raises(InputError, match="'score' must be result or boxes"):
        DotsAndBoxesEnv(2, 2, "score")
    before, over, after = play(made(2, 2, rewards), 0, 0, 5)
    assert over.terminated and over.legal_action_mask.all()
    loser = int(before.current_player)
    assert (over.rewards[loser], over.rewards[1 - loser]) == (lost, -lost)
    chex.assert_trees_all_equal(after, over.replace(rewards=jnp.zeros(2)))


def test_a_number_beyond_the_board_ends_and_loses_the_game():
    env, lost = made(2, 2, "boxes"), -4
    actions = np.array([99, -1, 12, -12, 2**31 - 1, -(2**31), 3, 0], np.int32)
    wrong = np.arange(8) != 6  # the last is drawn already
    steps = jax.jit(jax.vmap(env.step))
    (first,) = play(env, 0)
    many = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (8, *leaf.shape)), first)
    after = jax.device_get(steps(many, actions))
    for number in (0, 6):  # without compiling
        alone = jax.tree.map(lambda leaf, number=number: leaf[number], after)
        chex.assert_trees_all_equal(env.step(first, actions[number]), alone)
    assert after.terminated.tolist() == wrong.tolist()
    loser = int(first.current_player)
    assert after.rewards[:, loser].tolist() == (wrong * lost).tolist()
    assert (after.rewards.sum(axis=1) == 0).all() and after.legal_action_mask[wrong].all()
    again = jax.device_get(steps(after, actions))
    chex.assert_trees_all_equal(
        jax.tree.map(lambda leaf: leaf[wrong], again),
        jax.tree.map(lambda leaf: leaf[wrong], after.replace(rewards=np.zeros((8, 2)))),
    )
