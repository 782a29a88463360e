"""Positions with exact values, and scores of what a player makes of them.

Stored suites come from `scripts/make_suite.py`; for boards small enough for a table a suite is
drawn from it on the spot.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import jax
import numpy as np

from jaxzero.errors import InputError, nearest
from jaxzero.evaluation.tablebase import Table, build_table, move_values
from jaxzero.evaluation.values import ILLEGAL
from jaxzero.files import atomic_write
from jaxzero.game import DotsAndBoxes, initial_state, random_edge, step

BANDS = ((1, 7), (8, 12), (13, 16), (17, 20), (21, 24), (25, 28), (29, 32), (33, 36), (37, 60))
DATA = files("jaxzero.evaluation") / "data"


@dataclass(frozen=True)
class Suite:
    """P positions of one board, solved."""

    name: str
    game: DotsAndBoxes
    drawn: np.ndarray  # [P, A] bool, edges on the board
    moves: np.ndarray  # [P, A] int8, exact value of every move for its mover, boxes; or ILLEGAL
    origin: np.ndarray  # [P] str, the kind of play the position comes from

    @property
    def values(self) -> np.ndarray:
        """Exact remaining margin of the side to move: [P] int."""
        return self.moves.max(axis=1).astype(int)

    @property
    def undrawn(self) -> np.ndarray:
        return (~self.drawn).sum(axis=1)

    def __len__(self) -> int:
        return len(self.drawn)

    def sample(self, most: int) -> Suite:
        """Return `most` of the positions, always the same random ones, or all there are."""
        # At random, because every n-th position may be of the same kind, such as of even plies.
        rows = np.sort(np.random.default_rng(0).permutation(len(self))[:most])
        picked = {name: getattr(self, name)[rows] for name in ("drawn", "moves", "origin")}
        return replace(self, **picked)


@dataclass(frozen=True)
class Answers:
    """What a player says about the positions of a suite."""

    edge: np.ndarray  # [P] int, the chosen edge
    value: np.ndarray | None = None  # [P] float, expected remaining margin, boxes
    win: np.ndarray | None = None  # [P] float, probability of a positive remaining margin


def suite_names() -> list[str]:
    """Return the names that `load_suite` knows."""
    stored = sorted(
        Path(item.name).stem.removeprefix("suite_")
        for item in DATA.iterdir()
        if item.name.startswith("suite_")
    )
    return [*stored, "berlekamp", "table"]


def load_suite(name: str, game: DotsAndBoxes) -> Suite:
    """Return the positions of suite `name` that are of this board.

    Raises: InputError for a name that does not exist or a suite of another board.
    """
    if name not in suite_names():
        known = suite_names()
        raise InputError(
            f"suite: {name!r} does not exist{nearest(name, known)} (known: {', '.join(known)})"
        )
    if name == "table":
        return table_suite(game)
    if name == "berlekamp":
        return berlekamp_suite(game)
    return read_suite(Path(str(DATA / f"suite_{name}.npz")), name, game)


def read_suite(path: Path, name: str, game: DotsAndBoxes) -> Suite:
    """Read a stored suite. Raises: InputError for an unreadable file or another board."""
    try:
        with np.load(path) as file:
            board, packed, moves = file["board"], file["drawn"], file["moves"]
            origin = file["origins"][file["origin"]]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"suite: {path} cannot be read ({error})") from error
    if tuple(board) != (game.rows, game.cols):
        raise InputError(f"suite: {name} is of a {board[0]}x{board[1]} board, not {game}")
    drawn = np.unpackbits(packed, axis=1, count=game.num_edges).astype(bool)
    return Suite(name, game, drawn, moves, origin)


def write_suite(suite: Suite, path: Path) -> None:
    """Write a suite to a compressed file."""
    origins, origin = np.unique(suite.origin, return_inverse=True)
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            board=np.array([suite.game.rows, suite.game.cols]),
            drawn=np.packbits(suite.drawn, axis=1),
            moves=suite.moves,
            origins=origins,
            origin=origin.astype(np.uint8),
        )


def berlekamp_suite(game: DotsAndBoxes) -> Suite:
    """Return the problems of Berlekamp's book (2000) that are on this board."""
    problems = json.loads((DATA / "berlekamp.json").read_text())
    problems = [p for p in problems if (p["rows"], p["cols"]) == (game.rows, game.cols)]
    if not problems:
        raise InputError(f"suite: berlekamp has no problem on a {game} board (3x3, 3x5 and 5x5)")
    from jaxzero.evaluation import endgame  # it compiles, and training does not need it

    drawn = np.stack([endgame.drawn_edges(game, problem["drawn"]) for problem in problems])
    moves = np.stack([endgame.move_values(game, board) for board in drawn]).astype(np.int8)
    return Suite("berlekamp", game, drawn, moves, np.array([p["problem"] for p in problems]))


