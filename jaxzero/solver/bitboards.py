"""Positions of the exact solver as bitboards: captures, chains and the loony endgame.

Horizontal and vertical edges are one uint64 word each, 1 = undrawn, W = cols + 1 bits to a row.
Box b has the horizontal sides b and b + W and the vertical sides b and b + 1, so a set of boxes is
one word too. All boards with (rows + 1) * (cols + 1) <= 64 fit. All functions are compiled.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from jaxzero.host.programs import kept_njit as njit

ZERO = np.uint64(0)
ONE = np.uint64(1)

# `geometry` [uint64]: filled by `endgame._geometry`.
STRIDE, BOXES, SIZE, SYMMETRIES, CORNERS, RING_WORDS, SYMMETRY_WORDS = 0, 1, 2, 3, 4, 12, 64

# `work` [uint64]: scratch memory. First LEAF_WORDS words for the loony endgame, then PLY_WORDS
# words for every ply: lengths of chains, lengths of loops, openings.
LOOPS, OPENINGS, PLY_WORDS = 50, 64, 288
LEAF_WORDS = 1024


@intrinsic
def popcount(typingctx, word):
    """Count the bits of a uint64."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def lowest(typingctx, word):
    """Return the number of the lowest bit of a uint64 that is not 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), codegen


@njit(inline="always")
def open_sides(across, down, stride, boxes):
    """Return the boxes with one, with two and with more than two open sides."""
    top, bottom = across & boxes, (across >> stride) & boxes
    left, right = down & boxes, (down >> ONE) & boxes
    odd_across, both_across = top ^ bottom, top & bottom
    odd_down, both_down = left ^ right, left & right
    odd = odd_across ^ odd_down
    twos = both_across | both_down | (odd_across & odd_down)
    four = both_across & both_down
    return odd & ~twos, ~odd & twos & ~four, (odd & twos) | four


@njit(inline="always")
def boxes_beside(across, down, stride, boxes):
    """Return the boxes with at least one of these edges as a side."""
    return (across | (across >> stride) | down | (down >> ONE)) & boxes


@njit(inline="always")
def component(seed, within, across, down, stride):
    """Return the boxes of `within` connected to `seed` through undrawn edges."""
    region = seed
    while True:
        near = ((region & across) >> stride) | ((region << stride) & across)
        near |= ((region & down) >> ONE) | ((region << ONE) & down)
        grown = region | (near & within)
        if grown == region:
            return region
        region = grown


@njit()
def pack(open_edges, bits):
    """Pack one row of undrawn edges [A] bool into the two words."""
    across, down = ZERO, ZERO
    for edge in range(len(bits)):
        if open_edges[edge]:
            if bits[edge] < 64:
                across |= ONE << np.uint64(bits[edge])
            else:
                down |= ONE << np.uint64(bits[edge] - 64)
    return across, down


@njit()
def is_open(across, down, edge):
    """Tell whether an edge, given as a bit, is undrawn."""
    word = across if edge < 64 else down
    return (word >> np.uint64(edge & 63)) & ONE != ZERO


@njit()
def draw(across, down, edge, geometry):
    """Draw one edge; return the edges left and the number of boxes closed."""
    before = boxes_beside(across, down, geometry[STRIDE], geometry[BOXES])
    if edge < 64:
        across &= ~(ONE << np.uint64(edge))
    else:
        down &= ~(ONE << np.uint64(edge - 64))
    return (
        across,
        down,
        popcount(before & ~boxes_beside(across, down, geometry[STRIDE], geometry[BOXES])),
    )


@njit()
def count_safe(across, down, geometry):
    """Count the edges that leave no box with a single open side."""
    one, two, _ = open_sides(across, down, geometry[STRIDE], geometry[BOXES])
    near = one | two
    across &= ~(near | (near << geometry[STRIDE]))
    return popcount(across) + popcount(down & ~(near | (near << ONE)))


@njit()
def take_all(across, down, stride, boxes):
    """Capture until the position is quiet; return the edges left and the number of boxes taken."""
    before = boxes_beside(across, down, stride, boxes)
    single = open_sides(across, down, stride, boxes)[0]
    while single != ZERO:
        across &= ~(single | (single << stride))
        down &= ~(single | (single << ONE))
        single = open_sides(across, down, stride, boxes)[0]
    after = boxes_beside(across, down, stride, boxes)
    return across, down, popcount(before & ~after)


@njit()
def quiet(across, down, stride, boxes):
    """Capture until the position is quiet; return its edges, boxes taken, boxes to decline.

    The captured boxes form trees, because captures remove leaves. A tree with a way out and at
    least 2 boxes can be left as a pair (2 boxes declined). A closed tree with a path of 4 boxes can
    be left as two pairs (4 boxes declined). It has such a path if it has at least 4 boxes and no
    box is next to all others.
    """
    across_left, down_left, taken = take_all(across, down, stride, boxes)
    across_cut, down_cut = across & ~across_left, down & ~down_left
    rest = boxes_beside(across, down, stride, boxes) & ~boxes_beside(
        across_left, down_left, stride, boxes
    )
    declined = 0
    while rest != ZERO and declined != 2:
        tree = component(rest & (~rest + ONE), rest, across_cut, down_cut, stride)
        rest &= ~tree
        across_tree = across_cut & (tree | (tree << stride))
        down_tree = down_cut & (tree | (tree << ONE))
        size = popcount(tree)
        if popcount(across_tree) + popcount(down_tree) == size:
            if size >= 2:
                declined = 2
        elif size >= 4 and not _is_star(tree, size, across_tree, down_tree, stride):
            declined = 4
    return across_left, down_left, taken, declined


@njit()
def _is_star(tree, size, across, down, stride):
    """Tell whether one box of a closed tree is next to all others."""
    if size > 5:
        return False
    top, bottom = across & tree, (across >> stride) & tree
    left, right = down & tree, (down >> ONE) & tree
    if size == 5:
        return (top & bottom & left & right) != ZERO
    return open_sides(across, down, stride, tree)[2] != ZERO


@njit()
def list_chains(across, down, two, ply_words, geometry, work):
    """Write the openings worth trying and the lengths of separate chains and loops to `work`.

    A chain or loop is separate if no end is at a joint, a box with three or four open sides. Only
    the shortest separate one of each kind is worth opening. Every other chain is an opening of its
    own. A chain of 2 is opened in the middle, so nothing is declined.
    Returns the edges outside separate chains and loops, the numbers of separate chains and of
    loops, and the start and the end of the list of openings.
    """
    stride, boxes = geometry[STRIDE], geometry[BOXES]
    core_across, core_down = across, down
    chains, loops = 0, 0
    first, last = ply_words + OPENINGS + 12, ply_words + OPENINGS + 12
    short, long, loop, no_chain = ZERO, ZERO, ZERO, np.int64(99)
    short_length, long_length, loop_length = no_chain, no_chain, no_chain
    while two != ZERO:
        chain = component(two & (~two + ONE), two, across, down, stride)
        two &= ~chain
        chain_across = across & (chain | (chain << stride))
        chain_down = down & (chain | (chain << ONE))
        length = popcount(chain)
        if boxes_beside(chain_across, chain_down, stride, boxes) != chain:
            # A loop through a joint with three open sides frees the joint and the chains beyond it.
            after = take_all(across & ~chain_across, down & ~chain_down, stride, boxes)
            taken = length + after[2]
            _add_opening(work, last, after[0], after[1], taken, 2 if taken > 2 else 0)
            last += 4
            continue
        core_across &= ~chain_across
        core_down &= ~chain_down
        if popcount(chain_across) + popcount(chain_down) == length:
            _insert(work, ply_words + LOOPS, loops, np.uint64(length))
            loops += 1
            if length < loop_length:
                loop, loop_length = chain, length
            continue
        _insert(work, ply_words, chains, np.uint64(length))
        chains += 1
        if length <= 2:
            if length < short_length:
                short, short_length = chain, length
        elif length < long_length:
            long, long_length = chain, length
    for chain, declined in ((short, 0), (long, 2), (loop, 4)):
        if chain != ZERO:
            first -= 4
            rest_across = across & ~(chain | (chain << stride))
            rest_down = down & ~(chain | (chain << ONE))
            _add_opening(work, first, rest_across, rest_down, popcount(chain), declined)
    return core_across, core_down, chains, loops, first, last


@njit()
def _add_opening(work, at, across, down, taken, declined):
    """Write one opening: the quiet position after it, boxes given, boxes to decline."""
    work[at], work[at + 1] = across, down
    work[at + 2], work[at + 3] = np.uint64(taken), np.uint64(declined)


@njit()
def _insert(work, start, count, length):
    """Insert a length into the ascending list work[start : start + count]."""
    place = start + count
    while place > start and work[place - 1] > length:
        work[place] = work[place - 1]
        place -= 1
    work[place] = length


@njit()
def loony_margin(work, ply_words, chains, loops):
    """Return the mover's margin when only separate chains and loops are left, lists ascending.

    There are three kinds: chains of 1 and 2, longer chains, loops. Within a kind it is best to open
    the shortest, because the positions after it differ by at most the difference in length. So the
    number left of each kind, counted from the longest, describes the position.
    """
    short = 0
    while short < chains and work[ply_words + short] <= 2:
        short += 1
    wide, deep = loops + 1, (loops + 1) * (chains - short + 1)
    for i in range(short, -1, -1):
        for j in range(chains, short - 1, -1):
            for k in range(loops, -1, -1):
                at = i * deep + (j - short) * wide + k
                least = np.int64(1000)
                if i < short:
                    least = np.int64(work[ply_words + i]) - np.int64(work[at + deep])
                if j < chains:
                    length = np.int64(work[ply_words + j])
                    least = min(least, length - 2 + abs(np.int64(work[at + wide]) - 2))
                if k < loops:
                    length = np.int64(work[ply_words + LOOPS + k])
                    least = min(least, length - 4 + abs(np.int64(work[at + 1]) - 4))
                work[at] = np.uint64(least if least < 1000 else 0)
    return -np.int64(work[0])
