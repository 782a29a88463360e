"""Positions with exact labels, to learn from and to test on.

They come without end from the table of a small board, or from a file of solved positions. A fixed
share of all positions is held out for the test. A hash decides which. A position and its images
under the symmetries have the same hash, so no image of a test position is ever learnt from.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, automorphisms, edge_permutations
from jaxzero.game.structure import structure
from jaxzero.measure.suite import Suite, read_suite
from jaxzero.solver.tablebase import ILLEGAL, Table, build_table, move_values
from jaxzero.training.evaluator import TABLE_EDGES
from jaxzero.training.learner import augment
from jaxzero.training.targets import Positions

HELD_OUT_SHARE = 0.05  # of all positions
TEST_POSITIONS = 4096  # at most
SURPLUS = 2  # positions drawn for each position used; the others are held out or finished


class Labels(NamedTuple):
    """The source of the positions that a network learns from."""

    source: str  # "table" or the name of the file
    positions: int  # to learn from; 0: without end
    data: chex.ArrayTree  # the argument of `draw`, on the device
    draw: Callable[[chex.ArrayTree, jax.Array, int], Positions]  # (data, key, batch), compilable
    test: Suite  # held out


def make_labels(config: Config, file: Path | None) -> Labels:
    """Return the labels of a board, from `file` if given, else from the table of the board.

    With `search.nodes` quiet all positions are quiet: the agent evaluates no others.
    Raises: InputError if the board is too large for a table or the file cannot be used.
    """
    game, quiet = config.game.board, config.search.nodes == "quiet"
    if file is not None:
        return file_labels(game, quiet, config.learner.augmentation, file)
    if game.num_edges > TABLE_EDGES:
        raise InputError(
            f"labels: {game} has {game.num_edges} edges, a table here at most {TABLE_EDGES}; name "
            "a file with --labels (jaxzero make_suite --quiet makes one)"
        )
    return table_labels(game, quiet, config.seed)


def table_labels(game: DotsAndBoxes, quiet: bool, seed: int) -> Labels:
    """Return labels from the table of a board: positions of random play, evenly over the plies."""
    table = build_table(game)
    draw = partial(draw_from_table, game, quiet)
    candidates = jax.jit(partial(random_positions, game, quiet, 64 * TEST_POSITIONS))
    drawn = candidates(jax.random.key(seed))
    kept = jax.jit(jax.vmap(lambda d: held_out(game, d) & ~jnp.all(d)))(drawn)
    distinct, first = np.unique(np.asarray(drawn)[np.asarray(kept)], axis=0, return_index=True)
    distinct = distinct[np.argsort(first)][:TEST_POSITIONS]
    if not len(distinct):
        raise InputError(f"board: {game} has too few positions to hold some out")
    moves = jax.jit(jax.vmap(partial(move_values, game, table)))(distinct)
    origin = np.full(len(distinct), "random")
    test = Suite("held out", game, distinct, np.asarray(moves).astype(np.int8), origin)
    return Labels("table", 0, table, draw, test)


def random_positions(game: DotsAndBoxes, quiet: bool, count: int, key: jax.Array) -> jax.Array:
    """Draw positions of random play, evenly over its plies: [count, A] bool.

    With `quiet` all their free boxes are taken.
    """
    ply_key, order_key = jax.random.split(key)
    plies = jax.random.randint(ply_key, (count,), 0, game.num_edges)
    order = jax.random.uniform(order_key, (count, game.num_edges))

    def position(ply: jax.Array, order: jax.Array) -> jax.Array:
        # Random play draws the edges in random order. Comparing all pairs beats sorting.
        drawn = jnp.sum(order[None, :] < order[:, None], axis=1) < ply
        return structure(game, drawn).quiet if quiet else drawn

    return jax.vmap(position)(plies, order)


def draw_from_table(
    game: DotsAndBoxes, quiet: bool, table: Table, key: jax.Array, batch: int
) -> Positions:
    """Draw a batch of positions of random play that are neither held out nor finished."""
    drawn = random_positions(game, quiet, SURPLUS * batch, key)
    usable = jax.vmap(lambda d: ~held_out(game, d) & ~jnp.all(d))(drawn)
    first = jnp.argsort(~usable, stable=True)
    # If too few are usable, some come twice.
    rows = first[jnp.arange(batch) % jnp.maximum(1, jnp.sum(usable))]
    drawn = drawn[rows]
    return labelled(drawn, jax.vmap(partial(move_values, game, table))(drawn))


def file_labels(game: DotsAndBoxes, quiet: bool, symmetries: bool, path: Path) -> Labels:
    """Return the labels of a stored suite. Raises: InputError if it cannot be used."""
    suite = read_suite(path, str(path), game, "labels")
    boards = jnp.asarray(suite.drawn)
    usable = ~suite.drawn.all(axis=1)
    if quiet:
        behind = jax.jit(jax.vmap(lambda d: structure(game, d).quiet))(boards)
        usable &= (np.asarray(behind) == suite.drawn).all(axis=1)
    rows = np.flatnonzero(usable)
    kept = np.asarray(jax.jit(jax.vmap(partial(held_out, game)))(boards))[rows]
    # Files are often in the order of undrawn edges.
    chosen = np.random.default_rng(0).permutation(rows[kept])[:TEST_POSITIONS]
    learnt, test = rows[~kept], np.sort(chosen)
    if not len(learnt) or not len(test):
        kind = "quiet positions" if quiet else "positions"
        raise InputError(f"labels: {path} has {len(rows)} {kind}, too few to hold some out")
    data = jnp.asarray(suite.drawn[learnt]), jnp.asarray(suite.moves[learnt])
    held = Suite("held out", game, suite.drawn[test], suite.moves[test], suite.origin[test])
    return Labels(str(path), len(learnt), data, partial(draw_stored, game, symmetries), held)


def draw_stored(
    game: DotsAndBoxes,
    symmetries: bool,
    data: tuple[jax.Array, jax.Array],
    key: jax.Array,
    batch: int,
) -> Positions:
    """Draw a batch of stored positions (drawn [P, A], moves [P, A]), augmented by `symmetries`."""
    row_key, symmetry_key = jax.random.split(key)
    rows = jax.random.randint(row_key, (batch,), 0, len(data[0]))
    positions = labelled(*(part[rows] for part in data))
    if not symmetries:
        return positions
    return augment(jnp.asarray(edge_permutations(game)), symmetry_key, positions)


def labelled(drawn: jax.Array, moves: jax.Array) -> Positions:
    """Return positions [P, A] with the values of their moves [P, A] as targets."""
    moves = jnp.where(drawn, ILLEGAL, moves.astype(jnp.int32))
    value = jnp.max(moves, axis=1)
    best = (moves == value[:, None]).astype(jnp.float32)
    return Positions(
        drawn=drawn,
        policy=best / jnp.sum(best, axis=1, keepdims=True),
        margin=value,
        margin_known=jnp.ones(len(drawn), bool),
        policy_is_set=jnp.zeros(len(drawn), bool),
    )


def held_out(game: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return whether one position [A] bool is never trained on: [] bool."""
    return symmetric_hash(game, drawn) < jnp.uint32(HELD_OUT_SHARE * 2**32)


def symmetric_hash(game: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return a hash that a position [A] bool shares with its images: [] uint32."""
    chex.assert_shape(drawn, (game.num_edges,), custom_message="drawn")
    weights = jnp.asarray(_weights(game))
    codes = jnp.sum(jnp.where(drawn[None, :], weights, 0), axis=1, dtype=jnp.uint32)
    # All images have the same codes in another order; the sum ignores the order.
    return _mixed(jnp.sum(_mixed(codes), dtype=jnp.uint32))


@lru_cache
def _weights(game: DotsAndBoxes) -> np.ndarray:
    """Return a random weight per edge, under every symmetry: [S, A] uint32.

    Edges that change places in a corner weigh the same, which spares the images by such swaps.
    """
    weights = np.random.default_rng(0).integers(2**32, size=game.num_edges, dtype=np.uint32)
    permutations = edge_permutations(game)
    swaps = automorphisms(game)[:: len(permutations)]
    for swap in (*swaps, *swaps):  # twice: on small boards two corners share an edge
        weights = np.minimum(weights, weights[swap])
    return weights[permutations]


def _mixed(x: jax.Array) -> jax.Array:
    """Scatter the bits of numbers (the finaliser of MurmurHash3, Appleby 2011)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
