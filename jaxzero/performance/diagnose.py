"""The diagnosis of one iteration: measure, put into a table, judge."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jaxzero.agent.network import Network
from jaxzero.config import Config
from jaxzero.performance.account import (
    Ceilings,
    Timed,
    Work,
    count_work,
    first_learner,
    highest,
    measure_ceilings,
    model_flops_use,
    numbers_of,
    rounds_for,
    time_iteration,
)
from jaxzero.performance.busy import Busy, watch
from jaxzero.performance.loop import running_loop
from jaxzero.performance.tracing import Trace, take_trace, trace_lines
from jaxzero.performance.transfers import Transfers, count_transfers, transfer_lines
from jaxzero.performance.verdict import Numbers, Verdict, judge
from jaxzero.training.parallel import choose_devices
from jaxzero.training.report import describe_devices
from jaxzero.training.throughput import share_cell, share_notes, share_of

WIDTH = 100
WHAT = {
    "features": "input planes or bits, possible margins",
    "network": "forward of self-play",
    "tree": "descent, expansion, backup, root",
    "rules": "moves on the board, in the tree and out",
    "moves": "random and sampled choices",
    "replay write": "new positions into the ring",
    "replay draw": "batches from the ring, symmetries",
    "gradient": "loss and gradient",
    "optimiser": "clip, AdamW, average",
    "host gap": "read and write metrics, launch",
}


class Diagnosis(NamedTuple):
    """Everything measured of one configuration."""

    device: str
    devices: int
    timed: Timed
    ceilings: Ceilings
    work: Work
    numbers: Numbers
    busy: Busy
    transfers: Transfers
    trace: Trace | None
    verdict: Verdict


def diagnose(config: Config, trace: Path | None = None) -> Diagnosis:
    """Measure an iteration and its parts. Raises an InputError for devices that do not fit."""
    devices = choose_devices(config.devices)
    config.check_devices(len(devices))
    network = Network(config.game.board, config.network)
    with running_loop(config, network, devices) as loop:
        transfers = count_transfers(loop)  # first: it also warms the iteration up
        busy = watch(loop.iterate, devices)
        recorded = take_trace(loop.iterate, trace) if trace else None
        learner = first_learner(loop)
        ceilings = measure_ceilings(network)
        work = count_work(config, network, learner, len(devices))
        rounds = rounds_for(busy.seconds / busy.iterations)
        timed = time_iteration(config, loop, network, learner, rounds)
        ceilings = highest(ceilings, measure_ceilings(network))
    numbers = numbers_of(config, timed, work, ceilings)
    return Diagnosis(
        describe_devices(devices),
        len(devices),
        timed,
        ceilings,
        work,
        numbers,
        busy,
        transfers,
        recorded,
        judge(numbers),
    )


def report_lines(config: Config, found: Diagnosis) -> Iterator[str]:
    """Write a diagnosis for people, at most 100 columns wide."""
    shape = config.network
    yield f"device        {found.device}"
    yield (
        f"iteration     {config.selfplay.games} games on {config.game.board}, "
        f"{config.search.simulations} simulations, {shape.trunk} {shape.channels} x "
        f"{shape.blocks} {found.numbers.dtype}"
    )
    yield from section("Where the time of one iteration goes", table_lines(found.numbers))
    if found.devices > 1:
        yield "  Parts on one device, the iteration on all: what they exchange is unexplained."
    yield from section("Self-play with and without the network", selfplay_lines(found))
    yield from section("Use of the device", use_lines(found))
    yield from section("Transfers between host and device", transfer_lines(found.transfers))
    if found.trace:
        yield from section("Trace of one iteration", trace_lines(found.trace))
    yield from section(f"Verdict: bound by {found.verdict.bound}", verdict_lines(found.verdict))


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Write a title and its lines, indented and folded; paths stay whole."""
    yield ""
    yield title
    for line in lines:
        folded = textwrap.wrap(
            line,
            WIDTH - 4,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from (f"  {part}" for part in folded)


def table_lines(numbers: Numbers) -> Iterator[str]:
    """Write the parts with their shares of the whole, their sum, and what they leave open."""
    total = sum(numbers.seconds.values())

    def row(name: str, seconds: float, what: str) -> str:
        return f"{name:<14}{seconds:>10.4f} s{share_cell(seconds / numbers.whole, 1):>8}  {what}"

    for name, seconds in numbers.seconds.items():
        yield row(name, seconds, WHAT[name])
    yield row("sum", total, "of the parts, each measured alone")
    yield row("unexplained", numbers.whole - total, "fusion, caches, noise; parts not measured")
    yield row("iteration", numbers.whole, "measured as one")
    shares = [seconds / numbers.whole for seconds in (*numbers.seconds.values(), total)]
    yield from share_notes({"whole": shares}, 1)


def selfplay_lines(found: Diagnosis) -> Iterator[str]:
    """Compare whole games with the network, with a free evaluator, and the network alone."""
    parts = found.timed.parts
    added = parts["evaluation"] + parts["free_selfplay"]
    yield f"with the network         {parts['selfplay']:>10.4f} s"
    yield f"with a free evaluator    {parts['free_selfplay']:>10.4f} s  tree, rules and moves"
    yield f"network alone            {parts['evaluation']:>10.4f} s  as many evaluations"
    gain = found.numbers.doubling_gain
    change = f"{abs(gain):.0%} {'less' if gain > 0 else 'more'} time"
    yield f"the last two add up to {share_of('whole', added / parts['selfplay'])} of the first"
    yield f"with twice the games an evaluation takes {change}"


def use_lines(found: Diagnosis) -> Iterator[str]:
    """Set what the device seems to do against what it achieves."""
    busy, numbers, ceilings = found.busy, found.numbers, found.ceilings
    seen = "says nothing" if busy.share is None else f"says {share_of('cores', busy.share)} busy"
    used = model_flops_use(found.work, ceilings, numbers.whole)
    yield f"{busy.source} {seen}"
    yield f"use of the matmul ceiling (MFU): {share_of('products', used, 1)}"
    yield f"  while the network runs: {share_of('products', numbers.flops_share)}"
    yield (
        f"ceilings measured: {ceilings.flops / 1e12:.3g} TFLOP/s {numbers.dtype} products, "
        f"{ceilings.bytes / 1e9:.3g} GB/s copies"
    )
    bandwidth = numbers.memory_share
    if bandwidth is not None:
        share = share_of("copies", bandwidth)
        yield f"of the network's time its bytes at the copy ceiling would take: {share}"


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    yield verdict.reason
    yield from (f"- {line}" for line in verdict.advice)


def to_dict(found: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as plain numbers and words, for JSON."""
    return {
        "device": found.device,
        "devices": found.devices,
        "iteration_seconds": found.timed.whole,
        "seconds": found.numbers.seconds,
        "unexplained_seconds": found.timed.whole - sum(found.numbers.seconds.values()),
        "selfplay_seconds": {
            name: found.timed.parts[name] for name in ("selfplay", "free_selfplay", "evaluation")
        },
        "doubling_gain": found.numbers.doubling_gain,
        "flops_per_second_ceiling": found.ceilings.flops,
        "bytes_per_second_ceiling": found.ceilings.bytes,
        "network_flops_share": found.numbers.flops_share,
        "network_memory_share": found.numbers.memory_share,
        "model_flops_use": model_flops_use(found.work, found.ceilings, found.timed.whole),
        "busy": found.busy._asdict(),
        "transfers": found.transfers._asdict(),
        "trace": found.trace
        and {
            **found.trace._asdict(),
            "perfetto": str(found.trace.perfetto),
            "tensorboard": str(found.trace.tensorboard),
        },
        "verdict": found.verdict._asdict(),
    }
