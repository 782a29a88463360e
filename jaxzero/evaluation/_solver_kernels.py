"""Compiled kernels of the exact solver: bitboards, chain reduction, table and search.

Horizontal and vertical edges are one uint64 word each, 1 = undrawn, with W = cols + 1 bits to a
row, so that box b has the sides horizontal b and b + W and vertical b and b + 1, and boxes
themselves are one word. All boards with (rows + 1) * (cols + 1) <= 64 fit.

A position is quiet when no box has a single open side. The search knows quiet positions only
(Barker & Korf, AAAI 2012): whatever can be captured is taken at once, less the last 2 boxes of a
chain or the last 4 of a loop if handing those over is worth more.

One file, because numba's cache notices changes of the file a function is in, not of other files
it calls into.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

ZERO = np.uint64(0)
ONE = np.uint64(1)
BYTE = np.uint64(0xFF)
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_MIX_3 = np.uint64(0xFF51AFD7ED558CCD)

# `board` [uint64]: what the kernels know of the geometry; filled by `endgame._board_words`.
STRIDE, BOXES, SIZE, SYMMETRIES, CORNERS, RING_WORDS, SYMMETRY_WORDS = 0, 1, 2, 3, 4, 12, 64
SYMMETRY_STEP = 16 * 256 * 2  # words of one symmetry: 16 bytes of a position, 256 values, 2 words

# `work` [uint64]: scratch memory, `PLY_WORDS` words for every ply.
LOOPS, OPENINGS, PLY_WORDS = 50, 64, 288
LEAF_WORDS = 1024  # scratch of the loony endgame, before the first ply

# `control` [int64]: `solve_positions` ends at the row in which NODES passes PAUSE; another thread
# writes TIME_UP.
NODES, NODE_LIMIT, STOP, TIME_UP, PAUSE, CONTROL_WORDS = range(6)

NO_MOVE = np.uint64(255)


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


@njit(cache=True, nogil=True, inline="always")
def open_sides(across, down, stride, boxes):
    """Return the boxes with one, with two and with more open sides."""
    top, bottom = across & boxes, (across >> stride) & boxes
    left, right = down & boxes, (down >> ONE) & boxes
    odd_across, both_across = top ^ bottom, top & bottom
    odd_down, both_down = left ^ right, left & right
    odd = odd_across ^ odd_down
    twos = both_across | both_down | (odd_across & odd_down)
    four = both_across & both_down
    return odd & ~twos, ~odd & twos & ~four, (odd & twos) | four


@njit(cache=True, nogil=True, inline="always")
def boxes_beside(across, down, stride, boxes):
    """Return the boxes that have one of these edges as a side."""
    return (across | (across >> stride) | down | (down >> ONE)) & boxes


@njit(cache=True, nogil=True, inline="always")
def component(seed, within, across, down, stride):
    """Return the boxes of `within` connected to `seed` through undrawn edges."""
    found = seed
    while True:
        near = ((found & across) >> stride) | ((found << stride) & across)
        near |= ((found & down) >> ONE) | ((found << ONE) & down)
        grown = found | (near & within)
        if grown == found:
            return found
        found = grown


@njit(cache=True, nogil=True)
def take_all(across, down, stride, boxes):
    """Capture until the position is quiet: the edges left and the number of boxes taken."""
    before = boxes_beside(across, down, stride, boxes)
    single = open_sides(across, down, stride, boxes)[0]
    while single != ZERO:
        across &= ~(single | (single << stride))
        down &= ~(single | (single << ONE))
        single = open_sides(across, down, stride, boxes)[0]
    after = boxes_beside(across, down, stride, boxes)
    return across, down, popcount(before & ~after)


@njit(cache=True, nogil=True)
def quiet(across, down, stride, boxes):
    """Reduce any position to (edges of the quiet one, boxes taken, boxes that can be declined).

    The captured boxes form trees, as captures remove leaves. A tree with a way out and at least 2
    boxes can be left as a pair (2 boxes declined); one without can be left as two pairs (4 boxes)
    if it has a path of 4 boxes, that is 4 boxes or more and no box next to all others.
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


@njit(cache=True, nogil=True)
def _is_star(tree, size, across, down, stride):
    """Tell whether one box of a closed tree is next to all others."""
    if size > 5:
        return False
    top, bottom = across & tree, (across >> stride) & tree
    left, right = down & tree, (down >> ONE) & tree
    if size == 5:
        return (top & bottom & left & right) != ZERO
    return open_sides(across, down, stride, tree)[2] != ZERO


@njit(cache=True, nogil=True)
def _insert(work, start, count, length):
    """Insert a length into the ascending list work[start : start + count]."""
    place = start + count
    while place > start and work[place - 1] > length:
        work[place] = work[place - 1]
        place -= 1
    work[place] = length


