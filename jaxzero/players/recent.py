"""Cache objects and programs of boards, for the most recently used boards."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from jaxzero.game import DotsAndBoxes
from jaxzero.solver.cancellation import holding

MOST_BOARDS = 8
MOST_OF_BOARD = 32  # more than the page makes for one board


@dataclass
class _Entry:
    value: Any = None  # None until it is made
    lock: Lock = field(default_factory=Lock)


class Recent:
    """A cache that makes a value at its first use and drops the least recently used value."""

    def __init__(self, most: int):
        self._most = most
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the value of `key`, made by `make()` at its first use; concurrent calls wait."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            if len(self._entries) > self._most:
                self._entries.popitem(last=False)
        with holding(entry.lock):
            if entry.value is None:
                entry.value = make()
            return entry.value

    def peek(self, key: Hashable) -> Any:
        """Return the cached value of `key`, else None; this does not count as a use."""
        with self._lock:
            entry = self._entries.get(key)
        return entry and entry.value


_boards = Recent(MOST_BOARDS)


def of_board(game: DotsAndBoxes) -> Recent:
    """Return the cache of a board; it is dropped as a whole."""
    return _boards.get(game, lambda: Recent(MOST_OF_BOARD))


def mark(game: DotsAndBoxes, what: Hashable) -> None:
    """Mark `what` for a board, for as long as the board is cached."""
    of_board(game).get(what, lambda: True)


def is_marked(game: DotsAndBoxes, what: Hashable) -> bool:
    """Return whether `what` is marked for a board that is still cached."""
    kept = _boards.peek(game)
    return kept is not None and kept.peek(what) is not None
