"""Training: build, restore, loop {iterate, evaluate, log, save}, finish."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config, save_config
from jaxzero.errors import RunError
from jaxzero.host.background import Programs
from jaxzero.host.interrupts import Stop
from jaxzero.host.progress import working
from jaxzero.network.network import Agent, Network
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.memory import peak_memory_bytes
from jaxzero.runs.metrics import MetricsWriter
from jaxzero.runs.run_dir import CONFIG_FILE, check_run_dir, new_folder, resume_command
from jaxzero.runs.summary import (
    Work,
    headline,
    note_start,
    print_header,
    time_left,
    write_summary,
)
from jaxzero.runs.warnings import Warnings
from jaxzero.runs.weights import LoadedAgent, note_initial_weights, noted_initial_weights
from jaxzero.training.devices import choose_devices, local_copy, own_devices, place, replicate
from jaxzero.training.iteration import Program, compile_iteration
from jaxzero.training.processes import ends_together, gather, is_first, on_first, refuse_separate
from jaxzero.training.progress import (
    Progress,
    refuse_misfit,
    resume_progress,
    save_progress,
    start_progress,
)

# Last updates of an iteration without a finite loss and gradient, before the run gives up.
MAX_SKIPPED = 20


class Evaluator(Protocol):
    """Measures the network of a run; `jaxzero.measure.evaluator` has the one of all scripts."""

    def prepare(self) -> None:
        """Check the settings of evaluations before anything is compiled. Raises: InputError."""

    def evaluate(
        self, params: chex.ArrayTree, playing: chex.ArrayTree | None
    ) -> tuple[dict[str, float], chex.ArrayTree | None]:
        """Return metrics, and the weights that play from now on: `params` or `playing`.

        `params` are the newest weights. `playing` is None without a gate: then `params` play.
        """

    def final(self, params: chex.ArrayTree) -> dict[str, Any]:
        """Measure the weights of a complete run, print the results, return them as JSON."""


# Takes the metrics of an iteration; the result True ends the training.
OnIteration = Callable[[dict[str, float]], Any]
# Counts the work of a run and measures its devices, as `performance.report.measure_work`.
MeasureWork = Callable[[Config, list[jax.Device]], Work]
# Progress, metrics, a line for people and whether to end, after an iteration.
Iterated = tuple[Progress, dict[str, float], str, bool]


def train(
    config: Config,
    run_dir: Path,
    evaluator: Evaluator,
    resume: bool = False,
    stop: Stop | None = None,
    initial: LoadedAgent | None = None,
    on_iteration: OnIteration | None = None,
    measure_work: MeasureWork | None = None,
) -> bool:
    """Train in `run_dir`, from scratch, from `initial` weights or from its newest good checkpoint.

    Return whether the run is complete; then its summary is written. With `measure_work` a run on a
    GPU reports its true utilisation. With several processes, all must call this alike; only the
    first one writes. Raises: InputError if the folder holds a run and `resume` is off, or one of
    another board or network, or if the device has too little memory; RunError if the training
    diverges or cannot be saved.
    """
    stop, began = stop or Stop(), time.perf_counter()
    with ends_together(resume_command(run_dir)), ExitStack() as place:
        # A folder that cannot be written is refused before the compiler runs.
        on_first(lambda: place.enter_context(new_folder("run_dir", run_dir)))
        on_first(lambda: check_run_dir(config, run_dir, resume))
        parts = build(config, evaluator, measure_work)
        if resume and initial is None:
            initial = noted_initial_weights(run_dir)
        if initial:
            refuse_misfit(parts.network, initial)
        print("Compiling the program of an iteration ...", flush=True)
        refuse_separate(run_dir)
        program = compile_iteration(config, parts.network, parts.devices)
        if is_first() and not resume:
            # Before the folder of checkpoints: a run that dies from here on can be resumed.
            if initial:
                note_initial_weights(run_dir, initial)
            save_config(config, run_dir / CONFIG_FILE)

        # Signals ask the run to stop from here until the last checkpoint is written.
        with (
            stop.on_signals(),
            Checkpoints(run_dir, tidies=is_first()) as checkpoints,
            ends_together(resume_command(run_dir)),
        ):
            progress = restore(parts, run_dir, checkpoints, resume, initial)
            print(f"memory        {program.memory}", flush=True)
            before, iterations = progress, iterate(parts, program, progress, stop)
            progress = loop(config, run_dir, checkpoints, progress, iterations, on_iteration)
        return finish(parts, run_dir, before, progress, stop, began)


class Parts(NamedTuple):
    """The parts of a training, before anything is compiled."""

    config: Config
    devices: list[jax.Device]
    network: Network
    evaluator: Evaluator
    work: Programs | None  # its result is the `Work` of the run; None: not measured


def build(
    config: Config,
    evaluator: Evaluator,
    measure_work: MeasureWork | None = None,
    quiet: bool = False,
) -> Parts:
    """Choose the devices and print what is about to run, unless `quiet`. Raises: InputError."""
    devices = choose_devices(config.devices)
    config.check_devices(len(devices))
    network = Network(config.game.board, config.network)
    if not quiet:
        print_header(config, devices, network)
    evaluator.prepare()
    work = None
    if measure_work and network.platform != "cpu":
        work = Programs(network.board, ("work", config), partial(measure_work, config, devices))
        work.begin()  # the GPU is idle while the program of an iteration compiles
    return Parts(config, devices, network, evaluator, work)


def restore(
    parts: Parts,
    run_dir: Path,
    checkpoints: Checkpoints,
    resume: bool,
    initial: LoadedAgent | None,
) -> Progress:
    """Return the progress of a run from its newest checkpoint or, without one, a new start."""
    config, devices, network = parts[:3]
    if resume and checkpoints.iterations():
        progress = resume_progress(config, network, devices, checkpoints)
    else:
        if resume:
            print("The run has no checkpoint yet: it starts from the beginning.")
        progress = start_progress(config, network, devices, initial)
    if is_first():
        if resume:
            save_config(config, run_dir / CONFIG_FILE)
        note_start(run_dir, devices, progress.iteration)
    return progress


def loop(
    config: Config,
    run_dir: Path,
    checkpoints: Checkpoints,
    progress: Progress,
    iterations: Iterator[Iterated],
    on_iteration: OnIteration | None,
) -> Progress:
    """Log and save `iterations` until the end of the run or a stop; return the progress then."""
    due, ends = False, progress.fraction_done(config) == 1
    with (
        MetricsWriter(run_dir, progress.iteration, config.iterations)
        if is_first()
        else nullcontext() as writer
    ):
        while not ends:
            with divergence(config, checkpoints, run_dir):
                progress, metrics, line, ends = next(iterations)
            checkpoints.check()
            if is_first():
                writer.write(progress.iteration, metrics, line)
            if on_iteration is not None:
                ends = call(on_iteration, {"iteration": progress.iteration, **metrics}, ends)
            due = due or progress.iteration % config.checkpoint_every == 0
            # After skipped updates weights may be finite and yet never give a finite gradient
            # again. The next iteration diverges or takes an update.
            if ends or (due and not metrics.get("learn/skipped_at_end")):
                save_progress(config, progress, checkpoints)
                due = False
    return progress


def iterate(parts: Parts, program: Program, progress: Progress, stop: Stop) -> Iterator[Iterated]:
    """Run and evaluate one iteration after the other; yield after each.

    Never ends by itself. Raises: FloatingPointError as `run_iteration`.
    """
    config, devices, network, evaluator, _ = parts
    warnings, run_key = Warnings(config), replicate(jax.random.key(config.seed), devices)
    every = config.evaluation.evaluate_every
    work = work_of(parts)
    ahead = None
    if every and network.platform != "cpu":
        # The programs of evaluations compile while the GPU trains.
        weights = local_copy((progress.learner.params, progress.playing))
        ahead = Programs(network.board, id(evaluator), partial(evaluator.evaluate, *weights))
        ahead.begin()
    gather([0.0])  # compiling ends at different times; first collectives must start together
    while True:
        # The compiled program is `iteration` in training/iteration.py.
        with working(f"iteration {progress.iteration + 1}"):
            progress, metrics = run_iteration(config, program.compiled, run_key, progress)
        metrics["memory/peak_bytes"] = peak_memory_bytes(own_devices(devices))
        if work:
            evaluations, samples = metrics["selfplay/evaluations"], config.samples_per_iteration
            rates = work.rates(evaluations, samples, metrics["speed/seconds"])
            metrics |= {f"speed/{name}": rate for name, rate in rates.items()}
        accepted = False
        if every and progress.iteration % every == 0:
            if ahead:
                ahead.get()
            params, playing = local_copy((progress.learner.params, progress.playing))
            measured, playing = evaluator.evaluate(params, playing)
            metrics, accepted = metrics | measured, playing is params
        left = time_left(progress.fraction_done(config), progress.minutes)
        line = f"{headline(config, metrics)}  left {left}"
        for warning in warnings.add({"iteration": progress.iteration, **metrics}):
            line += f"\nwarning: {warning}"
        progress, stopped = agree(progress, stop, accepted)
        yield progress, metrics, line, stopped or progress.fraction_done(config) == 1


def work_of(parts: Parts) -> Work | None:
    """Return the work of a run; None if it is not measured, or cannot be on these devices."""
    with suppress(RuntimeError):  # a report does not end a run
        return parts.work and parts.work.get()
    return None


def run_iteration(
    config: Config, compiled: jax.stages.Compiled, run_key: jax.Array, progress: Progress
) -> tuple[Progress, dict[str, Any]]:
    """Run one iteration and read its scalars, the only wait for the device.

    Raises: FloatingPointError when a metric is not finite, or when too many updates at the end were
    skipped because their loss or gradient was not finite.
    """
    begin = time.perf_counter()
    span = place(progress.next_span(config), run_key.sharding)
    learner, actor, playing = progress[:3]
    learner, actor, metrics = compiled(learner, actor, playing, run_key, span)
    values = jax.device_get(metrics)
    seconds = time.perf_counter() - begin
    metrics = {name: float(value) for name, value in values.items()}
    wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
    if wrong:
        raise FloatingPointError(f"{wrong[0]} is {metrics[wrong[0]]}")
    # Weights that lost their gradient for good skip all updates from then on.
    skipped = metrics.get("learn/skipped_at_end", 0.0)
    if not progress.iteration and 0 < config.learner.updates_per_iteration == skipped:
        raise RunError(
            "learner: no update had a finite gradient, from the first one on: a loss or "
            "an input of the network is not finite, and another learning rate cannot help"
        )
    if 0 < min(MAX_SKIPPED, config.learner.updates_per_iteration) <= skipped:
        raise FloatingPointError(f"the last {skipped:.0f} updates had no finite gradient")
    games = round(metrics["selfplay/games"])
    # Evaluations that searches asked for; a device may compute more to fill its batches.
    evaluations = round(metrics["selfplay/evaluations"])
    progress = progress._replace(
        learner=learner,
        actor=actor,
        iteration=progress.iteration + 1,
        minutes=progress.minutes + seconds / 60,
        games=progress.games + games,
        evaluations=progress.evaluations + evaluations,
    )
    return progress, metrics | {
        "speed/seconds": seconds,
        "speed/games_per_second": games / seconds,
        "speed/evaluations_per_second": evaluations / seconds,
        "speed/games": progress.games,
        "speed/minutes": progress.minutes,
    }


def agree(progress: Progress, stop: Stop, accepted: bool) -> tuple[Progress, bool]:
    """Make all processes go on or stop together, with the clock and the gate of the first one.

    If the gate has `accepted` the newest weights, they play from now on. A signal or a time limit
    in any process stops all of them.
    """
    own = [progress.minutes, accepted, stop.iteration_done(), stop.signal or 0]
    everywhere = gather(own)
    minutes, accepted = everywhere[0, :2]
    progress = progress._replace(minutes=float(minutes))
    if accepted and progress.playing is not None:
        newest = jax.tree.map(jnp.copy, progress.learner.params)  # the learner is donated
        progress = progress._replace(playing=newest)
    stop.take_over(int(everywhere[:, 3].max()))
    return progress, bool(everywhere[:, 2].any())


def finish(
    parts: Parts, run_dir: Path, before: Progress, progress: Progress, stop: Stop, began: float
) -> bool:
    """Measure and summarise a complete run; print the command that continues a stopped one.

    This call has brought the run from `before` to `progress` since the time `began`.
    """
    config, devices, _, evaluator, _ = parts
    if progress.fraction_done(config) < 1:
        iterations = f" of {config.iterations}" if config.iterations else ""
        minutes = f", {progress.minutes:.1f} of {config.minutes:g} minutes," * bool(config.minutes)
        print(
            f"Stopped after {progress.iteration}{iterations} iterations{minutes} and saved. "
            f"To go on: {resume_command(run_dir)}"
        )
        return False
    stop.take_over(int(gather([stop.signal or 0]).max()))
    if stop.signal is not None:
        print(f"The training is done and saved. To measure the strength: {resume_command(run_dir)}")
        return False
    print("Measuring the final strength ...", flush=True)
    try:
        results = evaluator.final(local_copy(progress.playing_params))
    except KeyboardInterrupt:  # SIGTERM too
        print(f"The training is saved. To measure the strength: {resume_command(run_dir)}")
        raise
    if work := work_of(parts):
        evaluations = progress.evaluations - before.evaluations
        samples = (progress.iteration - before.iteration) * config.samples_per_iteration
        results |= work.rates(evaluations, samples, time.perf_counter() - began)
    totals = progress.iteration, progress.minutes, progress.games, progress.evaluations
    peak = peak_memory_bytes(own_devices(devices))
    on_first(lambda: write_summary(config, run_dir, devices, totals, peak, results))
    return True


def train_in_memory(
    config: Config, evaluator: Evaluator, on_iteration: OnIteration | None = None
) -> tuple[Agent, list[dict[str, float]]]:
    """Train without a folder; return the agent and the metrics of all iterations.

    The first Ctrl-C, or the result True of `on_iteration`, ends the training after the iteration.
    Without `on_iteration` print progress. Raises: InputError as `train`; RunError on divergence.
    """
    parts, stop, found = build(config, evaluator, quiet=on_iteration is not None), Stop(), []
    program = compile_iteration(config, parts.network, parts.devices)
    with stop.on_signals():
        begin = start_progress(config, parts.network, parts.devices, None)
        iterations, ends = iterate(parts, program, begin, stop), False
        while not ends:
            with divergence(config):
                progress, metrics, line, ends = next(iterations)
            found.append({"iteration": progress.iteration, **metrics})
            if on_iteration is None:
                print(f"{progress.iteration:>5}  {line}", flush=True)
            else:
                ends = call(on_iteration, found[-1], ends)
    params = local_copy(progress.playing_params)
    return Agent(parts.network, params, config.search), found


def call(on_iteration: OnIteration, metrics: dict[str, float], ends: bool) -> bool:
    """Pass a copy of the metrics to a callback; return whether the training ends."""
    asked = on_iteration(dict(metrics)) is True  # `file.write` returns a number
    if asked and not ends:
        print(f"on_iteration returned True: ending after iteration {metrics['iteration']}.")
    return ends or asked


@contextmanager
def divergence(
    config: Config, checkpoints: Checkpoints | None = None, run_dir: Path = Path()
) -> Iterator[None]:
    """Turn a FloatingPointError into a RunError that explains what is left and what to do."""
    try:
        yield
    except FloatingPointError as error:
        rate = config.learner.learning_rate
        message = f"learner.learning_rate: {rate:g} made the training diverge: {error}"
        if checkpoints is not None:
            checkpoints.wait()
            found = checkpoints.iterations()
            intact = f"checkpoint {found[-1]} is intact" if found else "there is no checkpoint"
            lower = {"learner.learning_rate": float(f"{0.3 * rate:g}")}
            message += f"; {intact}. To go on with a lower rate: {resume_command(run_dir, **lower)}"
        raise RunError(message) from error
