"""The inputs of the network: functions of the drawn edges only.

The boxes still to be won depend neither on the score nor on the side to move, so neither is an
input. Planes lie on the grid of dots, H = rows + 1 by W = cols + 1. A horizontal edge lies at the
dot on its left, a vertical edge at the dot above it, a box at its top left dot. Squares beyond the
board are 0.

The structure of the position is an input too. Counts modulo 2 over the whole board decide who must
open the first long chain. A network hardly learns these counts from edges, but quickly learns to
use them as inputs. A network with `network.features raw` has no structure (None) and gets only the
edges.
"""

from collections.abc import Sequence
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.game.quiet import min_decisions
from jaxzero.game.rules import DotsAndBoxes, box_sides, highest_beside, split_edges
from jaxzero.game.structure import Structure, first_boxes

PLANES = (
    "horizontal edges drawn",
    "vertical edges drawn",
    "horizontal edges legal",
    "vertical edges legal",
    "boxes with 0 sides",
    "boxes with 1 side",
    "boxes with 2 sides",
    "boxes with 3 sides",
    "boxes closed",
    "board mask of boxes",
)
EDGE_CLASSES = (
    "takes a box, now or after other free boxes",
    "safe",
    "opens a chain of one or two",
    "opens a longer chain",
    "opens a loop",
)
BOX_CLASSES = (
    "free",
    "in a chain of one",
    "in a chain of two",
    "in a chain of three",
    "in a longer chain",
    "in a loop",
    "three or four open sides",
)
JOINED_CLASSES = ("in a chain with one end at a joint", "in a chain with both ends at joints")
# The index of the lengths among the structure planes, and the number of structure planes.
LENGTHS_PLANE = len(BOX_CLASSES) + len(JOINED_CLASSES)
STRUCTURE_PLANES = LENGTHS_PLANE + 1 + 2 * len(EDGE_CLASSES)

LONGEST = 12  # boxes; longer chains are counted together with chains of this length
LOOPS = (4, 6, 8, 10)  # boxes; longer loops are counted together with loops of the last length
LONGEST_JOINED = 6  # boxes; as LONGEST, for chains that end at a joint
# Larger counts have the code of these largest counts.
MAX_CHAINS, MAX_LOOPS, MAX_LONG, MAX_JOINED = 6, 3, 9, 5
CONTROL = 16  # boxes; largest value of control, positive or negative
PLANES_GROUP = 16  # channels that a GPU's matrix units take at once


def edge_inputs(
    board: DotsAndBoxes, drawn: jax.Array, structure: Structure | None, dtype: jnp.dtype
) -> tuple[jax.Array]:
    """Return the inputs of a dense trunk: [B, A] bool to [B, K]."""
    chex.assert_shape(drawn, (None, board.num_edges), custom_message="drawn")
    # Centred bits: an empty board is as far from zero as a full one.
    inputs = drawn.astype(dtype) * 2 - 1
    if structure is None:
        return (inputs,)
    seen = jax.vmap(partial(structure_features, board))(drawn, structure)
    # Lengths of chains add no information for a trunk that sees the whole board at once.
    more = (seen.edges, seen.boxes, seen.counts, seen.joined)
    flat = [part.reshape(len(drawn), -1).astype(dtype) for part in more]
    return (jnp.concatenate([inputs, *flat], axis=-1),)


