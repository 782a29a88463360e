"""Labels are exact, and no image of a test position is learnt from."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest
from compiled import analyse

from jaxzero.config import Config, GameConfig, SearchConfig
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, automorphisms
from jaxzero.measure.suite import Suite, table_suite, write_suite
from jaxzero.solver.endgame import move_values
from jaxzero.study.labels import (
    HELD_OUT_SHARE,
    Labels,
    held_out,
    make_labels,
    random_positions,
    symmetric_hash,
)

GAME = DotsAndBoxes(2, 2)


def config(nodes: str = "quiet", rows: int = 2) -> Config:
    return Config(game=GameConfig(rows, 2), search=SearchConfig(nodes=nodes))


@pytest.fixture(scope="module", params=["all", "quiet"])
def labels(request) -> Labels:
    return make_labels(config(request.param), None)


def draw(labels: Labels, batch: int = 512, seed: int = 0):
    return jax.jit(labels.draw, static_argnums=2)(labels.data, jax.random.key(seed), batch)


def images(drawn: np.ndarray) -> set[bytes]:
    """Return all images of positions [P, A]."""
    seen = np.asarray(drawn)[:, automorphisms(GAME)]
    return {image.tobytes() for image in seen.reshape(-1, GAME.num_edges)}


@pytest.mark.parametrize(
    "game", [GAME, DotsAndBoxes(1, 3), DotsAndBoxes(1, 1), DotsAndBoxes(5, 5)], ids=str
)
def test_the_images_of_a_position_share_its_hash_and_others_do_not(game):
    boards = random_positions(game, False, 300, jax.random.key(0))
    permutations = automorphisms(game)
    hashed = jax.jit(jax.vmap(jax.vmap(partial(symmetric_hash, game))))
    hashes = hashed(boards[:, permutations])
    hashes = np.asarray(hashes)
    assert (hashes == hashes[:, :1]).all()
    classes = {
        min(board[p].tobytes() for p in permutations): code
        for board, code in zip(np.asarray(boards), hashes[:, 0], strict=True)
    }
    # In one row the three outer edges of the last box all change places: fewer classes still.
    assert len(set(classes.values())) == len(classes) or game.rows == 1


def test_a_small_share_is_held_out():
    game = DotsAndBoxes(3, 3)
    boards = random_positions(game, False, 20_000, jax.random.key(1))
    boards = np.unique(np.asarray(boards), axis=0)
    share = np.mean(jax.jit(jax.vmap(partial(held_out, game)))(boards))
    assert HELD_OUT_SHARE / 2 < share < 2 * HELD_OUT_SHARE


def test_no_image_of_a_test_position_is_learnt_from(labels):
    assert 0 < len(labels.test) < 1000
    learnt = np.concatenate([draw(labels, seed=seed).drawn for seed in range(8)])
    assert not images(labels.test.drawn) & {board.tobytes() for board in learnt}


def test_positions_of_the_table_have_the_values_of_the_solver(labels):
    positions = jax.device_get(draw(labels, 40))
    for drawn, policy, margin in zip(*positions[:3], strict=True):
        values = move_values(GAME, drawn)
        assert margin == values.max()
        np.testing.assert_allclose(policy, (values == margin) / (values == margin).sum())
    for drawn, moves in zip(labels.test.drawn[:20], labels.test.moves[:20], strict=True):
        np.testing.assert_array_equal(moves, move_values(GAME, drawn))


def test_positions_are_unfinished_and_quiet_where_the_search_is():
    labels = make_labels(config("quiet"), None)
    drawn = np.concatenate([draw(labels).drawn, labels.test.drawn])
    assert not drawn.all(axis=1).any()
    quiet = analyse(GAME)(drawn).quiet
    np.testing.assert_array_equal(drawn, quiet)


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> tuple:
    suite = table_suite(GAME, positions=600)
    path = tmp_path_factory.mktemp("labels") / "labels.npz"
    write_suite(suite, path)
    return suite, path


@pytest.mark.parametrize("nodes", ["all", "quiet"])
def test_stored_positions_are_split_and_turned(stored, nodes):
    suite, path = stored
    labels = make_labels(config(nodes), path)
    assert labels.positions < len(suite)
    assert not images(labels.test.drawn) & images(labels.data[0])
    positions = jax.device_get(draw(labels, 40))
    for drawn, margin in zip(positions.drawn, positions.margin, strict=True):
        assert margin == move_values(GAME, drawn).max()
    if nodes == "all":
        assert not {p.tobytes() for p in positions.drawn} <= {p.tobytes() for p in suite.drawn}


def test_what_cannot_be_used_is_named(stored, tmp_path):
    with pytest.raises(InputError, match="labels: 5x2 has 27 edges"):
        make_labels(config(rows=5), None)
    with pytest.raises(InputError, match="is of a 2x2 board, not 3x2"):
        make_labels(config(rows=3), stored[1])
    with pytest.raises(InputError, match="cannot be read"):
        make_labels(config(), tmp_path / "nothing.npz")
    suite, out = stored[0], jax.vmap(partial(held_out, GAME))(stored[0].drawn)
    rows = np.flatnonzero(~np.asarray(out))[:2]
    few = Suite("few", GAME, suite.drawn[rows], suite.moves[rows], suite.origin[rows])
    write_suite(few, tmp_path / "few.npz")
    with pytest.raises(InputError, match="has 2 positions, too few to hold some out"):
        make_labels(config("all"), tmp_path / "few.npz")
