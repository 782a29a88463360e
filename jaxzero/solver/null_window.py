"""The compiled search of the exact solver: null windows and a transposition table.

The search knows quiet positions only (Barker & Korf, AAAI 2012): the side to move captures all free
boxes at once, except the last 2 boxes of a chain or the last 4 of a loop if handing them over is
worth more. A search tests one bound; `quiet_bounds` repeats it until the bounds meet.
"""

import numpy as np

from jaxzero.host.programs import kept_njit as njit
from jaxzero.solver.bitboards import (
    BOXES,
    CORNERS,
    LEAF_WORDS,
    LOOPS,
    ONE,
    PLY_WORDS,
    RING_WORDS,
    SIZE,
    STRIDE,
    SYMMETRIES,
    SYMMETRY_WORDS,
    ZERO,
    draw,
    is_open,
    list_chains,
    loony_margin,
    lowest,
    open_sides,
    pack,
    popcount,
    quiet,
)

# numba compiles a function again when its own file changes, not when a function it calls does.
# A test compares this checksum with bitboards.py, so a change there changes this file too.
BITBOARDS_CHECKSUM = 0x640F67AB

BYTE = np.uint64(0xFF)
NO_MOVE = np.uint64(255)
SYMMETRY_STEP = 16 * 256 * 2  # words of one symmetry: 16 bytes of a position, 256 values, 2 words
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_MIX_3 = np.uint64(0xFF51AFD7ED558CCD)

# `control` [int64]; other threads write TIME_UP and STOP. SHARED is 1 if threads prove together.
NODES, NODE_LIMIT, STOP, TIME_UP, SHARED, CONTROL_WORDS = range(6)

# `table` [uint64]: the entries, then marks of moves that a thread is searching just now.
ENTRY_WORDS, MARKS = 4, 2**10
_FEWEST_SHARED = 6  # safe edges; with fewer, a search is too short to be worth a mark


@njit()
def _code_of_chains(geometry, work, ply_words, chains, loops):
    """Encode the separate chains and loops and the size of the board in one word, exactly.

    A chain or loop of n boxes is n bits, zeros and a 1. The number of bits of all chains tells
    chains from loops. A leading 1 keeps the zeros of the first. At most 50 + 6 + 6 bits.
    """
    code, bits = ONE, ZERO
    for i in range(loops):
        code = (code << work[ply_words + LOOPS + i]) | ONE
    for i in range(chains):
        code = (code << work[ply_words + i]) | ONE
        bits += work[ply_words + i]
    return (((code << np.uint64(6)) | bits) << np.uint64(6)) | geometry[SIZE]


@njit()
def _canonical(geometry, across, down):
    """Return the representative of an edge set under corner swaps and symmetries."""
    for corner in range(4):
        edge_across, edge_down = geometry[CORNERS + 2 * corner], geometry[CORNERS + 2 * corner + 1]
        if (across & edge_across) == ZERO and (down & edge_down) != ZERO:
            across |= edge_across
            down ^= edge_down
    best_across, best_down = across, down
    for symmetry in range(np.int64(geometry[SYMMETRIES])):
        base = SYMMETRY_WORDS + symmetry * SYMMETRY_STEP
        image_across, image_down = ZERO, ZERO
        for byte in range(8):
            shift = np.uint64(8 * byte)
            at = base + (byte * 256 + np.int64((across >> shift) & BYTE)) * 2
            image_across |= geometry[at]
            image_down |= geometry[at + 1]
            at = base + ((byte + 8) * 256 + np.int64((down >> shift) & BYTE)) * 2
            image_across |= geometry[at]
            image_down |= geometry[at + 1]
        if image_across < best_across or (image_across == best_across and image_down < best_down):
            best_across, best_down = image_across, image_down
    return best_across, best_down


@njit()
def _hash(across, down, code):
    """Return a hash of a key."""
    mixed = (across ^ (code * _MIX_3)) * _MIX_1
    mixed = ((mixed ^ (mixed >> np.uint64(32))) ^ down) * _MIX_2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX_3
    return mixed ^ (mixed >> np.uint64(32))


@njit()
def _bucket(table, hashed):
    """Return the first word of the two entries of 4 words for the key with this hash."""
    buckets = (len(table) - MARKS) // (2 * ENTRY_WORDS)
    return np.int64(hashed & np.uint64(buckets - 1)) * (2 * ENTRY_WORDS)


@njit()
def _claim(table, across, down, code, move):
    """Mark a move of this key as being searched; return the place of the mark, to clear it.

    Return -1 if another thread has marked the move.
    """
    mark = _hash(across, down, code ^ (move * _MIX_2))
    place = len(table) - MARKS + np.int64(mark & np.uint64(MARKS - 1))
    if table[place] == mark:
        return np.int64(-1)
    table[place] = mark
    return place


@njit()
def _seal(hashed, bounds):
    """Return the word that the words of a key are stored with.

    It depends on the whole key and on the bounds (after Hyatt and Mann 2002), so an entry of which
    two threads have written a part each matches no key, even if both wrote equal bounds.
    """
    mixed = (hashed ^ bounds) * _MIX_2
    return mixed ^ (mixed >> np.uint64(31))


