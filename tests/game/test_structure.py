"""Test that the structure and its features equal those found box by box in plain Python."""

from __future__ import annotations

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import analyse
from referee import boxes_of

from jaxzero.game import DotsAndBoxes, automorphisms, box_sides, box_sides_table
from jaxzero.game.structure import find_structure
from jaxzero.heads import margin_mask
from jaxzero.network.features import (
    BOX_CLASSES,
    EDGE_CLASSES,
    LENGTHS_PLANE,
    PLANES,
    STRUCTURE_PLANES,
    board_planes,
    edges_from_planes,
    structure_features,
    structure_planes,
    unpack_planes,
)


def boards(board: DotsAndBoxes, count: int) -> np.ndarray:
    """Return random boards, from empty to full: [count, A] bool."""
    rng = np.random.default_rng(board.num_edges)
    return rng.random((count, board.num_edges)) < np.linspace(0, 1, count)[:, None]


@cache
def features_of(board: DotsAndBoxes):
    """Return the features of boards [B, A] and of their structures, compiled."""
    return jax.jit(jax.vmap(partial(structure_features, board)))


class Plain:
    """One position in plain Python."""

    def __init__(self, board: DotsAndBoxes, drawn: np.ndarray):
        self.boxes = boxes_of(board)
        self.edges = set(range(board.num_edges))
        at_first = set(np.flatnonzero(drawn).tolist())
        self.quiet = set(at_first)
        while ready := [box for box in self.boxes if len(box - self.quiet) == 1]:
            self.quiet |= ready[0]
        self.free = {
            i for i, box in enumerate(self.boxes) if at_first < at_first | box <= self.quiet
        }
        self.open = [box - self.quiet for box in self.boxes]
        self.chained = {i for i, sides in enumerate(self.open) if len(sides) == 2}

    def safe(self) -> set[int]:
        touched = set().union(*(self.boxes[i] for i in self.chained))
        return self.edges - self.quiet - touched

    def component(self, box: int) -> set[int]:
        found, todo = set(), [box]
        while todo:
            here = todo.pop()
            if here not in found:
                found.add(here)
                todo += [other for other in self.chained if self.open[here] & self.open[other]]
        return found

    def joined(self, component: set[int]) -> int:
        """Count the open edges that lead from a chain to a box outside it."""
        others = [self.open[i] for i in range(len(self.boxes)) if i not in component]
        inside = set().union(*(self.open[i] for i in component))
        return sum(edge in other for edge in inside for other in others)

    def is_loop(self, component: set[int]) -> bool:
        """Return whether a component has as many open edges as boxes, as only loops have."""
        return len(set().union(*(self.open[i] for i in component))) == len(component)


@pytest.mark.parametrize(("rows", "cols"), [(1, 4), (3, 3), (4, 6)])
def test_equals_plain_python(rows, cols):
    board = DotsAndBoxes(rows, cols)
    drawn = boards(board, 120)
    found = jax.device_get(analyse(board)(drawn))
    for i, row in enumerate(drawn):
        plain = Plain(board, row)
        assert set(np.flatnonzero(found.quiet[i])) == plain.quiet
        assert set(np.flatnonzero(found.free[i].ravel())) == plain.free
        assert found.taken[i] == len(plain.free)
        assert set(np.flatnonzero(found.safe[i])) == plain.safe()
        assert found.open_sides[i].ravel().tolist() == [len(sides) for sides in plain.open]
        for box in range(board.num_boxes):
            component = plain.component(box) if box in plain.chained else set()
            assert found.length[i].ravel()[box] == len(component)
            assert found.loop[i].ravel()[box] == (bool(component) and plain.is_loop(component))
            assert found.joined[i].ravel()[box] == plain.joined(component)


def test_what_closed_chains_and_stars_leave():
    chain = DotsAndBoxes(1, 4), [9, 10, 11]  # the three edges inside
    star = DotsAndBoxes(2, 3), [4, 10, 11]  # three arms of one box around a box
    for (board, undrawn), declined in ((chain, 4), (star, 0)):
        drawn = ~np.isin(np.arange(board.num_edges), undrawn)[None]
        found = analyse(board)(drawn)
        assert (int(found.taken[0]), int(found.declined[0])) == (4, declined)


