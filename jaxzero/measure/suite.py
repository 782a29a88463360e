"""Load and store suites: positions with the exact value of every move.

`scripts/make_suite.py` makes the stored suites. On a small board `table_suite` samples positions
and solves them when it is called.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, drawn_of, initial_state, random_edge, step
from jaxzero.host.files import atomic_write
from jaxzero.solver import endgame
from jaxzero.solver.endgame import ILLEGAL

BANDS = ((1, 8), *((low, low + 3) for low in range(9, 45, 4)), (45, 112))  # undrawn edges
DATA = files("jaxzero.measure") / "data"
NAME_START, FILE_ENDING = "suite_", ".npz"
TABLE_EDGES = 24  # on the largest board for which `auto` means `table`: 3x3 takes a second
MAX_TABLE_EDGES = 30  # on the largest board for `table`: 2x5 takes 8 seconds
TABLE_POSITIONS = 2048


@dataclass(frozen=True)
class Suite:
    """P solved positions of one board."""

    name: str
    board: DotsAndBoxes
    drawn: np.ndarray  # [P, A] bool, edges on the board
    moves: np.ndarray  # [P, A] int8, exact value of every move for its mover, boxes, or ILLEGAL

    @property
    def values(self) -> np.ndarray:
        """The exact remaining margin of the side to move: [P] int."""
        return self.moves.max(axis=1).astype(int)

    @property
    def undrawn(self) -> np.ndarray:
        return (~self.drawn).sum(axis=1)

    @property
    def decisive(self) -> np.ndarray:
        """Whether the moves differ in value, so that some move is wrong: [P] bool."""
        best = self.moves.max(axis=1, keepdims=True)
        return ((self.moves != ILLEGAL) & (self.moves < best)).any(axis=1)

    @property
    def bands(self) -> dict[str, np.ndarray]:
        """The positions in each band of undrawn edges: {name: [P] bool}."""
        left = self.undrawn
        return {f"{low}-{high}": (left >= low) & (left <= high) for low, high in BANDS}

    def __len__(self) -> int:
        return len(self.drawn)


def suite_names() -> list[str]:
    """Return the names that `load_suite` knows."""
    stored = sorted(
        Path(item.name).stem.removeprefix(NAME_START)
        for item in DATA.iterdir()
        if item.name.startswith(NAME_START)
    )
    return [*stored, "berlekamp", "table"]


def choose_suite(name: str, board: DotsAndBoxes, half: str = "tuning") -> Suite | None:
    """Return the suite that a config names, or None."""
    name = suite_name(name, board, half)
    return None if name == "none" else load_suite(name, board)


def suite_name(name: str, board: DotsAndBoxes, half: str = "tuning") -> str:
    """Return the name of the suite that `auto` means on a board; return other names unchanged.

    `half` selects the stored suite: tuning during training, test for reported results.
    """
    if name != "auto":
        return name
    stored = f"{board}_{half}"
    small = board.num_edges <= TABLE_EDGES
    return "table" if small else stored if stored in suite_names() else "none"


def check_suite(name: str, board: DotsAndBoxes) -> None:
    """Raise an InputError if `choose_suite` would raise, without solving the suite `table`."""
    name = suite_name(name, board)
    if name == "table":
        check_table(board)
    elif name != "none":
        load_suite(name, board)


def load_suite(name: str, board: DotsAndBoxes) -> Suite:
    """Return the suite `name` for this board; a `name` that ends in .npz is a file.

    Raises: InputError for an unknown name or a suite of another board.
    """
    if name.endswith(FILE_ENDING):
        path = Path(name)
        return read_suite(path, path.stem.removeprefix(NAME_START), board)
    known = suite_names()
    if name not in known:
        files = f"and files ending in {FILE_ENDING}"
        raise InputError(f"suite: {name!r} does not exist (known: {', '.join(known)}, {files})")
    if name == "table":
        return table_suite(board)
    if name == "berlekamp":
        return berlekamp_suite(board)
    return read_suite(Path(str(DATA / f"{NAME_START}{name}{FILE_ENDING}")), name, board)


def read_suite(path: Path, name: str, board: DotsAndBoxes) -> Suite:
    """Read a stored suite. Raises: InputError for an unreadable file or another board."""
    file = read_positions("suite", path, name, board)
    return Suite(name, board, file["drawn"], file["moves"].astype(np.int8))


def read_positions(field: str, path: Path, name: str, board: DotsAndBoxes) -> dict[str, np.ndarray]:
    """Read the arrays of a file of `write_positions`, with the boards `drawn` as [P, A] bool.

    Raises: InputError for a file of another kind and for another board.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            file = dict(archive)
        rows, cols = file["board"].tolist()
        drawn = np.unpackbits(file["drawn"], axis=1, count=board.num_edges).astype(bool)
    except Exception as error:  # zip, zlib and NumPy raise many kinds
        raise InputError(f"{field}: {path} cannot be read ({error})") from error
    if (rows, cols) != (board.rows, board.cols):
        raise InputError(f"{field}: {name} is of a {rows}x{cols} board, not {board}")
    return file | {"drawn": drawn}


