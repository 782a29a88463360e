"""A run under observation: its iteration as the trainer runs it, and what the device shows of it.

It shows the host gap, the traffic between host and device, the utilisation and a profiler trace.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import Config
from jaxzero.host.files import atomic_write, make_folder, temporary_folder
from jaxzero.network.network import Network
from jaxzero.runs.memory import peak_memory_bytes
from jaxzero.runs.metrics import MetricsWriter
from jaxzero.runs.summary import headline
from jaxzero.training.adjudicator import Adjudicator
from jaxzero.training.iteration import compile_iteration
from jaxzero.training.parallel import replicate
from jaxzero.training.progress import run_iteration, start

try:
    import pynvml  # of the package nvidia-ml-py, which comes with the CUDA extras
except ImportError:
    pynvml = None

WATCH_SECONDS, SAMPLE_SECONDS = 2.0, 0.1  # watching the utilisation, between its readings
TRACE_FILES = {"perfetto": "perfetto_trace*", "tensorboard": "*.xplane.pb"}
# Instructions that reach the host from inside a program.
REACHES_HOST = re.compile(
    r"[\s)](infeed|outfeed|send|recv)\(|custom_call_target=\"([^\"]*callback[^\"]*)\"",
    re.IGNORECASE,
)
LOOP = re.compile(r" while\(.*")


class Training:
    """A run in progress: the compiled iteration, its state and its metrics."""

    def __init__(self, config: Config, devices: list[jax.Device], writer: MetricsWriter):
        network = Network(config.game.board, config.network)
        begin = time.perf_counter()
        self.program = compile_iteration(config, network, devices)
        self.compile_seconds = time.perf_counter() - begin
        self.progress = start(config, network, devices, None)
        self.host_seconds: list[float] = []  # of each iteration, after the end of the device's work
        self.solver: Adjudicator | None = None  # of stopped games; without it their ends stay open
        self.solver_seconds: list[float] = []  # that the device waited for its answers
        self.sent: dict[str, int] = {}  # bytes that the host sent for the last iteration, by name
        self._config, self._devices, self._writer = config, devices, writer
        self._run_key = replicate(jax.random.key(config.seed), devices)
        self._span = replicate(np.zeros(2, np.float32), devices)
        self._device_done = 0.0

    def step(self, compiled: jax.stages.Compiled | None = None) -> chex.ArrayTree:
        """Run one iteration, or another program of its form, on the devices alone."""
        learner, actor, metrics = (compiled or self.program.compiled)(
            self.progress.learner, self.progress.actor, self._run_key, self._span
        )
        self.progress = self.progress._replace(learner=learner, actor=actor)
        self._games = metrics["selfplay/games"]
        return learner, metrics

    def iterate(self) -> None:
        """Run one iteration as the trainer does: compute, read the scalars, write them down."""
        self.progress, metrics = run_iteration(
            self._config, self._timed, self._run_key, self.progress, self.solver
        )
        self._games = metrics["selfplay/games"]
        if "speed/solver_wait_seconds" in metrics:
            self.solver_seconds.append(metrics["speed/solver_wait_seconds"])
        metrics["memory/peak_bytes"] = peak_memory_bytes(self._devices[0])
        with redirect_stdout(io.StringIO()):
            self._writer.write(len(self.host_seconds) + 1, metrics, headline(self._config, metrics))
        self.host_seconds.append(time.perf_counter() - self._device_done)

    def host_gap(self) -> float:
        """Return the median seconds from the end of the device's work to the end of `iterate`."""
        return statistics.median(self.host_seconds[1:] or self.host_seconds)

    def games(self) -> int:
        """Return how many games the last iteration began."""
        return round(float(self._games))

    def _timed(self, *arguments: chex.ArrayTree) -> tuple:
        there = self.progress.learner, self.progress.actor, self._run_key
        self.sent = new_bytes(there, arguments)
        done = jax.block_until_ready(self.program.compiled(*arguments))
        self._device_done = time.perf_counter()
        return done


@contextmanager
def training(config: Config, devices: list[jax.Device]) -> Iterator[Training]:
    """Yield a run whose metrics go to a temporary folder."""
    with temporary_folder() as folder, MetricsWriter(folder, 0, config.iterations) as writer:
        yield Training(config, devices, writer)


def new_bytes(before: tuple, now: tuple) -> dict[str, int]:
    """Return the bytes of the arrays of `now` that are not among those of `before`, by name."""
    old = {id(leaf) for leaf in jax.tree.leaves(before)}
    named = zip(("learner", "actor", "key", "span"), now, strict=True)
    leaves = jax.tree_util.tree_leaves_with_path(dict(named))
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): sum(
            shard.data.nbytes for shard in leaf.addressable_shards
        )
        for path, leaf in leaves
        if id(leaf) not in old
    }


class Utilisation(NamedTuple):
    """How busy the devices were while iterations ran."""

    share: float | None  # 0 to 1; None: unknown
    source: str
    seconds: float  # of one iteration