@njit()
def _find(table, bucket, hashed, across, down, code):
    """Return the first word of the entry of this key and its bounds, or -1 and zero.

    Other threads write to the table. The bounds that were compared are returned, because another
    entry may stand there at the next look.
    """
    for at in (bucket, bucket + ENTRY_WORDS):
        bounds = table[at + 3]
        seal = _seal(hashed, bounds)
        if (
            table[at] ^ seal == across
            and table[at + 1] ^ seal == down
            and table[at + 2] ^ seal == code
        ):
            return at, bounds
    return -1, ZERO


@njit()
def _load(table, bucket, hashed, across, down, code, left):
    """Return the known bounds and best safe edge of one key; `left` boxes bound any margin."""
    at, bounds = _find(table, bucket, hashed, across, down, code)
    if at < 0:
        return -left, left, NO_MOVE
    lower = np.int64(bounds & BYTE) - 64
    upper = np.int64((bounds >> np.uint64(8)) & BYTE) - 64
    return lower, upper, (bounds >> np.uint64(16)) & BYTE


@njit()
def _store(table, bucket, hashed, across, down, code, lower, upper, move, depth):
    """Keep the bounds of one key: first entry for the deepest, second for the latest."""
    at, _ = _find(table, bucket, hashed, across, down, code)
    if at < 0:
        at = bucket if (table[bucket + 3] >> np.uint64(24)) <= depth else bucket + ENTRY_WORDS
    bounds = np.uint64(lower + 64) | (np.uint64(upper + 64) << np.uint64(8))
    bounds |= (move << np.uint64(16)) | (depth << np.uint64(24))
    seal = _seal(hashed, bounds)
    table[at], table[at + 1] = across ^ seal, down ^ seal
    table[at + 2], table[at + 3] = code ^ seal, bounds


@njit()
def _next_safe(across, down, hint, geometry):
    """Return the bit of the next safe edge to try: the hint, else the nearest to the centre."""
    if hint < np.uint64(64):
        if (across >> hint) & ONE != ZERO:
            return hint
    elif hint != NO_MOVE and (down >> (hint - np.uint64(64))) & ONE != ZERO:
        return hint
    at = RING_WORDS
    while ((across & geometry[at]) | (down & geometry[at + 1])) == ZERO:
        at += 2
    if across & geometry[at] != ZERO:
        return lowest(across & geometry[at])
    return lowest(down & geometry[at + 1]) + np.uint64(64)


# Without a signature the recursive function cannot be loaded from numba's cache.
@njit("int64(uint64, uint64, int64, int64, uint64[::1], uint64[::1], uint64[::1], int64[::1])")
def search(across, down, beta, ply, geometry, work, table, control):
    """Test whether the margin of a quiet position is at least `beta`.

    `beta` has the parity of the boxes left. Returns a proven lower bound >= beta, or a proven
    upper bound < beta; a meaningless number once `control[STOP]` is set.
    """
    control[NODES] += 1
    if control[NODES] > control[NODE_LIMIT] or control[TIME_UP] != 0:
        control[STOP] = 1
    if control[STOP] != 0:
        return 0
    _, two, more = open_sides(across, down, geometry[STRIDE], geometry[BOXES])
    left = popcount(two | more)
    if beta <= -left:
        return -left
    if beta > left:
        return left

    ply_words = LEAF_WORDS + ply * PLY_WORDS
    core_across, core_down, chains, loops, first, last = list_chains(
        across, down, two, ply_words, geometry, work
    )
    if more == ZERO:
        return loony_margin(work, ply_words, chains, loops)
    code = _code_of_chains(geometry, work, ply_words, chains, loops)
    key_across, key_down = _canonical(geometry, core_across, core_down)
    hashed = _hash(key_across, key_down, code)
    bucket = _bucket(table, hashed)
    lower, upper, move = _load(table, bucket, hashed, key_across, key_down, code, left)
    if lower >= beta:
        return lower
    if upper < beta:
        return upper

    best = np.int64(-1000)
    safe_across = across & ~(two | (two << geometry[STRIDE]))
    safe_down = down & ~(two | (two << ONE))
    hint, first_move = move, True
    # Threads share the moves of a position (ABDADA, Weill 1996): each thread postpones moves that
    # another thread searches. All threads search the first move, which mostly decides alone.
    shared = control[SHARED] != 0 and popcount(safe_across | safe_down) >= _FEWEST_SHARED
    later_across = later_down = ZERO
    while best < beta:
        if (safe_across | safe_down) == ZERO:
            if (later_across | later_down) == ZERO:
                break
            safe_across, safe_down, later_across, later_down = later_across, later_down, ZERO, ZERO
            shared = False
        edge = _next_safe(safe_across, safe_down, hint, geometry)
        bit_across = ONE << edge if edge < np.uint64(64) else ZERO
        bit_down = ONE << (edge - np.uint64(64)) if edge >= np.uint64(64) else ZERO
        safe_across &= ~bit_across
        safe_down &= ~bit_down
        claims, place = shared and not first_move, np.int64(0)
        if claims:
            place = _claim(table, key_across, key_down, code, edge)
            if place < 0:
                later_across |= bit_across
                later_down |= bit_down
                continue
        margin = -search(
            across & ~bit_across,
            down & ~bit_down,
            2 - beta,
            ply + 1,
            geometry,
            work,
            table,
            control,
        )
        if claims:
            table[place] = ZERO
        first_move = False
        if control[STOP] != 0:
            return 0
        if margin > best:
            best, move = margin, edge

    for at in range(first, last, 4):
        if best >= beta:
            break
        after_across, after_down = work[at], work[at + 1]
        taken, declined = np.int64(work[at + 2]), np.int64(work[at + 3])
        # With V the margin after the opening, the answering side gets taken + V, or
        # taken - declined + |V + declined| if it can decline. Test that this is at most -beta.
        room = declined - taken - beta
        if room < 0 and declined > 0:
            best = max(best, declined - taken - ((left - taken) & 1))
            continue
        test = room - declined + 2
        high = search(after_across, after_down, test, ply + 1, geometry, work, table, control)
        margin = -taken - high
        if declined > 0 and high < test:
            test = -room - declined
            low = search(after_across, after_down, test, ply + 1, geometry, work, table, control)
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
    _store(table, bucket, hashed, key_across, key_down, code, lower, upper, move, depth)
    return best


