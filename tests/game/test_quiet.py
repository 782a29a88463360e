"""Test that the quiet game has the values of the whole game and can be played edge by edge."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from compiled import analyse
from referee import Referee, boxes_of
from tablebase import build_table, table_value

from jaxzero.game import DotsAndBoxes, edge_permutations
from jaxzero.game.quiet import (
    closing_edge,
    declines,
    equivalence,
    fold,
    max_decisions,
    min_decisions,
    quiet_moves,
    spread,
    whole_value,
)
from jaxzero.game.structure import find_structure

CHUNK = 1 << 13


def random_boards(board: DotsAndBoxes, count: int, least: float = 0.0) -> jax.Array:
    rng = np.random.default_rng(board.num_edges)
    return jnp.asarray(rng.random((count, board.num_edges)) < np.linspace(least, 1, count)[:, None])


def after_each_edge(board: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    return drawn[None, :] | jnp.eye(board.num_edges, dtype=bool)


def drawn_in(board: DotsAndBoxes, code: jax.Array) -> jax.Array:
    return (code >> jnp.arange(board.num_edges)) & 1 > 0


def test_the_best_quiet_move_has_the_value_of_the_position():
    """Value, openings and best move of every quiet position of 2x3: chains as 1x4, loops as 2x2."""
    board = DotsAndBoxes(2, 3)
    table = build_table(board)

    @jax.jit
    @jax.vmap
    def claims(code: jax.Array) -> tuple[jax.Array, ...]:
        drawn = drawn_in(board, code)
        structure = find_structure(board, drawn)
        moves, canonical = quiet_moves(board, structure), equivalence(board, structure).canonical
        after = after_each_edge(board, drawn)
        there = jax.vmap(partial(find_structure, board))(after)
        behind = jax.vmap(partial(table_value, table))(there.quiet)
        worth = -whole_value(there, behind, declines(there, behind))
        equal = worth == -jax.vmap(partial(table_value, table))(after)
        best = jnp.max(jnp.where(moves, worth, -board.num_boxes - 1))
        stands = moves[canonical] & (worth <= worth[canonical])
        return (
            drawn.all() | (best == table_value(table, drawn)),
            jnp.all(drawn | equal),
            jnp.all(drawn | stands),
        )

    is_quiet = jax.jit(
        jax.vmap(lambda code: find_structure(board, drawn_in(board, code)).taken == 0)
    )
    firsts = range(0, 1 << board.num_edges, CHUNK)
    quiet = np.concatenate([i + np.flatnonzero(is_quiet(jnp.arange(i, i + CHUNK))) for i in firsts])
    quiet = np.concatenate([quiet, np.full(-len(quiet) % CHUNK, quiet[0])])  # pad to whole chunks
    for codes in quiet.reshape(-1, CHUNK):
        for claim in jax.device_get(claims(jnp.asarray(codes))):
            assert claim.all()


def test_the_value_follows_from_the_quiet_position():
    board = DotsAndBoxes(2, 3)
    table = build_table(board)

    @jax.jit
    @jax.vmap
    def values(drawn):
        structure = find_structure(board, drawn)
        value = table_value(table, structure.quiet)
        return whole_value(structure, value, declines(structure, value)), table_value(table, drawn)

    np.testing.assert_array_equal(*values(random_boards(board, 2000)))


def test_one_edge_stands_for_each_chain_and_loop():
    """All edges of one move open the same boxes; the canonical edge gives the least choice."""
    board = DotsAndBoxes(4, 4)
    boxes = boxes_of(board)

    @jax.jit
    @jax.vmap
    def look(drawn):
        structure = find_structure(board, find_structure(board, drawn).quiet)
        there = jax.vmap(partial(find_structure, board))(after_each_edge(board, structure.quiet))
        return (
            structure,
            quiet_moves(board, structure),
            equivalence(board, structure).canonical,
            there,
        )

    structure, moves, canonical, there = jax.device_get(look(random_boards(board, 300, least=0.3)))
    choice = np.select([there.declined == 0, there.declined == 4], [0, 1], 2)
    for i in range(len(structure.quiet)):
        first, length = structure.first[i].ravel(), structure.length[i].ravel()
        chains = np.unique(first[length > 0])
        assert moves[i].sum() == structure.safe[i].sum() + len(chains)
        for edge in np.flatnonzero(~structure.quiet[i]):
            one = canonical[i, edge]
            chain, its = (
                {first[b] for b, sides in enumerate(boxes) if e in sides and length[b]}
                for e in (edge, one)
            )
            assert moves[i, one] and chain == its and (chain or one == edge)
            assert there.taken[i, one] == there.taken[i, edge]
            np.testing.assert_array_equal(there.quiet[i, one], there.quiet[i, edge])
            assert choice[i, one] <= choice[i, edge]


def test_weights_are_spread_over_equal_edges_by_symmetry_and_folded_back():
    board = DotsAndBoxes(4, 4)
    drawn = random_boards(board, 100)
    weights = jax.random.uniform(jax.random.key(0), drawn.shape)

    @jax.jit
    @jax.vmap
    def there_and_back(drawn, weights):
        structure = find_structure(board, drawn)
        weights = jnp.where(quiet_moves(board, structure), weights, 0)
        shared = spread(board, structure, weights)
        return weights, shared, fold(board, structure, shared), structure.quiet

    weights, shared, folded, quiet = there_and_back(drawn, weights)
    np.testing.assert_allclose(folded, weights, rtol=1e-5)
    assert float(jnp.where(quiet, shared, 0).max()) == 0
    even = there_and_back(drawn, jnp.ones(drawn.shape))[1]
    for permutation in edge_permutations(board):
        image = there_and_back(drawn[:, permutation], jnp.ones(drawn.shape))[1]
        np.testing.assert_allclose(image, even[:, permutation])


def test_decisions_about_free_boxes_are_carried_out_edge_by_edge():
    board = DotsAndBoxes(3, 3)
    look = analyse(board)
    choose = jax.jit(jax.vmap(partial(closing_edge, board)))
    drawn = random_boards(board, 400, least=0.4)
    structure = look(drawn)
    for decline in (False, True):
        open_now = np.asarray((structure.declined if decline else structure.taken) > 0)
        boards, still = np.asarray(drawn)[open_now].copy(), np.ones(open_now.sum(), bool)
        start = jax.tree.map(lambda x, keep=open_now: np.asarray(x)[keep], structure)
        closed = np.zeros(len(boards), int)
        while still.any():
            now = look(boards)
            edges = np.asarray(choose(boards, now, np.full(len(boards), decline)))
            for i in np.flatnonzero(still):
                assert not boards[i, edges[i]]
                referee = Referee(board)
                referee.drawn = set(np.flatnonzero(boards[i]).tolist())
                gained = referee.play(int(edges[i]))
                closed[i] += gained
                boards[i, edges[i]] = True
                # Declining ends with an edge that closes nothing; taking ends with the last box.
                still[i] = gained > 0 if decline else closed[i] < start.taken[i]
        left = look(boards)
        np.testing.assert_array_equal(left.quiet, start.quiet)
        expected = start.taken - start.declined if decline else start.taken
        np.testing.assert_array_equal(closed, expected)
        np.testing.assert_array_equal(left.taken, start.declined if decline else 0)


def test_games_have_the_decisions_they_can_have():
    board = DotsAndBoxes(5, 5)

    def play(key):
        def decide(carry):
            drawn, key, count = carry
            key, own = jax.random.split(key)
            moves = quiet_moves(board, find_structure(board, drawn))
            edge = jax.random.categorical(own, jnp.where(moves, 0.0, -jnp.inf))
            opened = find_structure(board, drawn | (jnp.arange(board.num_edges) == edge))
            return opened.quiet, key, count + 1

        start = (jnp.zeros(board.num_edges, bool), key, 0)
        return jax.lax.while_loop(lambda carry: ~carry[0].all(), decide, start)[2]

    counts = np.asarray(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 200)))
    assert counts.min() == min_decisions(board)
    assert min_decisions(board) < counts.max() <= max_decisions(board)  # there were loops
