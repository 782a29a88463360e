"""Report players on a suite: scores, differences on the same positions, tables, a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from matplotlib.figure import Figure
from tabulate import tabulate

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.host.files import save_figure
from jaxzero.host.progress import working
from jaxzero.measure.scoring import Answers, compare, player_answers, score
from jaxzero.measure.suite import Suite, format_counts
from jaxzero.network.network import Agent
from jaxzero.players.players import LEARNT, make_player, make_players, name_shown

# Scores: key, heading of the table, format. A share NAME has its 95 % interval in NAME_interval.
COLUMNS = {
    "decisive": ("decisive", "{:,}"),
    "wrong_share": ("wrong", "{:.1%}"),
    "boxes_lost": ("margin lost", "{:.3f}"),
    "thrown_share": ("thrown away", "{:.1%}"),
    "value_error": ("value error", "{:.3f}"),
    "sign_accuracy": ("right sign", "{:.1%}"),
}


def score_suite(
    networks: dict[str, Agent], suite: Suite, names: list[str], figures: Path, seed: int = 0
) -> dict[str, dict]:
    """Score players on a suite; print, draw and return the results.

    `networks` are one or two agents of one board, by name. `names` come from `scored_players`. With
    one network, all players are compared with the first player. With two, every player that uses a
    network is compared between the networks. `seed` is for players that choose at random.
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
        learnt = [player for player in names if player.startswith(LEARNT)]
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
    if suite.counts is not None:
        print(f"\nHow the positions were sampled\n\n{format_counts(suite)}")
    path = figures / f"suite_{suite.name}.png"
    figures.mkdir(parents=True, exist_ok=True)
    title = f"{suite.board}, {' and '.join(networks)}, suite {suite.name}"
    draw_scores(path, title, scores)
    print(path)
    return {
        "suite_name": suite.name,
        "suite": scores,
        "differences": differences,
        "sampled": suite.sampled,
    }


def scored_players(players: str, board: DotsAndBoxes, agent: Agent, networks: int) -> list[str]:
    """Return the names of the players to score, from a comma-separated list.

    Raises: InputError for an invalid player, or with several networks if no player uses one.
    """
    names = [player.name for player in make_players(players, board, agent, "players")]
    if networks > 1 and not any(name.startswith(LEARNT) for name in names):
        raise InputError(f"players: {players} have no network: there are not two to compare")
    return names


def format_scores(scores: dict[str, dict]) -> str:
    """Return a table of {player: score()} by undrawn edges."""

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
        for part, numbers in {"all": parts["all"], **parts["by_undrawn"]}.items()
    ]
    left = ("left", "left")
    return tabulate(rows, heads, "plain", stralign="right", colalign=left, disable_numparse=True)


def draw_scores(path: Path, title: str, scores: dict[str, dict]) -> None:
    """Plot wrong moves and value error by undrawn edges into a PNG."""
    colors = {player: f"C{number}" for number, player in enumerate(scores)}
    panels = {
        panel: {player: _by_band(parts, key, scale) for player, parts in scores.items()}
        for panel, key, scale in (
            ("Wrong moves, %", "wrong_share", 100),
            ("Value error, boxes", "value_error", 1),
        )
    }
    panels = {name: lines for name, lines in panels.items() if any(lines.values())}
    figure = Figure(figsize=(1 + 4 * len(panels), 4), layout="constrained")
    figure.suptitle(title)
    for number, (name, lines) in enumerate(panels.items(), start=1):
        axis = figure.add_subplot(1, len(panels), number)
        for player, points in lines.items():
            if points:
                x, y = list(points), list(points.values())
                axis.plot(x, y, marker="o", label=player, color=colors[player])
        axis.set_title(name, fontsize=10)
        axis.grid(alpha=0.3)
        axis.set_xlabel("undrawn edges")
        axis.legend(fontsize=8)
        axis.set_ylim(bottom=0)
    save_figure(path, figure)


def _by_band(parts: dict, key: str, scale: float) -> dict[str, float]:
    """Return a scaled score by bands of undrawn edges; omit bands without this score."""
    bands = parts["by_undrawn"].items()
    return {band: scale * part[key] for band, part in bands if part.get(key) is not None}
