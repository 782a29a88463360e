"""A time on paper for a GPU that nobody has: seconds of an iteration, predicted from its launches.

Nothing here is measured. The constants are planning figures: a kernel takes at least as long as its
launch, a product its share of the planned speed, any other kernel the bytes that it moves.
"""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import NamedTuple

import jax

from jaxzero.config import Config
from jaxzero.network.network import Network
from jaxzero.performance.gpu_compile import INNER_ROUNDS, Counted, Gpu, as_on_gpu
from jaxzero.performance.hlo import Launches
from jaxzero.performance.report import WIDTH, Result, count_flops, table
from jaxzero.runs.memory import mebibytes
from jaxzero.training.learner import init_learner

LAUNCH_SECONDS = 2e-6  # the least that one kernel takes, launch included
READ_SECONDS = 20e-6  # until the host has read a condition and launched what follows
# Of the ceiling of matrix products that a network of so many channels is planned to reach.
EFFICIENCY = {64: 0.40, 128: 0.54}


class Prediction(NamedTuple):
    """Seconds of the parts of one iteration, on paper."""

    network: float  # evaluations of self-play
    learning: float
    others: float  # kernels beside the network: tree, rules, replay, optimiser
    host: float  # reading conditions back

    @property
    def seconds(self) -> float:
        return sum(self)


def predict(config: Config, gpu: Gpu, iteration: Launches) -> Prediction:
    """Predict an iteration of a config from its launches.

    Every step of self-play evaluates all games, so the longest game decides.
    """
    config = as_on_gpu(config)
    lanes, learner = config.lanes(config.selfplay.games), config.learner
    network = Network(config.game.board, config.network)
    shapes = jax.eval_shape(lambda: init_learner(network, config))
    flops = count_flops(config, shapes, lanes, learner.batch_size)
    nearest = min(EFFICIENCY, key=lambda channels: abs(channels - config.network.channels))
    speed = gpu.matmul_tflops * 1e12 * EFFICIENCY[nearest]
    evaluations = config.steps * lanes * (config.search.simulations + 1)
    samples = learner.updates_per_iteration * learner.batch_size
    playing = evaluations * flops["flops_per_evaluation"] / speed
    learning = samples * flops["flops_per_sample"] / speed
    of_network = sum(times for kernel, times in iteration.kernels if kernel.of_network)
    slower = max(1.0, of_network * LAUNCH_SECONDS / (playing + learning))  # in small batches
    copy = gpu.bandwidth_gb * 1e9 * gpu.copy_share
    others = sum(
        times * max(LAUNCH_SECONDS, kernel.bytes / copy)
        for kernel, times in iteration.kernels
        if not kernel.of_network
    )
    host = iteration.reads_back * READ_SECONDS
    return Prediction(slower * playing, slower * learning, others, host)


# For people


def result_of(config: Config, gpu: Gpu, counted: list[Counted]) -> Result:
    """Return what was counted, and predicted where the iteration was compiled."""
    result = {"target": gpu._asdict(), "config": asdict(config), "parts": {}}
    for one in counted:
        result["parts"][one.part] = {
            "launches": round(one.launches.total),
            "launches_of_products": round(one.launches.products),
            "loops_of_unknown_length": [loop.source for loop in one.program.unknown],
            "reads_back": round(one.launches.reads_back),
            "temporary_bytes": one.temporary,
            "argument_bytes": one.arguments,
            "memory_bytes": one.memory,
            "launches_by_operation": dict(one.launches.by_source().most_common(50)),
        }
        if one.part == "iteration":
            found = predict(config, gpu, one.launches)
            result["predicted"] = {"seconds": found._asdict() | {"iteration": found.seconds}}
            # As if each game were as long as the longest that begins at the earliest start.
            games = config.lanes(config.selfplay.games) * config.steps / config.steps_per_game
            result["predicted"]["games_per_second"] = games / found.seconds
    return result


def report(result: Result) -> str:
    """Lay out what was counted, and the prediction."""
    config, gpu = result["config"], result["target"]
    network = config["network"]
    heading = (
        f"compiled for {gpu['name']} ({gpu['memory_mib']:,} MiB), nothing was run: "
        f"{network['channels']} x {network['blocks']}, {config['selfplay']['games']} games, "
        f"{config['search']['simulations']} simulations, engine {config['search']['engine']}"
    )
    rows = [
        [
            name,
            f"{part['launches']:,}",
            f"{part['launches_of_products']:,}",
            len(part["loops_of_unknown_length"]),
            f"{part['reads_back']:,}",
            *(mebibytes(part[f"{kind}_bytes"]) for kind in ("temporary", "argument", "memory")),
        ]
        for name, part in result["parts"].items()
    ]
    headings = (
        *("", "launches", "of products", "unknown loops", "reads back"),
        *("temporary", "arguments", "in all"),
    )
    lines = [textwrap.fill(heading, WIDTH), table(headings, rows, "lrrrrrrr")]
    if any(part["loops_of_unknown_length"] for part in result["parts"].values()):
        note = (
            "Loops of unknown length are counted with the decisions of the longest game in "
            f"self-play, with {INNER_ROUNDS} rounds in a search."
        )
        lines.append(textwrap.fill(note, WIDTH))
    if "predicted" in result:
        lines.append(prediction_line(result["predicted"]))
    return "\n".join(lines)


def prediction_line(predicted: Result) -> str:
    """Write the prediction of an iteration in two lines."""
    seconds = predicted["seconds"]
    return (
        f"PREDICTED, not measured: {seconds['iteration']:.3g} s an iteration, "
        f"{predicted['games_per_second']:,.0f} games/s with learning\n"
        f"  network {seconds['network']:.3g} s, learning {seconds['learning']:.3g} s, "
        f"other kernels {seconds['others']:.3g} s, reading back {seconds['host']:.3g} s"
    )


def kernel_table(counted: Counted, count: int) -> str:
    """Lay out the operations of one part with the most launches, for those who merge kernels."""
    rows = [
        [f"{times:,.0f}", source[-(WIDTH - 12) :]]
        for source, times in counted.launches.by_source().most_common(count)
    ]
    return table(("launches", f"operation of {counted.part}"), rows, "rl")
