"""Sets of boxes as bits, so that a rule about all boxes of a board is a few bitwise operations.

A word of 32 bits holds as many whole rows as fit, each of at most 32 boxes; its lowest bit is its
first box. A board of 5 x 5 boxes takes one word, a board of 7 x 7 takes two. The words are separate
arrays, so that a compiler fuses long sequences of operations into one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.game.rules import DotsAndBoxes

WORD = 32  # bits


@dataclass(frozen=True)
class BoxSet:
    """A set of boxes of one board; words with axes make an array of sets."""

    game: DotsAndBoxes
    words: tuple[jax.Array, ...]  # [...] uint32 each

    def __and__(self, other: BoxSet) -> BoxSet:
        return self._merge(and_, other)

    def __or__(self, other: BoxSet) -> BoxSet:
        return self._merge(or_, other)

    def __invert__(self) -> BoxSet:
        return self._map(lambda word: ~word) & every_box(self.game)

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
        found = jnp.int32(self.game.num_boxes)
        size = rows_per_word(self.game) * self.game.cols
        for number, word in reversed(list(enumerate(self.words))):
            place = jax.lax.population_count((word & (~word + 1)) - 1).astype(jnp.int32)
            found = jnp.where(word > 0, number * size + place, found)
        return found

    # Move every box of the set by one; boxes that leave the board are dropped.

    def right(self) -> BoxSet:
        return self._map(lambda word: word << 1) & _columns(self.game, 1, self.game.cols)

    def left(self) -> BoxSet:
        return self._map(lambda word: word >> 1) & _columns(self.game, 0, self.game.cols - 1)

    def down(self) -> BoxSet:
        last = (rows_per_word(self.game) - 1) * self.game.cols
        carried = [jnp.uint32(0), *(word >> last for word in self.words[:-1])]
        moved = self._map(lambda word: word << self.game.cols) & every_box(self.game)
        return moved | BoxSet(self.game, tuple(carried))

    def up(self) -> BoxSet:
        last = (rows_per_word(self.game) - 1) * self.game.cols
        carried = [*(word << last for word in self.words[1:]), jnp.uint32(0)]
        moved = self._map(lambda word: word >> self.game.cols)
        return (moved | BoxSet(self.game, tuple(carried))) & every_box(self.game)

    def _map(self, operation: Callable) -> BoxSet:
        return BoxSet(self.game, tuple(map(operation, self.words)))

    def _merge(self, operation: Callable, other: BoxSet) -> BoxSet:
        return BoxSet(self.game, tuple(map(operation, self.words, other.words)))


def rows_per_word(game: DotsAndBoxes) -> int:
    """Return how many rows of boxes one word holds."""
    return min(game.rows, WORD // game.cols)


def pack(game: DotsAndBoxes, boxes: jax.Array) -> BoxSet:
    """Return the set of the boxes that are true in [rows, cols] bool."""
    bits = (
        part.ravel().astype(jnp.uint32) << jnp.arange(part.size, dtype=jnp.uint32)
        for part in _by_word(game, boxes)
    )
    return BoxSet(game, tuple(jnp.sum(word, dtype=jnp.uint32) for word in bits))


def unpack(boxes: BoxSet) -> jax.Array:
    """Return whether each box is in one set: [rows, cols] bool."""
    game = boxes.game
    places = jnp.arange(rows_per_word(game) * game.cols, dtype=jnp.uint32)
    bits = [(word >> places) & 1 > 0 for word in boxes.words]
    joined = bits[0] if len(bits) == 1 else jnp.concatenate(bits)
    return joined[: game.num_boxes].reshape(game.rows, game.cols)


def one_each(game: DotsAndBoxes) -> BoxSet:
    """Return a set for every box that holds only this box; words [rows, cols]."""
    alone = np.eye(game.num_boxes, dtype=bool).reshape(-1, game.rows, game.cols)
    sets = zip(*(_constant(game, boxes) for boxes in alone), strict=True)
    shape = game.rows, game.cols
    return BoxSet(game, tuple(jnp.array(words, jnp.uint32).reshape(shape) for words in sets))


def every_box(game: DotsAndBoxes) -> BoxSet:
    """Return the set of all boxes."""
    return _columns(game, 0, game.cols)


def _columns(game: DotsAndBoxes, first: int, end: int) -> BoxSet:
    boxes = np.zeros((game.rows, game.cols), bool)
    boxes[:, first:end] = True
    return BoxSet(game, tuple(map(jnp.uint32, _constant(game, boxes))))


def _constant(game: DotsAndBoxes, boxes: np.ndarray) -> list[int]:
    """Return the words of a set that is constant at compile time, [rows, cols] bool."""
    return [sum(1 << int(i) for i in np.flatnonzero(part)) for part in _by_word(game, boxes)]


def _by_word(game: DotsAndBoxes, boxes: jax.Array | np.ndarray) -> Iterable:
    """Split boxes [rows, cols] into the rows of each word."""
    step = rows_per_word(game)
    return (boxes[row : row + step] for row in range(0, game.rows, step))
