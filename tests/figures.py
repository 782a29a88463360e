"""Recompute the figures of README, docs and configs from stored results, shapes and settings.

python tests/figures.py compares them with the pages; with --draw docs/strength.png it draws the
picture of the test suites instead. A figure is a text that its page must contain. For a missing
figure, the script also prints the most similar line of the page.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
from matplotlib.figure import Figure as Picture

from jaxzero.cli import load_config
from jaxzero.config import Config, NetworkConfig
from jaxzero.game import DotsAndBoxes, automorphisms
from jaxzero.game.notation import FORMATS
from jaxzero.host.files import atomic_write
from jaxzero.measure.arena import MatchResult, wilson_interval
from jaxzero.measure.rating import Match, elo_ratings
from jaxzero.measure.suite import load_suite
from jaxzero.network.network import Network, count_params
from jaxzero.page.opponents import OWN_NETWORK
from jaxzero.performance.startup import startup_table
from jaxzero.players.levels import LEVELS
from jaxzero.runs.memory import mebibytes
from jaxzero.runs.weights import param_shapes
from jaxzero.training.iteration import input_shapes

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
H100 = RESULTS / "NVIDIA_H100_80GB_HBM3"
README, TRAINING, PLAYING, EVALUATION, PERFORMANCE, SCALING, FINDINGS, TOUR = (
    "README.md",
    *(f"docs/{name}.md" for name in ("training", "playing", "evaluation", "performance")),
    *(f"docs/{name}.md" for name in ("scaling", "results", "tour")),
)


class Figure(NamedTuple):
    """A text that a page must contain, and the source of the text."""

    page: str
    text: str
    source: str


# Comparing


@cache
def page(name: str) -> str:
    """Return a page with single spaces and without comment signs."""
    text = (ROOT / name).read_text()
    return " ".join(re.sub(r"^ *# ?", "", text, flags=re.M).split())


def stands(figure: Figure) -> bool:
    return " ".join(figure.text.split()) in page(figure.page)


def nearest_line(figure: Figure) -> str:
    """Return the line of the page that shares the longest substring with a figure."""
    lines = [line.strip() for line in (ROOT / figure.page).read_text().splitlines()]

    def alike(line: str) -> int:
        matcher = difflib.SequenceMatcher(None, line, figure.text, autojunk=False)
        return matcher.find_longest_match().size

    return max(lines, key=alike)


def report(found: Iterable[Figure]) -> list[str]:
    """Return a message for each figure that its page does not contain."""
    return [
        f"{figure.page}\n  {figure.source}: {figure.text}\n  the page: {nearest_line(figure)}"
        for figure in found
        if not stands(figure)
    ]


# Figures from stored results, sizes, counts and settings


def figures() -> Iterator[Figure]:
    """Yield all figures."""
    yield from of_shipped_networks()
    yield from of_suites()
    yield from of_the_early_suite()
    yield from of_5x5_on_a_cpu()
    yield from of_configs()
    yield from of_sizes()
    yield from of_cpu_benchmarks()
    yield from of_starts()
    yield from of_the_h100()
    yield from of_runs_on_the_h100()
    yield from of_larger_boards()
    yield from of_the_page()
    yield from of_the_levels()


@cache
def record(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "jaxzero" / "weights" / f"{name}.json").read_text())


def share(part: dict[str, Any], unit: str = "", interval: bool = True) -> str:
    """Write the share of wrong moves in percent, with its interval or without."""
    low, high = part["wrong_interval"] or (0, 0)
    interval = interval and part["wrong_interval"] is not None  # exact shares have none
    brackets = f" [{100 * low:.1f}, {100 * high:.1f}]" if interval else ""
    return f"{100 * part['wrong_share']:.1f}{unit}{brackets}"


EXACT_BANDS = ("17-20", "21-24", "25-28")  # with intervals in the rows of `4x4_solver`


def row(name: str, player: str, exact: tuple[str, ...] = ()) -> str:
    """Write wrong moves by undrawn edges and in total as a row; `exact` bands get intervals."""
    parts = record(name)["suite"][player]
    bands = [share(part, interval=band in exact) for band, part in parts["by_undrawn"].items()]
    return " | ".join([*bands, share(parts["all"])]) + " |"


def of_shipped_networks() -> Iterator[Figure]:
    """Yield figures from the records of the shipped weights."""
    for name in ("2x3", "3x3", "4x4", "4x4_solver", "5x5"):
        games = record(name)["training"]["games"]
        yield Figure(FINDINGS, f"| `{name}` | {games:,} games", f"jaxzero/weights/{name}.json")
    minutes = record("3x3")["training"]["minutes"]
    yield Figure(FINDINGS, f"{minutes:.0f} min |", "jaxzero/weights/3x3.json")
    for name in ("4x4", "4x4_solver", "5x5"):
        found, source = record(name), f"jaxzero/weights/{name}.json"
        alone, searched = (found["suite"][player]["all"] for player in ("policy", "search:64"))
        minutes = found["training"]["minutes"]
        told = f"{minutes:.1f}" if minutes < 10 else f"{minutes:.0f}"
        yield Figure(FINDINGS, f"{told} min", source)
        yield Figure(FINDINGS, f"| {share(alone, ' %')} of ", source)
        yield Figure(FINDINGS, f"| {share(searched, ' %')} |", source)
        won = found["versus"]["greedy"]
        points = f"{100 * won['points']:.0f} % [{100 * won['low']:.1f}, {100 * won['high']:.0f}]"
        matches = f"{points} against `greedy` and against `alphabeta:3`; {won['games']} games each"
        yield Figure(FINDINGS, matches, source)
        yield Figure(FINDINGS, f"{100 * alone['wrong_share']:.1f} % on the test suite", source)
    for player in ("policy", "search:64"):
        lost = record("4x4_solver")["suite"][player]["all"]["boxes_lost"]
        text = f"| `{player}` | {row('4x4_solver', player, EXACT_BANDS)} {lost:.2f} |"
        yield Figure(FINDINGS, text, "jaxzero/weights/4x4_solver.json")
    for name in ("4x4", "5x5"):
        source = f"jaxzero/weights/{name}.json"
        yield Figure(FINDINGS, f"| network alone (`policy`) | {row(name, 'policy')}", source)
        yield Figure(FINDINGS, f"| `search:64` | {row(name, 'search:64')}", source)
    source = "jaxzero/weights/5x5.json"
    shipped = f"(shipped): `policy` | {row('5x5', 'policy')}"
    yield Figure(TRAINING, shipped, source)
    yield Figure(TRAINING, f"the same, `search:64` | {row('5x5', 'search:64')}", source)
    searched = share(record("5x5")["suite"]["search:64"]["all"], " %")
    yield Figure(PLAYING, f"| `search:64` | 0.09 s | {searched} |", source)
    for name, before in (("4x4", "with AdamW, the shipped 4x4:"), ("4x4_solver", "gave")):
        alone = share(record(name)["suite"]["policy"]["all"], " %")
        yield Figure(TRAINING, f"{before} {alone}", f"jaxzero/weights/{name}.json")
    yield Figure(README, f"one H100: {searched.partition(' [')[0]} wrong moves", source)


def of_suites() -> Iterator[Figure]:
    """Yield the numbers of positions of the stored suites."""
    for side in (4, 5):
        name = f"{side}x{side}_test"
        suite = load_suite(name, DotsAndBoxes(side, side))
        counts = [f"{counts['kept']}" for counts in suite.sampled.values()]
        text = " | ".join(["| positions", *counts, f"{len(suite):,} |"])
        yield Figure(FINDINGS, text, f"the suite {name}")
        low, high = suite.undrawn.min(), suite.undrawn.max()
        yield Figure(EVALUATION, f"{name}` | stored positions with {low} to {high} undrawn", name)
    problems = {str(game): len(load_suite("berlekamp", game)) for game in BERLEKAMP}
    parts = ", ".join(f"{count} on {board}" for board, count in problems.items())
    text = f"the {sum(problems.values())} problems of Berlekamp's book (2000), chapters 3 and 12: "
    yield Figure(EVALUATION, text + parts, "the suite berlekamp")


def of_the_early_suite() -> Iterator[Figure]:
    """Yield scores on positions with more undrawn edges than the other suites have."""
    source = "docs/results/cpu_2_cores_5x5_early.json"
    found = json.loads((ROOT / source).read_text())
    counts = [f"{part['kept']} | {part['not_solved']}" for part in found["sampled"].values()]
    yield Figure(FINDINGS, f"| positions, unsolved | {' | '.join(counts)} |", source)
    for player, parts in found["suite"].items():
        bands = parts["by_undrawn"].values()
        text = " | ".join(f"{share(part)} | {part['boxes_lost']:.2f}" for part in bands)
        yield Figure(FINDINGS, f"| `{player}` | {text} |", source)
    source = "docs/results/cpu_2_cores_5x5_41_42.json"
    found = json.loads((ROOT / source).read_text())
    cells = [share(parts["all"]) for parts in found["suite"].values()]
    yield Figure(FINDINGS, f"| wrong, % | {' | '.join(cells)} |", source)


def of_5x5_on_a_cpu() -> Iterator[Figure]:
    """Yield the scores of the networks of `cpu.yaml` and `cpu_solver.yaml`."""
    for name in ("5x5", "5x5_final", "5x5_solver"):
        source = f"docs/results/cpu_2_cores_{name}.json"
        found = json.loads((ROOT / source).read_text())["suite"]
        cells = " | ".join(share(parts["all"], " %") for parts in found.values())
        yield Figure(FINDINGS, f"| {cells} |", source)
        if name == "5x5_final":
            continue
        for parts in found.values():
            bands = " | ".join(share(part, interval=False) for part in parts["by_undrawn"].values())
            yield Figure(TRAINING, f"| {bands} | {share(parts['all'])} |", source)
        searched = share(found["search:64"]["all"], interval=False)
        before, after = ("cores: ", " %") if name == "5x5" else ("or ", " % in two hours with the")
        yield Figure(README, before + searched + after, source)


BERLEKAMP = (DotsAndBoxes(3, 3), DotsAndBoxes(3, 5), DotsAndBoxes(5, 5))
BEGINNER = 400  # the rating of the lowest level, by convention
GPU_PRESETS = ("gpu_8gb", "gpu_24gb", "gpu_80gb")
CPU_PRESETS = ("cpu", "cpu_solver")  # for two devices
PRESETS = ("tiny", "quick", "cpu_4x4", *CPU_PRESETS, "standard", *GPU_PRESETS)


@cache
def preset(name: str) -> Config:
    return load_config(str(ROOT / "configs" / f"{name}.yaml"))


def network_of(config: Config) -> str:
    return f"{config.network.trunk} {config.network.channels} x {config.network.blocks}"


def of_configs() -> Iterator[Figure]:
    """Yield boards, networks, replay ratios and other settings of the presets."""
    for name in PRESETS:
        config, source = preset(name), f"configs/{name}.yaml"
        yield Figure(
            TRAINING, f"| `{source}` | {config.game.board} | {network_of(config)} |", source
        )
    ratios = {name: f"{preset(name).replay_ratio:.1f}" for name in PRESETS}
    text = "`tiny.yaml` {tiny}, `quick.yaml` {quick}, `cpu_4x4.yaml` {cpu_4x4}, `cpu.yaml` {cpu}, "
    text += "`cpu_solver.yaml` {cpu_solver}, "
    text = text.format(**ratios) + f"`standard.yaml` {ratios['standard']} and the GPU presets "
    yield Figure(TRAINING, text + ratios["gpu_8gb"], "Config.replay_ratio")
    games = preset("quick").iterations * preset("quick").selfplay.games_per_iteration
    for where in (README, TRAINING):
        yield Figure(where, f"{games:,} games", "configs/quick.yaml")
    quick = preset("quick")
    words = f"{quick.iterations} iterations of {quick.selfplay.games_per_iteration} games"
    yield Figure(TOUR, words, "configs/quick.yaml")
    quick = quick.search
    text = f"{quick.simulations} simulations for {quick.max_considered_actions} moves"
    yield Figure(TRAINING, text, "configs/quick.yaml")
    five = preset("cpu")
    yield Figure(TRAINING, f"(a 5x5 game has {five.shortest_whole_game} such moves", "Config")
    yield Figure(TOUR, "A 3x3 game has 15 to 17 decisions", "Config")
    assert preset("quick").shortest_whole_game == 15 and preset("quick").longest_game == 17


def shipped_config(name: str) -> Config:
    return load_config(str(ROOT / "jaxzero" / "weights" / f"{name}.yaml"))


def parameters(board: DotsAndBoxes, network: NetworkConfig) -> int:
    """Count the parameters of a network for a board."""
    return count_params(param_shapes(Network(board, network)))


def of_sizes() -> Iterator[Figure]:
    """Yield memory sizes that follow from shapes, parameter counts and numbers of symmetries."""
    for name in (*CPU_PRESETS, *GPU_PRESETS):
        config, file, devices = preset(name), f"configs/{name}.yaml", 1 + (name in CPU_PRESETS)
        network = Network(config.game.board, config.network)
        ring = input_shapes(config, network, devices).actor.replay
        held = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(ring)) // devices
        yield Figure(file, f"{mebibytes(held)} of it replay", "the replay")
        # The first number in the header of the config is also in the table.
        whole = re.search(r"[\d,]+ MiB(?=, [\d,]+ MiB of it replay)", page(file))
        yield Figure(TRAINING, memory_row(name, whole[0], mebibytes(held)), file)
    row_of_gpus = re.search(r"memory of an iteration, MiB \| ([^;]*);", page(PERFORMANCE))[1]
    for name, memory in zip(GPU_PRESETS, row_of_gpus.split(" | "), strict=True):
        text = f"Predicted peak memory (make gpu-compile): {memory} MiB"
        yield Figure(f"configs/{name}.yaml", text, "the table of make gpu-compile")
    edges = preset("cpu").game.board.num_edges
    per_edge = (edges / 8 + 0.5 + 2 * edges + 3) / edges
    yield Figure(
        TRAINING, f"about {per_edge:.1f} bytes per edge and position", "training/replay.py"
    )
    yield Figure(TRAINING, f"{edges * 16 / 1000:.1f} kB per node and game", "runs/memory.py")
    four, five = DotsAndBoxes(4, 4), DotsAndBoxes(5, 5)
    gradient = parameters(five, NetworkConfig("conv", channels=128, blocks=10))
    exchanged = int(re.search(r"all-reduce of ([\d,]+) float32", page(SCALING))[1].replace(",", ""))
    if not 0 < exchanged - gradient < 30:  # the exchange also has the metrics
        yield Figure(SCALING, f"all-reduce of {gradient:,} float32 and some", "count_params")
    yield Figure(FINDINGS, f"{len(automorphisms(four))} images of a position", "automorphisms")
    small = parameters(four, shipped_config("4x4_solver").network)
    assert 6.5 < gradient / small < 7.5, gradient / small
    yield Figure(FINDINGS, "has 8.4 % with a seventh of its size", "count_params")


def memory_row(name: str, whole: str, replay: str) -> str:
    """Return a row of the table of memory."""
    config, places = preset(name), ""
    lanes = config.lanes(config.selfplay.games_per_iteration)
    if name in CPU_PRESETS:
        lanes, places = (
            config.lanes(config.selfplay.games_per_iteration // 2),
            " on each of two devices",
        )
    begin = f"| `{name}.yaml`, {network_of(config)}, {lanes:,} games at once{places} |"
    return f"{begin} {whole} | {replay} |"


def of_cpu_benchmarks() -> Iterator[Figure]:
    """Yield the comparison with the baselines on two CPU cores."""
    files = ("64x4", "64x4_pytorch", "128x10")
    found = [json.loads((RESULTS / f"cpu_2_cores_{name}.json").read_text()) for name in files]
    small, pytorch, large = (f"{one['baseline']['ratio']:.1f} x" for one in found)
    text = (
        f"{small} as many games with 64 x 4 and {large} with 128 x 10 against a baseline with our "
    )
    text += f"compiled network, and {pytorch} with 64 x 4 against PyTorch"
    yield Figure(PERFORMANCE, text, "docs/results")


def of_starts() -> Iterator[Figure]:
    """Yield the table of the benchmark of starting on two CPU cores."""
    file = RESULTS / "cpu_2_cores_startup.json"
    for line in startup_table(json.loads(file.read_text())).splitlines():
        yield Figure(PERFORMANCE, line, "docs/results")


def of_the_h100() -> Iterator[Figure]:
    """Yield the speeds of the parts on an H100."""
    parts = json.loads((H100 / "parts.json").read_text())
    large, small = (
        parts["128x10, 8192 games, 32 simulations"],
        parts["64x6, 8192 games, 16 simulations"],
    )

    def rate(part: dict[str, float]) -> str:
        return f"{part['items'] / part['seconds']:,.0f}"

    for batch in (1024, 8192, 32768):
        cells = " | ".join(rate(of[f"network_{batch}"]) for of in (large, small))
        yield Figure(PERFORMANCE, f"| network alone, batch {batch:,} | {cells} |", "parts.json")
    for name, label in (
        ("search_rounds", "search of 8,192 games, `rounds`"),
        ("tree_alone", "the same search with an evaluator that costs nothing"),
    ):
        cells = " | ".join(rate(of[name]) for of in (large, small))
        yield Figure(PERFORMANCE, f"| {label} | {cells} |", "parts.json")
    mctx = rate(large["search_mctx"])
    yield Figure(PERFORMANCE, f"| search of 8,192 games, `mctx` | {mctx} |", "parts.json")
    best, play = large["network_32768"], large["play_steps"]
    # The network alone also computed the structure; self-play gets it from the rules.
    structure = large["structure_8192"]
    without = best["seconds"] / best["items"] - structure["seconds"] / structure["items"]
    shares = [
        play["items"] / play["seconds"] * one for one in (best["seconds"] / best["items"], without)
    ]
    first, honest = (f"{100 * one:.0f} %" for one in shares)
    text = f"| self-play | {rate(play)}, {first} of the network alone at its best batch, "
    text = text.removesuffix(", ") + f"; {honest} where the network alone does not compute"
    yield Figure(PERFORMANCE, text, "parts.json")
    found = json.loads((H100 / "benchmark_64x6.json").read_text())
    text = f"**{found['games_per_second_with_learning']:,.0f} games/s with learning**, "
    text += f"{found['games_per_second']:,.0f} of self-play alone"
    yield Figure(PERFORMANCE, text, "benchmark_64x6.json")
    for name, label in (
        ("network_evaluations_per_second", "network alone, batch 8,192, planes from bits"),
        ("selfplay_evaluations_per_second", "self-play, planes from bits"),
    ):
        yield Figure(PERFORMANCE, f"| {label} | | {found[name]:,.0f} |", "benchmark_64x6.json")
    samples = found["learner_samples_per_second"]
    text = (
        f"| learner, samples/s in batches of 8,192 | {rate(large['learning'])} | {samples:,.0f} |"
    )
    yield Figure(PERFORMANCE, text, "parts.json, benchmark_64x6.json")
    for name, words in (
        ("128x10", "it would be {:,.0f}."),
        ("64x6", "plays {:,.0f}"),
    ):
        found = json.loads((H100 / f"{name}.json").read_text())["games_per_second_with_learning"]
        yield Figure(PERFORMANCE, words.format(found), f"{name}.json")
    points = json.loads((H100 / "sweep" / "results.json").read_text())["points"]
    points.sort(key=lambda point: point["settings"]["selfplay.games_per_iteration"])
    for label, name, unit in (
        ("games/s with learning", "games_per_second_with_learning", 1),
        ("evaluations/s", "evaluations_per_second_with_learning", 1),
        ("peak memory, MiB", "peak_memory_bytes", 2**20),
    ):
        cells = " | ".join(f"{point[name] / unit:,.0f}" for point in points)
        yield Figure(PERFORMANCE, f"| {label} | {cells} |", "sweep/results.json")
    trace = json.loads((H100 / "trace.json").read_text())
    whole = trace["iteration"]
    text = f"takes {whole['seconds']:.2f} s, and in "
    text += f"{100 * whole['kernel_seconds'] / whole['seconds']:.1f} % of it a kernel runs; "
    text += f"no gap is longer than {1000 * whole['longest_gap_seconds']:.1f} ms"
    yield Figure(PERFORMANCE, text, "trace.json")
    of_all, play, learning = (
        f"{100 * trace[name]['convolution_seconds'] / trace[name]['kernel_seconds']:.0f} %"
        for name in ("iteration", "selfplay", "learning")
    )
    text = f"Convolutions are {of_all} of the time of all {whole['kernels']:,} kernels, {play} in "
    yield Figure(PERFORMANCE, f"{text}self-play and {learning} in learning", "trace.json")


def of_runs_on_the_h100() -> Iterator[Figure]:
    """Yield games, decisions and evaluations of the runs on an H100."""
    played, decided, evaluated = 0, 0.0, 0.0
    for name, minutes in (("train_8.5_minutes", "8.5"), ("train_3.9_minutes_more", "3.9")):
        done = json.loads((H100 / f"{name}.json").read_text())["iterations"]
        games = done[-1]["speed/games"]
        yield Figure(FINDINGS, f"{games:,} games", f"{name}.json")
        assert f"{done[-1]['speed/minutes']:.1f}" == minutes
        before_games, before_minutes = 0, 0.0
        for one in done:
            decided += (one["speed/games"] - before_games) * one["selfplay/decisions"]
            seconds = 60 * (one["speed/minutes"] - before_minutes)
            evaluated += seconds * one["speed/evaluations_per_second"]
            before_games, before_minutes = one["speed/games"], one["speed/minutes"]
        played += games
    assert played == record("5x5")["training"]["games"]
    text = f"{played:,} games, begun late: {decided / 1e6:.0f} million decisions, "
    text += f"{evaluated / 1e9:.2f} billion evaluations"
    yield Figure(FINDINGS, text, "docs/results")
    for name, page_name, words in (
        ("train_first", TRAINING, "4.0 minutes, {games:,} games"),
        ("train_first", PERFORMANCE, "Memory {peak:,.0f} MiB"),
        ("train_solver", FINDINGS, "6.5 minutes on an H100, {games:,} games"),
        ("train_solver_more", FINDINGS, "4.6 min of an H100 and 16 cores, {games:,} games"),
        ("train_8.5_minutes", TRAINING, "the peak of the run was {peak:,.0f}"),
    ):
        last = json.loads((H100 / f"{name}.json").read_text())["iterations"][-1]
        peak, games = last["memory/peak_bytes"] / 2**20, last["speed/games"]
        yield Figure(page_name, words.format(peak=peak, games=games), f"{name}.json")
    for name in ("4x4", "4x4_solver"):
        config = shipped_config(name)
        lanes = config.lanes(config.selfplay.games_per_iteration) * config.lane_steps
        decisions = record(name)["iteration"] * lanes / 1e6
        games = record(name)["training"]["games"]
        text = f"{games:,} games, begun late: {decisions:.1f} million decisions"
        yield Figure(FINDINGS, text, f"jaxzero/weights/{name}.yaml")


def of_larger_boards() -> Iterator[Figure]:
    """Yield the games of the shipped 7x7 and its points against the shipped 5x5 by board."""
    source = "train_three_boards.json"
    games = [one["games"] for one in json.loads((H100 / source).read_text())["done"].values()]
    assert record("5x5")["training"]["games"] + sum(games) == record("7x7")["training"]["games"]
    yield Figure(FINDINGS, f"`5x5`, then {sum(games):,} games of 5x5, 6x6 and 7x7", source)
    yield Figure(FINDINGS, "{:,}, {:,} and {:,} games".format(*games), source)
    source = "cpu_2_cores_larger_boards.json"
    alone, searched = [], []
    for one in json.loads((RESULTS / source).read_text())["matches"]:
        (alone if one["player"] == "policy" else searched).append(one["result"])

    def points(one: dict[str, Any], unit: str = "") -> str:
        won, low, high = (f"{100 * one[name]:.1f}" for name in ("points", "low", "high"))
        return f"{won}{unit} [{low}, {high}]"

    yield Figure(FINDINGS, f"| points, % | {' | '.join(map(points, alone))} |", source)
    boxes = " | ".join(f"{one['margin']:+.1f}" for one in alone)
    yield Figure(FINDINGS, f"| boxes ahead | {boxes} |", source)
    for one in searched:
        yield Figure(FINDINGS, f"{points(one, ' %')} of {one['games']}", source)


def of_the_page() -> Iterator[Figure]:
    """Yield levels, boards and formats."""
    words = {7: "seven", 9: "nine"}
    yield Figure(README, f"{words[len(LEVELS)]} levels", "players/levels.py")
    yield Figure(README, f"{words[len(FORMATS)]} formats", "game/notation.py")
    *boards, last = OWN_NETWORK
    yield Figure(PLAYING, f"({', '.join(boards)} and {last}", "page/opponents.py")
    for name in FORMATS:
        yield Figure(PLAYING, f"| `{name}` |", "game/notation.py")


def of_the_levels() -> Iterator[Figure]:
    """Yield the ratings of the levels, fitted to all stored matches together."""
    source, matches = "docs/results/cpu_2_cores_levels.json", []
    for one in json.loads((ROOT / source).read_text())["matches"]:
        result = one["result"]
        seats = [{int(m): n for m, n in seat.items()} for seat in result["margins"].values()]
        found = MatchResult(*seats, repeats=result["games"] - result["distinct"])
        matches.append(Match(one["first"], one["second"], found))
    ratings = {one.name: one for one in elo_ratings(matches, anchor="level:0")}
    for number, level in enumerate(LEVELS):
        one = ratings[f"level:{number}"]
        elo, low, high = (round(BEGINNER + value, -1) for value in (one.elo, one.low, one.high))
        text = f'Level("{level.name}", "{level.player}", {elo:.0f}'
        yield Figure("jaxzero/players/levels.py", text, source)
        hot = f"the network's policy at temperature {level.temperature}"
        player = hot if level.temperature else f"`{level.player}`"
        if level.random_share:
            player += f", with {100 * level.random_share:.0f} % random moves"
        yield Figure(PLAYING, f"| {number} {level.name} | {elo:.0f} | {player} |", source)
        cells = [f"{number} {level.name}", f"{elo:.0f}"]
        if number:
            below = f"level:{number - 1}", one.name
            played = [match.result.mirrored() for match in matches if match[:2] == below]
            games = sum(result.distinct for result in played)
            points = sum(result.distinct * result.points for result in played) / games
            least, most = wilson_interval(points, games)
            cells += [f"[{low:.0f}, {high:.0f}]", f"{one.games}"]
            cells += [f"{100 * points:.0f} [{100 * least:.0f}, {100 * most:.0f}]"]
        yield Figure(FINDINGS, f"| {' | '.join(cells)} |", source)


# The picture


def strength() -> dict[str, dict[str, dict[str, float]]]:
    """Return wrong moves in percent by network, player and undrawn edges, from the records."""
    return {
        name: {
            player: {
                band: round(100 * part["wrong_share"], 2)
                for band, part in record(name)["suite"][player]["by_undrawn"].items()
            }
            for player in ("policy", "search:64")
        }
        for name in ("4x4", "4x4_solver", "5x5")
    }


def draw(path: Path) -> None:
    """Draw the wrong moves of the shipped networks on the test suites into a PNG."""
    picture = Picture(figsize=(11, 4.2), layout="constrained")
    panels = dict(zip(("4x4", "5x5"), picture.subplots(1, 2, sharey=True), strict=True))
    colors = {"4x4": "tab:blue", "4x4_solver": "tab:orange", "5x5": "tab:green"}
    for name, players in strength().items():
        for player, bands in players.items():
            alone = player == "policy"
            panels[name[:3]].plot(
                list(bands),
                list(bands.values()),
                "--" if alone else "-",
                marker="o",
                markersize=4,
                color=colors[name],
                label=f"{name}, {'network alone' if alone else '64 simulations'}",
            )
    for board, panel in panels.items():
        panel.set_title(f"{board}_test")
        panel.set_xlabel("undrawn edges")
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
        panel.legend(fontsize=9)
    panels["4x4"].set_ylabel("wrong moves, %")
    about = {"Description": json.dumps(strength())}
    with atomic_write(path) as temporary:
        picture.savefig(temporary, dpi=110, format="png", metadata=about)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", type=Path, help="draw the picture of the test suites")
    options = parser.parse_args()
    if options.draw:
        return draw(options.draw)
    found = list(figures())
    wrong = report(found)
    print("\n".join([*wrong, f"{len(found)} figures, {len(wrong)} of them stand otherwise"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
