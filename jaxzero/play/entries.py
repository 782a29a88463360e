"""What a person may enter: edges and commands."""

from __future__ import annotations

import re

from jaxzero.errors import InputError, nearest
from jaxzero.game import DotsAndBoxes, parse_edge

PROMPT = "edge> "
COMMANDS = {
    "h2,1": "draw an edge; 'h 2 1', 'h21' and its number do the same",
    "undo": "take back to your previous decision",
    "hint": "a best edge where the solver finds one, else what the opponent would draw",
    "solve": "the exact value of the position and its best edges",
    "board": "show the board again",
    "help": "show this",
    "quit": "stop; so do Ctrl-D and Ctrl-C",
}
WORDS = tuple(COMMANDS)[1:]
_SHORT = {"?": "help", "q": "quit", "exit": "quit", "u": "undo"}


def find_entry(game: DotsAndBoxes, entry: str) -> int | str:
    """Return the edge or the command that an entry names.

    Raises: ValueError, with the entry, for anything else.
    """
    word = entry.strip().lower()
    word = _SHORT.get(word, word)
    if word in WORDS:
        return word
    if not word:
        raise InputError("enter an edge such as h0,0, or help")
    if re.search(r"\d", word):
        return parse_edge(game, word)
    raise InputError(
        f"{word!r} is neither an edge nor a command{nearest(word, WORDS)} "
        f"(edges are named like h0,0; commands: {', '.join(WORDS)})"
    )