def watch_utilisation(iterate: Callable[[], object], devices: list[jax.Device]) -> Utilisation:
    """Run iterations for at least `WATCH_SECONDS` and read the utilisation meanwhile."""
    readings, done, iterations = [], threading.Event(), 0
    reader = threading.Thread(target=_read_gpus, args=(devices, readings, done), daemon=True)
    begin, cpu_begin = time.perf_counter(), time.process_time()
    on_cpu = devices[0].platform == "cpu"
    if not on_cpu:
        reader.start()
    while not iterations or time.perf_counter() - begin < WATCH_SECONDS:
        iterate()
        iterations += 1
    wall = time.perf_counter() - begin
    if on_cpu:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        share = (time.process_time() - cpu_begin) / (wall * cores)
        return Utilisation(share, "processor time over wall time and cores", wall / iterations)
    done.set()
    reader.join()
    share = statistics.mean(readings) if readings else None
    return Utilisation(share, "NVML, as nvidia-smi shows it", wall / iterations)


def _read_gpus(devices: list[jax.Device], readings: list[float], done: threading.Event) -> None:
    """Append utilisations of the devices, 0 to 1, until `done`; none where NVML cannot tell."""
    if pynvml is None:
        return
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    with suppress(pynvml.NVMLError, ValueError, IndexError):
        pynvml.nvmlInit()
        gpus = []
        for device in devices:
            name = visible[device.local_hardware_id] if visible else device.local_hardware_id
            of = pynvml.nvmlDeviceGetHandleByIndex
            numbered = str(name).isdigit()
            gpus.append(of(int(name)) if numbered else pynvml.nvmlDeviceGetHandleByUUID(name))
        while not done.wait(SAMPLE_SECONDS):
            readings += [pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100 for gpu in gpus]


class Transfers(NamedTuple):
    """Traffic of one iteration between host and device."""

    to_host_bytes: int  # metrics that the trainer reads
    to_host_scalars: int
    stops_bytes: int  # positions that the solver reads; 0 without one
    sent: dict[str, int]  # bytes that the trainer sends, by name
    refused: str  # what the guard refused; empty: nothing
    guards_to_device: bool  # the guard refused a deliberate transfer, so it works
    guards_to_host: bool  # a CPU shares its memory with the host: nothing to refuse
    host_calls: tuple[str, ...]  # instructions of the compiled program that reach the host
    open_loops: int  # loops whose end the program finds out while it runs


def count_transfers(run: Training) -> Transfers:
    """Run iterations under guards: the program alone with no transfer, the trainer with its own.

    The trainer may do those that it asks for by name, and they are counted.
    """
    array, metrics = jax.block_until_ready(jnp.arange(3) + 1), {}

    def program() -> None:
        metrics.update(jax.block_until_ready(run.step())[1])

    refused = refusal(program)
    values = {} if refused else jax.device_get(metrics)
    for _ in range(1 if run.solver is None else 3):  # the solver answers two iterations later
        refused = refused or refusal(run.iterate, "disallow")
    waiting = run.progress.actor.adjudication if run.solver else ()
    text = run.program.compiled.as_text() or ""
    return Transfers(
        to_host_bytes=sum(np.asarray(value).nbytes for value in values.values()),
        to_host_scalars=sum(np.size(value) for value in values.values()),
        stops_bytes=waiting.newer.stops.drawn.nbytes if waiting else 0,
        sent=run.sent,
        refused=refused,
        guards_to_device=bool(refusal(lambda: jax.device_put(np.zeros(3, np.float32)))),
        guards_to_host=bool(refusal(lambda: np.asarray(array))),
        host_calls=host_calls(text),
        open_loops=open_loops(text),
    )


def refusal(transfer: Callable[[], object], guard: str = "disallow_explicit") -> str:
    """Return why the transfer guard refuses a call, or an empty text.

    The guard "disallow" lets through what is asked for by name, such as `jax.device_put`.
    """
    try:
        with jax.transfer_guard(guard):
            transfer()
    except jax.errors.JaxRuntimeError as error:
        if "Disallowed" not in str(error):
            raise
        return str(error).splitlines()[0]
    return ""


def host_calls(program: str) -> tuple[str, ...]:
    """Return the instructions of a compiled program (HLO text) that reach the host."""
    return tuple(sorted({one or other for one, other in REACHES_HOST.findall(program)}))


def open_loops(program: str) -> int:
    """Count the loops of a compiled program (HLO text) without a known number of rounds.

    On a GPU the host reads the condition of such a loop, one byte a round.
    """
    return sum("known_trip_count" not in line for line in LOOP.findall(program))


def take_trace(run: Callable[[], object], folder: Path) -> dict[str, str]:
    """Record one call of `run` in `folder`; return the files for Perfetto and TensorBoard."""
    make_folder("trace", folder)
    with temporary_folder() as fresh:
        with jax.profiler.trace(str(fresh), create_perfetto_trace=True):
            run()
        found = [path for path in sorted(fresh.rglob("*")) if path.is_file()]
        files = [folder / path.relative_to(fresh) for path in found]
        for path, file in zip(found, files, strict=True):
            make_folder("trace", file.parent)
            with atomic_write(file) as temporary:
                shutil.copyfile(path, temporary)
    return {
        program: str(file)
        for program, pattern in TRACE_FILES.items()
        for file in files
        if file.match(pattern)
    }
