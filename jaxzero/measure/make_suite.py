"""Collect positions for a suite from games, solve them, and split them into two suites."""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import (
    DotsAndBoxes,
    automorphisms,
    fullest_beside,
    initial_states,
    step,
)
from jaxzero.host.memory import cores
from jaxzero.host.progress import working
from jaxzero.measure import suite
from jaxzero.measure.suite import BANDS, Suite, read_positions, write_positions
from jaxzero.players.players import Player
from jaxzero.solver.endgame import move_bounds, new_table

SAVE_SECONDS = 20.0  # between two saves of results
HALVES = ("tuning", "test")
NOISE = 0.1  # share of random moves after the opening


class Candidates(NamedTuple):
    """Positions to solve, by bands; within a band the strata alternate, each in random order.

    So `collect` with a lower `per_stratum` gives the first positions of every band.
    """

    drawn: np.ndarray  # [P, A] bool
    half: np.ndarray  # [P] int, 0 tuning, 1 test; one half for all positions of a game


class Solved(NamedTuple):
    """Results of the solver for positions."""

    moves: np.ndarray  # [P, A] int8, exact value of every move, ILLEGAL for drawn edges
    solved: np.ndarray  # [P] bool; elsewhere `moves` is meaningless


def collect(
    board: DotsAndBoxes,
    players: Mapping[str, Player],
    games: int,
    per_stratum: Sequence[int],
    undrawn: tuple[int, int],
    seed: int,
) -> Candidates:
    """Return quiet positions that all differ, even under the symmetries of the rules.

    They also differ from all positions in the stored suites of the board.
    Each player plays `games` games against itself. A band has at most one position of each game.
    A stratum is a player, a band of undrawn edges within `undrawn` (fewest, most), and a half. Each
    stratum of a band gives half of the number of its band in `per_stratum`, or fewer if the games
    have fewer. The last number applies to all further bands.
    Raises: InputError if no game has such a position.
    """
    fewest, most = undrawn
    bands = bands_between(fewest, most)
    wanted = [per_stratum[min(band, len(per_stratum) - 1)] for band in range(len(bands))]
    chosen_rows, seen = [], set()
    for name in suite.suite_names():
        if name.startswith(f"{board}_"):
            stored = suite.load_suite(name, board).drawn
            new_positions(board, stored, np.arange(len(stored)), np.arange(len(stored)), seen)
    for number, (name, player) in enumerate(players.items()):
        with working(f"playing {games} games of {name} against itself"):
            boards = self_play(board, player, games, seed + number)
        source = np.tile(np.arange(games), len(boards) // games)
        half = np.random.default_rng((seed, number)).permutation(games)[source] % 2
        left = (~boards).sum(axis=1)
        for (low, high), count in zip(bands, wanted, strict=True):
            rng = np.random.default_rng((seed, number, low))
            rows = np.flatnonzero((left >= low) & (left <= high))
            rows = rng.permutation(rows[is_quiet(board, boards[rows])])
            fresh = new_positions(board, boards, rows, source, seen)
            for side in range(len(HALVES)):
                chosen = [row for row in fresh if half[row] == side]
                chosen = enumerate(chosen[: count // 2 + (side < count % 2)])
                chosen_rows += [(low, rank, boards[row], side) for rank, row in chosen]
    if not chosen_rows:
        raise InputError(f"fewest: {fewest} to most: {most}: no game has such a position")
    _, _, *columns = zip(*sorted(chosen_rows, key=lambda entry: entry[:2]), strict=True)
    return Candidates(*map(np.array, columns))


def bands_between(fewest: int, most: int) -> list[tuple[int, int]]:
    """Return the bands of undrawn edges, cut to the range from `fewest` to `most`."""
    cut = [(max(low, fewest), min(high, most)) for low, high in BANDS]
    return [(low, high) for low, high in cut if low <= high]


def new_positions(
    board: DotsAndBoxes, boards: np.ndarray, rows: np.ndarray, source: np.ndarray, seen: set
) -> list[int]:
    """Return the rows with positions that are not in `seen` under any symmetry; add them to it.

    Only the first row of each game counts. `source` maps rows to games.
    """
    permutations, fresh = automorphisms(board), []
    firsts = np.unique(source[rows], return_index=True)[1]
    for row in rows[np.sort(firsts)].tolist():
        image = min(image.tobytes() for image in boards[row][permutations])
        if image not in seen:
            seen.add(image)
            fresh.append(row)
    return fresh


def self_play(board: DotsAndBoxes, player: Player, games: int, seed: int) -> np.ndarray:
    """Return every position of games that a player plays against itself: [T * games, A] bool.

    The first sixth of the moves is random, so that deterministic players play different games. A
    share NOISE of the later moves is random.
    """
    opening = board.num_edges // 6
    state = initial_states(board, games)
    advance = jax.jit(jax.vmap(lambda state, edge: step(board, state, edge)[0]))
    rng = np.random.default_rng(seed)
    boards = []
    for ply in range(board.num_edges):
        drawn = np.asarray(state.drawn)
        boards.append(drawn)
        if ply < opening:
            edge, strays = np.zeros(games, int), np.arange(games)
        else:
            key = jax.random.fold_in(jax.random.key(seed), ply)
            edge = np.array(player.decide(jax.random.split(key, games), state).edge)
            strays = np.flatnonzero(rng.random(games) < NOISE)
        for stray in strays:
            edge[stray] = rng.choice(np.flatnonzero(~drawn[stray]))
        state = advance(state, jnp.asarray(edge, jnp.int32))
    return np.concatenate(boards)


def is_quiet(board: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return whether positions [P, A] bool have no free box and are not finished: [P] bool."""
    free = (fullest_beside(board, drawn) == 3).any(axis=1)
    return ~free & ~drawn.all(axis=1)


def solve_all(board: DotsAndBoxes, drawn: np.ndarray, node_limit: int, store: Path) -> Solved:
    """Solve positions [P, A] bool, one at a time on each core.

    Results are saved to the file `store` at intervals. A later call reuses the results of a limit
    at least as high, and all solved positions.
    """
    known = read_store(store, board, node_limit)
    new = [row for row in drawn if row.tobytes() not in known]
    own, began = threading.local(), time.monotonic()

    def prepare() -> None:
        own.table = new_table(2**22)

    def solve(row: np.ndarray) -> None:
        lower, upper = move_bounds(board, row, node_limit=node_limit, table=own.table)
        known[row.tobytes()] = lower.astype(np.int8), bool((lower == upper).all())

    def save() -> None:
        write_store(store, board, node_limit, dict(known))
        solved = [known[row.tobytes()][1] for row in drawn if row.tobytes() in known]
        counts = f"{len(solved)} of {len(drawn)} positions in {time.monotonic() - began:.0f} s"
        print(f"{counts}, {sum(solved)} solved", flush=True)

    pool = ThreadPoolExecutor(cores(), initializer=prepare)
    running = {pool.submit(solve, row) for row in new}
    try:
        with working("solving positions", len(new)) as report:
            while running:
                done, running = wait(running, SAVE_SECONDS, FIRST_EXCEPTION)
                report(len(new) - len(running))
                for future in done:
                    future.result()
                if done and running:
                    save()
    finally:
        # After Ctrl-C do not wait for the positions that are being solved.
        pool.shutdown(wait=False, cancel_futures=True)
        if known:
            save()
    moves, solved = zip(*(known[row.tobytes()] for row in drawn), strict=True)
    return Solved(np.stack(moves), np.array(solved))


Known = dict[bytes, tuple[np.ndarray, bool]]


def read_store(store: Path, board: DotsAndBoxes, node_limit: int) -> Known:
    """Return the stored results: {position: (values of the moves, solved)}.

    Positions that a call with a lower limit did not solve are left out.
    """
    if not store.exists():
        return {}
    file = read_positions("out", store, str(store), board)
    kept = file["solved"] | (int(file["node_limit"]) >= node_limit)
    rows = zip(*(file[name][kept] for name in ("drawn", "moves", "solved")), strict=True)
    return {row.tobytes(): (values, bool(done)) for row, values, done in rows}


def write_store(store: Path, board: DotsAndBoxes, node_limit: int, known: Known) -> None:
    """Write results that `read_store` reads."""
    drawn = np.frombuffer(b"".join(known), bool).reshape(-1, board.num_edges)
    moves, solved = zip(*known.values(), strict=True)
    solved = np.array(solved)
    write_positions(store, board, drawn, np.stack(moves), solved=solved, node_limit=node_limit)


def make_suites(
    board: DotsAndBoxes, candidates: Candidates, solutions: Solved, split: bool
) -> dict[str, Suite]:
    """Return the suites `tuning` and `test`, or with `split` False one suite without a name.

    Unsolved positions are left out, and positions in which all moves have the same value: no move
    is wrong there.
    """
    kept = solutions.solved & Suite("", board, candidates.drawn, solutions.moves).decisive
    parts = {"": kept}
    if split:
        parts = {name: kept & (candidates.half == side) for side, name in enumerate(HALVES)}
    return {
        name: Suite(name, board, candidates.drawn[rows], solutions.moves[rows])
        for name, rows in parts.items()
    }