@njit()
def quiet_bounds(across, down, geometry, work, table, control):
    """Return proven bounds on the margin of a quiet position, equal if solved."""
    two, more = open_sides(across, down, geometry[STRIDE], geometry[BOXES])[1:]
    left = popcount(two | more)
    lower, upper, test = -left, left, left & 1
    while lower < upper:
        test = max(test, lower + 2)
        bound = search(across, down, test, 0, geometry, work, table, control)
        if control[STOP] != 0:
            break
        if bound >= test:
            lower = bound
            test = bound + 2
        else:
            upper = bound
            test = bound
    return lower, upper


@njit()
def bounds(across, down, geometry, work, table, control):
    """Return proven bounds on the margin of any position, equal if solved."""
    across, down, taken, declined = quiet(across, down, geometry[STRIDE], geometry[BOXES])
    lower, upper = quiet_bounds(across, down, geometry, work, table, control)
    if declined == 0:
        return taken + lower, taken + upper
    lower, upper = lower + declined, upper + declined
    least = max(lower, -upper, lower & 1)
    return taken - declined + least, taken - declined + max(abs(lower), abs(upper))


@njit()
def at_least(across, down, beta, geometry, work, table, control):
    """Test whether the margin of any position is at least `beta`, of the parity of boxes left."""
    across, down, taken, declined = quiet(across, down, geometry[STRIDE], geometry[BOXES])
    if declined == 0:
        return search(across, down, beta - taken, 0, geometry, work, table, control) >= beta - taken
    size = beta - taken + declined
    if size <= 0:
        return True
    high, low = size - declined, 2 - size - declined
    if search(across, down, high, 0, geometry, work, table, control) >= high:
        return True
    return search(across, down, low, 0, geometry, work, table, control) < low


@njit()
def move_at_least(across, down, edge, beta, geometry, work, table, control):
    """Test whether drawing `edge` (a bit: 0 to 63 across, 64 to 127 down) is worth `beta`."""
    across, down, gained = draw(across, down, edge, geometry)
    if gained > 0:
        return at_least(across, down, beta - gained, geometry, work, table, control)
    return not at_least(across, down, 2 - beta, geometry, work, table, control)


@njit()
def solve_position(across, down, bits, best, geometry, work, table, control):
    """Return bounds on the margin and, if they meet, mark the best edges in `best` [A] bool."""
    best[:] = False
    lower, upper = bounds(across, down, geometry, work, table, control)
    if lower < upper:
        return lower, upper
    for edge in range(len(bits)):
        if is_open(across, down, bits[edge]):
            best[edge] = move_at_least(
                across, down, bits[edge], lower, geometry, work, table, control
            )
    if control[STOP] != 0:
        best[:] = False
    return lower, upper


@njit()
def solve_positions(undrawn, limit, bits, values, best, solved, geometry, work, table, control):
    """Solve the rows of `undrawn` [B, A] with at most `limit` nodes each."""
    for row in range(len(undrawn)):
        control[STOP] = 0
        control[NODE_LIMIT] = control[NODES] + limit
        across, down = pack(undrawn[row], bits)
        bound = solve_position(across, down, bits, best[row], geometry, work, table, control)
        values[row] = bound[0]
        solved[row] = control[STOP] == 0


@njit()
def bound_moves(across, down, bits, lowers, uppers, geometry, work, table, control):
    """Write bounds on the margin of the side that draws each undrawn edge to [A] arrays."""
    for edge in range(len(bits)):
        if is_open(across, down, bits[edge]):
            next_across, next_down, gained = draw(across, down, bits[edge], geometry)
            lower, upper = bounds(next_across, next_down, geometry, work, table, control)
            if gained == 0:
                lower, upper = -upper, -lower
            lowers[edge], uppers[edge] = lower + gained, upper + gained
