"""What is made or compiled for a board, kept for the last few boards that were used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from jaxzero.game import DotsAndBoxes
from jaxzero.solver.cancellation import holding

MOST_BOARDS = 8
MOST_OF_BOARD = 32  # more than the server makes for one board


@dataclass
class _Entry:
    value: Any = None  # not made yet
    lock: Lock = field(default_factory=Lock)


class Recent:
    """Things by their keys, each made when it is first asked for; the least recently used go."""

    def __init__(self, most: int):
        self._most = most
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what `make` returned; whoever asks while it runs waits for it."""
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
        """Return what has been made and is kept, else None; it does not count as a use."""
        with self._lock:
            entry = self._entries.get(key)
        return entry and entry.value


_boards = Recent(MOST_BOARDS)


def of_board(game: DotsAndBoxes) -> Recent:
    """Return what is kept for a board; all of it goes together."""
    return _boards.get(game, lambda: Recent(MOST_OF_BOARD))


def mark(game: DotsAndBoxes, what: Hashable) -> None:
    """Note something about a board, as long as it is kept."""
    of_board(game).get(what, lambda: True)


def is_marked(game: DotsAndBoxes, what: Hashable) -> bool:
    """Return whether a board is kept and something was noted about it."""
    kept = _boards.peek(game)
    return kept is not None and kept.peek(what) is not None