def write_suite(suite: Suite, path: Path) -> None:
    """Write a suite to a compressed file."""
    write_positions(path, suite.board, suite.drawn, suite.moves)


def write_positions(
    path: Path, board: DotsAndBoxes, drawn: np.ndarray, moves: np.ndarray, **others: np.ndarray
) -> None:
    """Write boards, the values of their moves and `others` for `read_positions`."""
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        sizes, drawn = np.array([board.rows, board.cols]), np.packbits(drawn, axis=1)
        np.savez_compressed(file, board=sizes, drawn=drawn, moves=moves, **others)


def berlekamp_suite(board: DotsAndBoxes) -> Suite:
    """Return the problems of Berlekamp's book (2000) on this board, solved now."""
    problems = json.loads((DATA / "berlekamp.json").read_text())
    problems = [p for p in problems if (p["rows"], p["cols"]) == (board.rows, board.cols)]
    if not problems:
        raise InputError(f"suite: berlekamp has no problem on a {board} board (3x3, 3x5 and 5x5)")
    drawn = np.stack([drawn_of(board, problem["drawn"]) for problem in problems])
    moves = np.stack([endgame.move_values(board, row) for row in drawn]).astype(np.int8)
    return Suite("berlekamp", board, drawn, moves)


def check_table(board: DotsAndBoxes) -> None:
    """Raise an InputError for a board that is too large for the suite `table`."""
    if board.num_edges > MAX_TABLE_EDGES:
        raise InputError(
            f"suite: table takes boards of at most {MAX_TABLE_EDGES} edges, {board} has "
            f"{board.num_edges}"
        )


@lru_cache(maxsize=2)
def table_suite(board: DotsAndBoxes, positions: int = TABLE_POSITIONS) -> Suite:
    """Sample positions of random play, evenly over the plies, and solve them.

    Raises: InputError for a board that is too large.
    """
    check_table(board)

    @jax.jit
    @jax.vmap
    def draw(key: jax.Array, plies: jax.Array) -> jax.Array:
        def ply(state, inputs):
            key, number = inputs
            moved, _ = step(board, state, random_edge(key, state))
            keep = number < plies
            return jax.tree.map(lambda a, b: jnp.where(keep, a, b), moved, state), None

        numbers = jnp.arange(board.num_edges)
        keys = jax.random.split(key, board.num_edges)
        return jax.lax.scan(ply, initial_state(board), (keys, numbers))[0].drawn

    # A random half of twice as many: stored scores are of these positions.
    rows = np.sort(np.random.default_rng(0).permutation(2 * positions)[:positions])
    keys = jax.random.split(jax.random.key(0), 2 * positions)[rows]
    drawn = np.asarray(draw(keys, rows % board.num_edges))
    known = endgame.new_table(2**18)
    moves = np.stack([endgame.move_values(board, row, known) for row in drawn])
    return Suite("table", board, drawn, moves.astype(np.int8))
