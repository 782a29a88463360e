"""The environment of Pgx passes the test of Pgx, and its games are those of the referee."""

from __future__ import annotations

from typing import Literal
from xml.etree import ElementTree

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from referee import Referee

pytest.importorskip("pgx", reason="needs the extra jaxzero[adapters]")

import pgx

from jaxzero.adapters.pgx import DotsAndBoxesEnv
from jaxzero.errors import InputError


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
    """Return the state after each of some actions of one game."""
    state, step, states = env.init(jax.random.key(0)), jax.jit(env.step), []
    for action in actions:
        state = step(state, action)
        states.append(state)
    return states


@pytest.mark.parametrize("size", [3, 5])
def test_it_passes_the_test_of_pgx(size, monkeypatch):
    # The test of Pgx 2.6.0 knows the games of Pgx alone, and its random player fails for a single
    # game with jax 0.10.1 and later (https://github.com/sotetsuk/pgx/pull/1314).
    known = Literal[pgx.EnvId, "dots_and_boxes"]
    monkeypatch.setattr("pgx._src.api_test.EnvId", known)
    monkeypatch.setattr("pgx._src.api_test.act_randomly", jax.jit(random_actions))
    pgx.api_test(DotsAndBoxesEnv(size, size), 1)


@pytest.mark.parametrize("rewards", ["result", "boxes"])
def test_games_equal_the_referee(rewards):
    env, games = DotsAndBoxesEnv(2, 3, rewards), 8
    first, (actions, states) = random_games(env, games)
    assert set(first.current_player) == {0, 1}
    ends = set()
    for number in range(games):
        referee, begins = Referee(env.board), first.current_player[number]
        for ply, action in enumerate(actions[:, number].tolist()):
            referee.play(action)
            now = jax.tree.map(lambda leaf, at=(ply, number): leaf[at], states)
            over = ply == env.num_actions - 1
            assert now.current_player == referee.player ^ begins
            assert now.terminated == over and not now.truncated
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
    env = DotsAndBoxesEnv(2, 2)
    *_, state = play(env, 0, 2, 6, 7)  # the last closes the first box
    own = state.observation
    assert own.dtype == bool and own.shape == env.observation_shape == (3, 3, 4)
    assert own[0, 0].tolist() == [True, True, True, False]
    with pytest.warns(DeprecationWarning):
        other = env.observe(state, 1 - state.current_player)
    np.testing.assert_array_equal(other, own[..., jnp.array([0, 1, 3, 2])])


def test_nothing_changes_after_the_end():
    *_, over, after = play(DotsAndBoxesEnv(1, 1), 0, 1, 2, 3, 2)
    assert over.terminated and sorted(over.rewards.tolist()) == [-1, 1]
    assert after.rewards.tolist() == [0, 0]
    chex.assert_trees_all_equal(after, over.replace(rewards=after.rewards))


@pytest.mark.parametrize(("rewards", "lost"), [("result", -1), ("boxes", -4)])
def test_an_illegal_action_ends_and_loses_the_game(rewards, lost):
    before, over, after = play(DotsAndBoxesEnv(2, 2, rewards), 0, 0, 5)
    assert over.terminated and over.legal_action_mask.all()
    loser = int(before.current_player)
    assert (over.rewards[loser], over.rewards[1 - loser]) == (lost, -lost)
    chex.assert_trees_all_equal(after, over.replace(rewards=jnp.zeros(2)))


def test_thousands_of_games_are_one_program():
    env = DotsAndBoxesEnv(2, 2)
    _, (_, states) = random_games(env, 4096)
    assert states.terminated.sum(axis=0).tolist() == [1] * 4096
    assert (states.rewards.sum(axis=-1) == 0).all()
    boxes = states._game.boxes[-1]
    assert (boxes.sum(axis=1) == 1).all(), "every box has one owner"


def test_a_picture_has_every_edge_and_box(tmp_path):
    env = DotsAndBoxesEnv(2, 3)
    _, (_, states) = random_games(env, 3)
    states.save_svg(tmp_path / "over.svg", color_theme="dark", scale=2.0)
    picture = ElementTree.parse(tmp_path / "over.svg").getroot()
    assert picture.get("width") == str(17 * 3 * 4 * 80)  # all states of all games
    last = jax.tree.map(lambda leaf: leaf[-1, 0], states)
    names = [shape.tag.split("}")[1] for shape in ElementTree.fromstring(last.to_svg()).iter()]
    counts = {name: names.count(name) for name in ("path", "circle", "rect")}
    assert counts == {"path": 17, "circle": 12, "rect": 6 + 1}


def test_unknown_rewards_are_named():
    with pytest.raises(InputError, match="'score' must be result or boxes"):
        DotsAndBoxesEnv(2, 2, "score")