@njit(cache=True, nogil=True)
def loony_margin(work, ply_words, chains, loops):
    """Return the mover's margin when only separate chains and loops are left, lists ascending.

    Of the chains of 1 and 2, of the longer chains and of the loops it is best to open the
    shortest: the positions after it differ by at most the difference in length. So the state is
    how many of each kind are left, counted from the longest.
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


@njit(cache=True, nogil=True)
def _code_of_chains(board, work, ply_words, chains, loops):
    """Encode the separate chains and loops and the size of the board in one word, exactly.

    A chain or loop of n boxes is n bits, zeros and a 1; the number of bits of all chains tells
    them from the loops, and a leading 1 keeps the zeros of the first. At most 50 + 6 + 6 bits.
    """
    code, bits = ONE, ZERO
    for i in range(loops):
        code = (code << work[ply_words + LOOPS + i]) | ONE
    for i in range(chains):
        code = (code << work[ply_words + i]) | ONE
        bits += work[ply_words + i]
    return (((code << np.uint64(6)) | bits) << np.uint64(6)) | board[SIZE]


@njit(cache=True, nogil=True)
def _canonical(board, across, down):
    """Return the representative of an edge set under corner swaps and symmetries."""
    for corner in range(4):
        edge_across, edge_down = board[CORNERS + 2 * corner], board[CORNERS + 2 * corner + 1]
        if (across & edge_across) == ZERO and (down & edge_down) != ZERO:
            across |= edge_across
            down ^= edge_down
    best_across, best_down = across, down
    for symmetry in range(np.int64(board[SYMMETRIES])):
        base = SYMMETRY_WORDS + symmetry * SYMMETRY_STEP
        image_across, image_down = ZERO, ZERO
        for byte in range(8):
            shift = np.uint64(8 * byte)
            at = base + (byte * 256 + np.int64((across >> shift) & BYTE)) * 2
            image_across |= board[at]
            image_down |= board[at + 1]
            at = base + ((byte + 8) * 256 + np.int64((down >> shift) & BYTE)) * 2
            image_across |= board[at]
            image_down |= board[at + 1]
        if image_across < best_across or (image_across == best_across and image_down < best_down):
            best_across, best_down = image_across, image_down
    return best_across, best_down


@njit(cache=True, nogil=True)
def _bucket(table, across, down, code):
    """Return where the two entries of 4 words for this key start in the table."""
    mixed = (across ^ (code * _MIX_3)) * _MIX_1
    mixed = ((mixed ^ (mixed >> np.uint64(32))) ^ down) * _MIX_2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX_3
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(len(table) // 8 - 1)) * 8


@njit(cache=True, nogil=True)
def _find(table, bucket, across, down, code):
    """Return where the entry of this key starts, or -1."""
    for at in (bucket, bucket + 4):
        if table[at] == across and table[at + 1] == down and table[at + 2] == code:
            return at
    return -1


@njit(cache=True, nogil=True)
def _load(table, bucket, across, down, code, left):
    """Return the bounds and the best safe edge known of one key; `left` boxes bound any margin."""
    at = _find(table, bucket, across, down, code)
    if at < 0:
        return -left, left, NO_MOVE
    entry = table[at + 3]
    lower = np.int64(entry & BYTE) - 64
    upper = np.int64((entry >> np.uint64(8)) & BYTE) - 64
    return lower, upper, (entry >> np.uint64(16)) & BYTE


@njit(cache=True, nogil=True)
def _store(table, bucket, across, down, code, lower, upper, move, depth):
    """Keep the bounds of one key: first entry for the deepest, second for the latest."""
    at = _find(table, bucket, across, down, code)
    if at < 0:
        at = bucket if (table[bucket + 3] >> np.uint64(24)) <= depth else bucket + 4
    table[at], table[at + 1], table[at + 2] = across, down, code
    bounds = np.uint64(lower + 64) | (np.uint64(upper + 64) << np.uint64(8))
    table[at + 3] = bounds | (move << np.uint64(16)) | (depth << np.uint64(24))


@njit(cache=True, nogil=True)
def _add_opening(work, at, across, down, taken, declined):
    """Write one opening (the quiet position behind it, boxes given, boxes declined)."""
    work[at], work[at + 1] = across, down
    work[at + 2], work[at + 3] = np.uint64(taken), np.uint64(declined)


@njit(cache=True, nogil=True)
def _list_chains(across, down, two, ply_words, board, work):
    """Write the openings worth trying and the lengths of separate chains and loops to `work`.

    Separate chains and loops (no end in a joint, a box with three or four open sides) are a
    multiset of lengths, of which only the shortest of each kind is worth opening. Every other
    chain is an opening of its own. A chain of 2 is opened in the middle, so nothing is declined.
    Returns the edges without the separate ones, the numbers of separate chains and loops, and
    where the list of openings starts and ends.
    """
    stride, boxes = board[STRIDE], board[BOXES]
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
            # A loop through a joint with three open sides frees the joint and what hangs on it.
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


@njit(cache=True, nogil=True)
def count_safe(across, down, board):
    """Count the edges that leave no box with a single open side."""
    one, two, _ = open_sides(across, down, board[STRIDE], board[BOXES])
    near = one | two
    across &= ~(near | (near << board[STRIDE]))
    return popcount(across) + popcount(down & ~(near | (near << ONE)))


@njit(cache=True, nogil=True)
def _next_safe(across, down, hint, board):
    """Return the bit of the next safe edge to try: the hint, else the nearest to the centre."""
    if hint < np.uint64(64):
        if (across >> hint) & ONE != ZERO:
            return hint
    elif hint != NO_MOVE and (down >> (hint - np.uint64(64))) & ONE != ZERO:
        return hint
    at = RING_WORDS
    while ((across & board[at]) | (down & board[at + 1])) == ZERO:
        at += 2
    if across & board[at] != ZERO:
        return lowest(across & board[at])
    return lowest(down & board[at + 1]) + np.uint64(64)


@njit(
    "int64(uint64, uint64, int64, int64, uint64[::1], uint64[::1], uint64[::1], int64[::1])",
    cache=True,
    nogil=True,
)  # Without a signature the recursive function cannot be loaded from numba's cache.
def search(across, down, beta, ply, board, work, table, control):
    """Test whether the margin of a quiet position is at least `beta`.

    `beta` has the parity of the boxes left. Returns a proven lower bound >= beta, or a proven
    upper bound < beta; a meaningless number once `control[STOP]` is set.
    """
    control[NODES] += 1
    if control[NODES] > control[NODE_LIMIT] or control[TIME_UP] != 0:
        control[STOP] = 1
    if control[STOP] != 0:
        return 0
    _, two, more = open_sides(across, down, board[STRIDE], board[BOXES])
    left = popcount(two | more)
    if beta <= -left:
        return -left
    if beta > left:
        return left

    ply_words = LEAF_WORDS + ply * PLY_WORDS
    core_across, core_down, chains, loops, first, last = _list_chains(
        across, down, two, ply_words, board, work
    )
    if more == ZERO:
        return loony_margin(work, ply_words, chains, loops)
    code = _code_of_chains(board, work, ply_words, chains, loops)
    key_across, key_down = _canonical(board, core_across, core_down)
    bucket = _bucket(table, key_across, key_down, code)
    lower, upper, move = _load(table, bucket, key_across, key_down, code, left)
    if lower >= beta:
        return lower
    if upper < beta:
        return upper

    best = np.int64(-1000)
    safe_across = across & ~(two | (two << board[STRIDE]))
    safe_down = down & ~(two | (two << ONE))
    hint = move
    while (safe_across | safe_down) != ZERO and best < beta:
        edge = _next_safe(safe_across, safe_down, hint, board)
        bit_across = ONE << edge if edge < np.uint64(64) else ZERO
        bit_down = ONE << (edge - np.uint64(64)) if edge >= np.uint64(64) else ZERO
        safe_across &= ~bit_across
        safe_down &= ~bit_down
        margin = -search(
            across & ~bit_across, down & ~bit_down, 2 - beta, ply + 1, board, work, table, control
        )
        if control[STOP] != 0:
            return 0
        if margin > best:
            best, move = margin, edge

    for at in range(first, last, 4):
        if best >= beta:
            break
        after_across, after_down = work[at], work[at + 1]
        taken, declined = np.int64(work[at + 2]), np.int64(work[at + 3])
        # With V the margin behind the opening, the answering side gets taken + V, or
        # taken - declined + |V + declined| where it may decline. That has to be -beta at most.
        room = declined - taken - beta
        if room < 0 and declined > 0:
            best = max(best, declined - taken - ((left - taken) & 1))
            continue
        test = room - declined + 2
        high = search(after_across, after_down, test, ply + 1, board, work, table, control)
        margin = -taken - high
        if declined > 0 and high < test:
            test = -room - declined
            low = search(after_across, after_down, test, ply + 1, board, work, table, control)
            margin = 2 * declined - taken + low
            if low >= test:
                margin = declined - taken - max(abs(high + declined), abs(low + declined))
        if control[STOP] != 0:
            return 0
        best = max(best, margin)

    if best >= beta:
        lower = max(lower, best)
    else:
        upper = min(upper, best)
    depth = np.uint64(popcount(core_across) + popcount(core_down))
    _store(table, bucket, key_across, key_down, code, lower, upper, move, depth)
    return best


@njit(cache=True, nogil=True)
def quiet_bounds(across, down, guess, board, work, table, control):
    """Close in on the margin of a quiet position from `guess`: (lower, upper), equal if solved."""
    two, more = open_sides(across, down, board[STRIDE], board[BOXES])[1:]
    left = popcount(two | more)
    lower, upper = -left, left
    test = min(max(guess, lower), upper)
    test += (test - left) & 1
    while lower < upper:
        test = max(test, lower + 2)
        bound = search(across, down, test, 0, board, work, table, control)
        if control[STOP] != 0:
            break
        if bound >= test:
            lower = bound
            test = bound + 2
        else:
            upper = bound
            test = bound
    return lower, upper


@njit(cache=True, nogil=True)
def bounds(across, down, guess, board, work, table, control):
    """Return proven bounds on the margin of any position, equal if solved."""
    across, down, taken, declined = quiet(across, down, board[STRIDE], board[BOXES])
    lower, upper = quiet_bounds(across, down, guess, board, work, table, control)
    if declined == 0:
        return taken + lower, taken + upper
    lower, upper = lower + declined, upper + declined
    least = max(lower, -upper, lower & 1)
    return taken - declined + least, taken - declined + max(abs(lower), abs(upper))


@njit(cache=True, nogil=True)
def at_least(across, down, beta, board, work, table, control):
    """Test whether the margin of any position is at least `beta`, of the parity of boxes left."""
    across, down, taken, declined = quiet(across, down, board[STRIDE], board[BOXES])
    if declined == 0:
        return search(across, down, beta - taken, 0, board, work, table, control) >= beta - taken
    size = beta - taken + declined
    if size <= 0:
        return True
    high, low = size - declined, 2 - size - declined
    if search(across, down, high, 0, board, work, table, control) >= high:
        return True
    return search(across, down, low, 0, board, work, table, control) < low


@njit(cache=True, nogil=True)
def move_at_least(across, down, edge, beta, board, work, table, control):
    """Test whether drawing `edge` (a bit: 0 to 63 across, 64 to 127 down) is worth `beta`."""
    across, down, gained = draw(across, down, edge, board)
    if gained > 0:
        return at_least(across, down, beta - gained, board, work, table, control)
    return not at_least(across, down, 2 - beta, board, work, table, control)


@njit(cache=True, nogil=True)
def draw(across, down, edge, board):
    """Draw one edge: the edges left and the boxes it closes."""
    before = boxes_beside(across, down, board[STRIDE], board[BOXES])
    if edge < 64:
        across &= ~(ONE << np.uint64(edge))
    else:
        down &= ~(ONE << np.uint64(edge - 64))
    return across, down, popcount(before & ~boxes_beside(across, down, board[STRIDE], board[BOXES]))


@njit(cache=True, nogil=True)
def is_open(across, down, edge):
    """Tell whether an edge, given as a bit, is undrawn."""
    word = across if edge < 64 else down
    return (word >> np.uint64(edge & 63)) & ONE != ZERO


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def solve_position(across, down, guess, bits, best, board, work, table, control):
    """Return bounds on the margin and, if they meet, mark the best edges in `best` [A] bool."""
    best[:] = False
    lower, upper = bounds(across, down, guess, board, work, table, control)
    if lower < upper:
        return lower, upper
    for edge in range(len(bits)):
        if is_open(across, down, bits[edge]):
            best[edge] = move_at_least(across, down, bits[edge], lower, board, work, table, control)
    if control[STOP] != 0:
        best[:] = False
    return lower, upper


@njit(cache=True, nogil=True)
def solve_positions(undrawn, first, limit, bits, values, best, solved, board, work, table, control):
    """Solve the rows of `undrawn` [B, A] from `first` on with at most `limit` nodes each.

    Returns the row at which the search paused: B if it did not.
    """
    for row in range(first, len(undrawn)):
        control[STOP] = 0
        control[NODE_LIMIT] = min(control[NODES] + limit, control[PAUSE])
        across, down = pack(undrawn[row], bits)
        values[row] = solve_position(across, down, 0, bits, best[row], board, work, table, control)[
            0
        ]
        solved[row] = control[STOP] == 0
        if control[NODES] > control[PAUSE]:
            return row
    return len(undrawn)


@njit(cache=True, nogil=True)
def bound_moves(across, down, bits, lowers, uppers, board, work, table, control):
    """Write bounds on the margin of the side that draws each undrawn edge to [A] arrays."""
    for edge in range(len(bits)):
        if is_open(across, down, bits[edge]):
            next_across, next_down, gained = draw(across, down, bits[edge], board)
            lower, upper = bounds(next_across, next_down, 0, board, work, table, control)
            if gained == 0:
                lower, upper = -upper, -lower
            lowers[edge], uppers[edge] = lower + gained, upper + gained