def table_suite(
    game: DotsAndBoxes, positions: int = 4096, seed: int = 0, table: Table | None = None
) -> Suite:
    """Draw positions from random play, evenly over the plies, solved by the table of the board.

    Raises: InputError when the board is too large for a table.
    """
    table = table or build_table(game)
    plies = np.arange(positions) % game.num_edges

    def draw_one(key: jax.Array, plies: jax.Array) -> tuple[jax.Array, jax.Array]:
        def ply(state, inputs):
            key, number = inputs
            moved, _ = step(game, state, random_edge(key, state))
            keep = number < plies
            return jax.tree.map(lambda a, b: jax.numpy.where(keep, a, b), moved, state), None

        numbers = jax.numpy.arange(game.num_edges)
        keys = jax.random.split(key, game.num_edges)
        state, _ = jax.lax.scan(ply, initial_state(game), (keys, numbers))
        return state.drawn, move_values(game, table, state.drawn)

    keys = jax.random.split(jax.random.key(seed), positions)
    drawn, moves = jax.device_get(jax.jit(jax.vmap(draw_one))(keys, plies))
    return Suite("table", game, drawn, moves.astype(np.int8), np.full(positions, "random"))


def score(suite: Suite, answers: Answers) -> dict:
    """Return `all`, `by_undrawn` and `by_origin`, each a dict of scores."""
    rows = np.arange(len(suite))
    worth = suite.moves[rows, answers.edge].astype(int)
    if (worth == ILLEGAL).any():
        raise ValueError("a player chose an edge that is drawn")
    bands = {
        f"{low}-{high}": (suite.undrawn >= low) & (suite.undrawn <= high) for low, high in BANDS
    }
    origins = {str(name): suite.origin == name for name in np.unique(suite.origin)}
    of = _scorer(suite, answers, worth)
    return {
        "all": of(np.ones(len(suite), bool)),
        "by_undrawn": {name: of(mask) for name, mask in bands.items() if mask.any()},
        "by_origin": {name: of(mask) for name, mask in origins.items()},
    }


def _scorer(suite: Suite, answers: Answers, worth: np.ndarray) -> Callable[[np.ndarray], dict]:
    """Return a function from a mask of positions to their scores."""
    values = suite.values
    lost = values - worth
    # On a decisive position some move is worse than another.
    decisive = np.where(suite.moves == ILLEGAL, values[:, None], suite.moves).min(axis=1) < values

    def scores(mask: np.ndarray) -> dict:
        result = {
            "positions": int(mask.sum()),
            "optimal_share": _mean(lost[mask] == 0),
            "decisive_optimal_share": _mean(lost[mask & decisive] == 0),
            "boxes_lost": _mean(lost[mask]),
            "wins_lost_share": _mean(worth[mask & (values > 0)] < 0),
        }
        if answers.value is not None:
            signed = mask & (values != 0)
            result["value_error"] = _mean(np.abs(answers.value - values)[mask])
            result["sign_accuracy"] = _mean(
                np.sign(answers.value[signed]) == np.sign(values[signed])
            )
        return result

    return scores


def _mean(numbers: np.ndarray) -> float | None:
    return round(float(np.mean(numbers)), 5) if len(numbers) else None


def calibration(suite: Suite, answers: Answers, bins: int = 10) -> list[dict]:
    """Return per bin of the predicted win probability: mean prediction, true share, positions."""
    if answers.win is None:
        return []
    won = suite.values > 0
    place = np.minimum((answers.win * bins).astype(int), bins - 1)
    return [
        {
            "predicted": _mean(answers.win[place == b]),
            "true": _mean(won[place == b]),
            "positions": int((place == b).sum()),
        }
        for b in range(bins)
        if (place == b).any()
    ]