def grid_inputs(
    board: DotsAndBoxes, drawn: jax.Array, structure: Structure | None, dtype: jnp.dtype
) -> tuple[jax.Array, jax.Array]:
    """Return planes [B, H, W, F] on the grid of dots and counts [B, C]; C is 0 without a structure.

    The first `grid_planes` planes are used. The others are 0, because a GPU convolves whole groups.
    """
    chex.assert_shape(drawn, (None, board.num_edges), custom_message="drawn")
    used = grid_planes(structure is not None)
    width = -(-used // PLANES_GROUP) * PLANES_GROUP
    words = jax.vmap(partial(board_planes, board))(drawn)
    if structure is None:
        return unpack_planes(words, width).astype(dtype), jnp.zeros((len(drawn), 0), dtype)
    seen = jax.vmap(partial(structure_features, board))(drawn, structure)
    words |= jax.vmap(partial(structure_planes, board))(seen) << len(PLANES)
    planes = unpack_planes(words, width).astype(dtype)
    lengths = jax.vmap(partial(on_dots, board))(seen.lengths).astype(dtype)
    is_length = jnp.arange(width, dtype=jnp.int32) == len(PLANES) + LENGTHS_PLANE
    planes = jnp.where(is_length[None, None, None], lengths[..., None], planes)
    return planes, seen.counts.astype(dtype)


def grid_planes(structure: bool) -> int:
    """Return how many planes of `grid_inputs` are used, with the structure or without."""
    return len(PLANES) + (STRUCTURE_PLANES if structure else 0)


def board_planes(board: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return the planes named in `PLANES` for one board as bits, the first lowest: [H, W] uint32.

    The planes are bits, because a GPU is slow at building thirty planes side by side, while
    `unpack_planes` takes one pass.
    """
    horizontal, vertical = split_edges(board, drawn)
    sides = box_sides(board, drawn)
    boxes = [sides == count for count in range(5)]
    return (
        on_dots(board, pack_planes([horizontal, ~horizontal], 0, 2))
        | on_dots(board, pack_planes([vertical, ~vertical], 1, 2))
        | on_dots(board, pack_planes([*boxes, jnp.ones_like(boxes[0])], 4))
    )


def pack_planes(planes: Sequence[jax.Array], first: int, stride: int = 1) -> jax.Array:
    """Return planes [...] bool as bits `first`, `first` + `stride`, ...: [...] uint32."""
    bits = (plane.astype(jnp.uint32) << (first + stride * i) for i, plane in enumerate(planes))
    return reduce(or_, bits)


def unpack_planes(words: jax.Array, count: int) -> jax.Array:
    """Return bits 0 to `count` - 1 of words [...] as planes: [..., count] bool."""
    bits = jnp.arange(count, dtype=jnp.uint32).reshape((1,) * words.ndim + (-1,))
    return (words[..., None] >> bits) & 1 > 0


def on_dots(board: DotsAndBoxes, plane: jax.Array) -> jax.Array:
    """Pad a plane of edges or boxes to the grid of dots: [H, W]."""
    rows, cols = plane.shape
    return jnp.pad(plane, ((0, board.rows + 1 - rows), (0, board.cols + 1 - cols)))


def edges_from_planes(board: DotsAndBoxes, planes: jax.Array) -> jax.Array:
    """Read edges from planes of horizontals and verticals: [..., H, W, 2] to [..., A]."""
    horizontal = planes[..., :, : board.cols, 0]
    vertical = planes[..., : board.rows, :, 1]
    batch = planes.shape[:-3]
    return jnp.concatenate([horizontal.reshape(*batch, -1), vertical.reshape(*batch, -1)], axis=-1)


class StructureFeatures(NamedTuple):
    """The structure of one position as inputs."""

    edges: jax.Array  # [A, E] bool, one of `EDGE_CLASSES` or none, for open edges
    boxes: jax.Array  # [rows, cols, K] bool, one of `BOX_CLASSES` or none, for open boxes
    lengths: jax.Array  # [rows, cols] float32, length of the chain or loop here, share of all boxes
    counts: jax.Array  # [C] bool, counts over the whole board as one-hot codes and parities
    joined: jax.Array  # [rows, cols, J] bool, one of `JOINED_CLASSES` or none, for open boxes


def structure_features(
    board: DotsAndBoxes, drawn: jax.Array, structure: Structure
) -> StructureFeatures:
    """Encode the `structure` of one position with edges `drawn` [A]."""
    chex.assert_shape(drawn, (board.num_edges,), custom_message="drawn")
    chex.assert_shape(structure.length, (board.rows, board.cols), custom_message="structure.length")
    chain = jnp.where(structure.loop, 0, structure.length)
    loop = board.num_boxes + 1  # more than any chain, so one lookup per edge finds both
    opens = highest_beside(jnp.where(structure.loop, loop, chain))
    still = ~structure.quiet
    edges = [
        structure.quiet & ~drawn,
        structure.safe,
        still & (opens > 0) & (opens < 3),
        still & (opens >= 3) & (opens < loop),
        still & (opens == loop),
    ]
    boxes = [
        structure.free,
        chain == 1,
        chain == 2,
        chain == 3,
        chain > 3,
        structure.loop,
        structure.open_sides > 2,
    ]
    return StructureFeatures(
        edges=jnp.stack(edges, axis=-1),
        boxes=jnp.stack(boxes, axis=-1),
        lengths=structure.length / board.num_boxes,
        counts=_counts(board, structure),
        joined=jnp.stack([structure.joined == ends for ends in (1, 2)], axis=-1),
    )


def structure_planes(board: DotsAndBoxes, features: StructureFeatures) -> jax.Array:
    """Place the features of edges and boxes on the grid of dots, as bits: [H, W] uint32.

    The order is: boxes, joined, a plane of 0 in place of the lengths, then horizontals and
    verticals of each edge class.
    """
    boxes = [*jnp.moveaxis(features.boxes, -1, 0), *jnp.moveaxis(features.joined, -1, 0)]
    first = LENGTHS_PLANE + 1
    edges = [split_edges(board, edge_class) for edge_class in jnp.moveaxis(features.edges, -1, 0)]
    horizontals, verticals = zip(*edges, strict=True)
    return (
        on_dots(board, pack_planes(boxes, 0))
        | on_dots(board, pack_planes(horizontals, first, 2))
        | on_dots(board, pack_planes(verticals, first + 1, 2))
    )


class CountCode(NamedTuple):
    """The code of a count: one-hot over `values`, with `odd` plus a parity bit."""

    values: range  # counts outside the range count as the nearest value
    odd: bool = True
    counts: int = 1  # number of consecutive counts with this code

    @property
    def bits(self) -> int:
        return len(self.values) + self.odd


class Counts(NamedTuple):
    """Counts over the whole board of one position, or their codes."""

    boxes_taken: jax.Array | CountCode  # [] int32
    boxes_declined: jax.Array | CountCode  # [] int32
    open_boxes: jax.Array | CountCode  # [] int32
    boxes_with_three_open_sides: jax.Array | CountCode  # [] int32
    boxes_with_four_open_sides: jax.Array | CountCode  # [] int32
    safe_edges: jax.Array | CountCode  # [] int32
    chains_by_length: jax.Array | CountCode  # [lengths] int32
    loops_by_length: jax.Array | CountCode  # [lengths of loops] int32
    long_chains: jax.Array | CountCode  # [] int32
    control: jax.Array | CountCode  # [] int32, boxes that the side in control wins by it
    moves_left: jax.Array | CountCode  # [] int32
    chains_without_joint: jax.Array | CountCode  # [lengths] int32
    chains_with_one_joint: jax.Array | CountCode  # [shorter lengths] int32
    chains_with_two_joints: jax.Array | CountCode  # [shorter lengths] int32
    control_without_joints: jax.Array | CountCode  # [] int32


def count_codes(board: DotsAndBoxes) -> Counts:
    """Return the code of each count.

    A change here changes the inputs of every trunk, so weights trained before no longer fit.
    """

    def up_to(high: int, counts: int = 1) -> CountCode:
        return CountCode(range(high + 1), counts=counts)

    boxes = board.num_boxes
    longest, longest_joined = min(LONGEST, boxes), min(LONGEST_JOINED, boxes)
    control = CountCode(range(-CONTROL, CONTROL + 1), odd=False)
    return Counts(
        boxes_taken=CountCode(range(boxes + 1), odd=False),
        boxes_declined=CountCode(range(0, 5, 2), odd=False),
        open_boxes=up_to(boxes),
        boxes_with_three_open_sides=up_to(boxes),
        boxes_with_four_open_sides=up_to(boxes),
        safe_edges=up_to(board.num_edges),
        chains_by_length=up_to(MAX_CHAINS, longest),
        loops_by_length=up_to(MAX_LOOPS, len(LOOPS)),
        long_chains=up_to(MAX_LONG),
        control=control,
        moves_left=up_to(min_decisions(board)),
        chains_without_joint=up_to(MAX_CHAINS, longest),
        chains_with_one_joint=up_to(MAX_JOINED, longest_joined),
        chains_with_two_joints=up_to(MAX_JOINED, longest_joined),
        control_without_joints=control,
    )


def count_rows(source: DotsAndBoxes, target: DotsAndBoxes) -> np.ndarray:
    """Return for each count bit of `target` the bit of `source` with the same meaning: [C] int.

    A count that `source` cannot code, such as 30 open boxes on a board of 25, maps to its largest.
    """
    rows, first = [], 0
    for code, wanted in zip(count_codes(source), count_codes(target), strict=True):
        largest = len(code.values) - 1
        for count in range(wanted.counts):
            begin = first + min(count, code.counts - 1) * code.bits
            rows += [begin + min(i, largest) for i in range(len(wanted.values))]
            rows += [begin + largest + 1] * code.odd
        first += code.counts * code.bits
    return np.array(rows)


def _counts(board: DotsAndBoxes, structure: Structure) -> jax.Array:
    """Code all counts of `count_codes` over the whole board: [C] bool.

    A chain that ends at a joint usually becomes part of a longer chain before it is opened. So the
    last codes count chains by their joints. The number of moves left is open edges minus open
    boxes; every edge that later closes two boxes adds a move.
    """
    codes = count_codes(board)
    longest = codes.chains_by_length.counts
    starts = first_boxes(structure)
    loop_kind = jnp.clip((structure.length - LOOPS[0]) // 2, 0, len(LOOPS) - 1)
    chain_kind = structure.joined * longest + jnp.minimum(structure.length, longest) - 1
    kind = jnp.where(structure.loop, 3 * longest + loop_kind, chain_kind)
    kinds = _histogram(kind, starts, 3 * longest + len(LOOPS))
    # The side in control wins the length of a chain minus 4, as it leaves 2 boxes, and the length
    # of a loop minus 8, as it leaves 4 (Berlekamp 2000, "The Dots-and-Boxes Game").
    of_chain = jnp.where(structure.length >= 3, structure.length - 4, 0)
    worth = jnp.where(structure.loop, structure.length - 8, of_chain)
    max_joints = np.array([2, 0], np.int32)[:, None, None]
    counted = starts[None] & (structure.joined[None] <= max_joints)
    control = jnp.sum(jnp.where(counted, worth[None], 0), axis=(1, 2), dtype=jnp.int32)
    # Least and high open sides of the boxes in each of the three counts of boxes.
    low, high = (np.array(sides, np.int32)[:, None, None] for sides in ((1, 3, 4), (4, 3, 4)))
    boxes = (structure.open_sides[None] >= low) & (structure.open_sides[None] <= high)
    boxes = jnp.sum(boxes, axis=(1, 2), dtype=jnp.int32)
    safe, undrawn = jnp.sum(jnp.stack([structure.safe, ~structure.quiet]), axis=1, dtype=jnp.int32)
    by_joints, loops = kinds[: 3 * longest].reshape(3, longest), kinds[3 * longest :]
    chains = jnp.sum(by_joints, axis=0, dtype=jnp.int32)
    last = codes.chains_with_one_joint.counts - 1
    # Longer chains count as the longest.
    longer = jnp.sum(by_joints[1:, last:], axis=1, dtype=jnp.int32, keepdims=True)
    joined = jnp.concatenate([by_joints[1:, :last], longer], axis=1)
    counts = Counts(
        boxes_taken=structure.taken,
        boxes_declined=structure.declined,
        open_boxes=boxes[0],
        boxes_with_three_open_sides=boxes[1],
        boxes_with_four_open_sides=boxes[2],
        safe_edges=safe,
        chains_by_length=chains,
        loops_by_length=loops,
        long_chains=jnp.sum(chains[2:], dtype=jnp.int32),
        control=control[0],
        moves_left=undrawn - boxes[0],
        chains_without_joint=by_joints[0],
        chains_with_one_joint=joined[0],
        chains_with_two_joints=joined[1],
        control_without_joints=control[1],
    )
    return encode(codes, counts)


def _histogram(kind: jax.Array, chosen: jax.Array, kinds: int) -> jax.Array:
    """Count the chosen boxes of each kind, both [rows, cols]: [kinds] int32.

    Several counters share a word, so that one sum over the boxes is enough for all of them.
    """
    bits = chosen.size.bit_length()
    in_word = 32 // bits
    number, place = (of(kind, jnp.int32(in_word)) for of in (jax.lax.div, jax.lax.rem))
    one = jnp.where(chosen, jnp.uint32(1) << (bits * place).astype(jnp.uint32), 0)
    words = jnp.arange(-(-kinds // in_word), dtype=jnp.int32)[:, None, None]
    sums = jnp.sum(jnp.where(number[None] == words, one[None], 0), axis=(1, 2), dtype=jnp.uint32)
    places = jnp.arange(in_word, dtype=jnp.uint32)[None, :] * bits
    counts = (sums[:, None] >> places) & ((1 << bits) - 1)
    return counts.astype(jnp.int32).ravel()[:kinds]


def encode(codes: Counts, counts: Counts) -> jax.Array:
    """Code the counts of one position, [] or [counts of the code] each: [C] bool.

    One operation codes all bits, because every operation adds compile time.
    """
    numbers, values, odd, low, high = [], [], [], [], []
    for code in codes:
        for _ in range(code.counts):
            numbers += [len(low)] * code.bits
            values += [*code.values, *[0] * code.odd]
            odd += [False] * len(code.values) + [True] * code.odd
            low.append(code.values[0])
            high.append(code.values[-1])
    count = jnp.concatenate([jnp.atleast_1d(count) for count in counts])
    chex.assert_shape(count, (len(low),), custom_message="counts")
    near = jnp.clip(count, np.array(low, np.int32), np.array(high, np.int32))
    rows = np.array(numbers, np.int32)
    count, near = (x.at[rows].get(mode="promise_in_bounds") for x in (count, near))
    return jnp.where(np.array(odd), count % 2 == 1, near == np.array(values, np.int32))
