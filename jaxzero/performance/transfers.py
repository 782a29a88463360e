"""What crosses between host and device in one iteration, in bytes, and how far that is proven."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from jaxzero.performance.loop import Loop

# Instructions that reach the host from inside a program.
REACHES_HOST = re.compile(
    r"[\s)](infeed|outfeed|send|recv)\(|custom_call_target=\"([^\"]*callback[^\"]*)\"",
    re.IGNORECASE,
)
LOOP = re.compile(r" while\(.*")


class Transfers(NamedTuple):
    """Traffic of one iteration between host and device."""

    to_host_bytes: int  # metrics that the trainer reads
    to_host_scalars: int  # how many numbers these are
    to_device_bytes: int | None  # 0 when the guard let the iteration pass; None: it did not
    refused: str  # what the guard refused; empty: nothing
    guards_to_device: bool  # a deliberate transfer to the device was refused, so the guard works
    guards_to_host: bool  # the same for a deliberate transfer to the host
    host_calls: tuple[str, ...]  # instructions of the compiled program that reach the host
    open_loops: int  # loops whose end the program finds out while it runs


def count_transfers(loop: Loop) -> Transfers:
    """Run one iteration under a guard that refuses all transfers, then read its metrics."""
    learner, actor, run_key = loop.arguments
    refused, values = "", {}
    try:
        with jax.transfer_guard("disallow_explicit"):
            learner, actor, metrics = jax.block_until_ready(loop.compiled(learner, actor, run_key))
    except jax.errors.JaxRuntimeError as error:
        if not is_refusal(error):
            raise
        refused = str(error).splitlines()[0]
    else:
        loop.progress = loop.progress._replace(learner=learner, actor=actor)
        values = jax.device_get(metrics)
    program = loop.compiled.as_text() or ""
    return Transfers(
        to_host_bytes=sum(np.asarray(value).nbytes for value in values.values()),
        to_host_scalars=sum(np.size(value) for value in values.values()),
        to_device_bytes=None if refused else 0,
        refused=refused,
        guards_to_device=guards_to_device(),
        guards_to_host=guards_to_host(),
        host_calls=host_calls(program),
        open_loops=open_loops(program),
    )


def guards_to_device() -> bool:
    """Return whether the guard refuses a deliberate transfer to the device on this backend."""
    with jax.transfer_guard("disallow_explicit"):
        try:
            jax.device_put(np.zeros(3, np.float32))
        except jax.errors.JaxRuntimeError as error:
            return is_refusal(error)
    return False


def guards_to_host() -> bool:
    """Return whether the guard refuses a deliberate transfer to the host on this backend.

    A CPU shares its memory with the host: there is nothing to refuse.
    """
    array = jax.block_until_ready(jax.numpy.arange(3) + 1)
    with jax.transfer_guard("disallow_explicit"):
        try:
            np.asarray(array)
        except jax.errors.JaxRuntimeError as error:
            return is_refusal(error)
    return False


def is_refusal(error: Exception) -> bool:
    """Tell a refused transfer from other errors of the runtime."""
    return "Disallowed" in str(error)


def host_calls(program: str) -> tuple[str, ...]:
    """Return the instructions of a compiled program (HLO text) that reach the host."""
    found = {one or other for one, other in REACHES_HOST.findall(program)}
    return tuple(sorted(found))


def open_loops(program: str) -> int:
    """Count the loops of a compiled program (HLO text) without a known number of rounds.

    On a GPU the host reads the condition of such a loop, one byte a round.
    """
    return sum("known_trip_count" not in line for line in LOOP.findall(program))


def transfer_lines(found: Transfers) -> Iterator[str]:
    """Say in words what crosses, what is proven, and how."""
    yield (
        f"device to host: {found.to_host_bytes} bytes an iteration, "
        f"the {found.to_host_scalars} scalars of the metrics"
    )
    if found.refused:
        yield f"host to device: NOT zero, the transfer guard refused: {found.refused[:160]}"
    elif found.guards_to_device:
        yield (
            "host to device: 0 bytes, proven: the iteration ran under a guard that refuses every "
            "transfer, and here did refuse a deliberate one"
        )
    else:
        yield "host to device: 0 bytes seen, not proven: the guard refuses nothing here"
    if found.guards_to_host and not found.refused:
        yield "nothing more to the host between programs: proven by the same guard"
    elif not found.refused:
        yield "nothing more to the host: the guard cannot tell here (device memory is the host's)"
    if found.host_calls:
        yield f"inside the program: NOT nothing, it calls {', '.join(found.host_calls)}"
    else:
        yield "inside the program: no callback, infeed, outfeed, send or receive, by its own text"
    if found.open_loops:
        yield (
            f"  {found.open_loops} of its loops end when the data say so (games, descent, "
            "backup, chains): on a GPU the host reads one byte a round, which --trace counts as D2H"
        )
