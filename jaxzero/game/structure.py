"""The structure of a position: free boxes, chains, loops and safe edges.

A box with three drawn sides is free: the mover can take it, and taking it may free the next. A
position without a free box is quiet. In a quiet position the boxes with two open sides form chains
and loops, joined through open sides. An edge that touches none of them is safe. A box with three or
four open sides is a joint. A chain that ends at a joint later becomes part of a longer one.

The number of rounds is known at compile time, so the host never waits for the GPU. Taking free
boxes and following chains take as many rounds as there are boxes. On sets of boxes a round is a few
operations, and a compiler fuses several rounds into one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_, or_
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.game.rules import DotsAndBoxes, highest_beside, sides_of_boxes

# Rounds in one kernel, at most. With more, XLA on a CPU computes the same values many times.
FUSED_ROUNDS = 8
WORD = 32  # bits


class Structure(NamedTuple):
    """The structure of one position; `quiet` is the position after all free boxes are taken."""

    taken: jax.Array  # [] int32, free boxes: all boxes that the mover can take now
    declined: jax.Array  # [] int32, free boxes that the mover can leave at the end: 0, 2 or 4
    quiet: jax.Array  # [A] bool, edges drawn once all free boxes are taken
    safe: jax.Array  # [A] bool, edges that give no box away in the quiet position
    free: jax.Array  # [rows, cols] bool, the free boxes
    length: jax.Array  # [rows, cols] int32, boxes of the chain or loop here in `quiet`; 0: none
    loop: jax.Array  # [rows, cols] bool, the boxes of loops in `quiet`
    open_sides: jax.Array  # [rows, cols] int32, sides not drawn in `quiet`
    first: jax.Array  # [rows, cols] int32, first box of the chain or loop here; num_boxes: none
    joined: jax.Array  # [rows, cols] int32, number of chain ends that touch a joint, 0-2


# Programs call `structure` in several places; JAX traces it once and inlines it.
@partial(jax.jit, static_argnums=0, inline=True)
def find_structure(board: DotsAndBoxes, drawn: jax.Array) -> Structure:
    """Analyse one position, given by its drawn edges [A] bool."""
    chex.assert_shape(drawn, (board.num_edges,), custom_message="drawn")
    before = Sides(*(pack(board, side) for side in sides_of_boxes(board, drawn)))
    after = take_all(before)
    taken = four(after) - four(before)
    above, below, left, right = (unpack(side) for side in after)
    quiet = jnp.concatenate(
        [above.ravel(), below[-1], jnp.concatenate([left, right[:, -1:]], axis=1).ravel()]
    )
    chained = unpack(two(after))
    length, loop, first, joined = find_components(after)
    return Structure(
        taken=taken.count(),
        declined=_declined(before, after, taken),
        quiet=quiet,
        safe=~quiet & ~(highest_beside(chained.astype(jnp.int32)) > 0),
        free=unpack(taken),
        open_sides=4 - sum(side.astype(jnp.int32) for side in (above, below, left, right)),
        length=length,
        loop=loop,
        first=first,
        joined=joined,
    )


def first_boxes(structure: Structure) -> jax.Array:
    """Mark the first box of every chain and loop: [rows, cols] bool."""
    return structure.first == jnp.arange(structure.first.size, dtype=jnp.int32).reshape(
        structure.first.shape
    )


class Sides(NamedTuple):
    """The boxes with a drawn edge on each side."""

    above: BoxSet
    below: BoxSet
    left: BoxSet
    right: BoxSet


def two_or_more(sides: Sides) -> BoxSet:
    above, below, left, right = sides
    return (above & below) | (left & right) | ((above | below) & (left | right))


def three_or_more(sides: Sides) -> BoxSet:
    above, below, left, right = sides
    return (above & below & (left | right)) | ((above | below) & left & right)


def four(sides: Sides) -> BoxSet:
    above, below, left, right = sides
    return above & below & left & right


def two(sides: Sides) -> BoxSet:
    return two_or_more(sides) - three_or_more(sides)


def beside(boxes: BoxSet) -> Sides:
    """Return the boxes that have a box of the set above, below, left and right of them."""
    return Sides(boxes.down(), boxes.up(), boxes.right(), boxes.left())


def take_all(drawn: Sides) -> Sides:
    """Close every box with three drawn sides until no such box is left."""

    def around(closed: BoxSet) -> Sides:
        near = zip(drawn, beside(closed), strict=True)
        return Sides(*(side | closed | other for side, other in near))

    # Every round closes at least one box, until nothing is left to close.
    board = drawn.above.board
    closed = repeat(board.num_boxes, lambda closed: three_or_more(around(closed)), four(drawn))
    return around(closed)


def repeat(rounds: int, step: Callable[[BoxSet], BoxSet], boxes: BoxSet) -> BoxSet:
    """Apply `step` at least `rounds` times; further rounds must change nothing."""
    blocks = -(-rounds // FUSED_ROUNDS)

    def block(_, words: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        for _ in range(-(-rounds // blocks)):
            words = step(BoxSet(boxes.board, words)).words
        return words

    return BoxSet(boxes.board, jax.lax.fori_loop(0, blocks, block, boxes.words))


def _declined(before: Sides, after: Sides, taken: BoxSet) -> jax.Array:
    """Return how many of the `taken` boxes the mover can leave: [] int32.

    2 if the boxes include a half-open chain of at least two: its outer edge leaves two boxes. Else
    4 if they include a closed chain of at least four: an inner edge leaves four boxes. A box that
    was free from the start is the end of a chain; its missing edge takes the box.
    """
    inner = taken - three_or_more(before)
    new = [inner & late - early for late, early in zip(after, before, strict=True)]
    outer = (edge - near for edge, near in zip(new, beside(taken), strict=True))
    within = (edge & near for edge, near in zip(new, beside(inner), strict=True))
    leaves_two, leaves_four = (reduce(or_, boxes).any() for boxes in (outer, within))
    return jnp.where(leaves_two, 2, jnp.where(leaves_four, 4, 0)).astype(jnp.int32)


def find_components(drawn: Sides) -> tuple[jax.Array, ...]:
    """Return `length`, `loop`, `first` and `joined` of a `Structure` for a quiet position."""
    board, chained, joint = drawn.above.board, two(drawn), ~two_or_more(drawn)

    def leading_to(boxes: BoxSet) -> Sides:
        """Return the chained boxes with an open side to one of `boxes`, for each side."""
        near = zip(drawn, beside(boxes), strict=True)
        return Sides(*(chained & other - side for side, other in near))

    links, to_joints = leading_to(chained), leading_to(joint)

    # Follow the links from every box of a chain or loop at once.
    def spread(reached: BoxSet) -> BoxSet:
        near = zip(beside(reached), links, strict=True)
        return reduce(or_, (boxes & link for boxes, link in near), reached)

    reached = repeat(board.num_boxes, spread, one_each(board) & chained)
    # The two ends of a chain have fewer than two links; a loop has no end.
    ends = chained - two_or_more(links)
    some = reduce(or_, to_joints)
    loop = reached.any() & ~(reached & ends).any()
    joined = (reached & some).count() + (reached & two_or_more(to_joints)).count()
    return reached.count(), loop, reached.first(), joined


@dataclass(frozen=True)
class BoxSet:
    """A set of boxes of one board, as bits; words with axes make an array of sets.

    A word of 32 bits holds as many whole rows as fit, each of at most 32 boxes; its lowest bit is
    its first box. A board of 5 x 5 boxes takes one word, a board of 7 x 7 takes two. The words are
    separate arrays, so that a compiler fuses long sequences of operations into one kernel.
    """

    board: DotsAndBoxes
    words: tuple[jax.Array, ...]  # [...] uint32 each

    def __and__(self, other: BoxSet) -> BoxSet:
        return self._merge(and_, other)

    def __or__(self, other: BoxSet) -> BoxSet:
        return self._merge(or_, other)

    def __invert__(self) -> BoxSet:
        return self._map(lambda word: ~word) & every_box(self.board)

    def __sub__(self, other: BoxSet) -> BoxSet:
        return self._merge(lambda word, out: word & ~out, other)

    def any(self) -> jax.Array:
        """Return whether the set has a box: [...] bool."""
        return reduce(or_, self.words) > 0

    def count(self) -> jax.Array:
        """Return the number of boxes: [...] int32."""
        return sum(jax.lax.population_count(word).astype(jnp.int32) for word in self.words)

    def first(self) -> jax.Array:
        """Return the first box: [...] int32; `num_boxes` for an empty set."""
        first = jnp.int32(self.board.num_boxes)
        size = rows_per_word(self.board) * self.board.cols
        for number, word in reversed(list(enumerate(self.words))):
            place = jax.lax.population_count((word & (~word + 1)) - 1).astype(jnp.int32)
            first = jnp.where(word > 0, number * size + place, first)
        return first

    # Move every box of the set by one; boxes that leave the board are dropped.

    def right(self) -> BoxSet:
        return self._map(lambda word: word << 1) & _columns(self.board, 1, self.board.cols)

    def left(self) -> BoxSet:
        return self._map(lambda word: word >> 1) & _columns(self.board, 0, self.board.cols - 1)

    def down(self) -> BoxSet:
        last = (rows_per_word(self.board) - 1) * self.board.cols
        carried = [jnp.uint32(0), *(word >> last for word in self.words[:-1])]
        moved = self._map(lambda word: word << self.board.cols) & every_box(self.board)
        return moved | BoxSet(self.board, tuple(carried))

    def up(self) -> BoxSet:
        last = (rows_per_word(self.board) - 1) * self.board.cols
        carried = [*(word << last for word in self.words[1:]), jnp.uint32(0)]
        moved = self._map(lambda word: word >> self.board.cols)
        return (moved | BoxSet(self.board, tuple(carried))) & every_box(self.board)

    def _map(self, operation: Callable) -> BoxSet:
        return BoxSet(self.board, tuple(map(operation, self.words)))

    def _merge(self, operation: Callable, other: BoxSet) -> BoxSet:
        return BoxSet(self.board, tuple(map(operation, self.words, other.words)))


def rows_per_word(board: DotsAndBoxes) -> int:
    """Return how many rows of boxes one word holds."""
    return min(board.rows, WORD // board.cols)


def pack(board: DotsAndBoxes, boxes: jax.Array) -> BoxSet:
    """Return the set of the boxes that are true in [rows, cols] bool."""
    bits = (
        part.ravel().astype(jnp.uint32) << jnp.arange(part.size, dtype=jnp.uint32)
        for part in _by_word(board, boxes)
    )
    return BoxSet(board, tuple(jnp.sum(word, dtype=jnp.uint32) for word in bits))


def unpack(boxes: BoxSet) -> jax.Array:
    """Return whether each box is in one set: [rows, cols] bool."""
    board = boxes.board
    places = jnp.arange(rows_per_word(board) * board.cols, dtype=jnp.uint32)
    bits = [(word >> places) & 1 > 0 for word in boxes.words]
    joined = bits[0] if len(bits) == 1 else jnp.concatenate(bits)
    return joined[: board.num_boxes].reshape(board.rows, board.cols)


def one_each(board: DotsAndBoxes) -> BoxSet:
    """Return all singleton sets; words [rows, cols]."""
    alone = np.eye(board.num_boxes, dtype=bool).reshape(-1, board.rows, board.cols)
    sets = zip(*(_constant(board, boxes) for boxes in alone), strict=True)
    shape = board.rows, board.cols
    return BoxSet(board, tuple(jnp.array(words, jnp.uint32).reshape(shape) for words in sets))


def every_box(board: DotsAndBoxes) -> BoxSet:
    """Return the set of all boxes."""
    return _columns(board, 0, board.cols)


def _columns(board: DotsAndBoxes, first: int, end: int) -> BoxSet:
    boxes = np.zeros((board.rows, board.cols), bool)
    boxes[:, first:end] = True
    return BoxSet(board, tuple(map(jnp.uint32, _constant(board, boxes))))


def _constant(board: DotsAndBoxes, boxes: np.ndarray) -> list[int]:
    """Return the words of a set that is constant at compile time, [rows, cols] bool."""
    return [sum(1 << int(i) for i in np.flatnonzero(part)) for part in _by_word(board, boxes)]


def _by_word(board: DotsAndBoxes, boxes: jax.Array | np.ndarray) -> Iterable:
    """Split boxes [rows, cols] into the rows of each word."""
    step = rows_per_word(board)
    return (boxes[row : row + step] for row in range(0, board.rows, step))
