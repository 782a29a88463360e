"""Training: open the run, restore or start, loop {iterate, evaluate, log, save}, finish."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import chex
import jax
import numpy as np

from jaxzero.config import Config
from jaxzero.errors import RunError
from jaxzero.host.background import Programs
from jaxzero.host.interrupts import Stop
from jaxzero.host.progress import working
from jaxzero.network.network import Agent, Network, init_params
from jaxzero.runs.memory import peak_memory_bytes
from jaxzero.runs.run_dir import resume_command
from jaxzero.runs.summary import Work, headline, print_header, time_left, write_summary
from jaxzero.runs.warnings import Warnings
from jaxzero.runs.weights import LoadedAgent
from jaxzero.training.devices import choose_devices, local_copy, own_devices, place, replicate
from jaxzero.training.processes import ends_together, gather, on_first
from jaxzero.training.program import compile_iteration
from jaxzero.training.run_files import RunInMemory, open_run
from jaxzero.training.run_state import RunState, refuse_misfit

# Last updates of an iteration without a finite loss and gradient, before the run gives up.
MAX_SKIPPED = 20


class Evaluator(Protocol):
    """Measures the network of a run; `jaxzero.measure.evaluator` has the one of all scripts."""

    def prepare(self) -> None:
        """Check the settings of evaluations before anything is compiled. Raises: InputError."""

    def compile(self, params: chex.ArrayTree) -> None:
        """Compile all programs that measure such weights."""

    def evaluate(self, params: chex.ArrayTree) -> dict[str, float]:
        """Return metrics of weights during the run."""

    def final(self, params: chex.ArrayTree) -> dict[str, Any]:
        """Measure the weights of a complete run, print the results, return them as JSON."""


# Callback with the iteration's metrics; return True to stop.
OnIteration = Callable[[dict[str, float]], Any]
# Measures the devices of a run, as `performance.report.measure_work`; its result counts the work.
MeasureWork = Callable[[Config, list[jax.Device]], Callable[[], Work]]


class TrainResult(NamedTuple):
    """The end of a call of `train`."""

    complete: bool  # the run has reached its iterations or minutes, and is measured
    agent: Agent  # the newest weights, on the first device
    history: list[dict[str, float]]  # the metrics of each iteration of this call


def train(
    config: Config,
    run_dir: Path | None,
    evaluator: Evaluator,
    *,
    resume: bool = False,
    stop: Stop | None = None,
    initial: LoadedAgent | None = None,
    on_iteration: OnIteration | None = None,
    measure_work: MeasureWork | None = None,
) -> TrainResult:
    """Train in `run_dir`, from scratch, from `initial` weights or from its newest good checkpoint.

    Without a folder nothing is written, and lines are printed only without `on_iteration`. With
    `measure_work` a run on a GPU reports its true utilisation. With several processes, all must
    call this alike; only the first one writes. Raises: InputError if the folder holds a run and
    `resume` is off, or one of another board or network, or if the device has too little memory;
    RunError if the training diverges or cannot be saved.
    """
    stop, began, history = stop or Stop(), time.perf_counter(), []
    hint = resume_command(run_dir) if run_dir else ""
    with ends_together(hint), open_run(config, run_dir, resume, on_iteration is None) as run:
        devices, network = prepare(config, evaluator, run.verbose)
        initial = fitting(network, initial or run.noted_initial_weights())
        work = begin_work(measure_work, config, network, devices)
        evaluations = Programs(
            network.board, id(evaluator), partial(compile_evaluations, evaluator, network, devices)
        )
        begin_evaluations(config, evaluations, network.platform == "cpu")
        program = compile_iteration(config, network, devices)
        # Signals ask the run to stop from here until the last checkpoint is written.
        with stop.on_signals(), run.open(config, initial), ends_together(hint):
            state = first = run.restore(config, network, devices, initial)
            if run.verbose:
                print(f"memory        {program.memory}", flush=True)
            begin_evaluations(config, evaluations)
            warnings, run_key = Warnings(config), replicate(jax.random.key(config.seed), devices)
            gather([0.0])  # compiling ends at different times; collectives must start together
            done, unsaved = state.progress(config) == 1, False
            while not done:
                with divergence(config, run):
                    state, metrics = run_iteration(config, program.compiled, run_key, state)
                metrics |= measured(devices, work, metrics)
                if is_due(config.evaluation.evaluate_every, state):
                    metrics |= evaluator.evaluate(local_copy(state.learner.params))
                state, done = agree(config, state, stop)
                history.append({"iteration": state.iteration, **metrics})
                run.log(history[-1], report_line(config, state, history[-1], warnings))
                done = asked_to_end(on_iteration, history[-1], done) or done
                unsaved = unsaved or is_due(config.checkpoint_every, state)
                if done or (unsaved and may_save(metrics)):
                    with divergence(config, run):
                        run.save(config, state)
                    unsaved = False
        complete = False
        if run_dir:
            called = first, state, time.perf_counter() - began
            complete = finish(config, run_dir, evaluator, stop, devices, work, *called)
    params = local_copy(state.learner.params)
    return TrainResult(complete, Agent(network, params, config.search), history)


def prepare(
    config: Config, evaluator: Evaluator, verbose: bool
) -> tuple[list[jax.Device], Network]:
    """Choose the devices and the network, and print what is about to run. Raises: InputError."""
    devices = choose_devices(config.devices)
    config.check_devices(len(devices))
    network = Network(config.game.board, config.network)
    if verbose:
        print_header(config, devices, network)
    evaluator.prepare()
    if verbose:
        print("Compiling the program of an iteration ...", flush=True)
    return devices, network


def fitting(network: Network, initial: LoadedAgent | None) -> LoadedAgent | None:
    """Return the initial weights. Raises: InputError if none of their arrays fits."""
    if initial:
        refuse_misfit(network, initial)
    return initial


def begin_work(
    measure_work: MeasureWork | None,
    config: Config,
    network: Network,
    devices: list[jax.Device],
) -> Programs | None:
    """Measure a GPU, which is idle until the program is compiled; begin to count its work."""
    if measure_work is None or network.platform == "cpu":
        return None
    with suppress(RuntimeError):  # a report does not end a run
        work = Programs(network.board, ("work", config), measure_work(config, devices))
        work.begin()
        return work
    return None


def begin_evaluations(config: Config, evaluations: Programs, now: bool = True) -> None:
    """Compile the programs of evaluations in a thread, unless they compile already.

    On a CPU they begin before the program of an iteration, because XLA leaves a core idle. On a GPU
    they begin after it: XLA times its candidates there.
    """
    every = config.evaluation.evaluate_every
    if now and every and not 0 < config.iterations < every:
        evaluations.begin()


def compile_evaluations(evaluator: Evaluator, network: Network, devices: list[jax.Device]) -> None:
    """Compile the programs of evaluations. Only the shapes of the weights matter."""
    shapes = jax.eval_shape(partial(init_params, network), jax.random.key(0))
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    evaluator.compile(jax.device_put(zeros, own_devices(devices)[0]))


def run_iteration(
    config: Config, compiled: jax.stages.Compiled, run_key: jax.Array, state: RunState
) -> tuple[RunState, dict[str, Any]]:
    """Run one iteration and read its scalars, the only wait for the device.

    Raises: FloatingPointError when a metric is not finite, or when too many updates at the end were
    skipped because their loss or gradient was not finite.
    """
    begin = time.perf_counter()
    schedule = place(state.next_schedule(config), run_key.sharding)
    # The compiled program is `iteration` in training/iteration.py.
    with working(f"iteration {state.iteration + 1}"):
        learner, actor, metrics = compiled(state.learner, state.actor, run_key, schedule)
        values = jax.device_get(metrics)
    seconds = time.perf_counter() - begin
    metrics = {name: float(value) for name, value in values.items()}
    wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
    if wrong:
        raise FloatingPointError(f"{wrong[0]} is {metrics[wrong[0]]}")
    # Weights that lost their gradient for good skip all updates from then on.
    skipped = metrics.get("learn/skipped_at_end", 0.0)
    if not state.iteration and 0 < config.learner.updates_per_iteration == skipped:
        raise RunError(
            "learner: no update had a finite gradient, from the first one on: a loss or "
            "an input of the network is not finite, and another learning rate cannot help"
        )
    if 0 < min(MAX_SKIPPED, config.learner.updates_per_iteration) <= skipped:
        raise FloatingPointError(f"the last {skipped:.0f} updates had no finite gradient")
    games = round(metrics["selfplay/games"])
    # Evaluations that searches need; a device may compute more to fill its batches.
    evaluations = round(metrics["selfplay/evaluations"])
    state = RunState(
        learner,
        actor,
        iteration=state.iteration + 1,
        minutes=state.minutes + seconds / 60,
        games=state.games + games,
        evaluations=state.evaluations + evaluations,
    )
    return state, metrics | {
        "speed/seconds": seconds,
        "speed/games_per_second": games / seconds,
        "speed/evaluations_per_second": evaluations / seconds,
        "speed/games": state.games,
        "speed/minutes": state.minutes,
    }


def measured(
    devices: list[jax.Device], work: Programs | None, metrics: dict[str, float]
) -> dict[str, float]:
    """Return the peak memory and, where the work is counted, the utilisation of an iteration."""
    peak = {"memory/peak_bytes": peak_memory_bytes(own_devices(devices))}
    if (counted := work_of(work)) is None:
        return peak
    rates = counted.rates(metrics["selfplay/evaluations"], 1, metrics["speed/seconds"])
    return peak | {f"speed/{name}": rate for name, rate in rates.items()}


def work_of(work: Programs | None) -> Work | None:
    """Return the work of a run; None if it is not measured, or cannot be on these devices."""
    with suppress(RuntimeError):  # a report does not end a run
        return work and work.get()
    return None


def is_due(every: int, state: RunState) -> bool:
    """Return whether something that happens `every` so many iterations happens now; 0: never."""
    return every > 0 and state.iteration % every == 0


def agree(config: Config, state: RunState, stop: Stop) -> tuple[RunState, bool]:
    """Synchronise stop and clock across processes; return whether the run ends now.

    The clock is that of the first process. A signal or a time limit in any process stops all.
    """
    everywhere = gather([state.minutes, stop.iteration_done(), stop.signal or 0])
    state = state._replace(minutes=float(everywhere[0, 0]))
    stop.take_over(int(everywhere[:, 2].max()))
    return state, bool(everywhere[:, 1].any()) or state.progress(config) == 1


def report_line(
    config: Config, state: RunState, metrics: dict[str, float], warnings: Warnings
) -> str:
    """Return the line of an iteration for people, with the warnings that hold from now on."""
    left = time_left(state.progress(config), state.minutes)
    line = f"{headline(config, metrics)}  left {left}"
    return "\nwarning: ".join([line, *warnings.add(metrics)])


def asked_to_end(on_iteration: OnIteration | None, metrics: dict[str, float], done: bool) -> bool:
    """Pass a copy of the metrics to the callback; return whether it ends the training."""
    if on_iteration is None or on_iteration(dict(metrics)) is not True:  # `file.write` gives an int
        return False
    if not done:
        print(f"on_iteration returned True: ending after iteration {metrics['iteration']}.")
    return True


def may_save(metrics: dict[str, float]) -> bool:
    """Return whether weights are good enough for a checkpoint before the end.

    After skipped updates weights may be finite and yet never give a finite gradient again. The next
    iteration diverges or takes an update.
    """
    return not metrics.get("learn/skipped_at_end")


@contextmanager
def divergence(config: Config, run: RunInMemory) -> Iterator[None]:
    """Turn a FloatingPointError into a RunError that explains what is left and what to do."""
    try:
        yield
    except FloatingPointError as error:
        rate = config.learner.learning_rate
        remedy = run.remedy({"learner.learning_rate": float(f"{0.3 * rate:g}")})
        message = f"learner.learning_rate: {rate:g} made the training diverge: {error}{remedy}"
        raise RunError(message) from error


def finish(
    config: Config,
    run_dir: Path,
    evaluator: Evaluator,
    stop: Stop,
    devices: list[jax.Device],
    work: Programs | None,
    first: RunState,
    state: RunState,
    seconds: float,
) -> bool:
    """Measure and summarise a complete run; print the command that continues a stopped one.

    This call has brought the run from `first` to `state` in `seconds`.
    """
    if state.progress(config) < 1:
        iterations = f" of {config.iterations}" if config.iterations else ""
        minutes = f", {state.minutes:.1f} of {config.minutes:g} minutes," * bool(config.minutes)
        print(
            f"Stopped after {state.iteration}{iterations} iterations{minutes} and saved. "
            f"To go on: {resume_command(run_dir)}"
        )
        return False
    stop.take_over(int(gather([stop.signal or 0]).max()))
    if stop.signal is not None:
        print(f"The training is done and saved. To measure the strength: {resume_command(run_dir)}")
        return False
    print("Measuring the final strength ...", flush=True)
    try:
        results = evaluator.final(local_copy(state.learner.params))
    except KeyboardInterrupt:  # SIGTERM too
        print(f"The training is saved. To measure the strength: {resume_command(run_dir)}")
        raise
    iterations, call = state.iteration - first.iteration, {}
    if iterations:
        peak = peak_memory_bytes(own_devices(devices))
        minutes = round(seconds / 60, 4)  # compiling and evaluations included
        call = {"iterations": iterations, "minutes": minutes, "peak_memory_bytes": peak}
        if counted := work_of(work):
            evaluations = state.evaluations - first.evaluations
            call |= counted.rates(evaluations, iterations, seconds)
    totals = state.iteration, state.minutes, state.games, state.evaluations
    on_first(lambda: write_summary(config, run_dir, devices, totals, call, results))
    return True
