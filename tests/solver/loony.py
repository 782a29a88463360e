"""Loony endgames in plain Python: only chains and loops that share no box are left.

Independent of the solver, by definition and without its shortcuts, to check it against.
"""

from __future__ import annotations

from functools import cache


def loony_margin(chains: tuple[int, ...], loops: tuple[int, ...] = ()) -> int:
    """Return the margin of the side to move, in boxes, given the lengths of chains and loops.

    The mover has to open one. The margin v of the other side is 0 when nothing is left, and else
    the least of c - 2 + |v(rest) - 2| over chains of c >= 3 boxes, l - 4 + |v(rest) - 4| over
    loops of l boxes, and c - v(rest) over chains of 1 or 2, which cannot be declined
    (Buzzard & Ciere 2014; the hard-hearted handout of Berlekamp 2000 for the chain of 2).
    """
    return -_controller_margin(tuple(sorted(chains)), tuple(sorted(loops)))


@cache
def _controller_margin(chains: tuple[int, ...], loops: tuple[int, ...]) -> int:
    margins = [
        _opened(
            length, 2 if length >= 3 else 0, _controller_margin(_without(chains, length), loops)
        )
        for length in set(chains)
    ]
    margins += [
        _opened(length, 4, _controller_margin(chains, _without(loops, length)))
        for length in set(loops)
    ]
    return min(margins, default=0)


def _opened(length: int, declined: int, rest: int) -> int:
    """Return the margin of the side that answers an opening; it may decline the last boxes."""
    if declined == 0:
        return length - rest
    return length - declined + abs(rest - declined)


def _without(lengths: tuple[int, ...], length: int) -> tuple[int, ...]:
    place = lengths.index(length)
    return lengths[:place] + lengths[place + 1 :]
