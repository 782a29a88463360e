"""Score players on positions with exact values, and report the scores as tables.

A player answers every position of a suite with a move; a network also gives a value. `score`
compares the answers with perfect play. `compare` compares the answers of two players.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import jax
import numpy as np

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, State
from jaxzero.host.progress import working
from jaxzero.host.table import table
from jaxzero.measure.arena import Z_95, wilson_interval
from jaxzero.measure.suite import Suite
from jaxzero.network.network import Agent
from jaxzero.players.kinds import name_shown, uses_network
from jaxzero.players.players import Player, make_player, make_players

BATCH = 512  # positions that a player answers at once
# Scores: key, heading of the table, format. A share NAME has its 95 % interval in NAME_interval.
COLUMNS = {
    "decisive": ("decisive", "{:,}"),
    "wrong_share": ("wrong", "{:.1%}"),
    "boxes_lost": ("margin lost", "{:.3f}"),
    "thrown_share": ("thrown away", "{:.1%}"),
    "value_error": ("value error", "{:.3f}"),
    "sign_accuracy": ("right sign", "{:.1%}"),
}


@dataclass(frozen=True)
class Answers:
    """The answers of a player to the positions of a suite."""

    edge: np.ndarray  # [P] int, the chosen edge; or [P, A] bool, edges that are equally likely
    value: np.ndarray | None = None  # [P] float, expected remaining margin, boxes


def player_answers(suite: Suite, player: Player, seed: int = 0) -> Answers:
    """Answer a suite with a player, in batches; only a network gives values.

    `seed` is for players that choose at random. Players with `candidates` need no draw: the scores
    of their answers are exact expectations. Raises: InputError for a player of another board.
    """
    if player.board not in (None, suite.board):
        raise InputError(f"player: {player.name} plays {player.board}, not {suite.board}")
    if player.candidates:
        return Answers(player.candidates(suite.drawn))
    keys, parts = jax.random.split(jax.random.key(seed), len(suite)), []
    zeros = np.zeros(BATCH, np.int32)
    for first in range(0, len(suite), BATCH):
        rows = np.arange(first, min(first + BATCH, len(suite)))
        drawn = np.ones((BATCH, suite.board.num_edges), bool)  # finished games fill the last batch
        drawn[: len(rows)] = suite.drawn[rows]
        choice = player.decide(keys[np.resize(rows, BATCH)], State(drawn, zeros, zeros))
        parts.append([part[: len(rows)] for part in choice[:2] if part is not None])
    return Answers(*map(np.concatenate, zip(*parts, strict=True)))


def score(suite: Suite, answers: Answers) -> dict:
    """Return scores over `all` positions, and scores of each band `by_undrawn`.

    Raises: ValueError if an answer is a drawn edge.
    """
    values, decisive, drawn = suite.values, suite.decisive, answers.edge.ndim == 1
    losses, worse = values[:, None] - suite.moves, np.sign(suite.moves) < np.sign(values)[:, None]
    lost, wrong, thrown = (_chosen(suite, answers, x) for x in (losses, losses > 0, worse))

    def scores(mask: np.ndarray) -> dict:
        safe = mask & (values >= 0)  # a win or draw, which a move can throw away
        result = {
            "positions": int(mask.sum()),
            "optimal_share": _mean(1 - wrong[mask]),
            "decisive": int((mask & decisive).sum()),
            **_share("wrong", wrong[mask & decisive], drawn),
            "boxes_lost": _mean(lost[mask]),
            **_share("thrown", thrown[safe], drawn),
        }
        if answers.value is not None:
            signed = mask & (values != 0)
            result["value_error"] = _mean(np.abs(answers.value - values)[mask])
            result["sign_accuracy"] = _mean(
                np.sign(answers.value[signed]) == np.sign(values[signed])
            )
        return result

    bands = {name: scores(mask) for name, mask in suite.bands.items() if mask.any()}
    return {"all": scores(np.ones(len(suite), bool)), "by_undrawn": bands}


def _chosen(suite: Suite, answers: Answers, facts: np.ndarray) -> np.ndarray:
    """Return facts [P, A] of the chosen edges, as means over equally likely edges: [P]."""
    edge = answers.edge
    chosen = edge if edge.ndim == 2 else edge[:, None] == np.arange(suite.board.num_edges)
    if (chosen & suite.drawn).any():
        raise ValueError("a player chose an edge that is drawn")
    return np.mean(facts, axis=1, where=chosen)


def _share(name: str, cases: np.ndarray, drawn: bool) -> dict:
    """Return the share of true cases [N] and, if they were `drawn`, its 95 % interval."""
    share = _mean(cases)
    interval = _rounded(*wilson_interval(share, len(cases))) if drawn and len(cases) else None
    return {f"{name}_share": share, f"{name}_interval": interval}


def _rounded(*numbers: float) -> list[float]:
    return [round(float(number), 5) for number in numbers]


def compare(suite: Suite, first: Answers, second: Answers) -> dict:
    """Return the difference of two players in wrong moves, over `all` and `by_undrawn`."""
    decisive, worse = suite.decisive, suite.moves < suite.values[:, None]
    wrong, wrong2 = (_chosen(suite, answers, worse) for answers in (first, second))
    parts = {
        name: paired_difference(wrong[mask & decisive], wrong2[mask & decisive])
        for name, mask in {"all": np.ones(len(suite), bool), **suite.bands}.items()
        if mask.any()
    }
    return {"all": parts.pop("all"), "by_undrawn": parts}


def paired_difference(wrong: np.ndarray, wrong2: np.ndarray) -> dict:
    """Compare two players by their wrong moves [N], or the chances of these, in equal positions.

    Only positions in which one player alone is wrong distinguish them (McNemar 1947). The 95 %
    interval adds half a position to each of the four cells, which keeps its coverage for small
    counts (Agresti and Min 2005).
    """
    first_only, second_only = (wrong * (1 - wrong2)).sum(), (wrong2 * (1 - wrong)).sum()
    cells, difference = len(wrong) + 2, first_only - second_only
    spread = np.sqrt(first_only + second_only + 1 - difference**2 / cells) / cells
    low, high = (difference / cells + sign * Z_95 * spread for sign in (-1, 1))
    return {
        "positions": len(wrong),
        "first_only": round(first_only),
        "second_only": round(second_only),
        "difference": round(float(difference) / max(1, len(wrong)), 5),
        "interval": _rounded(max(-1.0, low), min(1.0, high)),
    }


def _mean(numbers: np.ndarray) -> float | None:
    return round(float(np.mean(numbers)), 5) if len(numbers) else None


# The report


def score_suite(
    networks: dict[str, Agent], suite: Suite, names: list[str], seed: int = 0
) -> dict[str, dict]:
    """Score players on a suite; print and return the results.

    With one network, all players in `names` are compared with the first player. With two, every
    player that uses a network is compared between them. `seed` is for random players.
    """
    print(f"Scoring the suite {suite.name} ...", flush=True)

    answers: dict[str, Answers] = {}
    for network, agent in networks.items():
        for player in names:
            if (name := name_shown(player, network, len(networks))) not in answers:
                with working(f"{player} answers suite {suite.name}"):
                    made = make_player(player, suite.board, agent)
                    answers[name] = player_answers(suite, made, seed)
    pairs = [(player, names[0]) for player in names[1:]]
    if len(networks) > 1:
        learnt = [player for player in names if uses_network(player)]
        pairs = [tuple(name_shown(one, network, 2) for network in networks) for one in learnt]
    scores = {player: score(suite, answer) for player, answer in answers.items()}
    differences = {
        f"{first} - {second}": compare(suite, answers[first], answers[second])
        for first, second in pairs
    }
    print(f"\nsuite {suite.name}, {len(suite):,} positions with exact values")
    print(format_scores(scores))
    if differences:
        print("\nDifferences of wrong moves on the same positions, percent\n")
        print(format_differences(differences))
    return {"suite_name": suite.name, "suite": scores, "differences": differences}


def scored_players(players: str, board: DotsAndBoxes, agent: Agent, networks: int) -> list[str]:
    """Return the names of the players to score, from a comma-separated list.

    Raises: InputError for an invalid player, or with several networks if no player uses one.
    """
    names = [player.name for player in make_players(players, board, agent, "players")]
    if networks > 1 and not any(map(uses_network, names)):
        raise InputError(f"players: {players} have no network: there are not two to compare")
    return names


def format_scores(scores: dict[str, dict]) -> str:
    """Return a table of {player: score()}, by undrawn edges if the scores are."""

    def cells(numbers: dict) -> Iterator[str]:
        for name, (_, write) in COLUMNS.items():
            value = numbers.get(name)
            text = "-" if value is None else write.format(value)
            if limits := numbers.get(name.removesuffix("share") + "interval"):
                low, high = (100 * limit for limit in limits)
                text += f" [{low:.1f}, {high:.1f}]"
            yield text

    return _table(scores, ["player", "undrawn", *(title for title, _ in COLUMNS.values())], cells)


def format_differences(differences: dict[str, dict]) -> str:
    """Return a table of differences in wrong moves, {players: compare()}, by undrawn edges."""

    def cells(numbers: dict) -> Iterator[str]:
        low, high = (100 * limit for limit in numbers["interval"])
        yield f"{numbers['positions']:,}"
        yield f"{100 * numbers['difference']:+.1f} [{low:+.1f}, {high:+.1f}]"
        yield from (str(numbers["first_only"]), str(numbers["second_only"]))

    heads = ["wrong moves", "undrawn", "positions", "difference", "first only", "second only"]
    return _table(differences, heads, cells)


def _table(
    results: dict[str, dict], heads: list[str], cells: Callable[[dict], Iterable[str]]
) -> str:
    """Return a table with a line for all positions of each result and a line for each band."""
    rows = [
        [name if part == "all" else "", part, *cells(numbers)]
        for name, parts in results.items()
        for part, numbers in {"all": parts["all"], **parts.get("by_undrawn", {})}.items()
    ]
    return table(heads, rows, "llr")