def test_symmetric_boards_have_symmetric_inputs():
    """The inputs of the image of a position are the images of its inputs."""
    board = DotsAndBoxes(3, 3)
    drawn, sides = jnp.asarray(boards(board, 60)), box_sides_table(board)
    box_with = {frozenset(edges): box for box, edges in enumerate(sides.tolist())}

    @jax.jit
    @jax.vmap
    def look(drawn):
        seen = structure_features(board, drawn, find_structure(board, drawn))
        raw = unpack_planes(board_planes(board, drawn), len(PLANES)).astype(float)
        edges = edges_from_planes(board, jnp.stack([raw[..., 0:2], raw[..., 2:4]]))
        parts = seen.boxes, seen.joined, seen.lengths[..., None], raw[:3, :3, 4:]
        boxes = jnp.concatenate(parts, axis=-1).reshape(board.num_boxes, -1)
        edges = jnp.concatenate([seen.edges, edges.T], axis=-1)
        return edges, boxes, seen.counts, margin_mask(board, drawn)

    edges, boxes, *others = look(drawn)
    for permutation in automorphisms(board)[::3]:
        box_permutation = [box_with[frozenset(edges)] for edges in permutation[sides].tolist()]
        there = look(drawn[:, permutation])
        expected = edges[:, permutation], boxes[:, np.array(box_permutation)], *others
        jax.tree.map(np.testing.assert_array_equal, there, expected)


def test_classes_exclude_each_other_and_cover_all_that_is_open():
    board = DotsAndBoxes(4, 3)
    drawn = boards(board, 200)
    found = analyse(board)(drawn)
    seen = jax.device_get(features_of(board)(drawn, found))
    assert seen.edges.shape == (200, board.num_edges, len(EDGE_CLASSES))
    assert seen.boxes.shape == (200, 4, 3, len(BOX_CLASSES))
    np.testing.assert_array_equal(seen.edges.sum(-1), ~drawn)
    open_before = np.asarray(found.open_sides > 0) | found.free
    np.testing.assert_array_equal(seen.boxes.sum(-1), open_before)

    @jax.jit
    def planes_of(seen):
        words = jax.vmap(partial(structure_planes, board))(seen)
        planes = unpack_planes(words, STRUCTURE_PLANES)
        pairs = planes[..., LENGTHS_PLANE + 1 :].reshape(*planes.shape[:3], -1, 2)
        return planes, edges_from_planes(board, jnp.moveaxis(pairs, 3, 0))

    planes, on_grid = jax.device_get(planes_of(seen))
    boxes = np.concatenate([seen.boxes, seen.joined], axis=-1)
    np.testing.assert_array_equal(planes[:, :4, :3, :LENGTHS_PLANE], boxes)
    assert not planes[..., LENGTHS_PLANE].any()
    np.testing.assert_array_equal(on_grid, np.moveaxis(seen.edges, -1, 0))


def test_chains_joints_and_counts_by_hand():
    """Boards: one chain of three, two chains of three, a joint with three arms, one chain again."""
    board = DotsAndBoxes(3, 3)
    drawn, vertical = np.ones((4, board.num_edges), bool), board.num_horizontal
    drawn[:2, vertical : vertical + 4] = False
    drawn[1, vertical + 8 : vertical + 12] = False
    drawn[2:, [1, 4, 7, 10]] = False  # down the middle column
    drawn[2, [vertical + 4, vertical + 5]] = False  # to the left of it
    found = analyse(board)(drawn)
    assert found.length[:2].tolist() == [[[3] * 3, [0] * 3, [i] * 3] for i in (0, 3)]
    assert found.joined[2].tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
    assert found.length[3].ravel().tolist() == [0, 3, 0] * 3 and not found.joined[3].any()
    seen = features_of(board)(drawn, found)
    assert (seen.counts[0] != seen.counts[1]).sum() >= 5
    assert seen.joined.sum(axis=(1, 2)).tolist() == [[0, 0], [0, 0], [3, 0], [0, 0]]


def test_planes_hold_what_they_say():
    board = DotsAndBoxes(2, 3)
    drawn = np.zeros(board.num_edges, bool)
    drawn[[0, 3, 9, 10]] = True  # the box in the top left corner, closed
    planes = np.asarray(unpack_planes(board_planes(board, jnp.asarray(drawn)), len(PLANES)))
    assert planes.shape == (3, 4, 10)
    assert planes[0, 0, 0] and planes[1, 0, 0] and planes[0, 0, 1] and planes[0, 1, 1]
    assert planes[..., 0].sum() == planes[..., 1].sum() == 2
    assert planes[..., 2].sum() == 9 - 2 and planes[..., 3].sum() == 8 - 2
    assert planes[0, 0, 8] and planes[..., 8].sum() == 1
    assert planes[..., 9].sum() == 6 and not planes[2, :, 9].any() and not planes[:, 3, 9].any()
    np.testing.assert_array_equal(box_sides(board, jnp.asarray(drawn)), [[4, 1, 0], [1, 0, 0]])
