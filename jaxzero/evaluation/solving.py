"""Solve what a person asks for, and put it into words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.errors import InputError
from jaxzero.evaluation import endgame
from jaxzero.evaluation.tablebase import (
    build_table,
    check_fits,
    load_table,
    move_values,
    save_table,
)
from jaxzero.evaluation.values import ILLEGAL
from jaxzero.game import DotsAndBoxes, edge_name, parse_edge, render

EASY_UNDRAWN = 31  # the endgame solver takes seconds up to here, whatever the position


class Solved(NamedTuple):
    """A solved position."""

    drawn: np.ndarray  # [A] bool, edges on the board
    moves: np.ndarray  # [A] int, value of every move for its mover, ILLEGAL where drawn
    method: str

    @property
    def value(self) -> int:
        legal = self.moves[~self.drawn]
        return int(legal.max()) if len(legal) else 0

    @property
    def best(self) -> list[int]:
        return np.flatnonzero(~self.drawn & (self.moves == self.value)).tolist()


def solve_board(game: DotsAndBoxes, table_file: Path | None = None) -> Solved:
    """Solve the empty board by its table, or by the endgame solver where no table fits.

    Raises: InputError when neither can do it.
    """
    drawn = np.zeros(game.num_edges, bool)
    try:
        check_fits(game)
    except InputError:
        if game.num_edges > EASY_UNDRAWN:
            raise
        return Solved(drawn, endgame.move_values(game, drawn), "endgame solver")
    if table_file and table_file.exists():
        table = load_table(game, table_file)
    else:
        table = build_table(game)
        if table_file:
            save_table(table, game, table_file)
    moves = jax.jit(lambda drawn: move_values(game, table, drawn))(jnp.asarray(drawn))
    return Solved(drawn, np.asarray(moves), f"table of {1 << game.num_edges:,} positions")


def solve_drawn(game: DotsAndBoxes, position: str) -> Solved:
    """Solve the position that a file or a list of drawn edges describes."""
    drawn = parse_position(game, position)
    return Solved(drawn, endgame.move_values(game, drawn), "endgame solver")


def parse_position(game: DotsAndBoxes, position: str) -> np.ndarray:
    """Return the drawn edges [A] bool of a list such as `h0,1 v2,3 17`, or of a file with one.

    A list of numbers may be separated by commas. Raises: InputError for what is no edge, and for
    an edge that is listed twice.
    """
    path = Path(position)
    try:
        text = path.read_text() if path.is_file() else position
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"position: {path} cannot be read ({error})") from error
    if not path.is_file() and ("/" in position or path.suffix in (".txt", ".json")):
        raise InputError(f"position: {path} is not a file")
    numbers_only = re.fullmatch(r"[\d\s,]*", text)
    words = re.split(r"[\s,]+" if numbers_only else r"\s+", text.strip())
    try:
        edges = [parse_edge(game, word) for word in words if word]
    except ValueError as error:
        raise InputError(f"position: {error}") from error
    for edge in edges:
        if edges.count(edge) > 1:
            raise InputError(f"position: edge {edge_name(game, edge)} is listed twice")
    return endgame.drawn_edges(game, np.array(edges, int))


def describe(game: DotsAndBoxes, solved: Solved) -> str:
    """Return board, verdict and best moves as text; free edges show what they are worth."""
    free = np.flatnonzero(~solved.drawn)
    labels = {int(e): f"{solved.moves[e]:+d}" for e in free if solved.moves[e] != ILLEGAL}
    value = solved.value
    outcome = (
        f"the side to move wins the rest by {value}"
        if value > 0
        else f"the side to move loses the rest by {-value}"
        if value < 0
        else "the rest is shared equally"
    )
    best = " ".join(edge_name(game, edge) for edge in solved.best) or "none, the game is over"
    if len(free) > 1 and len(solved.best) == len(free):
        best = "every edge"
    return (
        f"{render(game, solved.drawn, labels=labels)}\n\n"
        f"{game}, {len(free)} edges free: value {value:+d} ({outcome}), by {solved.method}\n"
        f"best: {best}"
    )
